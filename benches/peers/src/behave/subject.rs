//! An upstream that is told what to do, and a breaker around it, whatever its make.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

use tower::Service;

/// What becomes of a call at the upstream.
#[derive(Clone)]
pub enum Fate {
    Good,
    Bad,
    /// It hangs until it is told.
    Later(Told),
}

/// Tells a call that hangs how to end.
#[derive(Clone, Default)]
pub struct Told(Arc<AtomicU8>);

impl Told {
    pub fn good(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    pub fn bad(&self) {
        self.0.store(2, Ordering::Relaxed);
    }
}

/// The upstream's error, which is also what seatbelt's breaker is told to refuse with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Broken {
    Failed,
    Refused,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it is broken")
    }
}

impl std::error::Error for Broken {}

/// The upstream, with its way to fail.
#[derive(Clone, Copy)]
pub struct Upstream<E>(pub fn() -> E);

impl<E> Service<Fate> for Upstream<E> {
    type Response = ();
    type Error = E;
    type Future = Answer<E>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, fate: Fate) -> Answer<E> {
        Answer { fate, fail: self.0 }
    }
}

/// The upstream's answer. It wakes nobody: who drives it looks again.
pub struct Answer<E> {
    fate: Fate,
    fail: fn() -> E,
}

impl<E> Future for Answer<E> {
    type Output = Result<(), E>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = match &self.fate {
            Fate::Good => 1,
            Fate::Bad => 2,
            Fate::Later(told) => told.0.load(Ordering::Relaxed),
        };
        match told {
            0 => Poll::Pending,
            1 => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err((self.fail)())),
        }
    }
}

/// What a caller sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    Waits,
    Served,
    Failed,
    Refused,
}

type Driven = Pin<Box<dyn Future<Output = Seen>>>;

/// A call under way.
pub struct Call {
    driven: Driven,
    last: Seen,
}

impl Call {
    /// Polls it once.
    pub fn look(&mut self) -> Seen {
        if self.last == Seen::Waits
            && let Poll::Ready(seen) = self.driven.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.last = seen;
        }
        self.last
    }
}

/// Something that may refuse calls.
pub struct Subject(Box<dyn Fn(Fate) -> Driven>);

impl Subject {
    pub fn new(start: impl Fn(Fate) -> Driven + 'static) -> Self {
        Self(Box::new(start))
    }

    /// A tower service; each call goes through a clone of its own.
    pub fn of<S>(service: S, is_refusal: fn(&S::Error) -> bool) -> Self
    where
        S: Service<Fate, Response = ()> + Clone + 'static,
    {
        Self::new(move |fate| {
            let mut service = service.clone();
            Box::pin(async move {
                let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
                let result = match ready {
                    Ok(()) => service.call(fate).await,
                    Err(error) => Err(error),
                };
                match result {
                    Ok(()) => Seen::Served,
                    Err(error) if is_refusal(&error) => Seen::Refused,
                    Err(_) => Seen::Failed,
                }
            })
        })
    }

    /// Starts a call, and polls it once.
    pub fn start(&self, fate: Fate) -> Call {
        let mut call = Call { driven: (self.0)(fate), last: Seen::Waits };
        call.look();
        call
    }

    /// What a call sees that is polled once.
    pub fn now(&self, fate: Fate) -> Seen {
        self.start(fate).last
    }

    /// A call that hangs, and the way to end it.
    pub fn hang(&self) -> (Call, Told) {
        let told = Told::default();
        (self.start(Fate::Later(told.clone())), told)
    }
}
