//! How a model's vocabulary differs from the one that estimates are made for.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::call::Key;

/// Learns, by model, the ratio of reported to estimated input tokens.
///
/// A model starts with what is published about its family (Claude makes up to half as many tokens again, DeepSeek a
/// tenth more) and moves by an eighth towards every report. Ratios stay between 1/8 and 8, and a report of nothing
/// teaches nothing, so that one absurd report cannot spoil the estimates. At most a given number of models is
/// learned, 1 000 by default; further ones keep the ratio of their family.
///
/// ```
/// use seawall::call::{Key, tokens::Ratios};
///
/// let ratios = Ratios::default();
/// let model = Key::from("my-model");
/// assert_eq!(ratios.scale(&model, 1_000), 1_000);
/// for _ in 0..50 {
///     ratios.learn(&model, 1_000, 1_300);
/// }
/// assert!((1_280..=1_320).contains(&ratios.scale(&model, 1_000)));
/// ```
pub struct Ratios {
    models: RwLock<HashMap<Key, AtomicU32>>,
    capacity: usize,
}

/// A ratio of one: ratios are integers, so that nothing drifts.
const ONE: u32 = 1 << 16;
const LEAST: u32 = ONE / 8;
const MOST: u32 = ONE * 8;
/// A report moves the ratio by one part in this many.
const INERTIA: i64 = 8;

impl Ratios {
    /// Ratios of at most this many models.
    #[must_use]
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self { models: RwLock::default(), capacity: capacity.get() }
    }

    /// The tokens to expect of this model where [`estimate`](super::estimate) says `estimate`.
    #[must_use]
    pub fn scale(&self, model: &Key, estimate: u64) -> u64 {
        let scaled = u128::from(estimate) * u128::from(self.ratio(model)) / u128::from(ONE);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Takes over that a call of this model, *estimated* (before scaling) at `estimate` input tokens, used `used`.
    pub fn learn(&self, model: &Key, estimate: u64, used: u64) {
        if estimate == 0 || used == 0 {
            return;
        }
        let seen = u128::from(used) * u128::from(ONE) / u128::from(estimate);
        let seen = u32::try_from(seen).unwrap_or(MOST).clamp(LEAST, MOST);
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(ratio) = models.get(model) {
            return step(ratio, seen);
        }
        let full = models.len() >= self.capacity;
        drop(models);
        if full {
            return;
        }
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        // Others may have come in between.
        if models.len() < self.capacity || models.contains_key(model) {
            let ratio = models.entry(model.clone()).or_insert_with(|| AtomicU32::new(family(model.as_str())));
            step(ratio, seen);
        }
    }

    fn ratio(&self, model: &Key) -> u32 {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.get(model).map_or_else(|| family(model.as_str()), |ratio| ratio.load(Ordering::Relaxed))
    }
}

impl Default for Ratios {
    fn default() -> Self {
        Self { models: RwLock::default(), capacity: 1_000 }
    }
}

impl fmt::Debug for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Ratios").field("models", &models.len()).field("capacity", &self.capacity).finish()
    }
}

fn step(ratio: &AtomicU32, seen: u32) {
    let _ = ratio.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
        let gap = i64::from(seen) - i64::from(old);
        // Away from zero, so that it arrives instead of stopping short.
        let move_by = (gap.abs() + INERTIA - 1) / INERTIA * gap.signum();
        u32::try_from(i64::from(old) + move_by).ok()
    });
}

/// What is published about a family of models, against o200k.
fn family(model: &str) -> u32 {
    const EARLY_CLAUDE: [&str; 9] =
        ["claude-2", "claude-3", "claude-instant", "-4-0", "-4-1", "-4-2", "-4-5", "-4-6", "-4@"];
    let percent = if model.contains("claude") {
        // A newer vocabulary came with 4.7.
        if EARLY_CLAUDE.iter().any(|part| model.contains(part)) { 115 } else { 150 }
    } else if model.contains("deepseek") {
        110
    } else if model.contains("gemini") {
        105
    } else {
        100
    };
    ONE * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_beyond_the_capacity_keeps_the_ratio_of_its_family() {
        let ratios = Ratios::new(NonZeroUsize::MIN);
        let (first, second) = (Key::from("first"), Key::from("claude-opus-5"));
        ratios.learn(&first, 100, 200);
        ratios.learn(&second, 100, 800);
        assert!(ratios.scale(&first, 1_000) > 1_100);
        assert!((1_490..=1_500).contains(&ratios.scale(&second, 1_000)));
    }

    #[test]
    fn an_absurd_report_moves_an_estimate_by_no_more_than_one_step() {
        let ratios = Ratios::default();
        let model = Key::from("m");
        ratios.learn(&model, 1, u64::MAX);
        assert!(ratios.scale(&model, 1_000) <= 1_876);
        ratios.learn(&model, u64::MAX, 1);
        assert!(ratios.scale(&model, 1_000) >= 1_000);
        ratios.learn(&model, 0, 5);
        ratios.learn(&model, 5, 0);
        assert!(ratios.scale(&model, u64::MAX) > u64::MAX / 2, "it saturates");
    }

    #[test]
    fn it_arrives_at_what_is_reported() {
        let ratios = Ratios::default();
        let model = Key::from("m");
        for _ in 0..200 {
            ratios.learn(&model, 1_000, 700);
        }
        assert!((699..=701).contains(&ratios.scale(&model, 1_000)));
    }
}
