//! What the extensions of a request say of its call: of `http` and of tonic alike, whose extensions are the same type.

use http::Extensions;

use crate::call::{AttemptNumber, Call};
use crate::deadline::Deadline;

/// The earlier one of the call's own and the one that stands beside it.
pub(crate) fn deadline(extensions: &Extensions) -> Option<Deadline> {
    let own = extensions.get::<Deadline>().copied();
    match (own, extensions.get::<Call>().and_then(|call| call.deadline)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Into the call, or beside where there is none.
pub(crate) fn set_deadline(extensions: &mut Extensions, deadline: Deadline) {
    match extensions.get_mut::<Call>() {
        Some(call) => call.deadline = Some(deadline),
        None => drop(extensions.insert(deadline)),
    }
}

/// Into the call; without one only from the second attempt on, so that the first needs no room.
pub(crate) fn set_attempt(extensions: &mut Extensions, number: u32) {
    if let Some(call) = extensions.get_mut::<Call>() {
        call.attempt = Some(number);
    } else if number > 1 {
        extensions.insert(AttemptNumber(number));
    }
}
