//! What providers say on the wire: pure functions over heads, bytes and frames. No layer is imported here.

pub(crate) mod error;
pub mod grpc;
pub mod hint;
pub mod limits;

#[cfg(test)]
pub(crate) mod fixtures;

pub use error::{BODY_LIMIT, classify};
