//! Scenarios on a paused clock; one upstream with a script.

#[cfg(feature = "tower")]
mod adapters;
mod bodies;
mod decide;
mod edges;
mod held;
mod hints;
mod storms;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use super::*;
use crate::call::CallBody;
use crate::monitor::Event;
use crate::refusal::{BoxError, Refusal, RefusalKind};
use crate::time::{self, Instant};

pub(super) type Req = Request<CallBody>;
pub(super) type Res = Response<Full<Bytes>>;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What the upstream does with an attempt.
#[derive(Clone)]
pub(super) enum Reply {
    /// Reads the request's body, and answers.
    Says(u16, &'static [(&'static str, &'static str)]),
    /// Answers without having looked at the body.
    Unread(u16),
    /// The connection fails.
    Fails,
    /// One of our own layers says no.
    Refuses(RefusalKind),
}

/// An upstream that answers by its script, the last reply for ever, and notes what reached it.
#[derive(Clone)]
pub(super) struct Upstream {
    script: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    ready: bool,
}

/// An attempt as it reached the upstream.
pub(super) struct Seen {
    pub(super) at: Instant,
    pub(super) head: http::request::Parts,
    pub(super) body: Bytes,
    pub(super) trailers: Option<HeaderMap>,
}

impl Upstream {
    pub(super) fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        Self { script, seen: Arc::default(), ready: false }
    }

    pub(super) fn statuses(statuses: impl IntoIterator<Item = u16>) -> Self {
        Self::new(statuses.into_iter().map(|status| Reply::Says(status, &[])))
    }

    pub(super) fn calls(&self) -> usize {
        self.seen().len()
    }

    pub(super) fn seen(&self) -> std::sync::MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap()
    }

    /// The waits between the attempts.
    pub(super) fn gaps(&self) -> Vec<Duration> {
        let seen = self.seen();
        seen.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect()
    }

    async fn serve(self, request: Req, reply: Reply) -> Result<Res, BoxError> {
        let at = time::now();
        let (head, body) = request.into_parts();
        let (mut bytes, mut trailers) = (Bytes::new(), None);
        if !matches!(reply, Reply::Unread(_)) {
            let collected = body.collect().await?;
            trailers = collected.trailers().cloned();
            bytes = collected.to_bytes();
        }
        self.seen().push(Seen { at, head, body: bytes, trailers });
        match reply {
            Reply::Fails => Err("connection reset".into()),
            Reply::Refuses(kind) => Err(Refusal::new(kind).into()),
            Reply::Unread(status) => Ok(answer(status, &[])),
            Reply::Says(status, headers) => Ok(answer(status, headers)),
        }
    }
}

fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Res {
    let mut response = Response::new(Full::new(Bytes::from_static(b"answer")));
    *response.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

impl Service<Req> for Upstream {
    type Response = Res;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        let reply = {
            let mut script = self.script.lock().unwrap();
            if script.len() > 1 { script.pop_front().unwrap() } else { script[0].clone() }
        };
        let next = Self { ready: false, ..self.clone() };
        Box::pin(next.serve(request, reply))
    }
}

pub(super) fn post() -> Req {
    Request::post("https://api.example.com/v1/chat").body(CallBody::from("the prompt")).unwrap()
}

/// The builder of `llm()`, without anything random.
pub(super) fn steady() -> RetryPolicyBuilder {
    let backoff = Backoff::exponential(ms(500)).jitter(Jitter::None);
    RetryPolicy::builder().ambiguous(true).backoff(backoff)
}

/// What was decided, in order.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    pub(super) fn layer(&self, policy: RetryPolicy) -> RetryLayer {
        let told = self.0.clone();
        RetryLayer::new(policy).observer(move |event: &Event<'_>| {
            let line = match event {
                Event::Retrying { attempt, after, .. } => format!("{attempt} again after {after:?}"),
                Event::GaveUp { attempt, cause, .. } => format!("{attempt} {cause:?}"),
                other => format!("{other:?}"),
            };
            told.lock().unwrap().push(line);
        })
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn last(&self) -> String {
        self.lines().last().cloned().unwrap_or_default()
    }
}
