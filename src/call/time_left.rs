//! The time left, as a header tells it: `grpc-timeout` in gRPC's own format, any other in whole milliseconds.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

/// As gRPC writes it: at most eight digits and a unit.
const MOST: u64 = 99_999_999;

/// The value of this header. Rounded down: an upstream must not believe that it has longer than it has.
pub(crate) fn write(header: &HeaderName, left: Duration) -> HeaderValue {
    let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    if header != "grpc-timeout" {
        return HeaderValue::from(millis);
    }
    let text = if millis <= MOST { format!("{millis}m") } else { format!("{}S", left.as_secs().min(MOST)) };
    HeaderValue::try_from(text).expect("digits and a letter are a header value")
}

/// The time that this header tells; none where it is malformed.
pub(crate) fn read(header: &HeaderName, value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    if header != "grpc-timeout" {
        return digits(text, 19).map(Duration::from_millis);
    }
    let (amount, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount = digits(amount, 8)?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3_600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

fn digits(text: &str, most: usize) -> Option<u64> {
    let valid = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRPC: HeaderName = HeaderName::from_static("grpc-timeout");
    const OTHER: HeaderName = HeaderName::from_static("x-timeout-ms");

    fn told(header: &HeaderName, text: &str) -> Option<Duration> {
        read(header, &HeaderValue::from_str(text).unwrap())
    }

    #[test]
    fn each_unit_of_grpc_is_read() {
        let seconds = Duration::from_secs;
        let table = [
            ("2H", seconds(7_200)),
            ("2M", seconds(120)),
            ("2S", seconds(2)),
            ("2000m", seconds(2)),
            ("2000000u", seconds(2)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("99999999H", seconds(99_999_999 * 3_600)),
            ("0m", Duration::ZERO),
        ];
        for (text, time) in table {
            assert_eq!(told(&GRPC, text), Some(time), "{text}");
        }
    }

    #[test]
    fn what_is_malformed_tells_nothing() {
        for text in ["", "m", "1", "1x", "-1m", "+1m", "1.5S", "100000000m", "1 m", "9é"] {
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(read(&GRPC, &value), None, "{text}");
        }
        for text in ["", "1m", "-1", "1.5", "12345678901234567890"] {
            assert_eq!(told(&OTHER, text), None, "{text}");
        }
        assert_eq!(told(&OTHER, "1500"), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn what_is_written_is_read_again_and_never_longer() {
        for time in
            [Duration::ZERO, Duration::from_nanos(1_999_999), Duration::from_secs(100_001), Duration::MAX]
        {
            for header in [GRPC, OTHER] {
                let again = read(&header, &write(&header, time));
                assert!(again.is_none_or(|again| again <= time), "{time:?} became {again:?} in {header}");
            }
        }
        assert_eq!(read(&GRPC, &write(&GRPC, Duration::from_secs(30))), Some(Duration::from_secs(30)));
    }
}
