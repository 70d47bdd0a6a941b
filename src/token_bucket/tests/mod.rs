//! Tests of the token bucket.

mod bucket;
mod cases;
mod keyed;
mod learning;
mod queue;
mod settings;
mod settlement;
mod stack;
mod support;
