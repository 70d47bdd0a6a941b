use serde_json::{Value, json};

use super::*;
use crate::provider::fixtures;
use crate::provider::{Seen, StreamReader};
use crate::verdict::{Class, Reason, Verdict};

fn body(value: &Value) -> Usage {
    let text = value.to_string();
    let usage = of_json(text.as_bytes());
    let mut reader = BodyReader::new();
    text.as_bytes().chunks(1).for_each(|byte| {
        reader.feed(byte);
    });
    assert_eq!(reader.usage(), usage, "byte by byte it is the same: {text}");
    let mut stream = StreamReader::new();
    stream.feed(format!("data: {text}\n\n").as_bytes());
    assert_eq!(stream.usage(), usage, "in a stream it is the same: {text}");
    usage
}

fn of(usage: &Value) -> Usage {
    body(&json!({ "id": "x", "usage": usage }))
}

fn totals(usage: Usage) -> (Option<u64>, Option<u64>) {
    (usage.input, usage.output)
}

#[test]
fn every_json_answer_on_the_wire_is_read_as_the_index_says() {
    let mut read = 0;
    for entry in fixtures::index().iter().filter(|entry| entry.input.is_some() && !entry.is_stream()) {
        let sample = fixtures::load(&entry.file);
        for size in [1, 7, sample.body.len()] {
            let mut reader = BodyReader::new();
            let seen = sample.body.chunks(size).fold(Seen::NOTHING, |seen, frame| seen | reader.feed(frame));
            let usage = reader.usage();
            let said = [usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning];
            let index = [entry.input, entry.output, entry.cached, entry.cache_write, entry.reasoning];
            assert_eq!(said, index, "{}", entry.file);
            assert_eq!(reader.finish(), Some(Verdict::SUCCESS), "{}", entry.file);
            assert!(seen.contains(Seen::CONTENT | Seen::USAGE | Seen::TERMINAL));
        }
        read += 1;
    }
    assert!(read >= 2, "{read}");
}

#[test]
fn blank_lines_before_the_answer_are_signs_of_life() {
    let mut reader = BodyReader::new();
    assert_eq!(reader.feed(b"\n\n\n"), Seen::ALIVE);
    assert_eq!(
        reader.feed(b"{\"id\": \"s\", \"choices\": [{\"message\": {\"role\": \"assistant\""),
        Seen::ALIVE
    );
    assert!(reader.feed(b", \"content\": \"ok\"").has_content());
}

#[test]
fn what_is_inside_what_is_told_by_the_names() {
    let openai = of(
        &json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100,
        "cache_write_tokens_details": {"ttl_30m_tokens": 60, "ttl_12h_tokens": 40}}, "output_tokens": 500, "total_tokens": 1500}),
    );
    assert_eq!(totals(openai), (Some(1000), Some(500)));
    assert_eq!((openai.cached, openai.cache_write, openai.cache_write_1h), (Some(400), Some(60), Some(40)));

    let anthropic = of(
        &json!({"input_tokens": 50, "cache_creation_input_tokens": 248, "cache_read_input_tokens": 1800,
        "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100}, "output_tokens": 5}),
    );
    assert_eq!(totals(anthropic), (Some(2098), Some(5)));
    assert_eq!(
        (anthropic.cached, anthropic.cache_write, anthropic.cache_write_1h),
        (Some(1800), Some(148), Some(100))
    );

    let bedrock = of(
        &json!({"inputTokens": 10, "cacheReadInputTokens": 20, "cacheWriteInputTokens": 30, "outputTokens": 4,
        "totalTokens": 64, "cacheDetails": [{"ttl": "1h", "inputTokens": 30}]}),
    );
    assert_eq!(totals(bedrock), (Some(60), Some(4)));
    assert_eq!((bedrock.cache_write, bedrock.cache_write_1h), (Some(0), Some(30)));

    let proxied = of(&json!({"prompt_tokens": 100, "completion_tokens": 5, "cache_read_input_tokens": 80}));
    assert_eq!(
        (totals(proxied), proxied.cached),
        ((Some(100), Some(5)), Some(80)),
        "a prompt holds its cache"
    );

    let cohere = body(&json!({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {
        "billed_units": {"input_tokens": 3.0, "output_tokens": 9.0}, "tokens": {"input_tokens": 71.0, "output_tokens": 9.0}}}}));
    assert_eq!(totals(cohere), (Some(71), Some(9)));
}

#[test]
fn gemini_adds_thoughts_and_tool_prompts_and_leaves_out_zeros() {
    let gemini = |usage: Value| body(&json!({"candidates": [], "usageMetadata": usage}));
    let all = gemini(
        json!({"promptTokenCount": 100, "toolUsePromptTokenCount": 20, "cachedContentTokenCount": 64,
        "candidatesTokenCount": 30, "thoughtsTokenCount": 70, "totalTokenCount": 220,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}, {"modality": "AUDIO", "tokenCount": 40}]}),
    );
    assert_eq!(totals(all), (Some(120), Some(100)));
    assert_eq!((all.cached, all.reasoning, all.audio_input), (Some(64), Some(70), Some(40)));
    assert!(!all.anomalous);
    assert_eq!(totals(gemini(json!({"promptTokenCount": 8, "totalTokenCount": 8}))), (Some(8), Some(0)));
}

#[test]
fn b133_what_a_total_has_above_its_parts_is_output() {
    let usage = of(&json!({"prompt_tokens": 41, "completion_tokens": 5, "total_tokens": 389}));
    assert_eq!(totals(usage), (Some(41), Some(348)));
    let xai = of(&json!({"prompt_tokens": 41, "completion_tokens": 5, "total_tokens": 389,
        "completion_tokens_details": {"reasoning_tokens": 343}}));
    assert_eq!((totals(xai), xai.reasoning, xai.anomalous), ((Some(41), Some(348)), Some(343), false));
    let inside = of(&json!({"prompt_tokens": 41, "completion_tokens": 348, "total_tokens": 389,
        "completion_tokens_details": {"reasoning_tokens": 343}}));
    assert_eq!(totals(inside), (Some(41), Some(348)), "reasoning that is inside is not added");
    let embedding = of(&json!({"prompt_tokens": 9, "total_tokens": 9}));
    assert_eq!(totals(embedding), (Some(9), Some(0)), "a total that leaves no room for output");
    assert_eq!(totals(of(&json!({"prompt_tokens": 9}))), (Some(9), None));
}

#[test]
fn usage_is_found_wherever_its_api_puts_it() {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
    for place in [
        json!({"usage": usage}),
        json!({"x_groq": {"id": "r", "usage": usage}}),
        json!({"choices": [{"finish_reason": "stop", "usage": usage}]}),
        json!({"type": "response.completed", "response": {"usage": usage}}),
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "message-end", "delta": {"usage": usage}}),
        json!([{"usage": {"prompt_tokens": 1}}, {"usage": usage}]),
    ] {
        assert_eq!(body(&place).total(), Some(7), "{place}");
    }
    for elsewhere in [
        json!({"metadata": {"usage": usage}}),
        json!({"choices": [{"message": {"tool_calls": [{"function": {"arguments": {"usage": usage}}}]}}]}),
        json!({"output": [{"usage": usage}]}),
        json!({"choices": [{"message": {"content": usage.to_string()}}]}),
    ] {
        assert!(body(&elsewhere).is_empty(), "{elsewhere}");
    }
}

#[test]
fn b125_numbers_that_cannot_be_are_ignored_and_flagged() {
    for nonsense in [
        "-100000000",
        "-1",
        "1e308",
        "1e999",
        "18446744073709551616",
        "18446744073709551615",
        "12.5",
        "\"12\"",
        "true",
        "[1]",
        "{\"a\":1}",
        "NaN",
    ] {
        let text = format!(r#"{{"usage": {{"prompt_tokens": {nonsense}, "completion_tokens": 5}}}}"#);
        let usage = of_json(text.as_bytes());
        assert_eq!((usage.input, usage.anomalous), (None, true), "{nonsense}");

        let mut stream = StreamReader::new();
        stream.feed(b"data: {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4}}\n\n");
        stream.feed(format!("data: {text}\n\n").as_bytes());
        let usage = stream.usage();
        assert_eq!((usage.input, usage.anomalous), (Some(10), true), "{nonsense} erases nothing");
    }
    for nonsense in ["5", "\"x\"", "true", "[]"] {
        let usage = of_json(format!("{{\"usage\": {nonsense}}}").as_bytes());
        assert!(usage.anomalous && usage.input.is_none(), "{nonsense}");
    }
    assert!(!of(&json!({"prompt_tokens": 0, "completion_tokens": null})).anomalous);
    assert_eq!(of(&json!({"prompt_tokens": 0})).input, Some(0), "an explicit zero is a statement");
}

#[test]
fn b125_a_part_above_its_whole_is_flagged_and_kept() {
    for odd in [
        json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}}),
        json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 6}}),
        json!({"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 11}}),
        json!({"input_tokens": 1, "cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 6}}),
    ] {
        let usage = of(&odd);
        assert!(usage.anomalous, "{odd}");
        assert!(usage.total().is_some(), "{odd}");
    }
}

#[test]
fn b142_what_is_json_but_no_message_reports_nothing() {
    for text in ["true", "null", "123", "\"usage\"", "", "   ", "usage: 5", "[]", "[1, 2]"] {
        let mut reader = BodyReader::new();
        reader.feed(text.as_bytes());
        assert!(reader.usage().is_empty(), "{text}");
        assert_eq!(reader.finish(), None, "{text}");
    }
}

#[test]
fn an_error_in_a_good_body_is_one_and_a_cut_body_is_transient() {
    let finish = |text: &str| {
        let mut reader = BodyReader::new();
        let seen = reader.feed(text.as_bytes());
        assert_eq!(seen.has_error(), reader.failure().is_some());
        reader.finish().map(|verdict| verdict.class())
    };
    assert_eq!(finish(r#"{"error": {"code": 429, "message": "slow down"}}"#), Some(Class::Throttled));
    assert_eq!(finish(r#"{"error": {"code": 502, "message": "bad upstream"}}"#), Some(Class::Transient));
    assert_eq!(finish(r#"[{"error": {"code": 503, "status": "UNAVAILABLE"}}]"#), Some(Class::Transient));
    assert_eq!(finish(r#"{"error": null, "output": []}"#), Some(Class::Success));
    assert_eq!(finish(r#"{"choices": [{"message": {"content": "hal"#), Some(Class::Transient));
    assert_eq!(finish(r#"[{"candidates": []},"#), Some(Class::Transient));
    let mut blocked = BodyReader::new();
    blocked.feed(br#"{"promptFeedback": {"blockReason": "SAFETY"}}"#);
    assert_eq!(blocked.finish().map(|verdict| verdict.reason()), Some(Reason::Policy));
}

#[test]
fn a_body_of_any_size_and_depth_is_passed_over() {
    let image = "A".repeat(8 << 20);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!(
        r#"{{"data": [{{"b64": "{image}"}}], "deep": {deep}, "usage": {{"input_tokens": 2, "output_tokens": 3}}}}"#
    );
    assert_eq!(of_json(text.as_bytes()).total(), Some(5));
    assert!(of_json("{\"a\":".repeat(100_000).as_bytes()).is_empty());
}
