//! How an attempt went, and the layer that reads it: the one place where a response is parsed.

mod body;
mod error_body;
mod facts;
mod layer;
mod service;
mod tap;

pub use body::OutcomeBody;
pub use facts::Outcome;
pub use layer::{OutcomeLayer, Outcomes};
pub use service::{HttpResponse, OutcomeFuture};
