//! What a body asks for is what a JSON reader finds in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::call::{Key, read_json, rewrite_model, tokens};
use seawall_fuzz::Frames;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Frames { body, .. } = Frames::read(input);
    let view = serde_json::from_slice::<Value>(body).ok();
    let Some(call) = read_json(body) else {
        assert!(!view.is_some_and(|view| view.is_object()), "it is an object");
        return;
    };
    assert_eq!(call.rewritable, rewrite_model(body, "x").is_some());
    assert!(call.output_bound != Some(0) && call.choices != Some(0), "{call:?}");
    let estimate = call.estimate.expect("one is made of every body");
    assert_eq!(estimate.input_tokens, estimate.unscaled_tokens);
    if let Ok(text) = std::str::from_utf8(body) {
        assert!(tokens::estimate(text) <= 2 * text.len() as u64 + 1);
    }

    if let Some(other) = rewrite_model(body, "another") {
        let after = read_json(&other).expect("it was JSON before");
        assert_eq!(after.model.as_ref().map(Key::as_str), Some("another"));
        assert_eq!(
            (after.stream, after.output_bound, after.choices, after.estimate, after.rewritable),
            (call.stream, call.output_bound, call.choices, call.estimate, true)
        );
    }

    let Some(Value::Object(view)) = view else { return };
    let text = |name: &str| view.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    assert_eq!(call.model.as_ref().map(Key::as_str), text("model"));
    if let Some(stream) = view.get("stream") {
        assert_eq!(call.stream, *stream == Value::Bool(true));
    }
    // An amount that decides about money is never too low.
    if let Some(most) = view.get("max_tokens").and_then(Value::as_u64) {
        assert!(call.output_bound.unwrap_or(0) >= most, "{call:?}");
    }
    if let Some(answers) = view.get("n").and_then(Value::as_u64) {
        let answers = u32::try_from(answers).unwrap_or(u32::MAX);
        assert!(call.choices.unwrap_or(0) >= answers, "{call:?}");
    }
    if let Some(Value::String(prompt)) = view.get("prompt") {
        // Images in it count by their size in pixels.
        assert!(estimate.input_bytes >= prompt.len() as u64 || prompt.contains("base64"), "{estimate:?}");
    }
});
