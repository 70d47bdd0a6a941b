use std::fmt::Write;

use super::*;
use crate::provider::fixtures::{self, Entry, Sample};
use crate::verdict::{Reason, Scope};

/// Everything a reader says of a stream that came in these frames.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    usage: Usage,
    verdict: Option<Verdict>,
    terminal: bool,
    seen: Seen,
}

fn read<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = StreamReader::new().with_wall(fixtures::WALL);
    let seen = frames.into_iter().fold(Seen::NOTHING, |seen, frame| seen | reader.feed(frame));
    let verdict = reader.finish();
    Read { usage: reader.usage(), verdict, terminal: reader.is_terminal(), seen }
}

fn whole(body: &str) -> Read {
    let read_whole = read([body.as_bytes()]);
    assert_eq!(read_whole, read(body.as_bytes().chunks(1)), "byte by byte it is the same stream: {body}");
    read_whole
}

fn class(body: &str) -> Option<Class> {
    whole(body).verdict.map(|verdict| verdict.class())
}

/// Frames that end at these offsets.
fn cut<'a>(body: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let bounds: Vec<usize> = [0].into_iter().chain(at.iter().copied()).chain([body.len()]).collect();
    bounds.windows(2).map(|two| &body[two[0]..two[1]]).collect()
}

fn streams() -> Vec<(Entry, Sample)> {
    let all = fixtures::index().into_iter().filter(Entry::is_stream);
    all.map(|entry| (fixtures::load(&entry.file), entry)).map(|(sample, entry)| (entry, sample)).collect()
}

fn agrees(entry: &Entry, read: &Read, how: &str) {
    let Entry { file, .. } = entry;
    let verdict = read.verdict.unwrap_or_else(|| panic!("{file} {how}: no verdict"));
    assert_eq!(format!("{:?}", verdict.class()), entry.class, "{file} {how}");
    assert_eq!(format!("{:?}", verdict.scope()), entry.scope, "{file} {how}");
    let usage = read.usage;
    let written = match (usage.cache_write, usage.cache_write_1h) {
        (None, None) => None,
        (short, long) => Some(short.unwrap_or(0) + long.unwrap_or(0)),
    };
    let said = [usage.input, usage.output, usage.cached, written, usage.reasoning];
    assert_eq!(
        said,
        [entry.input, entry.output, entry.cached, entry.cache_write, entry.reasoning],
        "{file} {how}"
    );
    assert!(!usage.anomalous, "{file} {how}");
}

#[test]
fn every_stream_on_the_wire_is_read_as_the_index_says_however_it_is_cut() {
    let streams = streams();
    assert!(streams.len() >= 14, "only {} samples", streams.len());
    for (entry, sample) in &streams {
        let body = sample.body.as_slice();
        agrees(entry, &read([body]), "whole");
        agrees(entry, &read(body.chunks(1)), "byte by byte");
        agrees(entry, &read(cut(body, &entry.splits)), "at its splits");
    }
}

#[test]
fn b145_cut_at_any_byte_a_stream_is_read_the_same() {
    for (entry, sample) in &streams() {
        let expected = read([sample.body.as_slice()]);
        for at in 0..sample.body.len() {
            assert_eq!(read(cut(&sample.body, &[at])), expected, "{} cut at {at}", entry.file);
        }
    }
}

#[test]
fn cache_writes_are_told_apart_by_lifetime() {
    let usage = read([fixtures::load("anthropic-stream-cache.http").body.as_slice()]).usage;
    assert_eq!((usage.cache_write, usage.cache_write_1h), (Some(148), Some(100)));
}

#[test]
fn signs_of_life_and_empty_parts_are_no_content() {
    for (quiet, event) in [
        ("comment", ": OPENROUTER PROCESSING\n\n"),
        ("ping", "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        (
            "role",
            r#"data: {"choices":[{"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}"#,
        ),
        (
            "filter",
            r#"data: {"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"severity":"safe"}}}]}"#,
        ),
        (
            "empty call",
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"arguments":""}}]}}]}"#,
        ),
        ("start", r#"data: {"type":"message_start","message":{"content":[],"role":"assistant"}}"#),
        ("block", r#"data: {"type":"content_block_start","content_block":{"type":"text","text":""}}"#),
        ("item", r#"data: {"type":"response.output_item.added","item":{"type":"message","content":[]}}"#),
        (
            "tools",
            r#"data: {"type":"response.created","response":{"tools":[{"parameters":{"delta":{"text":"x"},"choices":[{"delta":"y"}]}}]}}"#,
        ),
        ("candidate", r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]}}]}"#),
        ("stop", r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":"x"}}"#),
    ] {
        let body = format!("{event}\n\n");
        let seen = whole(&body).seen;
        assert!(seen.contains(Seen::ALIVE) && !seen.has_content(), "{quiet}: {seen:?}");
    }
}

#[test]
fn any_part_of_an_answer_is_content() {
    for event in [
        r#"{"choices":[{"index":0,"delta":{"content":"x"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\""}}]}"#,
        r#"{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{}},{"delta":{"content":"second choice"}}]}"#,
        r#"{"choices":[{"text":"old api"}]}"#,
        r#"{"type":"response.output_text.delta","delta":"x"}"#,
        r#"{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}"#,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#,
        r#"{"type":"content-delta","delta":{"message":{"content":{"text":"x"}}}}"#,
    ] {
        assert!(whole(&format!("data: {event}\n\n")).seen.has_content(), "{event}");
    }
}

#[test]
fn a_frame_is_marked_with_what_it_brought_and_no_more() {
    let mut reader = StreamReader::new();
    assert_eq!(reader.feed(b""), Seen::NOTHING);
    assert!(!reader.feed(b": ping\n\ndata: {\"choi").is_news());
    assert_eq!(reader.feed(b"ces\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"), Seen::ALIVE | Seen::CONTENT);
    assert_eq!(reader.feed(b"data: {\"usage\":{\"prompt_tokens\":1}}\n\n"), Seen::ALIVE | Seen::USAGE);
    assert!(!reader.is_terminal());
    assert_eq!(reader.feed(b"data: [DONE]\n\n"), Seen::ALIVE | Seen::TERMINAL);
    assert!(reader.is_terminal());
}

#[test]
fn b148_the_last_event_counts_if_its_json_is_complete() {
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    for end in ["", "\n", "\n\n", "\r", "\r\n\r\n"] {
        assert_eq!(whole(&format!("{usage}{end}")).usage.total(), Some(9), "{end:?}");
    }
    let half = whole(&usage[..usage.len() - 1]);
    assert!(half.usage.is_empty(), "half a message says nothing");
    assert_eq!(half.verdict.map(|verdict| verdict.class()), Some(Class::Transient));
    assert_eq!(class("data: [DONE]"), Some(Class::Success));
    assert_eq!(class("data: [DON"), Some(Class::Transient));
}

#[test]
fn b151_an_error_event_in_a_good_stream_is_a_failure() {
    let content = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    for (error, expected, scope) in [
        (
            r#"{"error":{"message":"boom","type":"server_error","code":null}}"#,
            Class::Transient,
            Scope::Upstream,
        ),
        (
            r#"{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}"#,
            Class::Throttled,
            Scope::Model,
        ),
        (
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Class::Exhausted,
            Scope::Account,
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Class::Transient,
            Scope::Upstream,
        ),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#,
            Class::Throttled,
            Scope::Model,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}"#,
            Class::Transient,
            Scope::Upstream,
        ),
        (r#"{"type":"response.failed","response":{"error":null}}"#, Class::Transient, Scope::Upstream),
        (r#"{"x_groq":{"id":"r","error":"over capacity"}}"#, Class::Transient, Scope::Upstream),
        (r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, Class::Transient, Scope::Upstream),
        (r#"{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}"#, Class::Transient, Scope::Upstream),
        (
            r#"{"object":"error","message":"x","type":"server","code":"500"}"#,
            Class::Transient,
            Scope::Upstream,
        ),
    ] {
        for after in ["", "data: [DONE]\n\n"] {
            let read = whole(&format!("{content}{content}data: {error}\n\n{after}"));
            let verdict = read.verdict.unwrap();
            assert_eq!((verdict.class(), verdict.scope()), (expected, scope), "{error}");
            assert!(read.seen.has_error(), "{error}");
        }
    }
    assert_eq!(class("event: error\ndata: Overloaded\n\n"), Some(Class::Transient));
    assert_eq!(class("data: {\"code\":\"rate_limit_exceeded\"}\nevent: error\n\n"), Some(Class::Transient));
}

#[test]
fn what_only_looks_like_an_error_or_usage_is_neither() {
    let stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for event in [
        r#"{"choices":[{"delta":{"content":"\"error\":{\"code\":500},\"usage\":{\"prompt_tokens\":9}"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\\"}}],"usage":null,"error":null}"#,
        r#"{"choices":[{"delta":{"content":"a\\\","}}],"error":{}}"#,
        r#"{"choices":[{"delta":{"content":"x"},"content_filter_results":{"error":{"code":"content_filter_error"}}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"error":{"code":500},"usage":{"prompt_tokens":9},"usageMetadata":{"promptTokenCount":9},"finishReason":"error"}}}]}}]}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{"error":"x","usage":{"input_tokens":9}}}}"#,
        r#"{"choices":[{"delta":{"content":"x"}}],"metadata":{"usage":{"prompt_tokens":9},"error":"x"}}"#,
        r#"{"type":"response.output_text.delta","delta":"event: error"}"#,
    ] {
        let read = whole(&format!("data: {event}\n\n{stop}"));
        assert!(read.usage.is_empty(), "{event}: {:?}", read.usage);
        assert_eq!(read.verdict, Some(Verdict::SUCCESS), "{event}");
        assert!(!read.seen.has_error(), "{event}");
    }
}

#[test]
fn a_bare_json_error_between_events_is_one_and_a_bare_line_is_not() {
    let content = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\r\n\r\n";
    let bare = "[{\n  \"error\": {\n    \"code\": 429,\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}]\n";
    assert_eq!(class(&format!("{content}{bare}")), Some(Class::Throttled));
    assert_eq!(class(r#"{"error":{"type":"server_error"}}"#), Some(Class::Transient));
    let finish = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n";
    assert_eq!(class(&format!("{content}x {{\"error\": 1}}\n{{ \"a\": \n{finish}")), Some(Class::Success));
}

#[test]
fn a_blocked_prompt_is_the_requests_fault() {
    let verdict = whole("data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n").verdict.unwrap();
    assert_eq!((verdict.class(), verdict.reason()), (Class::Invalid, Reason::Policy));
}

#[test]
fn a_stream_ends_well_by_a_terminal_event_or_a_finish_reason_and_else_was_cut_off() {
    let content = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    assert_eq!(class(content), Some(Class::Transient));
    assert_eq!(class(&format!("{content}data: [DONE]\n\n")), Some(Class::Success));
    assert_eq!(
        class("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"),
        Some(Class::Success)
    );
    assert_eq!(class("event: message_stop\ndata: {}\n\n"), Some(Class::Success));
    assert_eq!(class("data: {\"type\":\"message_stop\"}\n\n"), Some(Class::Success));
    assert_eq!(class(""), Some(Class::Transient), "nothing came");
    assert_eq!(class(": keep-alive\n\n"), Some(Class::Transient), "nothing but comments came");
}

#[test]
fn of_a_stream_of_an_unknown_kind_nothing_is_said() {
    assert_eq!(class("event: tick\ndata: {\"price\": 3}\n\n"), None);
    assert_eq!(class("data: hello\n\n"), None);
    assert_eq!(class("plain text"), None);
}

#[test]
fn b127_null_never_erases_and_the_last_number_stays() {
    let read = whole(concat!(
        "data: {\"choices\":[],\"usage\":null}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":0,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":null,\"completion_tokens\":5,\"prompt_tokens_details\":null}}\n\n",
        "data: {\"usage\":null}\n\ndata: [DONE]\n\n",
    ));
    assert_eq!((read.usage.input, read.usage.output, read.usage.cached), (Some(10), Some(5), Some(4)));
    assert!(!read.usage.anomalous);
}

#[test]
fn b128_cumulative_reports_replace_and_are_never_added() {
    let mut body = String::new();
    for output in 1..=50 {
        write!(body, "data: {{\"usage\":{{\"prompt_tokens\":10,\"completion_tokens\":{output}}}}}\n\n")
            .unwrap();
    }
    let usage = whole(&body).usage;
    assert_eq!((usage.input, usage.output), (Some(10), Some(50)));
}

#[test]
fn b130_usage_is_read_whatever_its_choices_look_like() {
    for choices in ["\"choices\":[],", "\"choices\":[{\"delta\":{}}],", "", "\"choices\":null,"] {
        let usage = "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}";
        assert_eq!(whole(&format!("data: {{{choices}{usage}}}\n\n")).usage.total(), Some(7), "{choices}");
    }
}

#[test]
fn b131_every_terminal_event_reports_its_usage() {
    let usage = r#""usage":{"input_tokens":600,"output_tokens":424}"#;
    for (kind, rest, total, expected) in [
        ("completed", usage, Some(1024), Class::Success),
        ("incomplete", usage, Some(1024), Class::Success),
        ("failed", usage, Some(1024), Class::Transient),
        ("failed", r#""usage":null"#, None, Class::Transient),
    ] {
        let body = format!(
            "data: {{\"type\":\"response.{kind}\",\"response\":{{\"status\":\"{kind}\",{rest}}}}}\n\n"
        );
        let read = whole(&body);
        assert_eq!(read.usage.total(), total, "{kind}");
        assert!(read.terminal);
        assert_eq!(read.verdict.map(|verdict| verdict.class()), Some(expected), "{kind}");
    }
}

/// Bodies that are made to harm: what is held of them is bounded, and they say nothing.
mod harm {
    use super::*;

    /// Of a reader, behind its pointers. Its buffers are bounded by their own constants; this measures them.
    fn held(reader: &StreamReader) -> usize {
        reader.tap.held()
    }

    #[test]
    fn a_reader_is_small() {
        assert!(size_of::<StreamReader>() <= 1024, "{}", size_of::<StreamReader>());
    }

    #[test]
    fn b149_a_stream_without_line_ends_is_held_nowhere() {
        for start in [
            "x",
            "data: ",
            "data: {\"choices\":[{\"delta\":{\"content\":\"",
            "event: ",
            ": ",
            "{\"error\":\"",
        ] {
            let mut reader = StreamReader::new();
            reader.feed(start.as_bytes());
            let frame = vec![b'y'; 1024];
            for _ in 0..64 * 1024 {
                reader.feed(&frame);
                assert!(held(&reader) < 64 * 1024, "{start}");
            }
            assert!(reader.usage().is_empty());
            let _ = reader.finish();
        }
    }

    #[test]
    fn b149_a_million_empty_data_lines_are_held_nowhere() {
        let mut reader = StreamReader::new();
        let frame = "data:\n".repeat(1000);
        for _ in 0..1000 {
            reader.feed(frame.as_bytes());
        }
        assert!(held(&reader) < 1024);
        assert_eq!(reader.finish(), None);
    }

    #[test]
    fn nesting_however_deep_is_a_count() {
        let deep = "[".repeat(100_000);
        for body in [
            format!("data: {deep}\n\n"),
            format!("data: {{\"usage\":{deep}\n\n"),
            format!("data: {{\"choices\":[{{\"delta\":{deep}\n\n"),
            format!("data: {{\"error\":{deep}{}}}\n\n", "]".repeat(100_000)),
            "data: ".to_owned() + &"{\"a\":".repeat(100_000) + "\n\n",
        ] {
            let mut reader = StreamReader::new();
            reader.feed(body.as_bytes());
            assert!(reader.usage().input.is_none());
            assert!(held(&reader) < 64 * 1024);
            let _ = reader.finish();
        }
    }

    #[test]
    fn a_usage_too_large_to_be_one_is_flagged_and_ignored() {
        let body =
            format!("data: {{\"usage\":{{\"prompt_tokens\":1,\"x\":\"{}\"}}}}\n\n", "y".repeat(20_000));
        let usage = whole(&body).usage;
        assert_eq!((usage.input, usage.anomalous), (None, true));
    }

    #[test]
    fn an_event_of_any_size_is_read() {
        let text = "word ".repeat(400_000);
        let body = format!(
            "data: {{\"type\":\"response.completed\",\"response\":{{\"output\":\"{text}\",\"usage\":{{\"input_tokens\":5,\"output_tokens\":6}}}}}}\n\n"
        );
        let mut reader = StreamReader::new();
        for frame in body.as_bytes().chunks(16 * 1024) {
            reader.feed(frame);
            assert!(held(&reader) < 1024);
        }
        assert_eq!(reader.usage().total(), Some(11));
        assert!(reader.is_terminal());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_read_without_panic_and_alike_in_any_frames(
        bytes in proptest::collection::vec(proptest::sample::select(b"data: {}[]\"\\:,\n\r\xEFunle".to_vec()), 0..200),
        at in proptest::prelude::any::<proptest::sample::Index>(),
    ) {
        let at = at.index(bytes.len() + 1);
        let expected = read([bytes.as_slice()]);
        proptest::prop_assert_eq!(&read(cut(&bytes, &[at])), &expected);
        proptest::prop_assert_eq!(&read(bytes.chunks(1)), &expected);
    }

    #[test]
    fn resuming_after_what_events_have_in_common_changes_nothing(
        picks in proptest::collection::vec(0..8_usize, 1..12),
    ) {
        const EVENTS: [&str; 8] = [
            r#"{"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"ab"},"finish_reason":null}],"usage":null}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"role":"x"},"finish_reason":"stop"}],"usage":null}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5}}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":55}}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[],"error":{"code":"x"}}"#,
            r#"{"id":"chatcmpl-1","model":"m","choices":[]}"#,
            r#"{"id":"chatcmpl-1","mod"#,
        ];
        let body = picks.iter().fold(String::new(), |body, &pick| body + "data: " + EVENTS[pick] + "\n\n");
        // Parts are read without resuming.
        proptest::prop_assert_eq!(&read([body.as_bytes()]), &read(body.as_bytes().chunks(1)));
    }
}

#[test]
fn white_space_before_a_message_is_that_of_json_however_it_comes() {
    // A form feed was passed over where it lay in one frame with the message, or where it did not.
    for body in
        ["\u{c}{}m", "\u{c}{\"choices\":[]}\n", "data: \u{c}{\"choices\":[]}\n\n", "data: \u{c}[DONE]\n\n"]
    {
        assert_eq!(whole(body).verdict, None, "{body:?}");
    }
    assert_eq!(class("data: \t [DONE]\n\n"), Some(Class::Success));
    assert!(whole(" {\"error\":{\"message\":\"no\"}}\n").seen.has_error());
}
