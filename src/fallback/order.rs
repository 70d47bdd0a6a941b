//! In which order targets are asked: pure choices, with the draw of chance as an argument.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::time;

/// In which order the targets of a route are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// As they are listed.
    #[default]
    Listed,
    /// By chance, in proportion to their weights. One of weight 0 is asked only when no other is left.
    Weighted,
    /// The lowest price first, by the price function given to the layer. Where it knows none, last.
    Cheapest,
    /// The shortest time to first content first, as a moving average says; one call in sixteen explores another target.
    Fastest,
}

/// A set of a route's targets, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    /// The most targets that a route can have.
    pub(super) const MOST: usize = 64;

    #[inline]
    pub(super) fn first(count: usize) -> Self {
        Self(u64::MAX.checked_shr(64 - u32::try_from(count.min(64)).unwrap_or(64)).unwrap_or(0))
    }

    pub(super) fn of(places: impl Iterator<Item = usize>) -> Self {
        let mut set = Self::default();
        places.for_each(|place| set.insert(place));
        set
    }

    #[inline]
    pub(super) fn insert(&mut self, place: usize) {
        self.0 |= 1 << (place & 63);
    }

    #[inline]
    pub(super) fn contains(self, place: usize) -> bool {
        self.0 >> (place & 63) & 1 == 1
    }

    #[inline]
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The places in it, in their order.
    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = usize> + Clone {
        let mut left = self.0;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let place = left.trailing_zeros();
                left &= left - 1;
                place as usize
            })
        })
    }
}

/// One of these by chance, in proportion to its weight; the first one where none has a weight.
pub(super) fn weighted(weights: impl Iterator<Item = (usize, u32)> + Clone, draw: u64) -> Option<usize> {
    let total: u64 = weights.clone().map(|(_, weight)| u64::from(weight)).sum();
    let Some(mut at) = draw.checked_rem(total) else { return weights.map(|(place, _)| place).next() };
    for (place, weight) in weights {
        match at.checked_sub(u64::from(weight)) {
            Some(left) => at = left,
            None => return Some(place),
        }
    }
    None
}

/// The one with the least value, the first of equals; those without a value come last.
pub(super) fn least(values: impl Iterator<Item = (usize, Option<u64>)>) -> Option<usize> {
    values.min_by_key(|(_, value)| value.unwrap_or(u64::MAX)).map(|(place, _)| place)
}

/// One call in so many explores.
const EXPLORE: u64 = 16;

/// The fastest, or now and then one of the others. Those of which nothing is known are explored, not preferred.
pub(super) fn fastest(paces: impl Iterator<Item = (usize, Option<u64>)> + Clone, draw: u64) -> Option<usize> {
    let best = least(paces.clone())?;
    if !draw.is_multiple_of(EXPLORE) {
        return Some(best);
    }
    let others = paces.filter(|(place, _)| *place != best);
    let count = others.clone().count() as u64;
    match (draw / EXPLORE).checked_rem(count) {
        Some(at) => others.map(|(place, _)| place).nth(usize::try_from(at).unwrap_or(0)),
        None => Some(best),
    }
}

/// How fast a target answers: a moving average of its times to first content.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    /// What a failure adds to the time it took: a target that fails fast is not a fast one.
    pub(super) const FAILURE: Duration = Duration::from_secs(10);

    /// Nanoseconds; `None` before the first sample.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&nanos| nanos > 0)
    }

    /// A new sample weighs an eighth.
    pub(super) fn observe(&self, sample: Duration) {
        let sample = time::nanos(sample).max(1);
        let next = |old: u64| Some(if old == 0 { sample } else { old - old / 8 + sample / 8 });
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Goes on where another one is.
    pub(super) fn adopt(&self, other: &Self) {
        self.0.store(other.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_places_up_to_the_last() {
        assert_eq!(Set::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((Set::first(0).len(), Set::first(64).len()), (0, 64));
        let rest = Set::first(3).without(Set::of([1].into_iter()));
        assert_eq!(rest.iter().collect::<Vec<_>>(), [0, 2]);
        assert!(Set::first(64).without(Set::first(64)).is_empty());
    }

    #[test]
    fn weights_share_all_draws_in_proportion() {
        let weights = [(0, 3), (1, 0), (2, 1)];
        let drawn = |draw| weighted(weights.into_iter(), draw).unwrap();
        assert_eq!((0..8).map(drawn).collect::<Vec<_>>(), [0, 0, 0, 2, 0, 0, 0, 2]);
        assert_eq!(
            weighted([(4, 0), (5, 0)].into_iter(), 7),
            Some(4),
            "weight 0 serves when nothing else does"
        );
        assert_eq!(weighted(std::iter::empty(), 7), None);
        assert_eq!(weighted([(0, u32::MAX), (1, u32::MAX)].into_iter(), u64::from(u32::MAX)), Some(1));
    }

    #[test]
    fn unknown_prices_come_last_and_equals_stay_in_order() {
        assert_eq!(least([(0, None), (1, Some(5)), (2, Some(5))].into_iter()), Some(1));
        assert_eq!(least([(3, None)].into_iter()), Some(3));
    }

    #[test]
    fn the_fastest_is_asked_but_for_one_call_in_sixteen() {
        let paces = [(0, Some(9)), (1, Some(2)), (2, None)];
        let drawn: Vec<_> = (0..64).filter_map(|draw| fastest(paces.into_iter(), draw)).collect();
        assert_eq!(drawn.iter().filter(|&&place| place == 1).count(), 60);
        assert!(drawn.contains(&0) && drawn.contains(&2), "each other one is explored");
        assert_eq!(fastest([(7, None)].into_iter(), 0), Some(7), "alone there is nothing to explore");
    }

    #[test]
    fn the_average_follows_slowly_and_never_overflows() {
        let pace = Pace::default();
        assert_eq!(pace.get(), None);
        pace.observe(Duration::from_nanos(800));
        pace.observe(Duration::from_nanos(1_600));
        assert_eq!(pace.get(), Some(900));
        for _ in 0..100 {
            pace.observe(Duration::MAX);
        }
        assert!(pace.get().unwrap() > u64::MAX / 2);
    }
}
