//! Names the request type of a stack.

use std::fmt;
use std::marker::PhantomData;

use tower_layer::Layer;
use tower_service::Service;

/// Says that the stack below serves requests of this type. It does nothing at run time.
///
/// Put it outermost when a stack does not compile: without it the compiler only says that `ready` or `oneshot` does not
/// exist for the service; with it, it says which layer misses what, and how to mend it. See
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
    type Service = S;

    fn layer(&self, inner: S) -> S {
        inner
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
