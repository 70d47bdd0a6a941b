//! Requests as servers get them: aimed, sent by a real client, over HTTP/1.1 and HTTP/2.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use seawall::call::{Aim, CallBody, Destination, Key, Upstream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

struct Seen {
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

/// A server on loopback that tells what it gets.
async fn server() -> (Upstream, mpsc::UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let send = send.clone();
            let serve = service_fn(move |request: Request<Incoming>| {
                let send = send.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body =
                        body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    let _ = send.send(Seen { uri: parts.uri, headers: parts.headers, body });
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), serve)
                    .await;
            });
        }
    });
    (Upstream::new("b", &format!("http://{address}/v1")).unwrap(), receive)
}

fn request(body: CallBody, framing: (&str, &str)) -> Request<CallBody> {
    Request::post("https://a.example/v1/chat/completions?x=1")
        .header("host", "a.example")
        .header("content-type", "application/json")
        .header(framing.0, framing.1)
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn b094_b095_b098_the_target_gets_its_own_host_and_a_length_that_is_right() {
    let (upstream, mut seen) = server().await;
    for http2 in [false, true] {
        let client = Client::builder(TokioExecutor::new()).http2_only(http2).build_http::<CallBody>();
        let body = r#"{"model":"original"}"#;
        for original in [
            request(CallBody::from(body), ("content-length", "20")),
            request(CallBody::from(body), ("x-framing", "none")),
        ] {
            for name in ["longer-by-seven", "x", "original"] {
                let model = Key::from(name);
                let mut aimed = original.aim(&Destination::new(&upstream).model(&model)).unwrap();
                *aimed.version_mut() = if http2 { http::Version::HTTP_2 } else { http::Version::HTTP_11 };
                let response = client.request(aimed).await.unwrap();
                assert_eq!(response.status(), 200);
                let seen = seen.recv().await.unwrap();
                let host = upstream.host();
                assert_eq!(seen.headers.get("host").unwrap_or(host), host);
                assert_eq!(
                    seen.uri.authority().map_or(host.as_bytes(), |at| at.as_str().as_bytes()),
                    host.as_bytes()
                );
                assert_eq!(seen.uri.path_and_query().unwrap(), "/v1/chat/completions?x=1");
                assert_eq!(seen.body, body.replace("original", name));
                assert_eq!(seen.headers["content-length"], seen.body.len().to_string());
                assert!(!seen.headers.contains_key("transfer-encoding"));
            }
        }
    }
}

#[tokio::test]
async fn b001_a_chunked_body_arrives_whole_on_both_attempts() {
    let (upstream, mut seen) = server().await;
    let client = Client::builder(TokioExecutor::new()).build_http::<CallBody>();
    let frames = ["twenty-six ", "bytes of a body"]
        .map(|text| Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(text))));
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let original = request(CallBody::streaming(body, 1 << 10), ("transfer-encoding", "chunked"));
    for _attempt in 1..=2 {
        let aimed = original.aim(&Destination::new(&upstream)).unwrap();
        client.request(aimed).await.unwrap();
        let seen = seen.recv().await.unwrap();
        assert_eq!(seen.body, "twenty-six bytes of a body");
        assert_eq!(seen.headers["transfer-encoding"], "chunked");
    }
}
