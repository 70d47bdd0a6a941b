//! Random numbers for jitter: seedable, lock-free, and never the same for two clones.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers that can be drawn from through a shared reference.
///
/// Every draw advances a counter by an odd step and mixes it, so that no state is read twice; a clone takes one draw of
/// its origin as its seed, so that the two go on differently and yet reproducibly.
pub(crate) struct Rng(AtomicU64);

/// The golden ratio in 64 bits: odd, and far from any pattern in the seeds that people choose.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// With a seed of its own.
    pub(crate) fn fresh() -> Self {
        Self::seeded(fastrand::u64(..))
    }

    /// A number from 0 to `most`, both included.
    pub(crate) fn up_to(&self, most: u64) -> u64 {
        fastrand::Rng::with_seed(self.0.fetch_add(STEP, Ordering::Relaxed)).u64(0..=most)
    }
}

impl Clone for Rng {
    fn clone(&self) -> Self {
        Self::seeded(self.up_to(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    fn draws(rng: &Rng) -> Vec<u64> {
        (0..8).map(|_| rng.up_to(1_000_000)).collect()
    }

    #[test]
    fn clones_diverge_and_a_seed_repeats() {
        let (one, other) = (Rng::seeded(7), Rng::seeded(7));
        let clone = one.clone();
        let _ = other.clone();
        let drawn = draws(&one);
        assert_ne!(drawn, draws(&clone), "a clone does not replay its origin");
        assert_eq!(drawn, draws(&other), "the same seed and history give the same numbers");
        assert_ne!(draws(&Rng::fresh()), draws(&Rng::fresh()));
    }

    #[test]
    fn both_ends_are_reached_and_none_is_passed() {
        let rng = Rng::seeded(1);
        let drawn: Vec<u64> = (0..200).map(|_| rng.up_to(3)).collect();
        assert!((0..=3).all(|n| drawn.contains(&n)) && drawn.iter().all(|&n| n <= 3));
        assert_eq!(rng.up_to(0), 0);
    }
}
