//! Where calendar windows begin and end. Pure arithmetic on the Gregorian calendar, in UTC or at a fixed offset.

/// A span of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CalendarUnit {
    /// From second 0.
    Minute,
    /// From minute 0.
    Hour,
    /// From midnight.
    Day,
    /// From Monday's midnight.
    Week,
    /// From the first day's midnight.
    Month,
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970-01-01 was a Thursday: three days after a Monday.
const FIRST_MONDAY: i64 = 3 * DAY;

impl CalendarUnit {
    /// Which span holds this instant: spans are numbered without gaps. Milliseconds since 1970, local.
    pub(crate) const fn index(self, local: i64) -> i64 {
        match self {
            Self::Minute => local.div_euclid(MINUTE),
            Self::Hour => local.div_euclid(HOUR),
            Self::Day => local.div_euclid(DAY),
            Self::Week => local.saturating_add(FIRST_MONDAY).div_euclid(WEEK),
            Self::Month => month_of(local.div_euclid(DAY)),
        }
    }

    /// When the span of this number begins.
    pub(crate) const fn start(self, index: i64) -> i64 {
        match self {
            Self::Minute => index.saturating_mul(MINUTE),
            Self::Hour => index.saturating_mul(HOUR),
            Self::Day => index.saturating_mul(DAY),
            Self::Week => index.saturating_mul(WEEK).saturating_sub(FIRST_MONDAY),
            Self::Month => first_day_of(index).saturating_mul(DAY),
        }
    }

    /// No span of this kind is longer; in milliseconds.
    pub(crate) const fn longest(self) -> i64 {
        match self {
            Self::Minute => MINUTE,
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => WEEK,
            Self::Month => 31 * DAY,
        }
    }
}

/// Weekday (Monday is 0) and minute of the day.
pub(crate) fn weekday_and_minute(local: i64) -> (u8, u16) {
    let weekday = local.div_euclid(DAY).saturating_add(3).rem_euclid(7);
    let minute = local.rem_euclid(DAY) / MINUTE;
    (u8::try_from(weekday).unwrap_or(0), u16::try_from(minute).unwrap_or(0))
}

/// 400 years have a fixed number of days, and years that begin in March end with the leap day.
const DAYS_A_CYCLE: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// The month of a day, counted from year 0.
const fn month_of(day: i64) -> i64 {
    let day = day.saturating_add(DAYS_TO_1970);
    let (cycle, day) = (day.div_euclid(DAYS_A_CYCLE), day.rem_euclid(DAYS_A_CYCLE));
    // Leave the leap days before this one out, then every year has 365 days.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // From March on, five months have 153 days, over and over.
    let from_march = (5 * of_year + 2) / 153;
    (cycle * 400 + year) * 12 + from_march + 2
}

/// The first day of a month counted from year 0, in days since 1970.
const fn first_day_of(month: i64) -> i64 {
    let from_march = month.saturating_sub(2);
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5;
    cycle * DAYS_A_CYCLE + 365 * year + year / 4 - year / 100 + of_year - DAYS_TO_1970
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    const UNITS: [CalendarUnit; 5] = [
        CalendarUnit::Minute,
        CalendarUnit::Hour,
        CalendarUnit::Day,
        CalendarUnit::Week,
        CalendarUnit::Month,
    ];

    #[test]
    fn known_dates_are_where_they_should_be() {
        // 2024-02-29, 2026-11-29 (a Sunday), 2000-01-01, 1969-12-31.
        for (day, year, month) in [(19_782, 2024, 2), (20_786, 2026, 11), (10_957, 2000, 1), (-1, 1969, 12)] {
            assert_eq!(CalendarUnit::Month.index(day * DAY), year * 12 + month - 1);
        }
        assert_eq!(CalendarUnit::Month.start(2024 * 12 + 2), 19_783 * DAY, "March follows the leap day");
        assert_eq!(CalendarUnit::Week.index(20_786 * DAY) + 1, CalendarUnit::Week.index(20_787 * DAY));
        assert_eq!(CalendarUnit::Week.index(20_787 * DAY), CalendarUnit::Week.index(20_794 * DAY - 1));
        assert_eq!(weekday_and_minute(20_786 * DAY + 61 * MINUTE), (6, 61));
        assert_eq!(weekday_and_minute(-1), (2, 1_439), "the last minute of a Wednesday");
    }

    #[test]
    fn every_span_begins_where_the_one_before_ends() {
        for unit in UNITS {
            for day in (-300_000..300_000).step_by(97) {
                let index = unit.index(day * DAY);
                let (start, end) = (unit.start(index), unit.start(index + 1));
                assert!((start..end).contains(&(day * DAY)), "{unit:?} {day}");
                assert!(end - start <= unit.longest());
                assert_eq!(
                    (unit.index(start), unit.index(end - 1), unit.index(end)),
                    (index, index, index + 1)
                );
            }
        }
    }

    #[test]
    fn no_instant_panics() {
        for unit in UNITS {
            for local in [i64::MIN, i64::MAX, 0] {
                let _ = (unit.index(local), weekday_and_minute(local));
            }
        }
    }
}
