//! What a content type says a body is.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The media type of the content: without its parameters, as it was written.
pub(super) fn of(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(CONTENT_TYPE).map(|value| essence(value.as_bytes()))
}

/// A content type without its parameters.
pub(super) fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// `text/event-stream`.
pub(super) fn is_event_stream(media: &[u8]) -> bool {
    media.eq_ignore_ascii_case(b"text/event-stream")
}

/// `application/json`, and every type whose suffix is `+json`.
pub(super) fn is_json(media: &[u8]) -> bool {
    let suffix = media.len().checked_sub(5).and_then(|at| media.get(at..));
    media.eq_ignore_ascii_case(b"application/json")
        || (media.contains(&b'/') && suffix.is_some_and(|end| end.eq_ignore_ascii_case(b"+json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_case_do_not_matter_and_a_part_of_the_name_is_not_the_name() {
        assert!(is_event_stream(essence(b"Text/Event-Stream ; charset=utf-8")));
        assert!(!is_event_stream(essence(b"text/event-streams")));
        for json in [&b"application/json"[..], b"application/problem+JSON", b"APPLICATION/JSON;v=1"] {
            assert!(is_json(essence(json)));
        }
        for other in [&b"application/jsonl"[..], b"text/plain; application/json", b"+json", b"json", b""] {
            assert!(!is_json(essence(other)));
        }
    }
}
