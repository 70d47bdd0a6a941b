//! Names the request type of a stack.

use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// Says that the stack below serves requests of this type, and of no other. It does nothing at run time.
///
/// Put it outermost when a stack does not compile: without it the compiler only says that `ready` or `oneshot` does not
/// exist for the service; with it, it says which layer misses what, and how to mend it. And where a stack takes requests with
/// any body, as one with an [`IntakeLayer`](crate::call::IntakeLayer) outermost does, `.ready()` asks for a type annotation
/// without it, because a service alone does not say of which of them. See
/// [`docs::compiler_messages`](crate::docs::compiler_messages).
///
/// ```
/// use seawall::calls;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let service = ServiceBuilder::new()
///     .layer(calls::<String>())
///     .service_fn(|name: String| async move { Ok::<_, seawall::BoxError>(name.len()) });
/// assert_eq!(service.oneshot("wall".to_owned()).await.unwrap(), 4);
/// # }
/// ```
#[must_use]
pub fn calls<Req>() -> Calls<Req> {
    Calls(PhantomData)
}

/// See [`calls`].
pub struct Calls<Req>(PhantomData<fn(Req)>);

impl<S, Req> Layer<S> for Calls<Req>
where
    S: Service<Req>,
{
    type Service = Serving<S, Req>;

    fn layer(&self, inner: S) -> Serving<S, Req> {
        Serving { inner, request: PhantomData }
    }
}

/// The service of [`calls`]: the inner one, for requests of one type.
pub struct Serving<S, Req> {
    inner: S,
    request: PhantomData<fn(Req)>,
}

impl<S, Req> Serving<S, Req> {
    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service. What it was ready for is still reserved in it.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Req> Service<Req> for Serving<S, Req>
where
    S: Service<Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Req) -> S::Future {
        self.inner.call(request)
    }
}

impl<S: Clone, Req> Clone for Serving<S, Req> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), request: PhantomData }
    }
}

impl<S: fmt::Debug, Req> fmt::Debug for Serving<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("inner", &self.inner).finish()
    }
}

impl<Req> Clone for Calls<Req> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Req> Copy for Calls<Req> {}

impl<Req> fmt::Debug for Calls<Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}
