use std::time::Duration;

use super::*;

fn build(text: &str) -> Result<Routes, ConfigError> {
    Routes::from_json(text, |name| (name == "KEY").then(|| "s3cret".to_owned()))
}

/// One upstream with this inside, and one target with that.
fn with(upstream: &str, target: &str) -> Result<Routes, ConfigError> {
    build(&format!(
        r#"{{"upstreams":{{"a":{{"base_url":"https://a/v1"{upstream}}}}},"routes":{{"m":{{"targets":[{{"upstream":"a"{target}}}]}}}}}}"#
    ))
}

#[test]
fn every_setting_of_a_target_is_read() {
    let target = r#","model":"x","timeout":"250ms","attempts":2,"context":8000,"weight":3,"fallback_on":["denied","policy"]"#;
    let routes = with("", target).unwrap();
    let target = &routes.targets(Some("m"))[0];
    assert_eq!(target.model().map(AsRef::as_ref), Some("x"));
    assert_eq!(target.timeout(), Some(Duration::from_millis(250)));
    assert_eq!(
        (target.attempts().map(u32::from), target.context(), target.weight()),
        (Some(2), Some(8_000), 3)
    );
    assert_eq!(target.settings.triggers, Some(Triggers::none().on(Class::Denied).on_policy()));
}

#[test]
fn a_secret_comes_from_the_environment_and_is_shown_nowhere() {
    for credential in [
        r#"{"bearer":"env:KEY"}"#,
        r#"{"header":"x-key","secret":"env:KEY"}"#,
        r#"{"query":"key","secret":"env:KEY"}"#,
    ] {
        let routes =
            with(&format!(r#","credential":{credential},"headers":{{"x-more":"env:KEY"}}"#), "").unwrap();
        let shown = format!("{routes:?} {:?}", routes.targets(Some("m")));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn what_is_wrong_is_named_by_its_path_and_never_by_its_value() {
    let cases = [
        (with(r#","credential":{"bearer":"env:NONE"}"#, ""), "upstreams.a.credential.bearer"),
        (with(r#","credential":{"bearer":"s3\ncret"}"#, ""), "upstreams.a.credential"),
        (with(r#","credential":{"bearer":["s3cret"]}"#, ""), "upstreams.a.credential.bearer"),
        (with(r#","credential":{"secret":"s3cret"}"#, ""), "upstreams.a.credential"),
        (with(r#","credential":"s3cret""#, ""), "upstreams.a.credential"),
        (with(r#","credential":{"from_caller":"not a header"}"#, ""), "upstreams.a.credential.from_caller"),
        (with(r#","strip_prefix":"v1""#, ""), "upstreams.a.strip_prefix"),
        (with(r#","keys":1"#, ""), "upstreams.a.keys"),
        (with("", r#","timeout":"soon""#), "routes.m.targets[0].timeout"),
        (with("", r#","attempts":0"#), "routes.m.targets[0].attempts"),
        (with("", r#","weight":-1"#), "routes.m.targets[0].weight"),
        (with("", r#","fallback_on":["s3cret"]"#), "routes.m.targets[0].fallback_on[0]"),
        (build(r#"{"upstreams":{"a":{"base_url":"ftp://s3cret"}},"routes":{}}"#), "upstreams.a.base_url"),
        (build(r#"{"upstreams":{"a":{}},"routes":{}}"#), "upstreams.a.base_url"),
        (
            build(r#"{"upstreams":{},"routes":{"m":{"targets":[{"upstream":"a"}]}}}"#),
            "routes.m.targets[0].upstream",
        ),
        (build(r#"{"upstreams":{},"routes":{},"secret_headers":["a b"]}"#), "secret_headers[0]"),
        (build(r#"{"upstreams":{}}"#), "routes"),
    ];
    for (result, field) in cases {
        let error = result.unwrap_err();
        assert_eq!(error.field(), field, "{error}");
        assert!(!error.to_string().contains("cret\""), "{error}");
        assert!(!error.to_string().contains("s3"), "{error}");
    }
    assert!(build("{").is_err() && build(r#"{"upstreams":{},"routes":{}} more"#).is_err());
}

#[cfg(feature = "toml")]
#[test]
fn toml_says_the_same() {
    let text = r#"
        [upstreams.a]
        base_url = "https://a/v1"
        credential = { bearer = "env:KEY" }

        [routes."gpt-*"]
        order = "fastest"
        commit = "end"
        targets = [{ upstream = "a", timeout = "30s" }]
    "#;
    let env = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
    let routes = Routes::from_toml(text, env).unwrap();
    assert_eq!(routes.targets(Some("gpt-5"))[0].timeout(), Some(Duration::from_secs(30)));
    let error = Routes::from_toml(&text.replace("30s", "s3cret"), env).unwrap_err();
    assert_eq!(error.field(), "routes.gpt-*.targets[0].timeout");
    assert!(Routes::from_toml("bearer = s3cret", env).is_err_and(|error| !error.to_string().contains("s3")));
}
