//! Where threads leave what they record: each at a place of its own, so that they do not meet.
//!
//! A record is put into a small buffer under a lock that other threads hardly ever want; when it is full, or somebody
//! asks for figures, the records go into the book. So a call costs a push, and no reader ever sees half a record.

use super::counts::{Charge, Done};
use crate::refusal::RefusalKind;
pub(super) use crate::stripes::thread_number;

/// One thing that happened at one instant, in nanoseconds since the monitor's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) at: u64,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Call(Done),
    /// An attempt at the target of this number.
    Attempt(u16, Done),
    /// An attempt at this target was charged.
    Charged(u16, Charge),
    /// The layer of this number refused.
    Refused(u16, RefusalKind),
}

/// From this many records on, a thread puts them into the book if nobody else is at it.
pub(super) const MANY: usize = 128;
/// No more than this many wait.
pub(super) const MOST: usize = 512;
