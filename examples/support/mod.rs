//! A simulated provider on loopback: the wire of an LLM provider, its limits, its bills and its bad days, for examples and
//! tests. It speaks HTTP/1.1 and HTTP/2, and the shapes of OpenAI (chat, completions, responses, embeddings, models) and of
//! Anthropic (messages).
//!
//! ```ignore
//! let provider = Provider::builder("first").price(Price::nanos(420, 1_100)).start().await?;
//! provider.script([Fault::status(503), Fault::None]);
//! // Ask `provider.url()` …
//! assert_eq!(provider.requests(), 2);
//! println!("{} nano-dollars", provider.billed());
//! ```
//!
//! Where a request brings tools it calls the first of them; where it asks for JSON of a schema it gets that.
//!
//! It runs as long as its runtime does, or until [`Provider::kill`]; all its waits are on tokio's clock.
#![allow(dead_code, unused_imports, reason = "each example and test uses a part of it")]

mod answer;
mod asked;
mod bill;
mod body;
mod builder;
mod fault;
mod headers;
mod limits;
mod log;
mod problem;
mod server;
mod shape;
mod shared;
mod socket;
mod wire;

pub(crate) use bill::{Billing, Price};
pub(crate) use builder::{Builder, Pace};
pub(crate) use fault::Fault;
pub(crate) use headers::Style;
pub(crate) use limits::{Limits, Window};
pub(crate) use log::{Ended, How, Seen};
pub(crate) use server::Provider;
