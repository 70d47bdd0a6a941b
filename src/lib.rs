//! Composable `tower` layers that keep calls to LLM providers up and their bill down.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod call;
mod calls;
mod config_error;
pub mod cost_guard;
mod deadline;
pub mod docs;
pub mod gate;
pub mod monitor;
pub mod provider;
pub mod refusal;
mod sync;
pub mod time;
pub mod timeout;
mod verdict;

pub use calls::{Calls, calls};
pub use config_error::ConfigError;
pub use deadline::Deadline;
pub use refusal::{BoxError, Failure, Fault, Phase, Refusal, RefusalKind};
pub use verdict::{Class, Classify, Reach, Reason, Scope, StatusClassifier, Verdict, classify};
