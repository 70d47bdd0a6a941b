//! The last minute, five minutes and hour, and all since the start: a cascade of intervals.
//!
//! What happens is counted in the interval that runs. One that is over stays a while by itself, is then merged into a
//! longer one, and at last into all that was before. So a record is counted once, memory is bounded, and an interval in
//! which nothing happened takes none.

use std::collections::VecDeque;

use super::counts::{Charge, Counts, Done, NONE};
use super::sketch::{Closed, Live, Sum};

/// The shortest interval, in nanoseconds.
pub(super) const TICK: u64 = 10_000_000_000;
const A_MINUTE: u64 = 6;
const FIVE_MINUTES: u64 = 30;
const AN_HOUR: u64 = 360;
/// How many bytes a row of latencies may have: of an interval, and of all before the last hour.
const ROW: u16 = 448;
const OLD_ROW: u16 = 4_096;

/// Head, content, end.
pub(super) const TIMES: usize = 3;
/// A minute, five, an hour, all.
pub(super) const SPANS: usize = 4;

/// An interval that is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) counts: Counts,
    pub(super) times: [Closed; TIMES],
}

impl Slot {
    fn clear(&mut self, row: u16) {
        self.counts = Counts::default();
        self.times.iter_mut().for_each(|closed| closed.clear(row));
    }

    fn merge(&mut self, other: &Self, scratch: &mut Scratch) {
        self.counts.add(&other.counts);
        for (own, other) in self.times.iter_mut().zip(&other.times) {
            if other.totals().0 > 0 {
                own.merge(other, &mut scratch.rows);
            }
        }
    }
}

/// What the series of a monitor share: room to work in, and slots to be used again, so that a monitor that is warm allocates
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rows: Vec<(u16, u64)>,
    free: Vec<Slot>,
}

/// No more slots than these wait to be used again.
const MOST_FREE: usize = 64;

impl Scratch {
    fn take(&mut self) -> Slot {
        let mut slot = self.free.pop().unwrap_or_default();
        slot.clear(ROW);
        slot
    }

    fn give(&mut self, slot: Slot) {
        if self.free.len() < MOST_FREE {
            self.free.push(slot);
        }
    }
}

/// Intervals of one length that are over, oldest first, by their numbers; without those in which nothing happened.
#[derive(Clone, Debug, Default)]
struct Level(VecDeque<(u64, Slot)>);

impl Level {
    /// The slot of this number, which is made if there is none.
    fn slot(&mut self, number: u64, scratch: &mut Scratch) -> &mut Slot {
        let at = self.0.partition_point(|(known, _)| *known < number);
        if self.0.get(at).is_none_or(|(known, _)| *known != number) {
            self.0.insert(at, (number, scratch.take()));
        }
        &mut self.0[at].1
    }

    /// The oldest, if its number is below this one.
    fn expired(&mut self, first: u64) -> Option<(u64, Slot)> {
        self.0.front().is_some_and(|(number, _)| *number < first).then(|| self.0.pop_front())?
    }
}

/// One series: all calls, all attempts, or one target.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    /// The number of the interval that runs, in ticks since the monitor's start.
    tick: u64,
    live: Counts,
    times: [Live; TIMES],
    any: bool,
    ticks: Level,
    minutes: Level,
    fives: Level,
    older: Slot,
}

impl Default for Spans {
    fn default() -> Self {
        let mut older = Slot::default();
        older.clear(OLD_ROW);
        Self {
            tick: 0,
            live: Counts::default(),
            times: Default::default(),
            any: false,
            ticks: Level::default(),
            minutes: Level::default(),
            fives: Level::default(),
            older,
        }
    }
}

/// The first tick of each span that ends in tick `now`: of a minute, five, an hour.
pub(super) fn begins(now: u64) -> [u64; 3] {
    let minute = now.saturating_sub(A_MINUTE);
    // A longer interval stays while any part of it is within the span.
    let five = now.saturating_sub(FIVE_MINUTES) / A_MINUTE * A_MINUTE;
    let hour = now.saturating_sub(AN_HOUR) / FIVE_MINUTES * FIVE_MINUTES;
    [minute, five, hour]
}

impl Spans {
    /// One ended in this tick.
    #[inline]
    pub(super) fn done(&mut self, tick: u64, done: &Done, scratch: &mut Scratch) {
        if tick != self.tick && !self.advance(tick, scratch) {
            self.done_late(tick, done, scratch);
            return;
        }
        self.any = true;
        self.live.done(done);
        for (live, micros) in self.times.iter_mut().zip(done.times) {
            if micros != NONE {
                live.record(micros);
            }
        }
    }

    /// One was charged in this tick.
    pub(super) fn charge(&mut self, tick: u64, charge: Charge, scratch: &mut Scratch) {
        self.count(tick, scratch, |counts| counts.charge(charge));
    }

    /// Something else is to be counted.
    pub(super) fn count(&mut self, tick: u64, scratch: &mut Scratch, count: impl FnOnce(&mut Counts)) {
        if tick == self.tick || self.advance(tick, scratch) {
            self.any = true;
            count(&mut self.live);
        } else {
            count(&mut self.late(tick, scratch).counts);
        }
    }

    #[cold]
    fn done_late(&mut self, tick: u64, done: &Done, scratch: &mut Scratch) {
        let slot = self.late(tick, scratch);
        slot.counts.done(done);
        for (closed, micros) in slot.times.iter_mut().zip(done.times) {
            if micros != NONE {
                closed.record(micros, &mut scratch.rows);
            }
        }
    }

    /// The slot of an interval that is over.
    fn late(&mut self, tick: u64, scratch: &mut Scratch) -> &mut Slot {
        let [minute, five, hour] = begins(self.tick);
        if tick >= minute {
            self.ticks.slot(tick, scratch)
        } else if tick >= five {
            self.minutes.slot(tick / A_MINUTE, scratch)
        } else if tick >= hour {
            self.fives.slot(tick / FIVE_MINUTES, scratch)
        } else {
            &mut self.older
        }
    }

    /// Goes on to this tick. `false`: it is over already.
    #[cold]
    pub(super) fn advance(&mut self, tick: u64, scratch: &mut Scratch) -> bool {
        if tick <= self.tick {
            return tick == self.tick;
        }
        if std::mem::take(&mut self.any) {
            let slot = self.ticks.slot(self.tick, scratch);
            slot.counts.add(&self.live);
            for (live, closed) in self.times.iter_mut().zip(&mut slot.times) {
                live.close_into(closed, &mut scratch.rows);
            }
            self.live = Counts::default();
        }
        self.tick = tick;
        let [minute, five, hour] = begins(tick);
        while let Some((number, slot)) = self.ticks.expired(minute) {
            self.minutes.slot(number / A_MINUTE, scratch).merge(&slot, scratch);
            scratch.give(slot);
        }
        while let Some((number, slot)) = self.minutes.expired(five / A_MINUTE) {
            let number = number * A_MINUTE / FIVE_MINUTES;
            self.fives.slot(number, scratch).merge(&slot, scratch);
            scratch.give(slot);
        }
        while let Some((_, slot)) = self.fives.expired(hour / FIVE_MINUTES) {
            self.older.merge(&slot, scratch);
            scratch.give(slot);
        }
        true
    }

    /// What a longer span has beyond the one before it: a minute, five, an hour, all.
    pub(super) fn parts(&self) -> [Part<'_>; SPANS] {
        let live = Some((&self.live, &self.times));
        let part = |level| Part { live: None, level: Some(level), older: None };
        [
            Part { live, ..part(&self.ticks) },
            part(&self.minutes),
            part(&self.fives),
            Part { live: None, level: None, older: Some(&self.older) },
        ]
    }

    #[cfg(test)]
    fn slots(&self) -> [usize; 3] {
        [self.ticks.0.len(), self.minutes.0.len(), self.fives.0.len()]
    }
}

/// A part of a series.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    live: Option<(&'a Counts, &'a [Live; TIMES])>,
    level: Option<&'a Level>,
    older: Option<&'a Slot>,
}

impl<'a> Part<'a> {
    fn slots(self) -> impl Iterator<Item = &'a Slot> {
        self.level.into_iter().flat_map(|level| level.0.iter().map(|(_, slot)| slot)).chain(self.older)
    }

    /// Adds what was counted.
    pub(super) fn add_counts(self, counts: &mut Counts) {
        if let Some((live, _)) = self.live {
            counts.add(live);
        }
        self.slots().for_each(|slot| counts.add(&slot.counts));
    }

    /// Tells the latencies of head (0), content (1) or end (2), by bucket.
    pub(super) fn each_time(self, which: usize, mut tell: impl FnMut(u16, u64)) {
        let live = self.live.into_iter().flat_map(|(_, live)| live[which].entries());
        live.for_each(|(bucket, count)| tell(bucket, count));
        let closed = self.slots().flat_map(|slot| slot.times[which].entries());
        closed.for_each(|(bucket, count)| tell(bucket, count));
    }

    /// Adds the latencies of head (0), content (1) or end (2).
    pub(super) fn add_times(self, which: usize, sum: &mut Sum) {
        if let Some((_, live)) = self.live {
            sum.add(live[which].entries(), live[which].totals());
        }
        self.slots().for_each(|slot| sum.add(slot.times[which].entries(), slot.times[which].totals()));
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
