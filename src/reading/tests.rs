use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[expect(dead_code, reason = "only read")]
    wait: Option<Time>,
    #[serde(default)]
    #[expect(dead_code, reason = "only read")]
    list: Vec<BTreeMap<String, u32>>,
}

#[test]
fn a_time_has_a_unit() {
    let seconds = |text| time(text).map(|time| time.as_secs());
    assert_eq!(time("250ms"), Some(Duration::from_millis(250)));
    assert_eq!((seconds("30s"), seconds("2m"), seconds("1h")), (Some(30), Some(120), Some(3_600)));
    for wrong in ["", "s", "30", "-1s", "1d", "1.5s", "99999999999999999999s", "9999999999999999999h"] {
        assert_eq!(time(wrong), None, "{wrong}");
    }
}

#[test]
fn json_names_path_and_line_and_what_was_expected() {
    let error = from_json::<Sample>("{\n \"wait\": \"soon\"\n}").unwrap_err();
    assert_eq!((error.field(), error.line()), ("wait", Some(2)));
    assert!(error.problem().contains("expected a time such as"), "{error}");
    assert!(!error.to_string().contains("soon"), "{error}");
    assert_eq!(from_json::<Sample>("{").unwrap_err().problem(), "cannot be read as JSON");
    assert_eq!(from_json::<Sample>("{} {").unwrap_err().problem(), "is not JSON to its end");
}

#[test]
fn a_value_that_looks_like_a_message_is_not_told() {
    let error = from_json::<Sample>(r#"{"wait": "s3cret, expected s3cret at line 1"}"#).unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    let error = from_json::<Sample>(r#"{"wait": ["s3cret"]}"#).unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[cfg(feature = "toml")]
#[test]
fn toml_names_path_and_line_too() {
    let text = "wait = \"1s\"\n\n[[list]]\na = 1\n[[list]]\n'b.c' = -1\n";
    let error = from_toml::<Sample>(text).unwrap_err();
    assert_eq!((error.field(), error.line()), ("list[1].b.c", Some(6)), "{error}");
    let error = from_toml::<Sample>("\nwaits = 1").unwrap_err();
    assert_eq!((error.field(), error.line(), error.problem()), ("waits", Some(2), "is not a setting"));
    let error = from_toml::<Sample>("wait = \n").unwrap_err();
    assert_eq!((error.line(), error.problem()), (Some(1), "is not TOML"));
    let error = from_toml::<Sample>("wait = \"1s\"\nwait = \"2s\"\n").unwrap_err();
    assert_eq!(error.line(), Some(2), "{error}");
}

#[cfg(feature = "toml")]
#[test]
fn an_error_found_later_gets_the_line_of_what_is_there() {
    let text = "[upstreams.'a.b']\nbase_url = 'x'\n[[routes]]\ntargets = [\n { upstream = 'a' },\n { upstream = 'b' },\n]\n";
    let line = |field: &'static str| in_toml(ConfigError::new(field, "is wrong"), text).line();
    assert_eq!(line("upstreams.a.b.base_url"), Some(2));
    assert_eq!(line("upstreams.a.b.api_key"), Some(1), "what is missing is missing there");
    assert_eq!(line("routes[0].targets[1].upstream"), Some(6));
    assert_eq!(line("nowhere"), None);
}
