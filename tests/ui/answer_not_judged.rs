//! Nobody says what an answer means: `.classify(..)` is missing.
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::{BoxError, calls};
use tower::{Layer, service_fn};

struct Reply;

fn main() {
    let inner = service_fn(|_: String| async { Ok::<_, BoxError>(Reply) });
    calls::<String>().layer(CircuitBreakerLayer::new().at_head().layer(inner));
}
