//! Pages to read: they hold no code.
//!
//! | page | read it |
//! |---|---|
//! | [`ordering`] | before you stack the layers: which stands where, and what goes wrong elsewhere |
//! | [`failure_semantics`] | to know what holds when a caller leaves, something panics, a process dies, a clock jumps, a store is down |
//! | [`clients`] | to put a stack around hyper, reqwest, tonic or async-openai |
//! | [`compiler_messages`] | when a stack does not compile |
//! | [`migration`] | to come from tower's own layers, tower-resilience, seatbelt, or LiteLLM's router |
//! | [`glossary`] | for a word |
//!
//! What a layer does, its defaults, and its events stand in its own module: [`bulkhead`](crate::bulkhead),
//! [`circuit_breaker`](crate::circuit_breaker), [`token_bucket`](crate::token_bucket), [`retry`](crate::retry),
//! [`fallback`](crate::fallback), [`cost_guard`](crate::cost_guard), [`timeout`](crate::timeout), [`call`](crate::call) (intake
//! and outcome), [`monitor`](crate::monitor), [`gate`](crate::gate), `config` (feature `serde`) and `fault` (feature `fault`).

pub mod clients;
pub mod compiler_messages;
pub mod failure_semantics;
pub mod glossary;
pub mod migration;
pub mod ordering;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
