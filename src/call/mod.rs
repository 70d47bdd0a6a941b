//! What a call asks for and what became of it: the facts that layers pass on.
//!
//! A request is read once and a response is read once; every other layer uses what was written down here. Layers reach
//! the facts of a request through [`Describe`] and those of a response through [`Answer`], so that the same layers
//! serve `http` and a library's own types.

mod answer;
mod asked;
mod describe;
mod json;
mod key;
mod model;
mod outcome;
pub mod tokens;
mod usage;

pub use answer::Answer;
pub use asked::read_json;
pub use describe::{Blind, Call, Describe, Described, Estimate, Priority, Read, Tagged};
pub use key::Key;
pub use model::rewrite_model;
pub use outcome::Outcome;
pub use usage::Usage;
