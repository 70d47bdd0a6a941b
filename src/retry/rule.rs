//! What is different for some failures.

use std::num::NonZeroU32;
use std::time::Duration;

use http::StatusCode;

use super::backoff::Backoff;
use crate::config_error::ConfigError;
use crate::verdict::{Class, Reach, Verdict};

/// What is different for one status, for one class, or where nothing was sent. Of several rules that fit a failure the most
/// particular counts: status before connection before class; of two for the same, the later.
///
/// ```
/// use std::time::Duration;
/// use http::StatusCode;
/// use seawall::retry::{Backoff, RetryPolicy, Rule};
///
/// let policy = RetryPolicy::builder()
///     .rule(Rule::status(StatusCode::SERVICE_UNAVAILABLE).floor(Duration::from_secs(30)))
///     .rule(Rule::unsent().attempts(5).backoff(Backoff::exponential(Duration::from_secs(2))))
///     .build()?;
/// # Ok::<_, seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing until a policy has it"]
pub struct Rule {
    when: When,
    wanted: Option<u32>,
    pub(super) attempts: Option<NonZeroU32>,
    pub(super) backoff: Option<Backoff>,
    pub(super) floor: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Status(StatusCode),
    Unsent,
    Class(Class),
}

impl Rule {
    /// For responses of this status. The policy's classifier must know statuses, as the ready-made ones over HTTP do.
    pub fn status(status: StatusCode) -> Self {
        Self::of(When::Status(status))
    }

    /// Where nothing was sent: no connection was made.
    pub fn unsent() -> Self {
        Self::of(When::Unsent)
    }

    /// For failures of this class.
    pub fn class(class: Class) -> Self {
        Self::of(When::Class(class))
    }

    fn of(when: When) -> Self {
        Self { when, wanted: None, attempts: None, backoff: None, floor: None }
    }

    /// So many attempts in all, the first one included, instead of the policy's number.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.wanted = Some(attempts);
        self.attempts = NonZeroU32::new(attempts);
        self
    }

    /// Another backoff.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Never a shorter wait, whatever the backoff says.
    pub fn floor(mut self, floor: Duration) -> Self {
        self.floor = Some(floor);
        self
    }

    /// How particular the rule is for this failure, if it is one for it.
    pub(super) fn fit(&self, verdict: Verdict, status: Option<StatusCode>) -> Option<u8> {
        match self.when {
            When::Status(of) => (status == Some(of)).then_some(2),
            When::Unsent => (verdict.reach() == Reach::Unsent).then_some(1),
            When::Class(of) => (verdict.class() == of).then_some(0),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.wanted == Some(0) {
            return Err(ConfigError::new("attempts", "must not be zero"));
        }
        self.backoff
            .as_ref()
            .map_or(Ok(()), |backoff| backoff.check().map_err(|error| error.under("backoff")))
    }
}
