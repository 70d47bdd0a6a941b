//! Keeps calls within limits of requests, tokens, or anything else: a client that keeps its provider's limits sees no 429.
mod bucket;
mod builder;
mod core;
mod cost;
mod gate;
mod headers;
mod layer;
mod learn;
mod lease;
mod queue;
mod quota;
mod wait;

#[cfg(all(test, seawall_loom))]
mod models;
#[cfg(all(test, not(seawall_loom)))]
mod tests;

pub use builder::{ByKey, TokenBucketBuilder, Unkeyed};
pub use cost::{Cost, ReadCosts, With};
pub use gate::{Abandoned, BucketPermit, Level, TokenBucket};
pub use headers::{BucketOf, Headers, HeadersFuture, HeadersLayer, Levels};
pub use layer::TokenBucketLayer;
pub use learn::{Feedback, NoLimits, ReadLimits, RetryAfter, Said, Stated, Upstream};
pub use quota::Quota;
pub use wait::Wait;
