//! The error type cannot carry a refusal: `.map_err(Fault::Inner)` is missing.
use seawall::gate::{Admission, Gate, GateLayer};
use seawall::{Refusal, calls};
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
        .layer(GateLayer::from_gate(Open).at_head())
        .service_fn(|prompt: String| async move { Ok::<usize, std::fmt::Error>(prompt.len()) });
}
