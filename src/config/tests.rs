use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;

use super::*;
use crate::call::CallBody;
use crate::cost_guard::Usd;
use crate::gate::Gate;
use crate::refusal::{self, BoxError, RefusalKind};

fn env(name: &str) -> Option<String> {
    ["FIRST_KEY", "TEAM_A_KEY"].contains(&name).then(|| format!("s3cret-{name}"))
}

fn json(text: &str) -> Result<Config, ConfigError> {
    Config::from_json(text, env)
}

/// One upstream and one route, and more at the top, within the upstream and within the route.
fn with(top: &str, upstream: &str, route: &str) -> Result<Config, ConfigError> {
    json(&format!(
        r#"{{ "upstreams": {{ "a": {{ "base_url": "https://a.test/v1" {upstream} }} }},
             "routes": [ {{ "model": "m", "targets": [ {{ "upstream": "a" }} ] {route} }} ] {top} }}"#
    ))
}

fn chat(model: &str) -> Request<Full<Bytes>> {
    let body =
        format!(r#"{{"model":"{model}","max_tokens":100,"messages":[{{"role":"user","content":"Hi"}}]}}"#);
    Request::post("/v1/chat/completions")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

const ANSWER: &str = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#;

type Seen = Arc<Mutex<Vec<(String, Option<String>, String)>>>;

/// Writes down what it gets: URL, authorization and body; answers 503 at the hosts that are `down`.
fn provider(
    down: &'static [&'static str],
) -> (
    Seen,
    impl tower::Service<Request<CallBody>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send>
    + Clone,
) {
    let seen = Seen::default();
    let log = seen.clone();
    let service = tower::service_fn(move |request: Request<CallBody>| {
        let log = log.clone();
        async move {
            let header = request.headers().get("authorization");
            let key = header.map(|value| value.to_str().unwrap().to_owned());
            let host = request.uri().host().unwrap().to_owned();
            let uri = request.uri().to_string();
            let body = request.into_body().collect().await?.to_bytes();
            log.lock().unwrap().push((uri, key, String::from_utf8(body.to_vec()).unwrap()));
            let mut response = Response::new(Full::new(Bytes::from(ANSWER)));
            response.headers_mut().insert("content-type", "application/json".parse().unwrap());
            if down.contains(&&*host) {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                *response.body_mut() = Full::new(Bytes::from("{}"));
            }
            Ok::<_, BoxError>(response)
        }
    });
    (seen, service)
}

#[cfg(feature = "toml")]
const FILE: &str = r#"
listen = "127.0.0.1:8080"
[upstreams.first]
base_url = "http://first.test:9001/v1"
api_key = "env:FIRST_KEY"
requests_per_minute = 60
tokens_per_minute = 100000
max_concurrent = 15
[upstreams.second]
base_url = "http://second.test/v1"
[upstreams.second.breaker]
failures = 2
[[routes]]
model = "chat"
commit = "first_content"
targets = [
  { upstream = "first", model = "model-a", timeout = "30s", attempts = 3, context = 64000 },
  { upstream = "second", model = "model-b" },
]
[retry]
attempts = 3
base = "500ms"
[breaker]
failures = 5
open_for = "30s"
[timeout]
total = "120s"
head = "30s"
first_content = "30s"
idle = "30s"
[[budgets]]
limit = "10.00"
window = "day"
key = "client"
[prices."model-a"]
input_per_million = "0.42"
output_per_million = "1.10"
[prices."model-b"]
input_per_million = "1"
output_per_million = "2"
[[clients]]
name = "team-a"
key = "env:TEAM_A_KEY"
models = ["chat"]
"#;

#[cfg(feature = "toml")]
#[tokio::test(start_paused = true)]
async fn a_whole_file_becomes_a_client_that_falls_over_and_counts_money() {
    let config = Config::from_toml(FILE, env).unwrap();
    let (seen, client) = provider(&["first.test"]);
    let (client, stack) = config.client(client).unwrap();
    let response = client.oneshot(chat("chat")).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4, "three attempts at the first, one at the second");
    assert_eq!(seen[0].0, "http://first.test:9001/v1/chat/completions");
    assert_eq!(seen[0].1.as_deref(), Some("Bearer s3cret-FIRST_KEY"));
    assert!(seen[0].2.contains(r#""model":"model-a""#));
    assert_eq!((seen[3].1.as_deref(), seen[3].2.contains("model-b")), (None, true));
    let spent = stack.ledger().account("day by client", "").unwrap().spent;
    assert_eq!(spent, Usd::nanos(10 * 1_000 + 5 * 2_000));
    let level = stack.buckets().find("first").unwrap().level("requests").unwrap();
    assert!(level.available < level.burst, "the attempts took from it: {level:?}");
}

#[cfg(feature = "toml")]
#[test]
fn the_file_says_where_to_listen_and_who_may_call() {
    let config = Config::from_toml(FILE, env).unwrap();
    assert_eq!(config.listen().port(), 8080);
    let client = config.clients().find(b"s3cret-TEAM_A_KEY").unwrap();
    assert_eq!(client.name().as_str(), "team-a");
    assert!(client.may_use(Some("chat")) && !client.may_use(Some("other")) && !client.may_use(None));
    for wrong in [&b""[..], b"s3cret-TEAM_A_KE", b"s3cret-TEAM_A_KEY ", b"env:TEAM_A_KEY"] {
        assert!(config.clients().find(wrong).is_none());
    }
    assert_eq!(config.models().collect::<Vec<_>>(), ["chat"]);
    let shown = format!("{config:?} {:?} {:?}", config.stack().unwrap(), client);
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[cfg(feature = "toml")]
#[test]
fn what_is_wrong_in_a_file_has_its_line() {
    for (from, to, field) in [
        ("failures = 2", "failures = 0", "upstreams.second.breaker.failures"),
        ("upstream = \"second\"", "upstream = \"third\"", "routes[0].targets[1].upstream"),
        ("limit = \"10.00\"", "limit = \"ten\"", "budgets[0].limit"),
        ("open_for", "opens_for", "breaker.opens_for"),
        ("env:TEAM_A_KEY", "env:NOBODY", "clients[0].key"),
    ] {
        let error = Config::from_toml(&FILE.replacen(from, to, 1), env).unwrap_err();
        let line = 1 + FILE.lines().position(|line| line.contains(from)).unwrap();
        assert_eq!((error.field(), error.line()), (field, Some(line)), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named_as_the_file_names_it() {
    let cases = [
        (with(r#", "more": 1"#, "", ""), "more"),
        (with("", r#", "requests_per_minute": 0"#, ""), "upstreams.a.requests_per_minute"),
        (with("", r#", "tokens_per_minute": 100000000000"#, ""), "upstreams.a.tokens_per_minute"),
        (with("", r#", "api_key": "env:NONE""#, ""), "upstreams.a.api_key"),
        (with("", r#", "api_key": "a\nb""#, ""), "upstreams.a.api_key"),
        (with("", r#", "api_key": "k", "credential": { "bearer": "k" }"#, ""), "credential"),
        (with("", r#", "retry": { "attempts": 0 }"#, ""), "upstreams.a.retry.attempts"),
        (with(r#", "retry": { "base": "30s", "cap": "1s" }"#, "", ""), "retry.base"),
        (with(r#", "retry": { "attempt_header": "a b" }"#, "", ""), "retry.attempt_header"),
        (with(r#", "retry_budget": { "ratio": 2.0 }"#, "", ""), "retry_budget.ratio"),
        (with(r#", "timeout": { "idle": "0s" }"#, "", ""), "timeout.idle"),
        (with(r#", "fallback": { "max_attempts": 0 }"#, "", ""), "fallback.max_attempts"),
        (
            with(r#", "limits": { "max_waiters": 0 }"#, r#", "tokens_per_minute": 1000"#, ""),
            "upstreams.a.limits.max_waiters",
        ),
        (with(r#", "breaker": { "failure_rate": 1.5 }"#, "", ""), "upstreams.a.breaker.failure_rate"),
        (with(r#", "budgets": [{ "window": "year" }]"#, "", ""), "budgets[0].window"),
        (with(r#", "budgets": [{ "window": "day", "key": "us" }]"#, "", ""), "budgets[0].key"),
        (with(r#", "budgets": [{ "window": "call", "utc_offset": 60 }]"#, "", ""), "budgets[0].utc_offset"),
        (with(r#", "budgets": [{ "window": "day", "marks": [0] }]"#, "", ""), "budgets[0].marks"),
        (with(r#", "budgets": [{ "window": "day" }, { "window": "day" }]"#, "", ""), "budgets"),
        (
            with(
                r#", "budgets": [{ "window": "day", "key": "client" }, { "window": "day", "key": "header:x" }]"#,
                "",
                "",
            ),
            "budgets[1].key",
        ),
        (
            with(r#", "prices": { "m": { "input_per_million": "-1", "output_per_million": "1" } }"#, "", ""),
            "prices.m.input_per_million",
        ),
        (with(r#", "price_file": { "path": "/nowhere", "format": "litellm" }"#, "", ""), "price_file.path"),
        (with(r#", "clients": [{ "name": "", "key": "k" }]"#, "", ""), "clients[0].name"),
        (
            with(r#", "clients": [{ "name": "a", "key": "k" }, { "name": "b", "key": "k" }]"#, "", ""),
            "clients[1].key",
        ),
        (with(r#", "aliases": { "x": "y" }"#, "", ""), "aliases.x"),
        (with("", "", r#", "commit": "later""#), "routes[0].commit"),
        (json(r#"{ "upstreams": {}, "routes": [{ "model": "a.b", "targets": [] }] }"#), "routes[0].targets"),
    ];
    for (result, field) in cases {
        let error = result.unwrap_err();
        assert_eq!(error.field(), field, "{error}");
    }
}

#[tokio::test]
async fn a_tenant_in_a_header_spends_its_own_budget() {
    let config = with(
        r#", "budgets": [{ "limit": "0.0002", "window": "total", "key": "header:x-team" }],
            "prices": { "m": { "input_per_million": "0", "output_per_million": "1" } }"#,
        "",
        "",
    );
    let (_, client) = provider(&[]);
    let (client, stack) = config.unwrap().client(client).unwrap();
    let call = |team: &'static str| {
        let mut request = chat("m");
        request.headers_mut().insert("x-team", team.parse().unwrap());
        let client = client.clone();
        async move { client.oneshot(request).await.unwrap().into_body().collect().await.unwrap() }
    };
    call("red").await;
    call("red").await;
    call("blue").await;
    let spent = |team| stack.ledger().account("total by header:x-team", team).unwrap().spent;
    assert_eq!((spent("red"), spent("blue")), (Usd::nanos(10_000), Usd::nanos(5_000)));
}

#[tokio::test(start_paused = true)]
async fn a_new_configuration_keeps_what_is_known() {
    let file = |requests: u32, concurrent: u32, limit: &str, failures: u32| {
        with(
            &format!(
                r#", "budgets": [{{ "limit": "{limit}", "window": "total" }}], "breaker": {{ "failures": {failures} }},
                    "prices": {{ "m": {{ "input_per_million": "1", "output_per_million": "1" }} }}"#
            ),
            &format!(r#", "requests_per_minute": {requests}, "max_concurrent": {concurrent}"#),
            "",
        )
        .unwrap()
    };
    let (_, client) = provider(&[]);
    let (old, stack) = file(60, 4, "1", 5).client(client.clone()).unwrap();
    old.oneshot(chat("m")).await.unwrap().into_body().collect().await.unwrap();
    let spent = || stack.ledger().account("total", "").unwrap();
    let before = spent();
    assert!(!before.spent.is_zero());

    let renewed = stack.renew(&file(120, 9, "0.00001", 5)).unwrap();
    assert_eq!(stack.bulkheads().find("a").unwrap().limit(), 9, "the same bulkhead, resized");
    assert_eq!((spent().spent, spent().limit), (before.spent, Some(Usd::nanos(10_000))));
    let level = renewed.buckets().find("a").unwrap().level("requests").unwrap();
    assert_eq!(level.quota.amount().get(), 120);
    let refused = renewed.layer(client).oneshot(chat("m")).await.unwrap_err();
    assert_eq!(refusal::find(&*refused).unwrap().kind(), RefusalKind::BudgetExhausted, "{refused}");

    stack.breakers().find("a").unwrap().force_open();
    let open = |stack: &Stack| Gate::<()>::shut(stack.breakers().find("a").unwrap());
    assert!(open(&renewed.renew(&file(120, 9, "1", 5)).unwrap()), "it is the same breaker");
    assert!(!open(&renewed.renew(&file(120, 9, "1", 6)).unwrap()), "with other settings it is another");
}

#[test]
fn a_configuration_that_cannot_follow_changes_nothing() {
    let file = |window: &str, concurrent: u32| {
        let budgets = format!(r#", "budgets": [{{ "limit": "1", "window": "{window}" }}]"#);
        with(&budgets, &format!(r#", "max_concurrent": {concurrent}"#), "").unwrap()
    };
    let stack = file("day", 4).stack().unwrap();
    let error = stack.renew(&file("week", 9)).unwrap_err();
    assert_eq!(error.field(), "budgets");
    assert_eq!(stack.bulkheads().find("a").unwrap().limit(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_retry_policy_under_an_upstream_wins() {
    let config = json(
        r#"{ "upstreams": {
                "a": { "base_url": "http://a.test", "retry": { "attempts": 1 } },
                "b": { "base_url": "http://b.test" } },
             "routes": [{ "model": "m", "targets": [{ "upstream": "a" }, { "upstream": "b" }] }],
             "retry": { "attempts": 2, "base": "1ms" } }"#,
    );
    let (seen, client) = provider(&["a.test", "b.test"]);
    let (client, _) = config.unwrap().client(client).unwrap();
    assert_eq!(client.oneshot(chat("m")).await.unwrap().status(), 503);
    let hosts: Vec<_> = seen.lock().unwrap().iter().map(|(uri, ..)| uri[7..8].to_owned()).collect();
    assert_eq!(hosts, ["a", "b", "b"]);
}

#[tokio::test(start_paused = true)]
async fn retries_make_no_more_attempts_than_the_chain_gives_a_target() {
    let config = json(
        r#"{ "upstreams": { "a": { "base_url": "http://a.test" }, "b": { "base_url": "http://b.test" } },
             "routes": [{ "model": "m", "targets": [{ "upstream": "a" }, { "upstream": "b" }] }],
             "retry": { "attempts": 4, "base": "1ms" } }"#,
    );
    let (seen, client) = provider(&["a.test", "b.test"]);
    let (client, _) = config.unwrap().client(client).unwrap();
    assert_eq!(client.oneshot(chat("m")).await.unwrap().status(), 503);
    let hosts: Vec<_> = seen.lock().unwrap().iter().map(|(uri, ..)| uri[7..8].to_owned()).collect();
    assert_eq!(hosts, ["a", "a", "a", "b", "b", "b"], "six in all");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_out_or_full_is_asked_last() {
    let config = json(
        r#"{ "upstreams": {
                "a": { "base_url": "http://a.test", "max_concurrent": 1 },
                "b": { "base_url": "http://b.test" } },
             "routes": [{ "model": "m", "targets": [{ "upstream": "a" }, { "upstream": "b" }], "commit": "head" }] }"#,
    );
    let (seen, client) = provider(&[]);
    let (client, stack) = config.unwrap().client(client).unwrap();
    let first = client.clone().oneshot(chat("m")).await.unwrap();
    let held = stack.bulkheads().find("a").unwrap().in_flight();
    client.clone().oneshot(chat("m")).await.unwrap().into_body().collect().await.unwrap();
    drop(first);
    stack.breakers().find("a").unwrap().force_open();
    client.oneshot(chat("m")).await.unwrap().into_body().collect().await.unwrap();
    let hosts: Vec<_> = seen.lock().unwrap().iter().map(|(uri, ..)| uri[7..8].to_owned()).collect();
    assert_eq!((held, hosts.join("")), (1, "abb".to_owned()));
    tokio::time::advance(Duration::from_secs(1)).await;
}

/// Every setting that the file may have stands in the table of the module, and so does what it says of defaults.
#[test]
fn the_table_of_settings_names_each_and_its_default() {
    let page = include_str!("mod.rs");
    let sections = include_str!("sections.rs");
    let fields =
        sections.lines().map(str::trim).filter(|line| line.ends_with(',') && !line.starts_with("//"));
    let fields = fields.flat_map(|line| line.split(", ")).filter_map(|field| {
        let field = field.rsplit(['{', ' ']).nth(1).unwrap_or(field);
        field.strip_suffix(':')
    });
    let mut known = 0;
    for field in fields {
        known += 1;
        let named = [
            format!("`{field}`"),
            format!(".{field}`"),
            format!("{field}.NAME"),
            format!("{field}.MODEL"),
            format!("{field}[]"),
        ];
        let quoted = |text: &str| {
            page.contains(text)
                || page.contains(&format!("{field},"))
                || page.contains(&format!("{field} }}"))
        };
        assert!(named.iter().any(|text| quoted(text)), "`{field}` is not in the table");
    }
    assert!(known > 80, "{known} settings were found");

    let says =
        |row: &str| assert!(page.lines().any(|line| line.starts_with(&format!("//! | {row}"))), "{row}");
    says("`listen` | where a gateway listens | `127.0.0.1:8080` |");
    says("`timeout.total` | the whole call | 10 min,");
    says(
        "`timeout.head`, `timeout.first_content` | of one attempt | 30 s and 500 ms a 1 000 tokens, at most 120 s |",
    );
    says("`timeout.idle` | silence within a response | 30 s |");
    says("`retry_budget` | `ratio`, `reserve`, one account an upstream | 0.2 and 10 |");
    let config = with("", "", "").unwrap();
    assert_eq!(config.listen().to_string(), "127.0.0.1:8080");
    let stack = config.stack().unwrap();
    let [total, attempt] = [&stack.0.total, &stack.0.attempt].map(|layer| format!("{layer:?}"));
    assert!(total.contains("total: Some(Limit { base: 600s"), "{total}");
    let by_size = "Some(Limit { base: 30s, per_1k_tokens: 500ms, most: 120s })";
    assert!(attempt.contains(&format!("head: {by_size}, first_content: {by_size}")), "{attempt}");
    assert!(attempt.contains("idle: Some(Limit { base: 30s"), "{attempt}");
    assert_eq!(stack.retry_budget().left_in_thousandths(None), 10_000);
    let policy = format!("{:?}", stack.0.retry.policy());
    assert!(policy.contains("ambiguous: true"), "the preset is `llm`: {policy}");
}

#[cfg(feature = "toml")]
#[test]
fn the_configuration_of_the_readme_is_sound() {
    let readme = include_str!("../../README.md");
    // After the manifest's lines.
    let (_, rest) = readme.rsplit_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let config =
        Config::from_toml(text, |name| name.ends_with("_API_KEY").then(|| "secret".to_owned())).unwrap();
    assert_eq!(config.models().collect::<Vec<_>>(), ["chat"]);
    assert_eq!(config.stack().unwrap().buckets().iter().count(), 1);
}
