use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::provider::fixtures::{self, WALL};

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn trailers_only(fields: &[(&'static str, &str)]) -> Verdict {
    at_head(StatusCode::OK, &headers(fields), true, WALL).unwrap()
}

fn message(id: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![id << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    field.extend(bytes);
    field
}

fn any(kind: &str, value: &[u8]) -> Vec<u8> {
    let url = format!("type.googleapis.com/google.rpc.{kind}");
    message(3, &[message(1, url.as_bytes()), message(2, value)].concat())
}

fn encoded(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut three = [0; 4];
        three[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(three);
        for index in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * index) & 63) as usize]));
        }
    }
    text
}

/// `RetryInfo` of 18 s and 523 000 001 ns.
const RETRY_INFO: [u8; 10] = [10, 8, 8, 18, 16, 0xc1, 0xf4, 0xb1, 0xf9, 1];

#[test]
fn every_sample_is_read_as_the_index_says() {
    let mut seen = 0;
    for entry in fixtures::index().iter().filter(|entry| entry.is_grpc()) {
        let sample = entry.sample();
        assert!(is_grpc(&sample.headers));
        let verdict = at_end(sample.status, &sample.headers, sample.trailers.as_ref(), WALL);
        let said = (format!("{:?}", verdict.class()), format!("{:?}", verdict.scope()), verdict.hint());
        assert_eq!(said, (entry.class.clone(), entry.scope.clone(), entry.hint), "{}", entry.file);
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn b026_a_status_is_read_where_it_counts() {
    let failed = headers(&[("grpc-status", "14")]);
    let good = headers(&[("grpc-status", "0")]);
    // A: in the head, and nothing follows.
    assert_eq!(at_head(StatusCode::OK, &failed, true, WALL).unwrap().class(), Class::Transient);
    // B: in the trailers.
    assert_eq!(at_head(StatusCode::OK, &HeaderMap::new(), false, WALL), None);
    let verdict = at_end(StatusCode::OK, &HeaderMap::new(), Some(&failed), WALL);
    assert_eq!(verdict.class(), Class::Transient);
    // C: a stray one in the head, overruled by the trailers.
    assert_eq!(at_head(StatusCode::OK, &failed, false, WALL), None);
    assert!(at_end(StatusCode::OK, &failed, Some(&good), WALL).is_success());
}

#[test]
fn an_answer_without_a_status_is_mapped_from_http() {
    let class = |status: u16| {
        let status = StatusCode::from_u16(status).unwrap();
        at_head(status, &HeaderMap::new(), true, WALL).unwrap().class()
    };
    assert_eq!(class(200), Class::Transient, "cut");
    assert_eq!(class(429), Class::Transient, "a proxy's limit is unavailability, not the service's quota");
    assert_eq!(class(401), Class::Denied);
    assert_eq!(class(404), Class::Invalid, "no such method");
    assert_eq!(class(503), Class::Transient);
}

#[test]
fn pushback_asks_for_a_wait_or_forbids_a_retry() {
    let verdict = |text: &str| trailers_only(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", text)]);
    assert_eq!(verdict("250").hint(), Some(Duration::from_millis(250)));
    assert_eq!((verdict("0").class(), verdict("0").hint()), (Class::Transient, None), "at once");
    for text in ["-1", "soon", "", "1.5", "99999999999"] {
        assert_eq!(verdict(text).class(), Class::Unfit, "{text}");
    }
    // What is not retried anyway stays what it is.
    let invalid = trailers_only(&[("grpc-status", "3"), ("grpc-retry-pushback-ms", "-1")]);
    assert_eq!(invalid.class(), Class::Invalid);
}

#[test]
fn retry_info_in_the_details_is_a_hint_rounded_up() {
    let details = encoded(&any("RetryInfo", &RETRY_INFO));
    let verdict = trailers_only(&[("grpc-status", "8"), ("grpc-status-details-bin", &details)]);
    assert_eq!(verdict.class(), Class::Throttled);
    assert_eq!(verdict.hint(), Some(Duration::from_millis(18_524)));
    // Padding changes nothing; pushback goes first.
    let padded = format!("{details}{}", "=".repeat(3 - (details.len() + 3) % 4));
    let fields = [("grpc-status", "8"), ("grpc-status-details-bin", padded.as_str())];
    assert_eq!(trailers_only(&fields).hint(), Some(Duration::from_millis(18_524)));
    let pushed = [fields[0], fields[1], ("grpc-retry-pushback-ms", "7")];
    assert_eq!(trailers_only(&pushed).hint(), Some(Duration::from_millis(7)));
}

#[test]
fn a_negative_delay_is_no_hint() {
    // -1 s is ten bytes on the wire.
    let minus = [10, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let details = encoded(&any("RetryInfo", &minus));
    let verdict = trailers_only(&[("grpc-status", "14"), ("grpc-status-details-bin", &details)]);
    assert_eq!((verdict.class(), verdict.hint()), (Class::Transient, None));
}

#[test]
fn the_quota_of_a_day_exhausts_the_model_until_midnight() {
    let violation = |id: &str| message(1, &message(5, id.as_bytes()));
    let both = [violation("RequestsPerMinutePerModel"), violation("RequestsPerDayPerModel")].concat();
    let bytes = [any("QuotaFailure", &both), any("RetryInfo", &RETRY_INFO)].concat();
    let verdict = trailers_only(&[("grpc-status", "8"), ("grpc-status-details-bin", &encoded(&bytes))]);
    assert_eq!((verdict.class(), verdict.scope()), (Class::Exhausted, Scope::Model));
    assert_eq!(verdict.hint(), Some(Duration::from_secs(20 * 3600)));

    let minute = any("QuotaFailure", &violation("RequestsPerMinutePerModel"));
    let verdict = trailers_only(&[("grpc-status", "8"), ("grpc-status-details-bin", &encoded(&minute))]);
    assert_eq!((verdict.class(), verdict.scope()), (Class::Throttled, Scope::Model));
}

#[test]
fn only_grpc_is_grpc() {
    let is = |kind| is_grpc(&headers(&[("content-type", kind)]));
    assert!(is("application/grpc") && is("application/grpc+proto") && is("application/grpc;x=y"));
    assert!(!is("application/grpc-web") && !is("application/json"));
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(
        status in proptest::collection::vec(any_byte(), 0..12),
        pushback in proptest::collection::vec(any_byte(), 0..12),
        details in proptest::collection::vec(any_byte(), 0..80),
    ) {
        let mut headers = HeaderMap::new();
        let fields =
            [("grpc-status", status), ("grpc-retry-pushback-ms", pushback), ("grpc-status-details-bin", details)];
        for (name, bytes) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.insert(name, value);
            }
        }
        let verdict = at_end(StatusCode::OK, &headers, None, WALL);
        prop_assert!(verdict.hint().is_none_or(|hint| hint <= hint::LONGEST && !hint.is_zero()));
    }

    #[test]
    fn no_message_makes_it_panic(bytes in proptest::collection::vec(any_byte(), 0..200)) {
        let wrapped = any("RetryInfo", &bytes[..bytes.len().min(80)]);
        for bytes in [&bytes, &wrapped] {
            let fields = headers(&[("grpc-status", "8"), ("grpc-status-details-bin", &encoded(bytes))]);
            let _ = at_end(StatusCode::OK, &fields, None, WALL);
        }
    }
}

fn any_byte() -> impl Strategy<Value = u8> {
    0_u8..=255
}
