//! What reads and what holds a response while its body passes.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::num::NonZeroU64;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;
use http_body_util::Full;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{Call, CallBody, Estimate, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::monitor::Monitor;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use tower::{Layer, Service, ServiceBuilder, service_fn};

use super::streams::Frames;

/// A service whose responses have a body of [`Bytes`].
pub trait Answering:
    Service<Request<()>, Response = Response<<Self as Answering>::Answer>, Error = BoxError>
{
    /// The body.
    type Answer: Body<Data = Bytes, Error = Infallible>;
}

impl<S, B> Answering for S
where
    S: Service<Request<()>, Response = Response<B>, Error = BoxError>,
    B: Body<Data = Bytes, Error = Infallible>,
{
    type Answer = B;
}

/// Answers at once, with this body.
#[derive(Clone)]
pub struct Upstream {
    body: Frames,
    kind: HeaderValue,
}

impl Upstream {
    /// An event stream of these frames.
    pub fn stream(frames: &'static [Bytes]) -> Self {
        Self { body: Frames::endless(frames), kind: HeaderValue::from_static("text/event-stream") }
    }

    /// A JSON body in these frames.
    pub fn json(frames: &'static [Bytes]) -> Self {
        Self { body: Frames::sized(frames), kind: HeaderValue::from_static("application/json") }
    }
}

impl Service<Request<()>> for Upstream {
    type Response = Response<Frames>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Frames>, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        let mut response = Response::new(self.body);
        response.headers_mut().insert(header::CONTENT_TYPE, self.kind.clone());
        ready(Ok(response))
    }
}

/// A request that says what the gates ask for.
pub fn request() -> Request<()> {
    let mut call = Call::default();
    call.model = Some("gpt-4o".into());
    call.upstream = Some("openai".into());
    call.estimate = Some(Estimate::new(250, 1_000));
    call.output_bound = Some(1_000);
    let mut request = Request::new(());
    request.extensions_mut().insert(call);
    request
}

const SOUND: &str = "the settings are sound";

/// One permit.
pub fn one_gate(inner: Upstream) -> impl Answering {
    BulkheadLayer::new(64).layer(inner)
}

/// Those that an attempt passes in the recommended stack, one inside the other.
pub fn five_gates(inner: Upstream) -> impl Answering {
    let price = Price::per_million("2.50", "10").expect("a price");
    let guard = CostGuardLayer::builder()
        .prices(PriceTable::new().model("gpt-4o", price))
        .budget(Budget::new(Usd::dollars(1_000_000_000), Window::TOTAL));
    let quota = Quota::per_second(const { NonZeroU64::new(900_000_000).unwrap() });
    ServiceBuilder::new()
        .layer(Monitor::new().attempts())
        .layer(CircuitBreakerLayer::new())
        .layer(guard.build().expect(SOUND))
        .layer(TokenBucketLayer::builder().requests(quota).build().expect(SOUND))
        .layer(BulkheadLayer::new(64))
        .service(inner)
}

/// Nobody holds it; usage, content and errors are read.
pub fn outcome(inner: Upstream) -> impl Answering {
    OutcomeLayer::new().layer(inner)
}

/// A body of JSON and 12 headers, as a server of hyper's makes such a request: values are slices of what it has read, names
/// that it does not know are its own.
pub fn post(body: &Bytes) -> Request<Full<Bytes>> {
    let length = body.len().to_string();
    let headers: [(&str, &str); 12] = [
        ("host", "gateway.example"),
        ("content-type", "application/json"),
        ("content-length", &length),
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
    let read = Bytes::from(headers.map(|(_, value)| value).concat());
    let mut request = Request::post("https://gateway.example/v1/chat/completions");
    let mut at = 0;
    for (name, value) in headers {
        let slice = read.slice(at..at + value.len());
        at += value.len();
        let value = HeaderValue::from_maybe_shared(slice).expect("legal in a header");
        request = request.header(name, value);
    }
    request.body(Full::new(body.clone())).unwrap_or_else(|_| unreachable!("these are legal headers"))
}

/// The request as the layers below the intake get it.
pub fn read(request: Request<Full<Bytes>>) -> Request<CallBody> {
    let back = service_fn(|request| ready(Ok::<_, Infallible>(Response::new(request))));
    let Ok(response) = super::call(&mut IntakeLayer::new().layer(back), request);
    response.into_body()
}
