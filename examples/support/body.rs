//! The body of a response, in steps.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::log::How;
use super::shared::Record;

#[derive(Debug)]
pub(super) enum Step {
    Send(Bytes),
    /// Carries so many tokens of the answer.
    Tokens(Bytes, u64),
    Wait(Duration),
    /// Lets the connection send what it has.
    Flush,
    /// The connection ends here.
    Cut,
    /// Nothing more, ever.
    Stall,
}

/// A scripted body.
#[derive(Debug)]
pub(super) struct Script {
    steps: VecDeque<Step>,
    wait: Option<Pin<Box<Sleep>>>,
    record: Record,
}

impl Script {
    pub(super) fn new(steps: impl IntoIterator<Item = Step>, mut record: Record) -> Self {
        let steps: VecDeque<_> = steps.into_iter().collect();
        if steps.is_empty() {
            record.end(How::Complete);
        }
        Self { steps, wait: None, record }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(wait) = &mut this.wait {
                ready!(wait.as_mut().poll(cx));
                this.wait = None;
            }
            let data = match this.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(data)) => data,
                Some(Step::Tokens(data, tokens)) => {
                    this.record.send(tokens);
                    data
                }
                Some(Step::Wait(wait)) => {
                    this.wait = Some(Box::pin(sleep(wait)));
                    continue;
                }
                Some(Step::Flush) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Cut) => {
                    this.record.end(How::Faulted);
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
                }
                Some(Step::Stall) => {
                    // The connection wakes it when the client goes away.
                    this.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
            };
            if this.steps.is_empty() {
                // The connection may not ask again, and what it does with this is no matter of the answer.
                this.record.end(How::Complete);
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.steps.front() {
            Some(Step::Send(data) | Step::Tokens(data, _)) if self.steps.len() == 1 => {
                SizeHint::with_exact(data.len() as u64)
            }
            None => SizeHint::with_exact(0),
            Some(_) => SizeHint::default(),
        }
    }
}
