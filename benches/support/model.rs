//! A model behind own types, which says what it used.

use std::future::{Ready, ready};
use std::hint::black_box;
use std::task::{Context, Poll};

use seawall::BoxError;
use seawall::call::{Answer, Call, Describe, Usage};
use tower::Service;

/// A request that is described.
#[derive(Clone, Copy)]
pub struct Prompt(pub &'static Call);

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(self.0)
    }
}

/// A response that says what it used.
#[derive(Clone, Copy, Default)]
pub struct Reply(Usage);

impl Answer for Reply {
    fn usage(&self) -> Option<Usage> {
        Some(self.0)
    }
}

/// Answers at once.
#[derive(Clone, Copy)]
pub struct Model;

impl Service<Prompt> for Model {
    type Response = Reply;
    type Error = BoxError;
    type Future = Ready<Result<Reply, BoxError>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, prompt: Prompt) -> Self::Future {
        black_box(prompt.0);
        let mut usage = Usage::default();
        (usage.input, usage.output) = (Some(250), Some(80));
        ready(Ok(Reply(usage)))
    }
}
