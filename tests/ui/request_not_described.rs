//! The request type does not say what it asks for: `impl Describe for Prompt {}` is missing.
use seawall::gate::{Admission, Gate, GateLayer};
use seawall::{BoxError, Refusal, calls};
use tower::{Layer, service_fn};

#[derive(Clone)]
struct Open;

impl<Req> Gate<Req> for Open {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    fn admit(&self, _: &mut Req) -> Admission<(), Self::Wait> {
        Admission::Now(())
    }
}

struct Prompt;

fn main() {
    let inner = service_fn(|_: Prompt| async move { Ok::<_, BoxError>(http::Response::new(String::new())) });
    calls::<Prompt>().layer(GateLayer::from_gate(Open).layer(inner));
}
