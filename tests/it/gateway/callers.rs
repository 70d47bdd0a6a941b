//! Who may ask what, and what goes with a request and its answer.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::world::*;
use crate::provider::Fault;

const CLIENTS: &str = r#"
[[clients]]
name = "all"
key = "secret-of-caller"
[[clients]]
name = "few"
key = "secret-of-few"
models = ["small"]
[[routes]]
model = "small"
targets = [{ upstream = "second", model = "model-b" }]
[[routes]]
model = "*"
targets = [{ upstream = "second" }, { upstream = "first" }]
"#;

fn with_key(mut request: Request<Full<Bytes>>, name: &str, value: &str) -> Request<Full<Bytes>> {
    request.headers_mut().remove("authorization");
    request.headers_mut().insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    request
}

fn chat_for(model: &str) -> Request<Full<Bytes>> {
    let mut body = chat(false);
    body["model"] = model.into();
    post("/v1/chat/completions", body.to_string())
}

/// A world whose upstreams have no key of their own: the providers ask for none either.
async fn keyless(from_caller: bool) -> (World, crate::provider::Provider) {
    let world = World::new().await;
    let open = crate::provider::Provider::builder("open").start().await.unwrap();
    let credential = if from_caller { "credential = { from_caller = \"authorization\" }" } else { "" };
    world.rewrite(|text| {
        format!(
            "{text}\n[upstreams.open]\nbase_url = \"{}\"\n{credential}\n[[routes]]\nmodel = \"open\"\n\
             targets = [{{ upstream = \"open\", model = \"m\" }}]\n[prices.m]\ninput_per_million = \"0\"\noutput_per_million = \"0\"\n",
            open.url()
        )
    });
    world.gateway.reload().unwrap();
    (world, open)
}

#[tokio::test]
async fn a_key_is_asked_for_and_compared_as_a_whole() {
    let world = World::with(Setup { more: CLIENTS, ..Setup::default() }).await;
    for (name, value, status) in [
        ("authorization", "Bearer secret-of-caller", 200),
        ("authorization", "bearer secret-of-caller", 200),
        ("x-api-key", "secret-of-caller", 200),
        ("authorization", "Bearer secret-of-calle", 401),
        ("authorization", "Bearer secret-of-caller2", 401),
        ("authorization", "Bearer ", 401),
        ("authorization", "Basic secret-of-caller", 401),
        ("x-api-key", "SECRET-OF-CALLER", 401),
        ("x-other", "secret-of-caller", 401),
    ] {
        let got = world.ask(with_key(chat_for("chat"), name, value)).await;
        assert_eq!(got.status, status, "{name}: {value}: {}", got.body);
        if status == 401 {
            assert_eq!(got.error(), (401, "invalid_api_key".to_owned(), "authentication_error".to_owned()));
        }
        let got = world.ask(with_key(get("/v1/files"), name, value)).await;
        assert_eq!(got.status == 401, status == 401);
    }
    world.settle().await;
}

#[tokio::test]
async fn a_callers_key_reaches_no_upstream_that_has_its_own_and_none_that_has_none() {
    for more in ["", CLIENTS] {
        let world = World::with(Setup { more, ..Setup::default() }).await;
        // `settle` looks for it in all that they saw.
        let mut request = chat_for("chat");
        request.headers_mut().insert("x-api-key", secret("caller").parse().unwrap());
        request.headers_mut().insert("api-key", secret("caller").parse().unwrap());
        assert_served(&world.ask(request).await, "first");
        world.first.always(Fault::status(503));
        assert_served(&world.ask(chat_for("chat")).await, "second");
        assert_eq!(world.second.seen()[0].headers["authorization"], "Bearer secret-of-second");
        world.settle().await;
    }
    let (world, open) = keyless(false).await;
    assert_eq!(world.ask(with_key(chat_for("open"), "x-api-key", "secret-of-caller")).await.status, 200);
    assert_eq!(world.ask(chat_for("open")).await.status, 200);
    for seen in open.seen() {
        assert!(!seen.headers.contains_key("authorization") && !seen.headers.contains_key("x-api-key"));
    }
}

#[tokio::test]
async fn a_callers_key_is_passed_on_where_the_configuration_says_so() {
    let (world, open) = keyless(true).await;
    assert_eq!(world.ask(chat_for("open")).await.status, 200);
    assert_eq!(open.seen()[0].headers["authorization"], "Bearer secret-of-caller");
    // Where the gateway has clients, that key is its own, and goes nowhere.
    let (world, open) = keyless(true).await;
    let was = std::fs::read_to_string(world.folder.file()).unwrap();
    world.folder.write(&format!("{was}\n[[clients]]\nname = \"all\"\nkey = \"secret-of-caller\"\n"));
    world.gateway.reload().unwrap();
    let got = world.ask(chat_for("open")).await;
    assert!(open.seen().iter().all(|seen| !seen.headers.contains_key("authorization")), "{}", got.body);
}

#[tokio::test]
async fn a_model_that_a_client_may_not_use_does_not_exist_for_it() {
    let world = World::with(Setup { more: CLIENTS, ..Setup::default() }).await;
    let few = |request| with_key(request, "authorization", "Bearer secret-of-few");
    assert_served(&world.ask(few(chat_for("small"))).await, "second");
    let asked = world.asked();
    for request in [
        chat_for("chat"),
        chat_for("model-a"),
        chat_for("small2"),
        post("/v1/chat/completions", r#"{"messages":[]}"#),
        post("/v1/chat/completions", r#"{"model":"small","model":"chat","messages":[]}"#),
        post("/v1/files", "{}"),
        get("/v1/files"),
    ] {
        let got = world.ask(few(request)).await;
        assert_eq!(got.error(), (404, "model_not_found".to_owned(), "invalid_request_error".to_owned()));
    }
    assert_eq!(world.asked(), asked, "nobody was asked");
    let models = async |request| {
        let list = world.ask(request).await.json();
        assert_eq!(list["object"], "list");
        let names =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(models(few(get("/v1/models"))).await, ["small"]);
    let all = with_key(get("/v1/models"), "authorization", "Bearer secret-of-caller");
    assert_eq!(models(all).await, ["chat", "small"]);
    assert_eq!(world.ask(get("/v1/models")).await.status, 401);
}

#[tokio::test]
async fn a_request_id_goes_in_and_out() {
    let world = World::new().await;
    let mut request = chat_for("chat");
    request.headers_mut().insert("x-request-id", "mine-1".parse().unwrap());
    assert_eq!(world.ask(request).await.headers["x-request-id"], "mine-1");
    assert_eq!(world.first.seen()[0].headers["x-request-id"], "mine-1");
    // A new one where there is none, or none that is sound; also on errors.
    let made = world.chat(false).await.headers["x-request-id"].clone();
    assert_eq!((made.len(), &world.first.seen()[1].headers["x-request-id"]), (32, &made));
    for unsound in ["a b", "", &"x".repeat(200)] {
        let mut request = chat_for("nobody");
        request.headers_mut().insert("x-request-id", unsound.parse().unwrap());
        let got = world.ask(request).await;
        assert_eq!((got.status, got.headers["x-request-id"].len()), (404, 32));
    }
}

#[tokio::test]
async fn other_paths_go_to_the_default_routes_first_target_alone() {
    let more = "[[routes]]\nmodel = \"*\"\ntargets = [{ upstream = \"second\" }, { upstream = \"first\" }]";
    let world = World::with(Setup { more, ..Setup::default() }).await;
    let got = world.ask(get("/v1/models/model-b?x=1")).await;
    assert_eq!((got.status, got.by()), (200, "second"));
    assert_eq!(world.second.seen()[0].path, "/v1/models/model-b?x=1");
    // What it has not, and what it fails at, nobody else is asked for.
    let got = world.ask(get("/v1/files/7")).await;
    assert_eq!((got.status, world.asked()), (404, [0, 2]));
    world.second.kill().await;
    let got = world.ask(get("/v1/files/7")).await;
    assert_eq!(got.error(), (502, "upstream_unreachable".to_owned(), "server_error".to_owned()));
    assert_eq!(world.first.requests(), 0);
    // Without a default route there is no such place.
    let world = World::new().await;
    assert_eq!(world.ask(get("/v1/files")).await.status, 404);
    let got = read(world.send(get("/elsewhere")).await).await;
    assert_eq!(got.error(), (404, "not_found".to_owned(), "invalid_request_error".to_owned()));
}

#[tokio::test]
async fn every_interface_is_served_by_its_model() {
    let world = World::new().await;
    for (path, body) in [
        ("/v1/completions", r#"{"model":"chat","prompt":"Say something.","max_tokens":100}"#),
        ("/v1/embeddings", r#"{"model":"chat","input":["one","two"]}"#),
        ("/v1/responses", r#"{"model":"chat","input":"Say something.","max_output_tokens":100}"#),
        (
            "/v1/messages",
            r#"{"model":"chat","max_tokens":100,"messages":[{"role":"user","content":"Say."}]}"#,
        ),
    ] {
        let got = world.ask(post(path, body)).await;
        assert_eq!((got.status, got.by()), (200, "first"), "{path}: {}", got.body);
        let seen = world.first.seen().pop().unwrap();
        assert_eq!((&*seen.path, seen.model.as_deref()), (path, Some("model-a")));
    }
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn refusals_of_messages_have_anthropics_shape() {
    let world = World::with(Setup { more: CLIENTS, ..Setup::default() }).await;
    let ask =
        |model: &str| post("/v1/messages", format!(r#"{{"model":"{model}","max_tokens":9,"messages":[]}}"#));
    for (key, model, status, kind, code) in [
        ("secret-of-nobody", "chat", 401, "authentication_error", "invalid_api_key"),
        ("secret-of-few", "chat", 404, "not_found_error", "model_not_found"),
    ] {
        let got = world.ask(with_key(ask(model), "x-api-key", key)).await;
        let body = got.json();
        assert_eq!(
            (got.status, &body["type"], &body["error"]["type"]),
            (status, &json!("error"), &json!(kind))
        );
        assert_eq!(body["error"]["details"]["error_code"], code);
        assert_eq!(got.headers["request-id"], got.headers["x-request-id"]);
        assert_eq!(body["request_id"], got.headers["request-id"].to_str().unwrap());
    }
    // What an upstream says is not put into other words.
    world.first.always(Fault::status(400).code("its_own"));
    let got = world.ask(with_key(ask("chat"), "x-api-key", "secret-of-caller")).await;
    assert_eq!((got.status, &got.json()["error"]["details"]), (400, &json!(null)), "{}", got.body);
}

#[tokio::test]
async fn the_gateway_tells_how_it_is() {
    let world = World::with(Setup { more: CLIENTS, ..Setup::default() }).await;
    assert_served(&world.chat(true).await, "first");
    world.settle().await;
    assert_eq!(world.text("/healthz").await, "ok\n");
    assert_eq!(world.text("/readyz").await, "ready\n");
    assert!(world.text("/").await.starts_with("<!doctype html>"));
    let metrics = world.text("/metrics").await;
    let parsed = prometheus_parse::Scrape::parse(metrics.lines().map(|line| Ok(line.to_owned()))).unwrap();
    assert!(parsed.samples.iter().any(|sample| sample.labels.get("upstream") == Some("first")), "{metrics}");
    let stats: Value = serde_json::from_str(&world.text("/stats").await).unwrap();
    assert_eq!(stats["models"], serde_json::json!(["chat", "small", "*"]));
    assert_eq!(stats["monitor"]["calls"]["since_start"]["outcomes"]["success"], 1);
    assert_eq!(stats["upstreams"][0]["breaker"], "Closed");
    assert!(!format!("{metrics}{stats}").contains("secret-of-"));
}
