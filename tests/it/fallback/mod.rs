//! Asks one target after the other: what the caller sees, and what the providers saw. All on a paused clock.

mod behaviours;
mod cancel;
mod cases;
mod health;
mod kept;
mod orders;
mod own;
pub(crate) mod provider;
mod respond;
mod rules;
