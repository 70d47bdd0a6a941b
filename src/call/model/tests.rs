use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn rewritten(body: &str, model: &str) -> Option<String> {
    rewrite_model(body.as_bytes(), model).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn b089_the_fallback_gets_its_own_name_and_otherwise_the_same_json() {
    let body = r#"{"model":"a-large","messages":[{"role":"user","content":"hi"}]}"#;
    let sent: Value = serde_json::from_str(&rewritten(body, "b-mini").unwrap()).unwrap();
    let mut expected: Value = serde_json::from_str(body).unwrap();
    expected["model"] = "b-mini".into();
    assert_eq!(sent, expected);
}

#[test]
fn b101_odd_json_keeps_every_byte_outside_the_name() {
    let long = "x\\u00e9 ".repeat(60_000);
    let odd = [
        r#""seed":4634343214213523454"#.to_owned(),
        r#""a":1e400,"b":0.1000,"c":-0"#.to_owned(),
        r#""s":"\ud800 lone \udfff \/ \u0000""#.to_owned(),
        r#""tools":[{"args":{"k":1,"k":2,"model":"deep","model":"er"}}]"#.to_owned(),
        format!(r#""text":"{long}""#),
        "\"w\" \t:\r\n [ ] ,\n\"e\":{ }".to_owned(),
    ];
    for member in &odd {
        for body in
            [format!(r#"{{"model":"old",{member}}}"#), format!(r#" {{ {member} ,"model" : "old" }} "#)]
        {
            let expected = body.replacen(r#""old""#, r#""new-name""#, 1);
            assert!(rewritten(&body, "new-name").unwrap() == expected, "{member:.60}");
        }
    }
}

#[test]
fn b103_only_the_top_level_member_changes_and_escapes_do_not_hide_it() {
    let nested = r#"{"tools":[{"model":"x"}],"messages":[{"content":"\"model\":\"y\""}],"m\u006fdel":"old"}"#;
    let expected =
        r#"{"tools":[{"model":"x"}],"messages":[{"content":"\"model\":\"y\""}],"m\u006fdel":"new"}"#;
    assert_eq!(rewritten(nested, "new").unwrap(), expected);
    assert_eq!(rewritten(r#"{"input":{"model":"x"},"Model":"y","model ":"z"}"#, "new"), None);
}

#[test]
fn a_name_is_escaped_and_can_be_replaced_whatever_escapes_it_has() {
    let body = r#"{"model":"a\"b\\","x":1}"#;
    let out = rewritten(body, "q\"\\\n\u{1}é").unwrap();
    assert_eq!(out, "{\"model\":\"q\\\"\\\\\\u000a\\u0001é\",\"x\":1}");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["model"], "q\"\\\n\u{1}é");
}

#[test]
fn a_quote_ends_a_text_only_after_an_even_number_of_backslashes() {
    for count in 0..9 {
        let backslashes = "\\".repeat(count);
        for text in [format!("a line\n{backslashes}"), format!("a line\n{backslashes}\" and {backslashes}")] {
            let text = serde_json::to_string(&text).unwrap();
            let body = |model: &str| format!(r#"{{"text":{text},"model":"{model}"}}"#);
            assert_eq!(rewritten(&body("old"), "new"), Some(body("new")), "{text}");
            let open = text.trim_end_matches('"');
            assert_eq!(rewritten(&format!(r#"{{"model":"old","text":{open}"#), "new"), None, "{open}");
        }
    }
}

#[test]
fn of_two_names_both_change_and_the_last_one_decides_whether_there_is_one() {
    assert_eq!(
        rewritten(r#"{"model":"dear","n":1,"model":"cheap"}"#, "b").unwrap(),
        r#"{"model":"b","n":1,"model":"b"}"#
    );
    assert_eq!(rewritten(r#"{"model":"dear","model":null}"#, "b"), None);
    assert_eq!(
        rewritten(r#"{"model":{"model":"dear"},"model":"x"}"#, "b").unwrap().matches("\"b\"").count(),
        1
    );
}

#[test]
fn what_names_no_model_is_not_rewritten() {
    for body in [
        "",
        " ",
        "{}",
        "[]",
        "null",
        "1",
        r#""model""#,
        r#"["model","x"]"#,
        r#"[{"model":"x"}]"#,
        r#"{"model":null}"#,
        r#"{"model":1.5}"#,
        r#"{"model":["x"]}"#,
        r#"{"model":{"id":"x"}}"#,
        r#"{"model":"x""#,
        r#"{"model":"x"}}"#,
        r#"{"model":"x"} {}"#,
        r#"{"model":"x",}"#,
        r#"{model:"x"}"#,
        r#"{"model" "x"}"#,
        r#"{"model":"x"]"#,
        r#"{"model":"x","a":01}"#,
        r#"{"model":"x","a":tru}"#,
        r#"{"model":"x","a":[1,]}"#,
        r#"{"model":"x","a":"\"}"#,
        "\u{feff}{\"model\":\"x\"}",
    ] {
        assert_eq!(rewritten(body, "b"), None, "{body}");
    }
}

#[test]
fn deep_nesting_is_no_information() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = |levels: usize| {
            let inner = if open == "[" { "" } else { "1" };
            format!(r#"{{"x":{}{inner}{},"model":"m"}}"#, open.repeat(levels), close.repeat(levels))
        };
        assert!(rewritten(&deep(127), "b").is_some());
        assert!(rewritten(&deep(128), "b").is_none());
        assert!(rewritten(&deep(100_000), "b").is_none());
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![Just("model".to_owned()), Just("stream".to_owned()), any::<String>()];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_byte_outside_the_name_stays(
        mut value in json(), name in any::<String>(), new in any::<String>(), pretty: bool, named: bool,
    ) {
        if named && let Some(object) = value.as_object_mut() {
            object.insert("model".to_owned(), name.into());
        }
        let body = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let has = value.as_object().is_some_and(|object| object.get("model").is_some_and(Value::is_string));
        let Some(out) = rewrite_model(body.as_bytes(), &new) else {
            prop_assert!(!has);
            return Ok(());
        };
        prop_assert!(has);
        let Some(Place::Json { start, end, repeated: false }) = find(body.as_bytes()) else { panic!("one name") };
        let tail = &body.as_bytes()[end..];
        prop_assert_eq!(&out[..start], &body.as_bytes()[..start]);
        prop_assert_eq!(&out[out.len() - tail.len()..], tail);
        let mut before: Value = serde_json::from_str(&body).unwrap();
        before["model"] = new.into();
        prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), before);
    }

    #[test]
    fn whatever_a_strict_parser_accepts_is_read_and_nothing_panics(
        bytes in proptest::collection::vec(prop_oneof![
            Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b','), Just(b':'), Just(b'1'),
            Just(b' '), Just(b'e'), Just(b'-'), Just(b'.'), Just(b'u'), any::<u8>(),
        ], 0..40),
    ) {
        let strict = serde_json::from_slice::<Value>(&bytes);
        let _ = rewrite_model(&bytes, "m");
        let read = crate::call::read_json(&bytes);
        if strict.is_ok_and(|value| value.is_object()) {
            prop_assert!(read.is_some());
        }
    }
}

#[test]
fn a_rewrite_is_one_allocation() {
    let body = format!(r#"{{"messages":["{}"],"model":"large"}}"#, "x \\n ".repeat(20_000));
    let repeated = format!(r#"{{"model":"a",{}"#, &body[1..]);
    for body in [body, repeated] {
        let info = allocation_counter::measure(|| {
            drop(rewrite_model(body.as_bytes(), "a-name-that-is-longer").unwrap());
        });
        assert_eq!(info.count_total, 1);
    }
}
