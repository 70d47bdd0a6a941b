//! All integration tests in one binary: a module a concern.

mod auto_traits;
mod body;
mod cancel;
mod contract;
mod keyed;
mod messages;
mod respond;
mod stack;
mod support;
