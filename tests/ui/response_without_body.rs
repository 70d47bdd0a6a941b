//! The response has no body: `.at_head()` is missing.
use seawall::gate::{Admission, Gate, GateLayer};
use seawall::{BoxError, Refusal, calls};
use tower::ServiceBuilder;

#[derive(Clone)]
struct Open;

impl<Req> Gate<Req> for Open {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    fn admit(&self, _: &mut Req) -> Admission<(), Self::Wait> {
        Admission::Now(())
    }
}

fn main() {
    ServiceBuilder::new()
        .layer(calls::<String>())
        .layer(GateLayer::from_gate(Open))
        .service_fn(|prompt: String| async move { Ok::<usize, BoxError>(prompt.len()) });
}
