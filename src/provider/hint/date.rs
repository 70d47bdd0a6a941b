//! Dates in headers, as time since the Unix epoch.

use std::time::Duration;

const DAY: u64 = 86_400;
const HOUR: u64 = 3_600;
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// One of the three forms of an HTTP date. A weekday that is not that of the date makes it malformed; a two-digit year
/// lies at most 50 years after `now`; second 60 is the next second.
pub(crate) fn http_date(text: &str, now: Duration) -> Option<Duration> {
    let (weekday, rest) = text.split_once(' ')?;
    let (weekday, days, time) = match weekday.strip_suffix(',') {
        None => (weekday, asctime(rest)?, rest.get(7..15)?),
        Some(short) if short.len() == 3 => {
            let (date, time) = (rest.get(..11)?, rest.get(11..)?);
            let (day, month, year) = parts(date, ' ')?;
            (short, days_of(fixed(year, 4)?, month_of(month)?, fixed(day, 2)?)?, gmt(time)?)
        }
        Some(long) => {
            let (date, time) = (rest.get(..9)?, rest.get(9..)?);
            let (day, month, year) = parts(date, '-')?;
            let (day, month, year) = (fixed(day, 2)?, month_of(month)?, fixed(year, 2)?);
            let full = full_year(year, month, day, now)?;
            // The long form spells the weekday out.
            let days = days_of(full, month, day)?;
            return (long == weekday_of(days)).then(|| at(days, gmt(time)?)).flatten();
        }
    };
    (weekday == weekday_of(days).get(..3)?).then(|| at(days, time)).flatten()
}

/// A date and time of RFC 3339, with any offset and fraction.
pub(crate) fn rfc3339(text: &str) -> Option<Duration> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let (year, month, day) = parts(date, '-')?;
    let days = days_of(fixed(year, 4)?, fixed(month, 2)?, fixed(day, 2)?)?;
    let time = at(days, rest.get(..8)?)?;
    let mut rest = rest.get(8..)?;
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        nanos = nanos_of(fraction.get(..end)?)?;
        rest = fraction.get(end..)?;
    }
    let utc = match (rest.get(..1)?, rest.get(1..)?) {
        ("Z" | "z", "") => time,
        (sign @ ("+" | "-"), offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let (hours, minutes) = (fixed(hours, 2)?, fixed(minutes, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = Duration::from_secs(hours * HOUR + minutes * 60);
            if sign == "+" { time.checked_sub(offset)? } else { time.checked_add(offset)? }
        }
        _ => return None,
    };
    utc.checked_add(Duration::from_nanos(nanos))
}

/// From `now` to the next midnight in California, at which daily quotas of Google begin anew.
pub(crate) fn to_pacific_midnight(now: Duration) -> Option<Duration> {
    let seconds = now.as_secs();
    // Today's and tomorrow's midnight there, and in case the clocks change in between, the one after.
    let today = (seconds / DAY).checked_sub(1)?;
    let next = (0..=2).map(|ahead| pacific_midnight(today + ahead)).find(|midnight| *midnight > seconds)?;
    Duration::from_secs(next).checked_sub(now)
}

/// When this day begins in California: clocks there are 8 hours behind UTC, and 7 from the second Sunday of March to
/// the first Sunday of November, changing at 2 in the morning.
fn pacific_midnight(days: u64) -> u64 {
    let (_, month, day) = civil_of(days);
    let weekday = (days + 4) % 7;
    let weekday_of_first = (weekday + 36 - day) % 7;
    let first_sunday = 1 + (7 - weekday_of_first) % 7;
    // On the Sunday of a change its midnight still has the old time.
    let summer = match month {
        4..=10 => true,
        3 => day > first_sunday + 7,
        11 => day <= first_sunday,
        _ => false,
    };
    days.saturating_mul(DAY).saturating_add(if summer { 7 } else { 8 } * HOUR)
}

fn asctime(rest: &str) -> Option<u64> {
    let month = month_of(rest.get(..3)?)?;
    let day = rest.get(4..6)?;
    let day = fixed(day.strip_prefix(' ').unwrap_or(day), if day.starts_with(' ') { 1 } else { 2 })?;
    let separated = rest.get(3..4)? == " " && rest.get(6..7)? == " " && rest.get(15..16)? == " ";
    separated.then(|| days_of(fixed(rest.get(16..)?, 4)?, month, day)).flatten()
}

fn gmt(time: &str) -> Option<&str> {
    time.strip_prefix(' ')?.strip_suffix(" GMT")
}

fn full_year(year: u64, month: u64, day: u64, now: Duration) -> Option<u64> {
    let (this_year, this_month, this_day) = civil_of(now.as_secs() / DAY);
    let full = this_year / 100 * 100 + year;
    // "More than 50 years in the future" is a date of the past; and a date far in the past, at the end of a century,
    // is one of the next.
    let latest = (this_year + 50, this_month, this_day);
    let full = if (full, month, day) > latest { full.checked_sub(100)? } else { full };
    Some(if (full + 100, month, day) <= latest { full + 100 } else { full })
}

fn at(days: u64, time: &str) -> Option<Duration> {
    let (hour, minute, second) = parts(time, ':')?;
    let (hour, minute, second) = (fixed(hour, 2)?, fixed(minute, 2)?, fixed(second, 2)?);
    let valid = hour < 24 && minute < 60 && second <= 60;
    let second = days.checked_mul(DAY)?.checked_add(hour * HOUR + minute * 60 + second)?;
    valid.then(|| Duration::from_secs(second))
}

fn parts(text: &str, separator: char) -> Option<(&str, &str, &str)> {
    let (first, rest) = text.split_once(separator)?;
    let (second, third) = rest.split_once(separator)?;
    Some((first, second, third))
}

/// Exactly this many digits.
fn fixed(text: &str, digits: usize) -> Option<u64> {
    let valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

fn nanos_of(fraction: &str) -> Option<u64> {
    let kept = fraction.get(..fraction.len().min(9))?;
    let digits = u32::try_from(kept.len()).ok()?;
    Some(kept.parse::<u64>().ok()? * 10_u64.pow(9 - digits))
}

fn month_of(name: &str) -> Option<u64> {
    let index = MONTHS.iter().position(|month| *month == name)?;
    u64::try_from(index + 1).ok()
}

fn weekday_of(days: u64) -> &'static str {
    // The epoch was a Thursday.
    let index = usize::try_from((days + 4) % 7).unwrap_or_default();
    WEEKDAYS.get(index).copied().unwrap_or_default()
}

/// Days from the epoch to a date of the Gregorian calendar, if there is such a date from 1970 on.
fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || day == 0 || day > length {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    (before + (153 * month + 2) / 5 + day).checked_sub(719_469)
}

/// The year, month and day of a number of days since the epoch.
fn civil_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (year + era * 400, month + 3) } else { (year + era * 400 + 1, month - 9) };
    (year, month, day)
}

#[cfg(test)]
mod tests;
