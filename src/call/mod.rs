//! What a call asks for and what became of it: the facts that layers pass on.
//!
//! A request is read once and a response is read once; every other layer uses what was written down here. Layers reach
//! the facts of a request through [`Describe`] and those of a response through [`Answer`], so that the same layers
//! serve `http` and a library's own types.
//!
//! | | stands | does |
//! |---|---|---|
//! | [`IntakeLayer`] | outermost | reads the request once into its [`Call`], and makes its body a [`CallBody`] that can be sent again: [`intake`] |
//! | [`OutcomeLayer`] | innermost | reads the response once into an [`Outcome`]: verdict, times, usage, the end |
//! | [`IncludeUsageLayer`] | above the outcome layer, if wanted | asks streams for their usage: [`include_usage`] |
//! | [`Aim`] | the fallback asks it | sends the same request to another URL, model and credential |
//!
//! Neither layer decides anything, takes anything or raises events; dropping a call drops what they have read of it.
//!
//! # Defaults
//!
//! | setting | default | why |
//! |---|---|---|
//! | [`IntakeLayer::limit`] | 32 MiB are collected | the largest requests that providers take |
//! | [`IntakeLayer::record`] | 64 KiB of what is not collected are kept while they are sent | a small upload can be sent again |
//! | bytes of an error that are read | 64 KiB | its code stands at the beginning |
//! | [`OutcomeLayer::error_body_time`] | 5 s | providers send an error's body with its head |
//! | [`OutcomeLayer::grpc_frame_time`] | zero: no head is held | some clients wait for the head before they send |
//!
//! # Own types
//!
//! ```
//! use seawall::call::{Answer, Call, Describe, Estimate, Usage};
//!
//! struct Prompt { text: String, call: Call }
//!
//! impl Prompt {
//!     fn new(model: &str, text: &str) -> Self {
//!         let mut call = Call::default();
//!         call.model = Some(model.into());
//!         call.estimate = Some(Estimate::new(text.len() as u64 / 4, text.len() as u64));
//!         Self { text: text.to_owned(), call }
//!     }
//! }
//!
//! impl Describe for Prompt {
//!     fn call(&self) -> Option<&Call> { Some(&self.call) }
//!     fn call_mut(&mut self) -> Option<&mut Call> { Some(&mut self.call) }
//! }
//!
//! struct Reply { text: String, used: Usage }
//!
//! impl Answer for Reply {
//!     fn usage(&self) -> Option<Usage> { Some(self.used) }
//! }
//! # let prompt = Prompt::new("m", "hello");
//! # assert_eq!(prompt.call().and_then(|call| call.estimate).unwrap().input_bytes, 5);
//! # let _ = (prompt.text, Reply { text: String::new(), used: Usage::default() }.text);
//! ```

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
pub(crate) mod noted;
mod outcome;
mod overrides;
pub(crate) mod packed;
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
pub(crate) use key::same_text;
pub use model::rewrite_model;
pub use outcome::{HttpResponse, Outcome, OutcomeBody, OutcomeFuture, OutcomeLayer, Outcomes};
pub use overrides::Overrides;
pub use upstream::Upstream;
pub use usage::Usage;
