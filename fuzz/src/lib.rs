//! What the fuzz targets share: how an input becomes an answer, a body in frames or a request, and what must hold of
//! whatever is read from it.

mod answer;
mod body;
mod frames;

use std::time::Duration;

use seawall::provider::hint;
use seawall::{Class, Verdict};

pub use answer::Answer;
pub use body::{Pieces, intake, read_to_end};
pub use frames::Frames;

/// 29 Nov 2026 12:00:00 GMT since the Unix epoch, which most wire samples carry as their `Date`.
pub const WALL: Duration = Duration::from_secs(1_795_953_600);

/// A wait that is told is a whole number of milliseconds, never zero and never absurd.
///
/// # Panics
///
/// If it is none of these.
pub fn assert_wait(wait: Option<Duration>) {
    let Some(wait) = wait else { return };
    assert!(!wait.is_zero() && wait <= hint::LONGEST, "{wait:?}");
    assert_eq!(wait.subsec_nanos() % 1_000_000, 0, "{wait:?}");
}

/// What holds of every verdict over an answer.
///
/// # Panics
///
/// If something else is said.
pub fn assert_verdict(verdict: &Verdict) {
    assert!(verdict.hint().is_none_or(|hint| hint <= hint::LONGEST), "{verdict:?}");
    assert!(verdict.class() != Class::Success || verdict.hint().is_none(), "{verdict:?}");
}
