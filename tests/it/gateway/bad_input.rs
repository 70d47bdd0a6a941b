//! Callers who are careless or mean: each gets a clear answer or none, and nobody else is hurt.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::monitor::BreakerState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::app::state::Limits;
use super::world::*;
use crate::provider::{Fault, How};

const DEFAULT: &str =
    "[[routes]]\nmodel = \"*\"\ntargets = [{ upstream = \"first\" }]\n[cost]\nunpriced = \"free\"\n";
const MEGABYTE: usize = 1 << 20;

/// Bytes as they are, and all that is answered until the connection is closed.
async fn raw(world: &World, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut got = Vec::new();
    // A connection that is reset has said all that it had to say.
    let _ = stream.read_to_end(&mut got).await;
    String::from_utf8_lossy(&got).into_owned()
}

fn impatient() -> Limits {
    Limits { head: SHORT, silence: SHORT, unread: SHORT, ..Limits::default() }
}

/// A body in pieces of a megabyte.
async fn upload(world: &World, path: &str, megabytes: usize) -> Got {
    let piece = Bytes::from(vec![b' '; MEGABYTE]);
    let first = Bytes::from_static(br#"{"model":"chat","messages":[],"x":""#);
    let frames = stream::iter([first]).chain(stream::iter(vec![piece; megabytes]));
    let frames = frames.map(|data| Ok::<_, std::convert::Infallible>(Frame::data(data)));
    let request = Request::post(format!("http://{}{path}", world.address))
        .header("content-type", "application/json")
        .body(StreamBody::new(frames))
        .unwrap();
    read(Client::builder(TokioExecutor::new()).build_http().request(request).await.unwrap()).await
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused_and_no_upstream_blamed() {
    let world = World::with(Setup { more: DEFAULT, ..Setup::default() }).await;
    // Announced: before any of it is read.
    for path in ["/v1/chat/completions", "/v1/files"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: 104857600\r\n\r\n"
        );
        let got = raw(&world, head.as_bytes()).await;
        assert!(got.starts_with("HTTP/1.1 413 ") && got.contains("request_too_large"), "{got}");
    }
    assert_eq!(world.asked(), [0, 0]);
    // In pieces: as soon as it is too much. What was passed through until then is the caller's fault, not the upstream's.
    for path in ["/v1/chat/completions", "/v1/files"] {
        for _ in 0..6 {
            let got = upload(&world, path, 100).await;
            assert_eq!(
                got.error(),
                (413, "request_too_large".to_owned(), "invalid_request_error".to_owned())
            );
        }
    }
    assert_eq!(world.breaker("first"), BreakerState::Closed);
    assert_served(&world.chat(true).await, "first");
    world.settle().await;
}

#[tokio::test]
async fn a_head_that_never_comes_is_not_waited_for() {
    let world = World::with(Setup { limits: impatient(), ..Setup::default() }).await;
    for sent in
        ["", "P", "PRI * HTTP/2.0\r\n\r\nS", "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-slow: "]
    {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        assert_served(&world.chat(true).await, "first");
        let mut got = Vec::new();
        // The connection is closed from the other side.
        let _ = stream.read_to_end(&mut got).await;
        let got = String::from_utf8_lossy(&got);
        assert!(!got.contains(" 200 "), "{got}");
    }
    world.settle().await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_not_waited_for_and_no_upstream_blamed() {
    let world = World::with(Setup { limits: impatient(), more: DEFAULT, ..Setup::default() }).await;
    for path in ["/v1/chat/completions", "/v1/files"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"model\":"
        );
        let got = raw(&world, head.as_bytes()).await;
        assert!(got.starts_with("HTTP/1.1 408 ") && got.contains("request_too_slow"), "{got}");
    }
    assert_eq!(world.breaker("first"), BreakerState::Closed);
    world.settle().await;
}

#[tokio::test]
async fn a_caller_that_never_reads_its_stream_is_left() {
    let world = World::with(Setup { limits: impatient(), tokens: 200_000, ..Setup::default() }).await;
    let mut body = chat(true);
    body["max_tokens"] = 200_000.into();
    let body = body.to_string();
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(world.first.ended(0).await.how, How::Disconnected);
    assert_eq!(world.chat(true).await.status, 200);
    world.settle().await;
    drop(stream);
}

#[tokio::test]
async fn a_path_does_not_climb() {
    let world = World::with(Setup { more: DEFAULT, ..Setup::default() }).await;
    for path in [
        "/v1/../admin",
        "/v1/files/../../admin",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/admin",
        "/v1/files%2f..%2fadmin",
        "/v1/files/%2E",
        "/v1/..%5cadmin",
        "/v1/files/..",
    ] {
        let got =
            raw(&world, format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
                .await;
        assert!(got.starts_with("HTTP/1.1 400 ") && got.contains("invalid_path"), "{path}: {got}");
    }
    for path in ["/../v1/files", "/v1", "//v1/files"] {
        let got =
            raw(&world, format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
                .await;
        assert!(got.starts_with("HTTP/1.1 404 "), "{path}: {got}");
    }
    assert_eq!(world.asked(), [0, 0]);
    // What only looks like it is a name as any other.
    assert_eq!(world.ask(get("/v1/models/a..b")).await.status, 404);
    assert_eq!(world.first.seen()[0].path, "/v1/models/a..b");
}

#[tokio::test]
async fn a_length_beside_chunks_smuggles_nothing() {
    let world = World::with(Setup { more: DEFAULT, ..Setup::default() }).await;
    let hidden = "GET /v1/models/hidden HTTP/1.1\r\nhost: a\r\n\r\n";
    for headers in [
        format!("transfer-encoding: chunked\r\ncontent-length: {}", 5 + hidden.len()),
        format!("content-length: {}\r\ntransfer-encoding: chunked", 5 + hidden.len()),
        format!("content-length: {}\r\ncontent-length: 3", 5 + hidden.len()),
        format!("transfer-encoding: gzip\r\ncontent-length: {}", 5 + hidden.len()),
        "transfer-encoding: chunked, identity".to_owned(),
    ] {
        let sent = format!(
            "POST /v1/files HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n\r\n0\r\n\r\n{hidden}"
        );
        let got = raw(&world, sent.as_bytes()).await;
        assert_eq!(got.matches("HTTP/1.1 ").count(), 1, "{headers}: {got}");
        for seen in world.first.seen() {
            assert_eq!(seen.path, "/v1/files", "{headers}");
            assert!(
                !seen.headers.contains_key("transfer-encoding")
                    || !seen.headers.contains_key("content-length")
            );
        }
    }
}

#[tokio::test]
async fn what_concerns_one_connection_goes_no_further() {
    let world = World::new().await;
    let mut request = post("/v1/chat/completions", chat(false).to_string());
    for (name, value) in [
        ("connection", "x-private, close"),
        ("x-private", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-authorization", "Basic eDp5"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers"),
        ("trailer", "x-sum"),
        ("upgrade", "h2c"),
        ("x-public", "2"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let got = world.ask(request).await;
    assert_served(&got, "first");
    let seen = world.first.seen().pop().unwrap().headers;
    for name in [
        "connection",
        "x-private",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    ] {
        assert!(!seen.contains_key(name), "{name}");
    }
    assert_eq!(seen["x-public"], "2");
    assert_eq!(seen["host"], world.first.address().to_string());
}

#[tokio::test]
async fn ten_thousand_unknown_models_are_one_label() {
    let world = World::new().await;
    let sized = async || {
        let metrics = world.text("/metrics").await;
        (metrics.lines().count(), metrics.contains("unknown-"))
    };
    let name =
        |number: usize| post("/v1/embeddings", format!(r#"{{"model":"unknown-{number}","input":"a"}}"#));
    assert_eq!(world.ask(name(0)).await.error().1, "model_not_found");
    let before = sized().await;
    stream::iter(1..10_000)
        .for_each_concurrent(16, async |number| {
            assert_eq!(world.send(name(number)).await.status(), 404);
        })
        .await;
    assert_eq!((sized().await, before.1), (before, false));
    assert_eq!(world.asked(), [0, 0]);
    // Where a default route sends them on, the upstream does not know them either.
    world.rewrite(|text| format!("{text}\n{DEFAULT}"));
    world.gateway.reload().unwrap();
    let asked = async |number| {
        let response = world.send(name(number)).await;
        let status = response.status();
        let _ = response.into_body().collect().await;
        assert_eq!(status, 404);
    };
    asked(0).await;
    let before = sized().await;
    stream::iter(1..300).for_each_concurrent(16, asked).await;
    assert_eq!((sized().await, before.1), (before, false));
    assert_eq!(world.first.requests(), 300);
    assert_served(&world.chat(false).await, "first");
}

#[tokio::test]
async fn what_is_no_request_for_a_model_is_told_so() {
    let world = World::new().await;
    for body in ["", "{", "[]", "null", r#"{"model":7}"#, r#"{"messages":[]}"#, "\u{0}"] {
        let got = world.ask(post("/v1/chat/completions", body)).await;
        assert_eq!(got.error().0, 404, "{body}: {}", got.body);
    }
    let got = world.ask(Request::get("/v1/chat/completions").body(Full::default()).unwrap()).await;
    assert_eq!(got.status, 404);
    assert_eq!(world.asked(), [0, 0]);
}

#[tokio::test]
async fn over_http2_too_a_caller_that_leaves_or_never_reads_frees_the_provider() {
    let world = World::with(Setup { limits: impatient(), tokens: 200_000, ..Setup::default() }).await;
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let ask = async |tokens: usize| {
        let mut body = chat(true);
        body["max_tokens"] = tokens.into();
        let mut request = post("/v1/chat/completions", body.to_string());
        *request.uri_mut() = format!("http://{}/v1/chat/completions", world.address).parse().unwrap();
        client.request(request).await.unwrap()
    };
    // A whole answer is whole.
    let got = read(ask(TOKENS).await).await;
    assert_served(&got, "first");
    // One that nobody reads is given up, and is no success for who reads on too late.
    let unread = ask(200_000).await;
    assert_eq!(world.first.ended(1).await.how, How::Disconnected);
    assert!(read(unread).await.broken);
    // One that is dropped ends at once, also where nothing comes.
    world.first.always(Fault::Stall { after: 20, wait: None });
    let mut response = ask(TOKENS).await;
    next(&mut response).await;
    drop(response);
    assert_eq!(world.first.ended(2).await.how, How::Disconnected);
    world.settle().await;
}
