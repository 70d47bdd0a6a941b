//! Composable `tower` layers that keep calls to LLM providers up and their bill down.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate self as seawall;

pub mod call;
mod config_error;
mod deadline;
pub mod gate;
pub mod monitor;
pub mod provider;
pub mod refusal;
mod sync;
pub mod time;
pub mod token_bucket;
mod verdict;

pub use config_error::ConfigError;
pub use deadline::Deadline;
pub use refusal::{BoxError, Failure, Fault, Phase, Refusal, RefusalKind};
pub use verdict::{Class, Classify, Reach, Reason, Scope, StatusClassifier, Verdict, classify};
