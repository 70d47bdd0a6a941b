//! Scripted providers behind one client, and the stack that asks them.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use seawall::BoxError;
use seawall::call::{Call, CallBody, Credential, Describe, IntakeLayer, OutcomeLayer, Upstream};
use seawall::fallback::{FallbackLayer, Route, Routes, Served, Target};
use tokio::time::{Sleep, sleep};
use tower::util::{BoxCloneService, MapErr};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::support::{Gauge, GaugeGuard};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) const ROLE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
pub(super) const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(super) const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
pub(super) const DONE: &str = "data: [DONE]\n\n";
pub(super) const PING: &str = ": ping\n\n";
pub(super) const STREAM_ERROR: &str = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\",\"code\":\"overloaded\"}}\n\n";
pub(super) const ANSWER: &str =
    r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;

/// What a provider does with one request.
#[derive(Clone)]
pub(super) enum Reply {
    Answer {
        after: Duration,
        status: u16,
        headers: Vec<(&'static str, String)>,
        steps: Vec<Step>,
    },
    /// The connection is reset before the head.
    Reset,
    /// Nothing, ever.
    Silent,
    /// The client panics when it is polled.
    Panics,
}

/// What comes of a body.
#[derive(Clone)]
pub(super) enum Step {
    Send(Bytes),
    Wait(Duration),
    Trailers(HeaderMap),
    Cut,
    Stall,
    Panic,
}

pub(super) fn status(status: u16, body: &'static str) -> Reply {
    Reply::Answer {
        after: Duration::ZERO,
        status,
        headers: vec![("content-type", "application/json".into())],
        steps: vec![Step::Send(Bytes::from_static(body.as_bytes()))],
    }
}

pub(super) fn ok() -> Reply {
    status(200, ANSWER)
}

pub(super) fn stream(frames: &[&'static str]) -> Reply {
    steps(frames.iter().map(|frame| send(frame)).collect())
}

pub(super) fn healthy_stream() -> Reply {
    stream(&[ROLE, TOKEN, STOP, USAGE, DONE])
}

pub(super) fn steps(steps: Vec<Step>) -> Reply {
    let headers = vec![("content-type", "text/event-stream".into())];
    Reply::Answer { after: Duration::ZERO, status: 200, headers, steps }
}

pub(super) fn send(text: &'static str) -> Step {
    Step::Send(Bytes::from_static(text.as_bytes()))
}

impl Reply {
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }

    pub(super) fn after(mut self, wait: Duration) -> Self {
        if let Self::Answer { after, .. } = &mut self {
            *after = wait;
        }
        self
    }
}

/// A request as a provider saw it.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) host: String,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) call: Option<Call>,
}

/// All providers, by host; the last reply of each is given for ever.
#[derive(Clone, Default)]
pub(super) struct Providers {
    replies: Arc<Mutex<HashMap<&'static str, VecDeque<Reply>>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Futures and bodies that are alive.
    pub(super) alive: Gauge,
}

impl Providers {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn on(self, host: &'static str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies.lock().unwrap().insert(host, replies.into_iter().collect());
        self
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The hosts that were asked, in their order.
    pub(super) fn asked(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.host).collect()
    }

    fn next(&self, host: &str) -> Reply {
        let mut replies = self.replies.lock().unwrap();
        let queue = replies.get_mut(host).unwrap_or_else(|| panic!("nobody is at {host}"));
        if queue.len() > 1 { queue.pop_front().unwrap() } else { queue.front().unwrap().clone() }
    }
}

impl Service<Request<CallBody>> for Providers {
    type Response = Response<Script>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Script>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        let this = self.clone();
        let alive = self.alive.guard();
        Box::pin(async move {
            let call = request.call().cloned();
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let host = head.uri.host().unwrap_or_default().to_owned();
            only_the_secret_of(&host, &head, &body);
            let seen = Seen { host: host.clone(), uri: head.uri, headers: head.headers, body, call };
            this.seen.lock().unwrap().push(seen);
            match this.next(&host) {
                Reply::Reset => Err("connection reset".into()),
                Reply::Silent => std::future::pending().await,
                Reply::Panics => panic!("by the test, before the head"),
                Reply::Answer { after, status, headers, steps } => {
                    sleep(after).await;
                    let mut response = Response::builder().status(status);
                    for (name, value) in headers {
                        response = response.header(name, value);
                    }
                    Ok(response.body(Script::new(steps, alive))?)
                }
            }
        })
    }
}

/// What every provider of every scenario looks for: a secret of anybody else, the caller included.
fn only_the_secret_of(host: &str, head: &http::request::Parts, body: &Bytes) {
    // Sensitive headers hide in `Debug`: their values are looked at one by one.
    let values = head.headers.values().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let all = format!("{} {} {}", head.uri, values.collect::<Vec<_>>().join(" "), body.escape_ascii());
    let own = format!("secret-of-{host}");
    assert_eq!(all.matches("secret-of-").count(), all.matches(&own).count(), "{host} got {all}");
}

/// What is looked for in all that is shown: no secret stands there.
pub(super) fn without_secret(shown: &impl std::fmt::Debug) {
    let shown = format!("{shown:?}");
    assert!(!shown.contains("secret-of-"), "{shown}");
}

/// An error whose texts and sources tell no secret.
fn discreet(error: BoxError) -> BoxError {
    let mut link: Option<&dyn std::error::Error> = Some(&*error);
    while let Some(each) = link {
        without_secret(&(each, each.to_string()));
        link = each.source();
    }
    error
}

/// A body that follows its steps.
pub(super) struct Script {
    steps: VecDeque<Step>,
    wait: Option<Pin<Box<Sleep>>>,
    _alive: GaugeGuard,
}

impl Script {
    fn new(steps: Vec<Step>, alive: GaugeGuard) -> Self {
        Self { steps: steps.into(), wait: None, _alive: alive }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            return Poll::Ready(match self.steps.pop_front() {
                None => None,
                Some(Step::Send(data)) => Some(Ok(Frame::data(data))),
                Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Step::Cut) => Some(Err("connection reset".into())),
                Some(Step::Panic) => panic!("by the test, in the body"),
                Some(Step::Stall) => {
                    self.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
                Some(Step::Wait(wait)) => {
                    self.wait = Some(Box::pin(sleep(wait)));
                    continue;
                }
            });
        }
    }
}

/// An upstream of this name at the host of the same name, with a secret of its own.
pub(super) fn upstream(name: &str) -> Upstream {
    let secret = format!("secret-of-{name}");
    Upstream::new(name, &format!("https://{name}/v1"))
        .unwrap()
        .credential(Credential::bearer(&secret).unwrap())
}

/// `a`, `b` and `c`, with models of their own.
pub(super) fn route() -> Route {
    Route::to("large").target(Target::at("a").model("a-large")).target(Target::at("b").model("b-mini"))
}

pub(super) fn routes(route: Route) -> Routes {
    Routes::builder()
        .upstream(upstream("a"))
        .upstream(upstream("b"))
        .upstream(upstream("c"))
        .route(route)
        .build()
        .unwrap()
}

pub(super) fn two() -> FallbackLayer {
    let builder = FallbackLayer::builder(routes(route()));
    builder.observer(|event: &seawall::monitor::Event<'_>| without_secret(event)).build().unwrap()
}

pub(super) const CHAT: &str = r#"{"model":"large","messages":[{"role":"user","content":"Hi"}]}"#;

pub(super) fn request(body: &str) -> Request<CallBody> {
    Request::post("https://caller.invalid/v1/chat/completions")
        .header("content-type", "application/json")
        .body(CallBody::from(body.to_owned()))
        .unwrap()
}

pub(super) type Client<B> = BoxCloneService<Request<CallBody>, Response<B>, BoxError>;

/// Intake, fallback, outcome, providers.
pub(super) fn client(
    layer: FallbackLayer,
    providers: &Providers,
) -> Client<impl Body<Data = Bytes, Error = BoxError> + Send + use<>> {
    let service = ServiceBuilder::new().layer(IntakeLayer::new()).layer(layer).layer(OutcomeLayer::new());
    BoxCloneService::new(MapErr::new(service.service(providers.clone()), discreet))
}

/// What the caller got.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) served: Option<Served>,
    pub(crate) attempts: Option<seawall::fallback::Attempts>,
    pub(crate) outcome: Option<Arc<seawall::call::Outcome>>,
    pub(crate) body: String,
    pub(crate) broken: bool,
}

impl Got {
    pub(crate) fn by(&self) -> &str {
        self.served.as_ref().unwrap().target().upstream().name().as_str()
    }
}

pub(crate) async fn read<B>(response: Response<B>) -> Got
where
    B: Body<Data = Bytes, Error = BoxError>,
{
    let (head, body) = response.into_parts();
    let (data, _, error) = crate::support::read(body).await;
    without_secret(&(&head, head.extensions.get::<Served>(), String::from_utf8_lossy(&data), &error));
    without_secret(&head.extensions.get::<seawall::fallback::Attempts>());
    Got {
        status: head.status.as_u16(),
        headers: head.headers,
        served: head.extensions.get().cloned(),
        attempts: head.extensions.get().cloned(),
        outcome: head.extensions.get().cloned(),
        body: String::from_utf8(data).unwrap(),
        broken: error.is_some(),
    }
}

/// One call through the usual stack over these providers.
pub(super) async fn ask(layer: FallbackLayer, providers: &Providers) -> Got {
    try_ask(layer, providers).await.unwrap()
}

pub(super) async fn try_ask(layer: FallbackLayer, providers: &Providers) -> Result<Got, BoxError> {
    Ok(read(client(layer, providers).oneshot(request(CHAT)).await?).await)
}

/// Intake and fallback over another inner stack.
#[expect(clippy::needless_pass_by_value, reason = "a test makes its layers in the call")]
pub(super) fn over<S, B>(
    intake: IntakeLayer,
    layer: FallbackLayer,
    inner: S,
) -> Client<impl Body<Data = Bytes, Error = BoxError> + Send>
where
    S: Service<Request<CallBody>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    without_secret(&layer);
    BoxCloneService::new(MapErr::new(intake.layer(layer.layer(inner)), discreet))
}
