//! What providers say on the wire: pure functions over heads, bytes and frames. No layer is imported here.

pub(crate) mod error;

#[cfg(test)]
pub(crate) mod fixtures;
