//! From other crates and gateways to this one: setting by setting, and what behaves otherwise.
//!
//! | you come from | page |
//! |---|---|
//! | tower's own `retry`, `limit`, `load_shed`, `timeout` | [`tower`] |
//! | tower-resilience | [`tower_resilience`] |
//! | seatbelt | [`seatbelt`] |
//! | LiteLLM's router, or its proxy | [`litellm`] |
//!
//! Whatever you come from, four things are new:
//!
//! - **A call lasts to the end of its body.** Permits, votes and figures wait for it. For responses without a body, or where you
//!   want the old way, there is `.at_head()`.
//! - **A response can be a failure.** `Ok(503)` counts as one without a classifier; for an own response type you must give one.
//! - **A layer owns its state, and all services and clones that it makes share it**, also where a layer is applied twice.
//! - **Refusals come from `call`**, as the inner service's own error type, which must hold a [`Refusal`](crate::Refusal):
//!   `.map_err(BoxError::from)` below the layers, or [`Fault`](crate::Fault) for typed errors.

pub mod litellm;
pub mod seatbelt;
pub mod tower;
pub mod tower_resilience;
