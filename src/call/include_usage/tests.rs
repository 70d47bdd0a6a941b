use bytes::Bytes;
use serde_json::{Value, json};

use super::edit::ask_for_usage;
use super::hide::Hider;

fn edited(body: &str) -> Option<String> {
    ask_for_usage(body.as_bytes()).map(|body| String::from_utf8(body).unwrap())
}

#[test]
fn the_option_is_put_in_and_all_other_bytes_stay() {
    for (body, expected) in [
        (r#"{"stream":true}"#, r#"{"stream_options":{"include_usage":true},"stream":true}"#),
        (r#" { "stream" : true }"#, r#" {"stream_options":{"include_usage":true}, "stream" : true }"#),
        (
            r#"{"stream":true,"stream_options":{}}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"stream_options":{"x":[1,{"include_usage":1}]},"stream":true,"n":1.50}"#,
            r#"{"stream_options":{"include_usage":true,"x":[1,{"include_usage":1}]},"stream":true,"n":1.50}"#,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage": false}}"#,
            r#"{"stream":true,"stream_options":{"include_usage": true}}"#,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":null,"a":1}}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true,"a":1}}"#,
        ),
        (
            r#"{"stream":true,"stream_options":null}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
    ] {
        let out = edited(body).unwrap();
        assert_eq!(out, expected);
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["stream_options"]["include_usage"], json!(true));
        assert_eq!(edited(&out), None, "once is enough");
    }
}

#[test]
fn what_asks_for_no_stream_or_for_its_usage_or_is_not_understood_stays() {
    for body in [
        "{}",
        r#"{"stream":false}"#,
        r#"{"x":{"stream":true}}"#,
        r#"{"stream":true,"stream":false}"#,
        r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        r#"{"stream":true,"stream_options":"yes"}"#,
        r#"{"stream":true,"stream_options":7}"#,
        r#"{"stream":true,"stream_options":[]}"#,
        r#"{"stream":true,"stream_options":{"include_usage":"no"}}"#,
        r#"{"stream":true,"stream_options":{"include_usage":{}}}"#,
        r#"{"stream":true,"stream_options":{},"stream_options":{}}"#,
        r#"{"stream":true,"stream_options":{"include_usage":false,"include_usage":false}}"#,
        r#"{"stream":true,"#,
        "[true]",
        "",
    ] {
        assert_eq!(edited(body), None, "{body}");
    }
}

const USAGE: &str = r#"data: {"id":"x","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

/// What passes of these frames.
fn passed<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut hider = Hider::default();
    let mut out = Vec::new();
    for frame in frames {
        out.extend_from_slice(&hider.feed(&Bytes::copy_from_slice(frame)));
    }
    out.extend_from_slice(&hider.finish());
    out
}

#[test]
fn the_one_event_is_left_out_wherever_frames_are_cut() {
    for end in ["\n", "\r\n", "\r"] {
        let event = |text: &str| format!("{text}{end}{end}");
        let before = event(r#"data: {"choices":[{"delta":{"content":"\"choices\":[]"}}],"usage":null}"#);
        let after = format!(": ping{end}{}", event("data: [DONE]"));
        let whole = [&*before, &event(USAGE), &after].concat();
        let expected = [&*before, &after].concat();
        for cut in 0..=whole.len() {
            let (one, two) = whole.as_bytes().split_at(cut);
            assert_eq!(passed([one, two]), expected.as_bytes(), "cut at {cut}, {end:?}");
            let (two, three) = two.split_at(two.len().min(1));
            assert_eq!(passed([one, two, three]), expected.as_bytes(), "cut at {cut}, {end:?}");
        }
        let bytes: Vec<&[u8]> = whole.as_bytes().chunks(1).collect();
        assert_eq!(passed(bytes), expected.as_bytes(), "byte by byte, {end:?}");
    }
}

#[test]
fn events_that_only_look_like_it_pass() {
    for event in [
        r#"data: {"choices":[],"usage":null,"prompt_filter_results":[]}"#,
        r#"data: {"choices":[],"usage":{},"error":{"message":"late"}}"#,
        r#"data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}"#,
        r#"data: {"usage":{"prompt_tokens":1}}"#,
        r#"data: {"nested":{"choices":[],"usage":{}}}"#,
        r#": {"choices":[],"usage":{}}"#,
        r#"data: {"choices":[],"usage":{}"#,
        "data: \"choices\":[]",
        "",
        "\u{feff}data: x",
    ] {
        let whole = format!("{event}\n\n{event}\n\n");
        for cut in 0..=whole.len() {
            let (one, two) = whole.as_bytes().split_at(cut);
            assert_eq!(passed([one, two]), whole.as_bytes(), "{event}");
        }
    }
    // Without its blank line it is no event, and passes.
    assert_eq!(passed([USAGE.as_bytes()]), USAGE.as_bytes());
    // There is one in a stream, and another is somebody else's.
    let twice = format!("{USAGE}\n\n{USAGE}\n\n");
    assert_eq!(passed([twice.as_bytes()]), format!("{USAGE}\n\n").as_bytes());
}

#[test]
fn whole_events_pass_at_once_and_a_long_one_is_not_held() {
    let mut hider = Hider::default();
    let frame = Bytes::from_static(b"data: 1\n\ndata: 2\n\n");
    let out = hider.feed(&frame);
    assert_eq!((out.as_ptr(), out.len()), (frame.as_ptr(), frame.len()), "no copy");
    let long = Bytes::from(vec![b'x'; 40_000]);
    assert_eq!((hider.feed(&long).len(), hider.held()), (0, 40_000));
    assert_eq!((hider.feed(&long).len(), hider.held()), (80_000, 0));
    assert_eq!(hider.feed(&long).len(), 40_000, "it passes now");
    assert_eq!(hider.feed(&Bytes::from_static(b"\n\n")).len(), 2);
    assert_eq!(hider.feed(&Bytes::from(format!("{USAGE}\n\n"))).len(), 0, "the next one is looked at");
}
