//! The monitor as its users meet it: over the real layers, with figures counted by hand.

mod edges;
mod figures;
mod steady;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use seawall::BoxError;
use seawall::call::CallBody;
use tokio::time::{Sleep, sleep};

pub(super) const MILLI: Duration = Duration::from_millis(1);
pub(super) const CONTENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
pub(super) const LAST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":5}}\n\n";
pub(super) const DONE: &str = "data: [DONE]\n\n";
pub(super) const ANSWER: &str = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}}"#;

/// An answer: so long to the head, then its parts, each after a time.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) head: u64,
    pub(super) status: u16,
    pub(super) stream: bool,
    pub(super) parts: Vec<(u64, &'static str)>,
}

pub(super) fn json(head: u64, status: u16, body: &'static str) -> Reply {
    Reply { head, status, stream: false, parts: vec![(0, body)] }
}

/// Upstreams by the host of their URLs, each with its answers in order.
#[derive(Clone, Default)]
pub(super) struct Upstreams(Arc<Mutex<HashMap<&'static str, VecDeque<Reply>>>>);

impl Upstreams {
    pub(super) fn says(&self, host: &'static str, replies: impl IntoIterator<Item = Reply>) {
        self.0.lock().unwrap().entry(host).or_default().extend(replies);
    }

    pub(super) fn nothing_left(&self) -> bool {
        self.0.lock().unwrap().values().all(VecDeque::is_empty)
    }

    pub(super) async fn answer(self, request: Request<CallBody>) -> Result<Response<Timed>, BoxError> {
        let host = request.uri().host().unwrap_or("none").to_owned();
        request.into_body().collect().await?;
        let reply = self.0.lock().unwrap().get_mut(&*host).and_then(VecDeque::pop_front);
        let reply = reply.unwrap_or_else(|| panic!("{host} was not to be asked"));
        sleep(MILLI * u32::try_from(reply.head)?).await;
        let kind = if reply.stream { "text/event-stream" } else { "application/json" };
        let response = Response::builder().status(reply.status).header("content-type", kind);
        Ok(response.body(Timed { parts: reply.parts.into(), sleep: None })?)
    }
}

/// A body whose parts take their time.
pub(super) struct Timed {
    parts: VecDeque<(u64, &'static str)>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Body for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(&(wait, part)) = self.parts.front() else { return Poll::Ready(None) };
        let timer = self.sleep.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(wait))));
        ready!(timer.as_mut().poll(cx));
        self.sleep = None;
        self.parts.pop_front();
        match part {
            "reset" => Poll::Ready(Some(Err("connection reset".into()))),
            part => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(part.as_bytes()))))),
        }
    }
}

pub(super) fn chat(model: &str) -> Request<Full<Bytes>> {
    let body =
        format!(r#"{{"model":"{model}","max_tokens":50,"messages":[{{"role":"user","content":"Hi"}}]}}"#);
    let request =
        Request::post("http://caller/v1/chat/completions").header("content-type", "application/json");
    request.body(Full::new(Bytes::from(body))).unwrap()
}
