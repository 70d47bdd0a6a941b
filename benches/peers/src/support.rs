//! What the benches of the crate share, here too.
#![allow(dead_code, reason = "a part of it is used here")]

#[path = "../../support/bodies.rs"]
pub mod bodies;
#[path = "../../support/streams.rs"]
pub mod streams;

pub use crate::drive::call;
