//! What providers say on the wire: pure functions over heads, bytes and frames. No layer is imported here.

pub mod decode;
pub(crate) mod error;
pub mod grpc;
mod head;
pub mod hint;
pub mod limits;
pub mod sse;
pub mod stream;
pub mod usage;

#[cfg(test)]
pub(crate) mod fixtures;

pub use decode::{ContentEncoding, Decoder, Encoding};
pub use error::{BODY_LIMIT, classify};
pub use head::HeadClassifier;
pub use stream::{Seen, StreamReader};
pub use usage::BodyReader;
