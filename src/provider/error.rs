//! What a failed response means, by status, headers and the codes in its body.
//!
//! The status alone is not enough: 429 can be a limit by the minute, a spent credit or a request that never fits; 400
//! can be a used-up quota; 200 can be an error. So the *codes* of the body are read. Its sentences are not searched for
//! words, since they can quote what the user wrote; only where a provider gives no code at all is the beginning of its
//! own sentence compared.

mod codes;
mod said;

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

pub(crate) use said::Said;

use crate::verdict::{Class, Scope, Verdict};

/// The longest error body that is read, in bytes; a longer one is judged by its status and headers.
pub const BODY_LIMIT: usize = 64 * 1024;

/// What an error inside a stream or a 200 body means: there is no status that says it.
///
/// `event` is the event's JSON, or the error object inside it, or a bare text; `wall` is the time since the Unix epoch,
/// for waits that are told as a date. An error of which nothing is known is [`Class::Transient`].
pub(crate) fn in_stream(event: &Value, wall: Duration) -> Verdict {
    let _ = wall;
    let said = Said::read(event);
    judge(Some(&said), said.status(), None)
}

/// What an error means that is told by a bare code, as the name of an exception frame or of a finish reason.
pub(crate) fn of_code(code: &str) -> Verdict {
    codes::meaning(code).map_or(Verdict::new(Class::Transient), |meaning| meaning.verdict)
}

fn judge(said: Option<&Said<'_>>, status: Option<StatusCode>, errortype: Option<&str>) -> Verdict {
    let meaning = said.and_then(|said| said.meaning(errortype));
    match (status.map(of_status), meaning) {
        (_, Some(meaning)) if meaning.decides => meaning.verdict,
        (Some(verdict), Some(meaning)) if verdict.class() == meaning.verdict.class() => meaning.verdict,
        (Some(verdict), _) => verdict,
        (None, Some(meaning)) => meaning.verdict,
        (None, None) => Verdict::new(Class::Transient),
    }
}

/// The status alone, where a body was there to say more and did not.
fn of_status(status: StatusCode) -> Verdict {
    let verdict = Verdict::of_status(status);
    match status.as_u16() {
        // Nothing ties the limit to a model.
        429 => verdict.with_scope(Scope::Account),
        // A model or a tool behind the provider failed.
        424 => Verdict::new(Class::Transient),
        // The provider believes that its client went away.
        499 => Verdict::new(Class::Abandoned),
        _ => verdict,
    }
}
