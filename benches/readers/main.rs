//! What it costs to read what a provider says.

use criterion::{criterion_group, criterion_main};

mod answers;
mod errors;
#[path = "../support/mod.rs"]
mod support;

criterion_group!(benches, errors::classify_429, answers::tap, answers::json);
criterion_main!(benches);
