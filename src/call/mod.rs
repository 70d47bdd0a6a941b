//! What a call asks for and what became of it: the facts that layers pass on.
//!
//! A request is read once and a response is read once; every other layer uses what was written down here. Layers reach
//! the facts of a request through [`Describe`] and those of a response through [`Answer`], so that the same layers
//! serve `http` and a library's own types.

mod ahead;
mod aim;
mod answer;
mod asked;
mod body;
pub(crate) mod commit;
mod credential;
mod describe;
pub mod include_usage;
pub mod intake;
mod json;
mod key;
mod media;
mod model;
mod multipart;
mod outcome;
mod overrides;
pub(crate) mod time_left;
pub mod tokens;
mod upstream;
mod usage;

pub use aim::{Aim, Destination, Misfit};
pub use answer::Answer;
pub use asked::read_json;
pub(crate) use body::BodyFailed;
pub use body::CallBody;
pub use commit::{Commit, CommitBody};
pub use credential::{Credential, SecretPlaces};
pub use describe::{AttemptNumber, Blind, Call, Describe, Described, Estimate, Once, Priority, Read, Tagged};
pub use include_usage::IncludeUsageLayer;
pub use intake::IntakeLayer;
pub use key::Key;
pub use model::rewrite_model;
pub use outcome::{HttpResponse, Outcome, OutcomeBody, OutcomeFuture, OutcomeLayer, Outcomes};
pub use overrides::Overrides;
pub use upstream::Upstream;
pub use usage::Usage;
