//! The layer of a gate, and the macro by which each ready-made layer gets the same three ways to be built.

use crate::gate::BodyEnd;

/// The ways in which every gate's layer is used: `.at_head()`, `.respond()`, `.gate()`, and `Layer` itself.
macro_rules! gate_layer {
    ($layer:ident) => {
        impl<G, M> $layer<G, M> {
            /// Ends each permit when the response is there, and not at the end of its body: for responses that have
            /// none.
            pub fn at_head(self) -> $layer<G, $crate::gate::Head> {
                $layer { gate: self.gate, mode: $crate::gate::Head }
            }

            /// Tells a refusal as an HTTP response, so that a server answers with it: 429, 503, 402 or 504.
            pub fn respond(self) -> $layer<G, $crate::gate::Respond> {
                $layer { gate: self.gate, mode: $crate::gate::Respond }
            }

            /// The gate: a handle on the state that all services of this layer share.
            pub fn gate(&self) -> &G {
                &self.gate
            }
        }

        impl<S, G: Clone, M: Clone> tower_layer::Layer<S> for $layer<G, M> {
            type Service = $crate::gate::Gated<S, G, M>;

            fn layer(&self, inner: S) -> Self::Service {
                $crate::gate::Gated::new(inner, self.gate.clone(), self.mode.clone())
            }
        }
    };
}
pub(crate) use gate_layer;

/// The layer of any gate: of your own, or of one of ours that you hold.
///
/// All services that it makes share the gate. See the [module](crate::gate) for an example.
#[derive(Clone, Copy, Debug)]
pub struct GateLayer<G, M = BodyEnd> {
    gate: G,
    mode: M,
}

impl<G> GateLayer<G> {
    /// A layer that puts services behind this gate.
    pub fn from_gate(gate: G) -> Self {
        Self { gate, mode: BodyEnd }
    }
}

gate_layer!(GateLayer);
