//! All integration tests in one binary: a module a concern.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic; the line says where")]

mod allocations;
mod auto_traits;
mod body;
mod bursts;
mod cancel;
mod clients;
mod compose;
mod contract;
mod cost_guard;
mod evidence;
mod fallback;
mod gateway;
mod grpc;
mod keyed;
mod messages;
mod monitor;
mod outages;
mod outcome;
mod requests;
mod respond;
#[cfg(feature = "hyper")]
mod retry_wire;
mod simulated;
mod sizes;
mod stack;
mod storms;
mod support;
mod timeout;

/// The provider that the examples use too.
#[path = "../../examples/support/mod.rs"]
mod provider;
