//! What is kept of a request over HTTP: how little, while its first attempt serves, and that later ones miss nothing of it.
//! 4 KB of JSON and 12 headers.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use seawall::BoxError;
use seawall::call::{CallBody, Credential, Describe, IntakeLayer, Upstream};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::retry::{RetryLayer, RetryPolicy};
use tower::{Layer, Service, ServiceExt, service_fn};

/// A provider that answers at once.
#[derive(Clone, Copy)]
struct Provider;

impl Service<Request<CallBody>> for Provider {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        // A client takes it apart.
        let (parts, body) = request.into_parts();
        assert_eq!(parts.headers.len(), 12);
        let length = parts.headers["content-length"].to_str().map(str::parse);
        assert_eq!(length.unwrap(), Ok(body.bytes().unwrap().len()));
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
    }
}

/// As a server of hyper's makes it: values are slices of what it has read, names that it does not know are its own.
fn request(body: &Bytes) -> Request<Full<Bytes>> {
    const HEADERS: [(&str, &str); 12] = [
        ("host", "gateway.example"),
        ("content-type", "application/json"),
        ("content-length", "4054"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "identity"),
        ("user-agent", "OpenAI/Python 2.9.0"),
        ("authorization", "Bearer sk-of-the-caller"),
        ("x-request-id", "0a1b2c3d-4e5f"),
        ("x-stainless-lang", "python"),
        ("x-stainless-os", "Linux"),
        ("x-stainless-retry-count", "0"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let read = Bytes::from(HEADERS.map(|(_, value)| value).concat());
    let mut request = Request::post("https://gateway.example/v1/chat/completions");
    let mut at = 0;
    for (name, value) in HEADERS {
        let slice = read.slice(at..at + value.len());
        at += value.len();
        request = request.header(name, HeaderValue::from_maybe_shared(slice).unwrap());
    }
    request.body(Full::new(body.clone())).unwrap()
}

fn body(model: &str) -> Bytes {
    let words = "word ".repeat(800);
    format!(r#"{{"messages":[{{"role":"user","content":"{words}"}}],"model":"{model}"}}"#).into()
}

fn fallback() -> FallbackLayer {
    let upstream = |name: &str| {
        let upstream = Upstream::new(name, &format!("https://{name}.example/v1")).unwrap();
        upstream.credential(Credential::bearer(&format!("secret-of-{name}")).unwrap())
    };
    let route = Route::to("large").target(Target::at("a").model("m")).target(Target::at("b").model("n"));
    let routes = Routes::builder().upstream(upstream("a")).upstream(upstream("b")).route(route);
    FallbackLayer::new(routes.build().unwrap())
}

/// Those of a call beyond those that its request had made before.
fn allocations<S, E>(mut service: S) -> u64
where
    S: Service<Request<Full<Bytes>>, Error = E>,
    E: Debug,
{
    let body = body("large");
    let mut serve = |request| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut cx).is_ready());
        drop(service.call(request).now_or_never().expect("it answers at once").unwrap());
    };
    // What is shared by all calls is made by the first.
    serve(request(&body));
    let next = request(&body);
    allocation_counter::measure(|| serve(next)).count_total
}

#[tokio::test]
async fn intake_writes_down_what_is_asked_for_in_three() {
    assert_eq!(allocations(IntakeLayer::new().layer(Counting)), 3);
}

#[tokio::test]
async fn with_intake_and_two_loops_around_the_fallback_there_are_twelve_at_most() {
    // The extensions of request and response three each, one for what is kept, two for body, length and URL.
    let alone = IntakeLayer::new().layer(fallback().layer(Provider));
    assert_eq!(allocations(alone), 9);
    let retry = || RetryLayer::new(RetryPolicy::llm());
    let stack = retry().layer(fallback().layer(retry().layer(Provider)));
    assert!(allocations(IntakeLayer::new().layer(stack)) <= 12);
}

/// As [`Provider`], before a request was aimed.
#[derive(Clone, Copy)]
struct Counting;

impl Service<Request<CallBody>> for Counting {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        drop(request);
        ready(Ok(()))
    }
}

/// What a provider sees of an attempt.
#[derive(Debug)]
struct Seen {
    uri: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    attempt: Option<u32>,
    marked: bool,
}

#[derive(Clone, Copy)]
struct Mark;

/// A provider that records what it sees, and serves the eighth attempt: the outer retry's second pass over the chain.
fn recording(seen: Arc<Mutex<Vec<Seen>>>) -> impl Provides {
    service_fn(move |request: Request<CallBody>| {
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let mut seen = seen.lock().unwrap();
        seen.push(Seen {
            uri: request.uri().to_string(),
            headers: request.headers().iter().map(text).collect(),
            body: request.body().bytes().unwrap().clone(),
            attempt: request.call().and_then(|call| call.attempt),
            marked: request.extensions().get::<Mark>().is_some(),
        });
        let status = if seen.len() < 8 { 503 } else { 200 };
        ready(Ok::<_, BoxError>(Response::builder().status(status).body(Full::<Bytes>::default()).unwrap()))
    })
}

trait Provides:
    Service<Request<CallBody>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send> + Clone + Send
{
}

impl<S> Provides for S where
    S: Service<Request<CallBody>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send>
        + Clone
        + Send
{
}

/// The headers that an upstream is to see.
fn expected(upstream: &str, body: &Bytes) -> Vec<(String, String)> {
    let sent = request(body);
    let own = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = match name.as_str() {
            "host" => format!("{upstream}.example"),
            "authorization" => format!("Bearer secret-of-{upstream}"),
            "content-length" => body.len().to_string(),
            _ => value.to_str().unwrap().to_owned(),
        };
        (name.to_string(), value)
    };
    let mut headers: Vec<_> = sent.headers().iter().map(own).collect();
    headers.sort();
    headers
}

#[tokio::test(start_paused = true)]
async fn each_later_attempt_sends_what_the_first_one_sent() {
    for extensions in [false, true] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let retry = || RetryLayer::new(RetryPolicy::llm());
        let stack = retry().layer(fallback().layer(retry().layer(recording(seen.clone()))));
        let mut sent = request(&body("large"));
        if extensions {
            sent.extensions_mut().insert(Mark);
        }
        let response = IntakeLayer::new().layer(stack).oneshot(sent).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.len(), 8);
        for ((at, seen), attempt) in seen.iter_mut().enumerate().zip((1..=3).cycle()) {
            let (upstream, model) = if at % 6 < 3 { ("a", "m") } else { ("b", "n") };
            seen.headers.sort();
            assert_eq!(seen.uri, format!("https://{upstream}.example/v1/chat/completions"));
            assert_eq!(seen.body, body(model));
            assert_eq!(seen.headers, expected(upstream, &seen.body));
            assert_eq!((seen.attempt, seen.marked), (Some(attempt), extensions));
        }
    }
}
