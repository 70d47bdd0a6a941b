//! What the layers have to say, and who listens.

mod event;

pub(crate) use event::Observers;
pub use event::{Basis, BreakerCause, BreakerState, Event, Observer, StopCause};
