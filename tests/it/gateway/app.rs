//! The gateway's own files, as the example has them.
#![allow(dead_code, clippy::print_stdout, reason = "they are those of the example")]

#[path = "../../../examples/gateway/args.rs"]
pub(super) mod args;
#[path = "../../../examples/gateway/errors.rs"]
mod errors;
#[path = "../../../examples/gateway/paced.rs"]
mod paced;
#[path = "../../../examples/gateway/proxy.rs"]
mod proxy;
#[path = "../../../examples/gateway/server.rs"]
pub(super) mod server;
#[path = "../../../examples/gateway/state.rs"]
pub(super) mod state;
#[path = "../../../examples/gateway/stats.rs"]
mod stats;
#[path = "../../../examples/gateway/upstream.rs"]
mod upstream;
