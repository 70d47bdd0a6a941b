//! doc
mod chain;
mod future;
mod handle;
mod health;
mod layer;
mod mode;
mod order;
mod routes;
mod served;
mod service;
mod target;
mod trigger;

pub use crate::call::{Commit, Overrides};
pub use future::ResponseFuture;
pub use handle::RoutesHandle;
pub use health::{Health, Standing};
pub use layer::{FallbackBuilder, FallbackLayer};
pub use mode::{Ends, Telling};
pub use order::Order;
pub use routes::{Route, Routes, RoutesBuilder};
pub use served::{Attempt, Attempts, Served, Skip};
pub use service::Fallback;
pub use target::{Target, TargetBuilder};
pub use trigger::Triggers;
