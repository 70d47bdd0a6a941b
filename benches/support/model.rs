//! A model behind own types, which says what it used.

use std::future::Future;
use std::hint::black_box;
use std::marker::PhantomData;
use std::pin::Pin;
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

/// A response that says what it used, in as many numbers as the types of a client library have for it.
#[derive(Clone, Copy, Default)]
pub struct Reply {
    prompt_tokens: u32,
    completion_tokens: u32,
}

impl Answer for Reply {
    #[inline]
    fn usage(&self) -> Option<Usage> {
        let mut usage = Usage::default();
        (usage.input, usage.output) = (Some(self.prompt_tokens.into()), Some(self.completion_tokens.into()));
        Some(usage)
    }
}

/// An answer that comes into being when it is asked for, as one does that comes from elsewhere. `std`'s `Ready` is written
/// before, and to read it whole at once, as nobody does in earnest, makes the processor wait longer than most layers do.
pub struct Answering<T, E>(T, PhantomData<fn() -> E>);

impl<T, E> Answering<T, E> {
    #[inline]
    pub fn with(answer: T) -> Self {
        Self(answer, PhantomData)
    }
}

impl<T: Copy + Unpin, E> Future for Answering<T, E> {
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        Poll::Ready(Ok(black_box(self.0)))
    }
}

/// Answers at once.
#[derive(Clone, Copy)]
pub struct Model;

impl Service<Prompt> for Model {
    type Response = Reply;
    type Error = BoxError;
    type Future = Answering<Reply, BoxError>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, prompt: Prompt) -> Self::Future {
        black_box(prompt.0);
        Answering::with(Reply { prompt_tokens: 250, completion_tokens: 80 })
    }
}
