//! One retry policy an upstream, from its section.

use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::call::{Describe, Key};
use crate::config_error::ConfigError;
use crate::deadline::Deadline;
use crate::retry::{Attempt, Backoff, Budget, Decision, Jitter, Policy, RetryPolicy};
use crate::verdict::Verdict;

use super::sections::{JitterName, RetryBudgetSection, RetryPreset, RetrySection};

/// The policy of each upstream that has its own, and the one of all others.
///
/// All share one budget, which keeps an account for each upstream anyway.
#[derive(Clone, Debug)]
pub struct UpstreamPolicies {
    pub(super) common: RetryPolicy,
    pub(super) own: Vec<(Key, RetryPolicy)>,
}

impl UpstreamPolicies {
    fn of<Req: Describe>(&self, request: &Req) -> &RetryPolicy {
        let upstream = request.call().and_then(|call| call.upstream.as_ref());
        let own = upstream.and_then(|upstream| self.own.iter().find(|(name, _)| name == upstream));
        own.map_or(&self.common, |(_, policy)| policy)
    }

    /// The budget that all of them share.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        self.common.budget()
    }
}

impl<Req, Res, E> Policy<Req, Res, E> for UpstreamPolicies
where
    Req: Describe,
    RetryPolicy: Policy<Req, Res, E>,
{
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict {
        self.common.verdict(result)
    }

    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision {
        if attempt.verdict().is_success() {
            return self.common.decide(attempt);
        }
        self.of(attempt.request()).decide(attempt)
    }

    fn ends_with_success(&self) -> bool {
        Policy::<Req, Res, E>::ends_with_success(&self.common)
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        self.of(request).copy(request)
    }

    fn keep(&self, request: &Req) -> Option<Req> {
        self.of(request).keep(request)
    }

    fn unpack(&self, kept: &mut Req) {
        // Each copies alike.
        self.common.unpack(kept);
    }

    /// The most that any of them allows: each decides for itself when it has had enough.
    fn max_attempts(&self) -> NonZeroU32 {
        let most = |policy: &RetryPolicy| Policy::<Req, Res, E>::max_attempts(policy);
        self.own.iter().map(|(_, policy)| most(policy)).fold(most(&self.common), NonZeroU32::max)
    }

    fn share(&self, request: &Req) -> Option<NonZeroU32> {
        Policy::<Req, Res, E>::share(&self.common, request)
    }

    fn begin(&self, request: &mut Req) {
        self.of(request).begin(request);
    }

    fn may_repeat(&self, request: &Req) -> bool {
        Policy::<Req, Res, E>::may_repeat(self.of(request), request)
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        Policy::<Req, Res, E>::deadline(self.of(request), request)
    }

    fn status(&self, response: &Res) -> Option<StatusCode> {
        Policy::<Req, Res, E>::status(&self.common, response)
    }
}

impl RetryBudgetSection {
    pub(super) fn budget(&self) -> Result<Budget, ConfigError> {
        let mut budget = Budget::builder();
        if let Some(ratio) = self.ratio {
            budget = budget.ratio(ratio);
        }
        if let Some(reserve) = self.reserve {
            budget = budget.reserve(reserve);
        }
        budget.build()
    }
}

impl RetrySection {
    fn backoff(&self) -> Backoff {
        let mut backoff = Backoff::exponential(self.base.map_or(Duration::from_millis(500), |time| time.0));
        if let Some(cap) = self.cap {
            backoff = backoff.cap(cap.0);
        }
        if let Some(factor) = self.factor {
            backoff = backoff.factor(factor);
        }
        match self.jitter {
            None => backoff,
            Some(JitterName::None) => backoff.jitter(Jitter::None),
            Some(JitterName::Full) => backoff.jitter(Jitter::Full),
            Some(JitterName::Equal) => backoff.jitter(Jitter::Equal),
            Some(JitterName::Decorrelated) => backoff.jitter(Jitter::Decorrelated),
        }
    }

    pub(super) fn policy(&self, budget: &Budget) -> Result<RetryPolicy, ConfigError> {
        let ambiguous = self.preset != Some(RetryPreset::Http);
        let mut policy =
            RetryPolicy::builder().ambiguous(ambiguous).backoff(self.backoff()).budget(budget.clone());
        if let Some(attempts) = self.attempts {
            policy = policy.attempts(attempts);
        }
        if let Some(time) = self.floor {
            policy = policy.floor(time.0);
        }
        if let Some(time) = self.patience {
            policy = policy.patience(time.0);
        }
        if let Some(time) = self.patience_with_another_target {
            policy = policy.patience_with_another_target(time.0);
        }
        if let Some(time) = self.max_time {
            policy = policy.max_time(time.0);
        }
        if self.slow_recovery == Some(true) {
            policy = policy.slow_recovery();
        }
        if let Some(name) = &self.idempotency_key {
            policy = policy.idempotency_key_in(header("idempotency_key", name)?);
        }
        if let Some(name) = &self.attempt_header {
            policy = policy.attempt_header(header("attempt_header", name)?);
        }
        policy.build().map_err(|error| match error.field().strip_prefix("backoff.") {
            Some(field) => ConfigError::new(field.to_owned(), error.problem().to_owned()),
            None => error,
        })
    }
}

fn header(field: &'static str, name: &str) -> Result<HeaderName, ConfigError> {
    name.parse().map_err(|_| ConfigError::new(field, "is not the name of a header"))
}
