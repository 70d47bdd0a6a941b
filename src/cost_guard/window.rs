//! How much of a limit is used, in which span of time. Pure: time is an argument.
//!
//! Money belongs to the window it was *reserved* in. A settlement corrects that window, and where it is gone nothing: else
//! what an old window gives back would be free money in the new one.

mod span;
#[cfg(feature = "file-ledger")]
mod stored;
#[cfg(all(test, not(seawall_loom)))]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::config_error::ConfigError;
use crate::cost_guard::calendar::CalendarUnit;
use crate::money::Usd;
use crate::time;
pub(crate) use span::Span;

/// The span of time that a limit is for.
///
/// ```
/// use std::time::Duration;
/// use seawall::cost_guard::{Budget, Usd, Window};
///
/// // A calendar day in Central European Time, and any span of ten minutes.
/// let daily = Budget::new(Usd::dollars(50), Window::DAY.at_offset(60)?);
/// let burst = Budget::new(Usd::dollars(1), Window::rolling(Duration::from_secs(600))?);
/// # let _ = (daily, burst);
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window(pub(crate) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Each call by itself.
    Call,
    /// For ever.
    Total,
    /// The last so many nanoseconds, in buckets of so many.
    Rolling { bucket: u64, buckets: u64 },
    /// A span of the calendar; the offset is in milliseconds east of UTC.
    Calendar { unit: CalendarUnit, offset: i64 },
}

impl Window {
    /// Each call by itself: no call may cost more than the limit.
    pub const CALL: Self = Self(Kind::Call);
    /// For ever: until it is reset through the handle.
    pub const TOTAL: Self = Self(Kind::Total);
    /// From minute to minute.
    pub const MINUTE: Self = Self::utc(CalendarUnit::Minute);
    /// From hour to hour.
    pub const HOUR: Self = Self::utc(CalendarUnit::Hour);
    /// From midnight to midnight, UTC.
    pub const DAY: Self = Self::utc(CalendarUnit::Day);
    /// From Monday to Monday, UTC.
    pub const WEEK: Self = Self::utc(CalendarUnit::Week);
    /// From the first of a month to the next, UTC.
    pub const MONTH: Self = Self::utc(CalendarUnit::Month);

    /// Parts of a rolling window.
    const BUCKETS: u64 = 60;

    const fn utc(unit: CalendarUnit) -> Self {
        Self(Kind::Calendar { unit, offset: 0 })
    }

    /// The last so long, always. What was spent leaves the window by sixtieths of it, the last of them one sixtieth late:
    /// in no span of this length is more than the limit spent.
    ///
    /// # Errors
    ///
    /// Below a second, or beyond a year.
    pub fn rolling(length: Duration) -> Result<Self, ConfigError> {
        const YEAR: Duration = Duration::from_secs(366 * 24 * 3_600);
        if !(Duration::from_secs(1)..=YEAR).contains(&length) {
            return Err(ConfigError::new("window", "must be between a second and a year"));
        }
        let bucket = time::nanos(length).div_ceil(Self::BUCKETS);
        Ok(Self(Kind::Rolling { bucket, buckets: Self::BUCKETS }))
    }

    /// A calendar window at a fixed offset, in minutes east of UTC: +9 hours are 540. Without summer time: where the
    /// clocks change, a day stays where the offset puts it.
    ///
    /// # Errors
    ///
    /// Where the offset is more than 18 hours, or the window is none of the calendar's.
    pub fn at_offset(self, minutes: i16) -> Result<Self, ConfigError> {
        const MOST: u16 = 18 * 60;
        match self.0 {
            _ if minutes.unsigned_abs() > MOST => {
                Err(ConfigError::new("offset", "must be within 18 hours of UTC"))
            }
            Kind::Calendar { unit, .. } => {
                Ok(Self(Kind::Calendar { unit, offset: i64::from(minutes) * 60_000 }))
            }
            _ => Err(ConfigError::new("offset", "is for calendar windows only")),
        }
    }

    pub(crate) const fn needs_wall(self) -> bool {
        matches!(self.0, Kind::Calendar { .. })
    }

    pub(crate) const fn needs_clock(self) -> bool {
        matches!(self.0, Kind::Rolling { .. })
    }

    /// The part of a moment that this window goes by.
    #[inline]
    pub(crate) fn instant(self, now: Moment) -> i64 {
        match self.0 {
            Kind::Call | Kind::Total => 0,
            Kind::Rolling { .. } => signed(now.clock),
            Kind::Calendar { .. } => now.wall,
        }
    }

    /// When a window, or a bucket of it, is the present one.
    pub(crate) fn span(self, stamp: Stamp) -> Span {
        match self.0 {
            Kind::Call | Kind::Total => Span::new(i64::MIN, i64::MAX),
            Kind::Rolling { bucket, .. } => {
                let start = |stamp: Stamp| stamp.saturating_mul(signed(bucket));
                Span::new(start(stamp), start(stamp.saturating_add(1)))
            }
            Kind::Calendar { unit, offset } => {
                let start = |stamp: Stamp| unit.start(stamp).saturating_sub(offset);
                Span::new(start(stamp), start(stamp.saturating_add(1)))
            }
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self.0 {
            Kind::Call => "budget of a call",
            Kind::Total => "total budget",
            Kind::Rolling { .. } => "rolling budget",
            Kind::Calendar { unit, .. } => match unit {
                CalendarUnit::Minute => "budget of the minute",
                CalendarUnit::Hour => "budget of the hour",
                CalendarUnit::Day => "budget of the day",
                CalendarUnit::Week => "budget of the week",
                CalendarUnit::Month => "budget of the month",
            },
        }
    }
}

/// Now, as the windows see it. A part that no window needs is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Nanoseconds of the monotonic clock.
    pub(crate) clock: u64,
    /// Milliseconds since 1970.
    pub(crate) wall: i64,
}

/// The window that a reservation is in.
pub(crate) type Stamp = i64;

/// What is spent and held in one window (of the calendar, or of all time) or in one bucket (of a rolling one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    stamp: Stamp,
    spent: u64,
    reserved: u64,
    /// How many marks were told of.
    marks: u8,
}

impl Slot {
    const fn at(stamp: Stamp) -> Self {
        Self { stamp, spent: 0, reserved: 0, marks: 0 }
    }
}

/// What of a limit is used. It knows no limit: it counts.
#[derive(Clone, Debug)]
pub(crate) struct Meter(State);

#[derive(Clone, Debug)]
enum State {
    Flat(Slot),
    Calendar {
        now: Slot,
        /// The window before; or, where the wall clock was put back, the one that lies ahead.
        kept: Option<Slot>,
        /// When the window in use was opened, by the monotonic clock.
        opened: u64,
    },
    Rolling {
        /// Oldest first; only those in which something is.
        buckets: VecDeque<Slot>,
        spent: u64,
        reserved: u64,
        marks: u8,
        /// The bucket in which the first mark was told of.
        marked: Stamp,
    },
}

impl Meter {
    pub(crate) fn new(window: Window, now: Moment) -> Self {
        Self(match window.0 {
            Kind::Call | Kind::Total => State::Flat(Slot::default()),
            Kind::Calendar { unit, offset } => {
                let now_in = Slot::at(unit.index(now.wall.saturating_add(offset)));
                State::Calendar { now: now_in, kept: None, opened: now.clock }
            }
            Kind::Rolling { .. } => {
                State::Rolling { buckets: VecDeque::new(), spent: 0, reserved: 0, marks: 0, marked: 0 }
            }
        })
    }

    /// Spent in the current window.
    pub(crate) fn spent(&self) -> Usd {
        Usd::nanos(match &self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => slot.spent,
            State::Rolling { spent, .. } => *spent,
        })
    }

    /// Held by calls under way, in the current window.
    pub(crate) fn reserved(&self) -> Usd {
        Usd::nanos(match &self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => slot.reserved,
            State::Rolling { reserved, .. } => *reserved,
        })
    }

    /// Goes on to the window of this moment.
    pub(crate) fn turn(&mut self, window: Window, now: Moment) {
        match (&mut self.0, window.0) {
            (State::Calendar { now: slot, kept, opened }, Kind::Calendar { unit, offset }) => {
                let index = unit.index(now.wall.saturating_add(offset));
                if index == slot.stamp {
                    return;
                }
                turn_calendar(slot, kept, opened, index, unit, now.clock);
            }
            (
                State::Rolling { buckets, spent, reserved, marks, marked },
                Kind::Rolling { bucket, buckets: count },
            ) => {
                let oldest = index(now.clock, bucket) - signed(count);
                while let Some(slot) = buckets.front().filter(|slot| slot.stamp < oldest) {
                    *spent = spent.saturating_sub(slot.spent);
                    *reserved = reserved.saturating_sub(slot.reserved);
                    buckets.pop_front();
                }
                if *marked < oldest {
                    *marks = 0;
                }
            }
            _ => {}
        }
    }

    /// Whether the window, or bucket, of this moment is the one in use.
    pub(crate) fn is_current(&self, window: Window, now: Moment) -> bool {
        let stamp = match &self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => Some(slot.stamp),
            State::Rolling { buckets, .. } => buckets.back().map(|slot| slot.stamp),
        };
        stamp.is_some_and(|stamp| window.span(stamp).holds(window.instant(now)))
    }

    /// Holds an amount in the current window, to which it was turned before.
    pub(crate) fn reserve(&mut self, window: Window, now: Moment, amount: Usd) -> Stamp {
        let slot = match &mut self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => slot,
            State::Rolling { buckets, reserved, .. } => {
                let Kind::Rolling { bucket, .. } = window.0 else { return 0 };
                let stamp = index(now.clock, bucket);
                *reserved = reserved.saturating_add(amount.as_nanos());
                if buckets.back().is_none_or(|slot| slot.stamp < stamp) {
                    buckets.push_back(Slot::at(stamp));
                }
                match buckets.back_mut() {
                    Some(slot) => slot,
                    None => return stamp,
                }
            }
        };
        slot.reserved = slot.reserved.saturating_add(amount.as_nanos());
        slot.stamp
    }

    /// The window in which [`reserve`](Self::reserve) would hold an amount.
    pub(crate) fn stamp(&self, window: Window, now: Moment) -> Stamp {
        match (&self.0, window.0) {
            (State::Rolling { buckets, .. }, Kind::Rolling { bucket, .. }) => {
                index(now.clock, bucket).max(buckets.back().map_or(0, |slot| slot.stamp))
            }
            (State::Flat(slot) | State::Calendar { now: slot, .. }, _) => slot.stamp,
            _ => 0,
        }
    }

    /// Takes over what was spent and is held elsewhere of this window. Where the window is gone, nothing changes.
    pub(crate) fn add(&mut self, stamp: Stamp, spent: Usd, held: Usd) {
        let (more, held) = (spent.as_nanos(), held.as_nanos());
        let Some(slot) = self.slot(stamp) else { return };
        slot.spent = slot.spent.saturating_add(more);
        slot.reserved = slot.reserved.saturating_add(held);
        if let State::Rolling { spent, reserved, .. } = &mut self.0 {
            *spent = spent.saturating_add(more);
            *reserved = reserved.saturating_add(held);
        }
    }

    fn slot(&mut self, stamp: Stamp) -> Option<&mut Slot> {
        match &mut self.0 {
            State::Flat(slot) => Some(slot),
            State::Calendar { now, kept, .. } => {
                [Some(now), kept.as_mut()].into_iter().flatten().find(|slot| slot.stamp == stamp)
            }
            State::Rolling { buckets, .. } => {
                let at = buckets.binary_search_by_key(&stamp, |slot| slot.stamp).ok()?;
                buckets.get_mut(at)
            }
        }
    }

    /// Gives back what was held, and counts what was spent of it. Where the window of the reservation is gone, nothing
    /// changes.
    pub(crate) fn settle(&mut self, stamp: Stamp, held: Usd, paid: Usd) {
        let (held, paid) = (held.as_nanos(), paid.as_nanos());
        let Some(slot) = self.slot(stamp) else { return };
        slot.reserved = slot.reserved.saturating_sub(held);
        slot.spent = slot.spent.saturating_add(paid);
        if let State::Rolling { spent, reserved, .. } = &mut self.0 {
            *reserved = reserved.saturating_sub(held);
            *spent = spent.saturating_add(paid);
        }
    }

    /// Whether a mark is passed that nobody was told of.
    pub(crate) fn untold(&self, marks: &[u8], limit: Usd) -> bool {
        let (spent, limit) = (self.spent().as_nanos(), limit.as_nanos());
        let told = match &self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => slot.marks,
            State::Rolling { marks, .. } => *marks,
        };
        limit != 0 && marks.get(usize::from(told)).is_some_and(|&next| reaches(spent, limit, next))
    }

    /// The marks (percent of the limit, rising) that spending has passed and nobody was told of: the highest of them.
    /// Once each a window.
    pub(crate) fn pass_marks(&mut self, marks: &[u8], limit: Usd) -> Option<u8> {
        if !self.untold(marks, limit) {
            return None;
        }
        let (spent, limit) = (self.spent().as_nanos(), limit.as_nanos());
        let told = match &mut self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => &mut slot.marks,
            State::Rolling { marks, .. } => marks,
        };
        let reaches = |mark: u8| reaches(spent, limit, mark);
        let passed = marks.iter().take_while(|&&mark| reaches(mark)).count();
        let passed = u8::try_from(passed).unwrap_or(u8::MAX);
        let first = *told == 0;
        *told = passed;
        if let (true, State::Rolling { buckets, marked, .. }) = (first, &mut self.0) {
            *marked = buckets.back().map_or(0, |slot| slot.stamp);
        }
        marks.get(usize::from(passed) - 1).copied()
    }

    /// After how long `amount` fits under `limit` if nothing else is spent; `None` if never.
    pub(crate) fn fits_in(&self, window: Window, now: Moment, amount: Usd, limit: Usd) -> Option<Duration> {
        if amount > limit {
            return None;
        }
        match (&self.0, window.0) {
            (State::Calendar { now: slot, .. }, Kind::Calendar { unit, offset }) => {
                let end = unit.start(slot.stamp.saturating_add(1)).saturating_sub(offset);
                Some(Duration::from_millis(u64::try_from(end.saturating_sub(now.wall)).unwrap_or(0)))
            }
            (State::Rolling { buckets, spent, .. }, Kind::Rolling { bucket, buckets: count }) => {
                let mut left = *spent;
                let room = limit.saturating_sub(amount).as_nanos();
                let freeing = buckets.iter().find(|slot| {
                    left = left.saturating_sub(slot.spent);
                    left <= room
                })?;
                let gone = u64::try_from(freeing.stamp).unwrap_or(0).saturating_add(count + 1);
                Some(Duration::from_nanos(gone.saturating_mul(bucket).saturating_sub(now.clock)))
            }
            _ => None,
        }
    }

    /// When the current window is over and another begins with nothing spent; `None` if never.
    pub(crate) fn resets_in(&self, window: Window, now: Moment) -> Option<Duration> {
        self.fits_in(window, now, Usd::MAX, Usd::MAX)
    }

    /// Whether it counts nothing: neither spent nor held in any window that is not over.
    pub(crate) fn at_rest(&self, window: Window, now: Moment) -> bool {
        let empty = |slot: &Slot| slot.spent == 0 && slot.reserved == 0;
        match (&self.0, window.0) {
            (State::Calendar { now: slot, kept, .. }, Kind::Calendar { unit, offset }) => {
                let index = unit.index(now.wall.saturating_add(offset));
                let over = |slot: &Slot| slot.stamp < index || empty(slot);
                over(slot) && kept.as_ref().is_none_or(over)
            }
            (State::Rolling { buckets, .. }, Kind::Rolling { bucket, buckets: count }) => {
                let oldest = index(now.clock, bucket) - signed(count);
                buckets.iter().all(|slot| slot.stamp < oldest || empty(slot))
            }
            // What calls have cost before is no reason to refuse the next one.
            (State::Flat(slot), Kind::Call) => slot.reserved == 0,
            (State::Flat(slot), _) => empty(slot),
            _ => false,
        }
    }

    /// Whether what was reserved in this window is still counted.
    pub(crate) fn counts(&self, stamp: Stamp) -> bool {
        match &self.0 {
            State::Flat(_) => true,
            State::Calendar { now, .. } => now.stamp == stamp,
            State::Rolling { buckets, .. } => buckets.iter().any(|slot| slot.stamp == stamp),
        }
    }

    /// Forgets what was spent; what is held stays held.
    pub(crate) fn reset(&mut self) {
        let clear = |slot: &mut Slot| (slot.spent, slot.marks) = (0, 0);
        match &mut self.0 {
            State::Flat(slot) | State::Calendar { now: slot, .. } => clear(slot),
            State::Rolling { buckets, spent, marks, .. } => {
                (*spent, *marks) = (0, 0);
                buckets.iter_mut().for_each(clear);
            }
        }
    }
}

/// The wall clock says another window than the one in use.
///
/// It may be wrong now, or may have been wrong before. No window is granted twice: the one in use is kept beside the new
/// one, and is gone back to; and a window before both of them, whose spending nobody knows, is opened only when as much
/// real time has passed as a window lasts.
fn turn_calendar(
    now: &mut Slot,
    kept: &mut Option<Slot>,
    opened: &mut u64,
    index: i64,
    unit: CalendarUnit,
    clock: u64,
) {
    if let Some(other) = kept.as_mut().filter(|other| other.stamp == index) {
        std::mem::swap(now, other);
        *opened = clock;
        return;
    }
    let longest = u64::try_from(unit.longest()).unwrap_or(u64::MAX).saturating_mul(1_000_000);
    if index < now.stamp && clock.saturating_sub(*opened) < longest {
        return;
    }
    let before = std::mem::replace(now, Slot::at(index));
    *opened = clock;
    // Of the two it has left, the one ahead can come again.
    if kept.as_ref().is_none_or(|kept| kept.stamp < index) {
        *kept = Some(before);
    }
}

/// Without a division: this is asked at every settlement.
fn reaches(spent: u64, limit: u64, mark: u8) -> bool {
    u128::from(spent) * 100 >= u128::from(limit) * u128::from(mark)
}

fn index(clock: u64, bucket: u64) -> Stamp {
    signed(clock / bucket.max(1))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
