//! The simulated provider does what it is told, and tells what it saw. Read by the crate's own readers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::call::{Outcome, OutcomeLayer};
use seawall::{BoxError, Class};
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

use crate::provider::{Billing, Fault, How, Limits, Pace, Price, Provider, Style, Window};

/// For ever, for a test.
const LONG: Duration = Duration::from_secs(3600);

struct Got {
    status: u16,
    headers: HeaderMap,
    outcome: Arc<Outcome>,
    body: String,
    broken: bool,
}

impl Got {
    fn class(&self) -> Class {
        self.outcome.verdict().unwrap().class()
    }

    fn tokens(&self) -> usize {
        self.body.matches("\"w").count()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn send(
    request: Request<Full<Bytes>>,
) -> Result<Response<impl Body<Data = Bytes, Error = hyper::Error>>, BoxError> {
    let client = Client::builder(TokioExecutor::new()).build_http().map_err(BoxError::from);
    OutcomeLayer::new().layer(client).oneshot(request).await
}

fn post(provider: &Provider, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::post(provider.url() + path).header("content-type", "application/json");
    request.body(Full::from(body.to_string())).unwrap()
}

async fn read(response: Response<impl Body<Data = Bytes, Error = hyper::Error>>) -> Got {
    let (head, body) = response.into_parts();
    let (data, _, error) = crate::support::read(body).await;
    Got {
        status: head.status.as_u16(),
        headers: head.headers,
        outcome: head.extensions.get().cloned().unwrap(),
        body: String::from_utf8(data).unwrap(),
        broken: error.is_some(),
    }
}

async fn ask(provider: &Provider, path: &str, body: &Value) -> Got {
    read(send(post(provider, path, body)).await.unwrap()).await
}

/// The tokens of the prompt of [`chat`]: a quarter of its bytes, the role's included.
const INPUT: u64 = 7;

fn chat(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "twenty-four bytes of it."}]
    })
}

const CHAT: &str = "/chat/completions";

async fn healthy() -> Provider {
    Provider::builder("p").price(Price::nanos(3, 10)).start().await.unwrap()
}

#[tokio::test]
async fn each_interface_answers_whole_and_in_events_and_bills_what_it_tells() {
    let provider = healthy().await;
    let paths = [CHAT, "/completions", "/responses", "/messages", "/embeddings"];
    let mut told = (0, 0);
    for path in paths {
        for stream in [false, true] {
            let mut body = chat(stream);
            body["input"] = "abc".into();
            let got = ask(&provider, path, &body).await;
            assert_eq!((got.status, got.class(), got.broken), (200, Class::Success, false), "{path}");
            let usage = got.outcome.usage();
            let output = if path == "/embeddings" { 0 } else { 12 };
            assert_eq!(usage.input, Some(8), "{path} {stream}: {}", got.body);
            assert_eq!(usage.output.unwrap_or_default(), output, "{path} {stream}: {}", got.body);
            told = (told.0 + 8, told.1 + output);
        }
    }
    assert_eq!(provider.used(), told);
    assert_eq!(provider.billed(), 3 * told.0 + 10 * told.1);
    assert_eq!(provider.seen().iter().map(|seen| seen.billed).sum::<u64>(), provider.billed());
}

#[tokio::test]
async fn a_bound_shortens_the_answer_and_models_are_listed() {
    let provider = Provider::builder("p").models(["m", "n"]).start().await.unwrap();
    let mut body = chat(false);
    body["max_tokens"] = 3.into();
    let got = ask(&provider, CHAT, &body).await.json();
    assert_eq!(
        (&got["choices"][0]["message"]["content"], &got["choices"][0]["finish_reason"]),
        (&json!("w0 w1 w2 "), &json!("length"))
    );
    let get = |path: &str| Request::get(provider.url() + path).body(Full::default()).unwrap();
    let list = read(send(get("/models")).await.unwrap()).await.json();
    assert_eq!((&list["data"][0]["id"], &list["data"][1]["id"]), (&json!("m"), &json!("n")));
    assert_eq!(read(send(get("/models/n")).await.unwrap()).await.json()["id"], "n");
    assert_eq!(read(send(get("/models/o")).await.unwrap()).await.status, 404);
    assert_eq!(read(send(get("/nothing")).await.unwrap()).await.status, 404);
}

#[tokio::test]
async fn each_style_of_limits_is_told_so_that_a_client_knows_the_wait() {
    let styles = [
        (Style::OpenAi, true),
        (Style::Azure, true),
        (Style::Anthropic, true),
        (Style::Mistral, true),
        (Style::Groq, true),
        (Style::Cerebras, true),
        (Style::Gemini, true),
        (Style::Ietf, true),
        (Style::Generic, true),
        (Style::Silent, false),
    ];
    for (style, hinted) in styles {
        let limits = Limits::per_minute(1, 0).style(style).window(Window::Sliding);
        let provider = Provider::builder("p").limits(limits).start().await.unwrap();
        assert_eq!(ask(&provider, CHAT, &chat(false)).await.status, 200);
        let got = ask(&provider, CHAT, &chat(false)).await;
        assert_eq!((got.status, got.class()), (429, Class::Throttled), "{style:?}");
        let hint = got.outcome.verdict().unwrap().hint();
        assert_eq!(hint.is_some(), hinted, "{style:?}: {hint:?} {:?} {}", got.headers, got.body);
    }
}

#[tokio::test]
async fn a_request_above_the_limit_is_told_apart_from_one_that_may_wait() {
    let limits = Limits::per_minute(0, 10);
    let provider = Provider::builder("p").limits(limits).start().await.unwrap();
    let got = ask(&provider, CHAT, &chat(false)).await;
    assert_eq!((got.status, got.class()), (429, Class::Unfit));
}

#[tokio::test]
async fn error_responses_mean_what_they_say() {
    let provider = Provider::builder("p").models(["m"]).key("secret").context(100).start().await.unwrap();
    assert_eq!(ask(&provider, CHAT, &chat(false)).await.class(), Class::Denied);
    let asked = |body: Value| {
        let mut request = post(&provider, CHAT, &body);
        request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
        async { read(send(request).await.unwrap()).await }
    };
    for (fault, status, class) in [
        (Fault::status(500), 500, Class::Transient),
        (Fault::status(529), 529, Class::Transient),
        (Fault::status(429), 429, Class::Throttled),
        (Fault::status(402), 402, Class::Exhausted),
        (Fault::ModelNotFound, 404, Class::Unfit),
        (Fault::ContextLength, 400, Class::Unfit),
        (Fault::ContentPolicy, 400, Class::Invalid),
        (Fault::None, 200, Class::Success),
    ] {
        provider.script([fault.clone()]);
        let got = asked(chat(false)).await;
        assert_eq!((got.status, got.class()), (status, class), "{fault:?}");
    }
    provider.script([Fault::status(429).retry_after(Duration::from_millis(1500))]);
    let got = asked(chat(true)).await;
    assert_eq!(
        (&got.headers["retry-after"], &got.headers["retry-after-ms"]),
        (&"2".parse().unwrap(), &"1500".parse().unwrap())
    );
    let mut other = chat(true);
    other["model"] = "other".into();
    assert_eq!(asked(other).await.class(), Class::Unfit);
    let mut long = chat(true);
    long["messages"][0]["content"] = "x".repeat(500).into();
    assert_eq!(asked(long).await.class(), Class::Unfit);
}

#[tokio::test]
async fn a_stream_breaks_as_it_is_told() {
    let provider = Provider::builder("p").tokens(60).price(Price::nanos(1, 1)).start().await.unwrap();
    for (fault, class, tokens, broken) in [
        (Fault::Cut { after: 40 }, Class::Transient, 40, true),
        (Fault::ErrorEvent { after: 5 }, Class::Transient, 5, false),
        (Fault::Malformed { after: 5 }, Class::Success, 60, false),
        (Fault::NoDone, Class::Success, 60, false),
        (Fault::NoUsage, Class::Success, 60, false),
        (Fault::Stall { after: 5, wait: Some(Duration::from_millis(1)) }, Class::Success, 60, false),
        (Fault::SlowFirstToken(Duration::from_millis(1)), Class::Success, 60, false),
        (Fault::SlowHead(Duration::from_millis(1)), Class::Success, 60, false),
    ] {
        provider.script([fault.clone()]);
        let got = ask(&provider, CHAT, &chat(true)).await;
        assert_eq!((got.class(), got.tokens(), got.broken), (class, tokens, broken), "{fault:?}");
        assert_eq!(
            got.outcome.usage().is_empty(),
            !matches!(class, Class::Success) || fault == Fault::NoUsage,
            "{fault:?}"
        );
        let seen = provider.seen().pop().unwrap();
        let how = if broken { How::Faulted } else { How::Complete };
        assert_eq!((seen.sent, seen.ended.unwrap().how), (tokens as u64, how), "{fault:?}");
        assert_eq!(seen.billed, INPUT + seen.sent, "{fault:?}");
    }
}

#[tokio::test]
async fn a_reset_is_an_error_and_the_next_request_is_served() {
    let provider = healthy().await;
    provider.script([Fault::Reset]);
    assert!(send(post(&provider, CHAT, &chat(true))).await.is_err());
    assert_eq!(ask(&provider, CHAT, &chat(true)).await.status, 200);
    let seen = provider.seen();
    assert_eq!((seen[0].ended.unwrap().how, seen[0].billed), (How::Faulted, 0));
    assert_eq!((seen[0].attempt, seen[1].attempt), (1, 2), "the same body");
    assert_ne!(seen[0].connection, seen[1].connection);
}

#[tokio::test]
async fn it_sees_a_client_go_before_the_head_and_in_the_midst_of_a_stream() {
    let provider = healthy().await;
    provider.always(Fault::Hang);
    let task = tokio::spawn(send(post(&provider, CHAT, &chat(true))));
    provider.when(|log| log.len() == 1).await;
    assert_eq!(provider.active(), 1);
    task.abort();
    assert_eq!(provider.ended(0).await.how, How::Disconnected);

    provider.always(Fault::Stall { after: 4, wait: None });
    let mut body = Box::pin(send(post(&provider, CHAT, &chat(true))).await.unwrap().into_body());
    body.frame().await.unwrap().unwrap();
    provider.when(|log| log[1].sent == 4).await;
    drop(body);
    assert_eq!(provider.ended(1).await.how, How::Disconnected);
    assert_eq!((provider.active(), provider.billed()), (0, INPUT * 3 + 4 * 10), "what it sent is to be paid");
}

#[tokio::test]
async fn a_whole_answer_can_be_billed_to_those_who_leave() {
    let builder = Provider::builder("p").price(Price::nanos(3, 10)).billing(Billing::Whole);
    let provider = builder.pace(Pace { token: LONG, ..Pace::default() }).start().await.unwrap();
    for (number, stream) in [(0, true), (1, false)] {
        let request = post(&provider, CHAT, &chat(stream));
        let task = tokio::spawn(async { Ok::<_, BoxError>(read(send(request).await?).await) });
        provider.when(|log| log.get(number).is_some_and(|seen| seen.billed > 0)).await;
        task.abort();
        assert_eq!(provider.ended(number).await.how, How::Disconnected);
        assert_eq!(provider.seen()[number].billed, INPUT * 3 + 12 * 10);
    }
}

#[tokio::test]
async fn the_dead_refuse_and_what_was_under_way_is_reset() {
    let provider = healthy().await;
    provider.always(Fault::Stall { after: 2, wait: None });
    let body = send(post(&provider, CHAT, &chat(true))).await.unwrap().into_body();
    provider.when(|log| log[0].sent == 2).await;
    provider.kill().await;
    assert_eq!(provider.ended(0).await.how, How::Killed);
    assert!(body.collect().await.is_err());
    assert!(send(post(&provider, CHAT, &chat(false))).await.is_err());
    assert_eq!(provider.requests(), 1);
    provider.always(Fault::None);
    for _ in 0..3 {
        provider.revive().await.unwrap();
        assert_eq!(ask(&provider, CHAT, &chat(false)).await.status, 200);
        provider.kill().await;
    }
    assert_eq!((provider.requests(), provider.active()), (4, 0));
}

#[tokio::test]
async fn chance_is_the_same_for_the_same_seed() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let provider = Provider::builder("p").seed(seed).start().await.unwrap();
        provider.rates([(0.3, Fault::status(500)), (0.2, Fault::status(503))]);
        for _ in 0..40 {
            ask(&provider, CHAT, &chat(false)).await;
        }
        runs.push(provider.seen().iter().map(|seen| seen.status.unwrap()).collect::<Vec<_>>());
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    for status in [200, 500, 503] {
        assert!(runs[0].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn it_speaks_http_2_as_well() {
    let provider = healthy().await;
    provider.always(Fault::Stall { after: 2, wait: None });
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let body = client.request(post(&provider, CHAT, &chat(true))).await.unwrap().into_body();
    provider.when(|log| log[0].sent == 2).await;
    drop(body);
    assert_eq!(provider.ended(0).await.how, How::Disconnected, "the connection lives on");
}

#[tokio::test]
async fn it_calls_tools_and_fills_in_schemas() {
    let provider = healthy().await;
    let schema = json!({"type": "object", "properties": {
        "kind": {"enum": ["a", "b"]}, "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]}
    }, "$defs": {"item": {"type": "integer"}}});
    let filled = json!({"kind": "a", "items": [1], "maybe": null});
    let read = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    let mut body = chat(false);
    body["tools"] = json!([{"type": "function", "function": {"name": "find", "parameters": schema}}]);
    let choice = &ask(&provider, CHAT, &body).await.json()["choices"][0];
    let function = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!((&choice["finish_reason"], &function["name"]), (&json!("tool_calls"), &json!("find")));
    assert_eq!(read(&function["arguments"]), filled);
    // Its result is answered in words, and who wants no call gets none.
    let message = json!({"role": "tool", "tool_call_id": "call_0", "content": "found"});
    let mut answered = body.clone();
    answered["messages"].as_array_mut().unwrap().push(message);
    body["tool_choice"] = json!("none");
    for body in [answered, body] {
        assert_eq!(ask(&provider, CHAT, &body).await.tokens(), 1);
    }
    let mut body = chat(false);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let choice = &ask(&provider, CHAT, &body).await.json()["choices"][0];
    assert_eq!(read(&choice["message"]["content"]), filled);
    let body = json!({"model": "m", "max_tokens": 99, "messages": [], "tools": [{"name": "find", "input_schema": schema}]});
    let block = &ask(&provider, "/messages", &body).await.json()["content"][0];
    assert_eq!((&block["type"], &block["input"]), (&json!("tool_use"), &filled));
    let body = json!({"model": "m", "input": "", "tools": [{"type": "function", "name": "find", "parameters": schema}]});
    let item = &ask(&provider, "/responses", &body).await.json()["output"][0];
    assert_eq!((&item["type"], read(&item["arguments"])), (&json!("function_call"), filled));
}

#[tokio::test]
async fn a_request_chooses_its_fault_where_it_may() {
    let provider = Provider::builder("p").faults_by_request().start().await.unwrap();
    for (word, status, wait) in [
        ("503", 503, None),
        ("429:2s", 429, Some("2")),
        ("none", 200, None),
        ("no such", 400, None),
        ("200", 400, None),
    ] {
        let mut request = post(&provider, CHAT, &chat(false));
        request.headers_mut().insert("x-fault", word.parse().unwrap());
        let got = read(send(request).await.unwrap()).await;
        let said = got.headers.get("retry-after").map(|wait| wait.to_str().unwrap());
        assert_eq!((got.status, said), (status, wait), "{word}");
    }
    let mut body = chat(true);
    body["model"] = json!("fault:cut:2");
    let got = ask(&provider, CHAT, &body).await;
    assert_eq!((got.broken, got.tokens()), (true, 2));
    // Not where nobody said so.
    let provider = healthy().await;
    assert_eq!(ask(&provider, CHAT, &body).await.tokens(), 12);
}
