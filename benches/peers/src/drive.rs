//! Services that answer at once, and one way to drive them.

use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use seawall::call::{Aim, Call, Destination, Estimate, Misfit};
use seawall::{BoxError, Fault};
use tower::Service;

/// What the benches of the crate share: a model that answers at once.
#[path = "../../support/model.rs"]
mod model;

pub use model::{Answering, Model, Prompt, Reply};

/// Makes so many calls.
pub type Loop = Box<dyn FnMut(u64)>;

impl Prompt {
    pub fn described() -> Self {
        Self::of("acme")
    }

    /// Of this tenant.
    pub fn of(tenant: &str) -> Self {
        let mut call = Call::default();
        call.model = Some("gpt-4o".into());
        call.upstream = Some("openai".into());
        call.tenant = Some(tenant.into());
        call.estimate = Some(Estimate::new(250, 1_000));
        call.output_bound = Some(1_000);
        Self(Box::leak(Box::new(call)))
    }
}

impl Aim for Prompt {
    fn aim(&self, _at: &Destination<'_>) -> Result<Self, Misfit> {
        Ok(*self)
    }
}

/// A number that comes back.
#[derive(Clone, Copy)]
pub struct Echo;

impl Service<u64> for Echo {
    type Response = u64;
    type Error = BoxError;
    type Future = Answering<u64, BoxError>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        Answering::with(request)
    }
}

/// The same with an error type that carries a refusal without a box.
#[derive(Clone, Copy)]
pub struct TypedEcho;

impl Service<u64> for TypedEcho {
    type Response = u64;
    type Error = Fault<Infallible>;
    type Future = Answering<u64, Self::Error>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        Answering::with(request)
    }
}

/// `ready().call()` of a service that never waits.
#[inline]
pub fn call<S, Req>(service: &mut S, request: Req) -> Result<S::Response, S::Error>
where
    S: Service<Req>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(ready) = service.poll_ready(&mut cx) else {
        unreachable!("the inner service is always ready")
    };
    ready?;
    let mut future = pin!(service.call(request));
    let Poll::Ready(result) = future.as_mut().poll(&mut cx) else {
        unreachable!("the inner service answers at once")
    };
    result
}

/// Calls a service again and again.
pub fn calls<S, Req>(mut service: S, request: Req) -> Loop
where
    S: Service<Req> + 'static,
    Req: Copy + 'static,
{
    Box::new(move |n| {
        for _ in 0..n {
            let _ = black_box(call(&mut service, black_box(request)).is_ok());
        }
    })
}
