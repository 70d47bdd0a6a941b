use super::*;

fn asked(body: &str) -> Call {
    read_json(body.as_bytes()).unwrap_or_else(|| panic!("not read: {body:.100}"))
}

fn estimate(body: &str) -> Estimate {
    asked(body).estimate.unwrap()
}

#[test]
fn the_last_of_two_models_is_what_was_asked_for() {
    let model = |body: &str| asked(body).model.map(|model| model.to_string());
    assert_eq!(model(r#"{"model":"a","model":"b"}"#).as_deref(), Some("b"));
    assert_eq!(model(r#"{"m\u006fdel":"\u0061"}"#).as_deref(), Some("a"));
    assert_eq!(model(r#"{"messages":[{"model":"x"}]}"#), None);
    for none in
        [r#"{"model":null}"#, r#"{"model":7}"#, r#"{"model":"a","model":null}"#, r#"{"model":{"role":"a"}}"#]
    {
        assert_eq!(model(none), None, "{none}");
        assert!(!asked(none).rewritable, "{none}");
    }
}

#[test]
fn b119_an_output_bound_is_a_positive_number_or_was_not_said() {
    for (value, expected) in [
        ("65536", Some(65_536)),
        ("0", None),
        ("null", None),
        ("1e12", Some(1_000_000_000_000)),
        ("\"100\"", None),
        ("-1", None),
        ("1e400", Some(u64::MAX)),
        ("18446744073709551616", Some(u64::MAX)),
        ("12.5", Some(13)),
        ("true", None),
        ("[5]", None),
        ("{\"max_tokens\":5}", None),
    ] {
        for name in ["max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample"] {
            assert_eq!(asked(&format!(r#"{{"{name}":{value}}}"#)).output_bound, expected, "{name}: {value}");
        }
    }
    assert_eq!(asked("{}").output_bound, None);
    assert_eq!(asked(r#"{"max_tokens":5,"max_completion_tokens":900}"#).output_bound, Some(900));
}

#[test]
fn bounds_and_choices_inside_a_configuration_are_found_there_and_nowhere_else() {
    let gemini = asked(
        r#"{"generationConfig":{"candidateCount":2,"maxOutputTokens":77,"x":{"maxOutputTokens":900}}}"#,
    );
    assert_eq!((gemini.output_bound, gemini.choices), (Some(77), Some(2)));
    assert_eq!(asked(r#"{"inferenceConfig":{"maxTokens":9}}"#).output_bound, Some(9));
    assert_eq!(asked(r#"{"options":{"num_predict":42}}"#).output_bound, Some(42));
    assert_eq!(asked(r#"{"options":{"num_predict":-1}}"#).output_bound, None);
    let elsewhere = asked(r#"{"tools":[{"parameters":{"max_tokens":5,"n":9}}],"metadata":{"max_tokens":4}}"#);
    assert_eq!((elsewhere.output_bound, elsewhere.choices), (None, None));
}

#[test]
fn choices_are_answers_times_prompts() {
    assert_eq!(asked(r#"{"n":3}"#).choices, Some(3));
    assert_eq!(asked(r#"{"n":2,"best_of":5,"prompt":"a"}"#).choices, Some(5));
    assert_eq!(asked(r#"{"n":2,"prompt":["a","b","c"]}"#).choices, Some(6));
    assert_eq!(asked(r#"{"prompt":[[1,2],[3]]}"#).choices, Some(2));
    assert_eq!(asked(r#"{"prompt":[1,2,3]}"#).choices, None);
    assert_eq!(asked(r#"{"n":null,"input":["a","b"]}"#).choices, None);
    assert_eq!(asked(r#"{"n":99999999999}"#).choices, Some(u32::MAX));
}

#[test]
fn a_service_tier_is_a_name_and_the_last_one_counts() {
    let tier = |body: &str| asked(body).service_tier.map(|tier| tier.to_string());
    assert_eq!(tier(r#"{"service_tier":"flex"}"#).as_deref(), Some("flex"));
    assert_eq!(tier(r#"{"service_tier":"flex","service_tier":"priority"}"#).as_deref(), Some("priority"));
    for none in [
        "{}",
        r#"{"service_tier":null}"#,
        r#"{"service_tier":""}"#,
        r#"{"service_tier":3}"#,
        r#"{"service_tier":"flex","service_tier":null}"#,
        r#"{"service_tier":{"type":"flex"}}"#,
        r#"{"metadata":{"service_tier":"flex"}}"#,
    ] {
        assert_eq!(tier(none), None, "{none}");
    }
    assert_eq!(estimate(r#"{"service_tier":"flex"}"#).input_bytes, 0, "it is no input");
}

#[test]
fn a_stream_is_asked_for_with_true_and_nothing_else() {
    assert!(asked(r#"{"stream":true}"#).stream);
    for not in [r#"{"stream":false}"#, r#"{"stream":"true"}"#, r#"{"stream":1}"#, r#"{"x":{"stream":true}}"#]
    {
        assert!(!asked(not).stream, "{not}");
    }
}

#[test]
fn the_text_of_messages_counts_and_the_settings_do_not() {
    let bare = estimate(r#"{"messages":[{"role":"user","content":""}]}"#);
    assert_eq!(bare.input_tokens, 6, "framing of one message and of the answer");
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let said = estimate(&format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#));
    let alone = tokens::estimate(&text);
    assert!(said.input_tokens.abs_diff(6 + alone) <= 1, "{said:?} {alone}");
    let parts = estimate(&format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}],"user":"{text}"}}"#
    ));
    assert_eq!(parts.input_tokens, said.input_tokens);
    assert!(parts.input_bytes < said.input_bytes + 60);
}

#[test]
fn escaped_text_is_estimated_by_what_it_means() {
    let plain = estimate(r#"{"prompt":"今日は天気がいいですね"}"#);
    let escaped =
        estimate(r#"{"prompt":"\u4eca\u65e5\u306f\u5929\u6c17\u304c\u3044\u3044\u3067\u3059\u306d"}"#);
    assert_eq!(plain.input_tokens, escaped.input_tokens);
    assert!(escaped.input_bytes > plain.input_bytes, "a bound goes by the bytes");
}

#[test]
fn tokens_by_number_count_one_each() {
    assert_eq!(estimate(r#"{"prompt":[1,22,333]}"#).input_tokens, 3);
    assert_eq!(estimate(r#"{"input":[[1,2],[3,4]]}"#).input_tokens, 4);
    assert_eq!(estimate(r#"{"temperature":0.25,"seed":5}"#).input_tokens, 0);
}

#[test]
fn the_schema_of_a_tool_counts_with_its_names() {
    let tool = |properties: &str| {
        estimate(&format!(r#"{{"tools":[{{"type":"function","parameters":{{{properties}}}}}]}}"#))
            .input_tokens
    };
    assert!(tool(r#""city":{"type":"string"},"temperature_unit":{"enum":["c","f"]}"#) >= tool("") + 10);
}

#[test]
fn an_image_counts_by_what_images_make_and_not_by_its_bytes() {
    let png = format!("iVBORw0KGgo{}", "AbC9".repeat(100_000));
    for part in [
        format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{png}"}}}}"#),
        format!(r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}"#),
        format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{png}"}}}}"#),
        format!(r#"{{"type":"input_image","image_url":"data:image/png;base64,{png}"}}"#),
    ] {
        let estimate = estimate(&format!(r#"{{"messages":[{{"role":"user","content":[{part}]}}]}}"#));
        assert!((1_600..1_640).contains(&estimate.input_tokens), "{} {part:.50}", estimate.input_tokens);
        assert!((4_784..5_200).contains(&estimate.input_bytes), "{} {part:.50}", estimate.input_bytes);
        assert!(!estimate.by_reference, "{part:.50}");
    }
}

#[test]
fn what_is_kept_elsewhere_or_hides_its_size_is_said_to_be_by_reference() {
    let pdf = format!("JVBERi{}", "AbC9".repeat(100));
    for body in [
        r#"{"messages":[{"content":[{"image_url":{"url":"https://example.com/a.png"}}]}]}"#.to_owned(),
        r#"{"messages":[{"content":[{"image_url":{"url":"https:\/\/example.com\/a.png"}}]}]}"#.to_owned(),
        r#"{"input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}"#.to_owned(),
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"gs://bucket/film.mp4"}}]}]}"#.to_owned(),
        r#"{"previous_response_id":"resp_1","input":"more"}"#.to_owned(),
        r#"{"conversation":{"id":"conv_1"},"input":"more"}"#.to_owned(),
        r#"{"prompt":{"id":"pmpt_1"}}"#.to_owned(),
        r#"{"cachedContent":"cachedContents/1"}"#.to_owned(),
        r#"{"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#.to_owned(),
        r#"{"tools":[{"googleSearch":{}}]}"#.to_owned(),
        format!(r#"{{"messages":[{{"content":[{{"source":{{"data":"{pdf}"}}}}]}}]}}"#),
        format!(r#"{{"input":[{{"content":[{{"file_data":"data:application/pdf;base64,{pdf}"}}]}}]}}"#),
    ] {
        assert!(estimate(&body).by_reference, "{body:.100}");
    }
}

#[test]
fn words_that_only_look_like_a_reference_are_none() {
    for body in [
        r#"{"messages":[{"role":"user","content":"see https://example.com/a.png and file_id"}]}"#,
        r#"{"tools":[{"type":"function","parameters":{"properties":{"file_id":{"type":"string"},"url":{"default":"a://b"}}}}]}"#,
        r#"{"messages":[{"content":[{"type":"tool_use","input":{"url":"https://example.com","file_id":"f"}}]}]}"#,
        r#"{"previous_response_id":null,"input":"x"}"#,
        r#"{"metadata":{"file_id":"x"},"tools":[{"type":"custom","name":"web_search"}]}"#,
        r#"{"messages":[{"content":[{"data":"short words"}]}]}"#,
    ] {
        assert!(!estimate(body).by_reference, "{body}");
    }
}

#[test]
fn text_after_a_part_is_text_again() {
    let long = "words and more words ".repeat(50);
    let after = estimate(&format!(r#"{{"input":[{{"role":"user","type":"x"}},"{long}"]}}"#)).input_tokens;
    assert!(after > tokens::estimate(&long));
}

#[test]
fn an_amount_that_decides_about_money_is_never_below_the_text() {
    // Whatever is not known counts as input.
    let body = format!(r#"{{"something_new":{{"of":["{}"]}}}}"#, "word ".repeat(1_000));
    let estimate = estimate(&body);
    assert!(estimate.input_bytes >= 5_000);
    assert!(estimate.input_tokens >= 800);
}

#[test]
fn what_is_no_object_or_no_json_gives_no_information() {
    for body in ["", "[]", "null", "\"x\"", "{", r#"{"model":"m""#, "{]", "\u{1f}\u{8b}"] {
        assert!(read_json(body.as_bytes()).is_none(), "{body}");
    }
    let deep = format!(r#"{{"model":"m","x":{}"#, "[".repeat(100_000));
    assert!(read_json(deep.as_bytes()).is_none());
}
