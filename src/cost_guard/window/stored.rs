//! Windows as a store keeps them: by a code, and pairs of stamp and what was spent.

use std::collections::VecDeque;

use super::{Kind, Meter, Moment, Slot, Stamp, State, Window, signed};

/// Windows of the calendar that a store keeps of an account: the one in use, the one before and, where the wall clock was
/// put back, one that lies ahead.
const CALENDAR: usize = 3;

impl Window {
    /// Its name in a store. Another code is another account.
    pub(crate) fn code(self) -> String {
        match self.0 {
            Kind::Call => "call".to_owned(),
            Kind::Total => "total".to_owned(),
            Kind::Rolling { bucket, buckets } => format!("rolling {bucket} {buckets}"),
            Kind::Calendar { unit, offset } => format!("{unit:?} {offset}"),
        }
    }

    /// Leaves out what no window needs any more; the pairs are sorted.
    pub(crate) fn forget_old(self, slots: &mut Vec<(Stamp, u64)>) {
        let keep = match self.0 {
            Kind::Call | Kind::Total => slots.len(),
            Kind::Calendar { .. } => CALENDAR,
            Kind::Rolling { buckets, .. } => {
                let oldest = slots.last().map_or(0, |slot| slot.0.saturating_sub(signed(buckets)));
                slots.len() - slots.partition_point(|slot| slot.0 < oldest)
            }
        };
        slots.drain(..slots.len().saturating_sub(keep));
    }

    /// Whether all these windows are over, or nothing was spent in them.
    pub(crate) fn is_over(self, slots: &[(Stamp, u64)], now: Moment) -> bool {
        Meter::restored(self, now, slots).at_rest(self, now)
    }
}

impl Meter {
    /// With what was spent before, as it was written down; the pairs are sorted.
    pub(crate) fn restored(window: Window, now: Moment, slots: &[(Stamp, u64)]) -> Self {
        let mut meter = Self::new(window, now);
        let mut spent = slots.iter().map(|&(stamp, spent)| Slot { stamp, spent, reserved: 0, marks: 0 });
        match &mut meter.0 {
            State::Flat(slot) => {
                slot.spent = spent.fold(0, |sum, slot| sum.saturating_add(slot.spent));
            }
            State::Calendar { now, kept, .. } => match spent.next_back() {
                // A window that lies ahead stays in use until a window's length has really passed, as it does when
                // the wall clock is put back under way.
                Some(last) if last.stamp >= now.stamp => {
                    *now = last;
                    *kept = spent.next_back();
                }
                last => *kept = last,
            },
            State::Rolling { buckets, spent: sum, .. } => {
                *buckets = spent.collect::<VecDeque<_>>();
                *sum = buckets.iter().fold(0, |sum, slot| sum.saturating_add(slot.spent));
            }
        }
        meter.turn(window, now);
        meter
    }
}
