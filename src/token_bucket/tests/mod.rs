//! Tests of the token bucket.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::field_reassign_with_default,
    reason = "helpers of tests are tests too"
)]

mod bucket;
mod cases;
mod core;
mod keyed;
mod learning;
mod providers;
mod queue;
mod quota;
mod settings;
mod settlement;
mod stack;
mod support;
