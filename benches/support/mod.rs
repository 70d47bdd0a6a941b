//! What the benches share: services that answer at once, and one way to drive them.
#![allow(dead_code, unreachable_pub, reason = "each bench uses a part of this")]

pub mod bodies;
pub mod handing;
pub mod model;
pub mod streams;

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use seawall::{BoxError, Fault};
use tower::Service;

/// A service over an own type that answers at once.
#[derive(Clone, Copy)]
pub struct Echo;

impl Service<u64> for Echo {
    type Response = u64;
    type Error = BoxError;
    type Future = Ready<Result<u64, BoxError>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(black_box(request)))
    }
}

/// The same with an error type that carries a refusal without a box.
#[derive(Clone, Copy)]
pub struct TypedEcho;

impl Service<u64> for TypedEcho {
    type Response = u64;
    type Error = Fault<Infallible>;
    type Future = Ready<Result<u64, Self::Error>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(black_box(request)))
    }
}

/// The same over HTTP, with a small body.
#[derive(Clone, Copy)]
pub struct HttpEcho;

impl Service<Request<()>> for HttpEcho {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Full<Bytes>>, BoxError>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<()>) -> Self::Future {
        black_box(request);
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
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
        panic!("the bench's service is always ready")
    };
    ready?;
    let mut future = pin!(service.call(request));
    let Poll::Ready(result) = future.as_mut().poll(&mut cx) else {
        panic!("the bench's service answers at once")
    };
    result
}

/// Reads a body that never waits.
#[inline]
pub fn drain<B: Body>(body: B) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut body = pin!(body);
    while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(&mut cx) {
        black_box(frame.is_ok());
    }
}
