//! Who waits, and in which order: pure, `now` is an argument.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::call::Priority;
use crate::time::Instant;

/// A place in the queue: the most urgent come first, and among equals those who came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    priority: Reverse<Priority>,
    turn: u64,
}

/// What the next in line is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    /// It is its turn.
    Turn(T),
    /// Its turn came too late to be of use.
    Late(T),
}

/// Waiters in order. A tree, so that one who leaves from the middle costs no more than one who is served.
#[derive(Debug)]
pub(super) struct Queue<T> {
    entries: BTreeMap<Place, Entry<T>>,
    turns: u64,
}

#[derive(Debug)]
struct Entry<T> {
    /// From this instant on it is too late.
    by: Option<Instant>,
    item: T,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        Self { entries: BTreeMap::new(), turns: 0 }
    }

    pub(super) fn push(&mut self, priority: Priority, by: Option<Instant>, item: T) -> Place {
        let place = Place { priority: Reverse(priority), turn: self.turns };
        // One a nanosecond would take five centuries to come round.
        self.turns = self.turns.wrapping_add(1);
        self.entries.insert(place, Entry { by, item });
        place
    }

    /// Takes the next in line out.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Next<T>> {
        let (_, Entry { by, item }) = self.entries.pop_first()?;
        Some(if by.is_some_and(|by| by <= now) { Next::Late(item) } else { Next::Turn(item) })
    }

    /// Takes out whoever is at this place, if somebody still is.
    pub(super) fn remove(&mut self, place: Place) -> Option<T> {
        self.entries.remove(&place).map(|entry| entry.item)
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.entries.get_mut(&place).map(|entry| &mut entry.item)
    }

    /// Sends everybody away.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.entries).into_values().map(|entry| entry.item)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time;

    fn priority(level: u8) -> Priority {
        Priority::new(level).unwrap()
    }

    #[test]
    fn the_most_urgent_go_first_and_equals_in_the_order_they_came() {
        let now = time::now();
        let mut queue = Queue::new();
        for (level, name) in [(0, "a"), (7, "b"), (3, "c"), (7, "d"), (0, "e")] {
            queue.push(priority(level), None, name);
        }
        let served: Vec<_> = std::iter::from_fn(|| queue.pop(now)).collect();
        assert_eq!(served, ["b", "d", "c", "a", "e"].map(Next::Turn));
    }

    #[test]
    fn one_whose_time_is_over_is_late_and_one_a_moment_earlier_is_not() {
        let now = time::now();
        let mut queue = Queue::new();
        queue.push(priority(0), Some(now), "late");
        queue.push(priority(0), Some(now + Duration::from_nanos(1)), "in time");
        queue.push(priority(0), None, "never late");
        assert_eq!(queue.pop(now), Some(Next::Late("late")));
        assert_eq!(queue.pop(now), Some(Next::Turn("in time")));
        assert_eq!(queue.pop(now + Duration::from_secs(1 << 30)), Some(Next::Turn("never late")));
        assert_eq!(queue.pop(now), None);
    }

    #[test]
    fn leaving_from_the_middle_moves_those_behind_up_and_changes_no_order() {
        let now = time::now();
        let mut queue = Queue::new();
        queue.push(priority(1), None, 1);
        let middle = queue.push(priority(1), None, 2);
        queue.push(priority(1), None, 3);
        assert_eq!(queue.remove(middle), Some(2));
        assert_eq!(queue.remove(middle), None, "a place is left once");
        assert_eq!(queue.get_mut(middle), None);
        assert_eq!(queue.clear().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(queue.pop(now), None);
    }
}
