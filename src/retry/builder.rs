//! How the ready-made policy is built.

use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::backoff::Backoff;
use super::budget::Budget;
use super::idempotency::KeyMaker;
use super::policy::DEFAULT_ATTEMPTS;
use super::request::CopyWith;
use super::retry_policy::{LEAST_AFTER_A_LIMIT, RetryPolicy, Settings};
use super::rule::Rule;
use crate::call::{Blind, Described};
use crate::config_error::ConfigError;
use crate::provider::HeadClassifier;
use crate::rng::Rng;
use crate::verdict::Class;

/// The settings of a [`RetryPolicy`]; each setter says its default.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Clone, Debug)]
pub struct RetryPolicyBuilder<C = HeadClassifier, R = Described> {
    attempts: u32,
    backoff: Backoff,
    rules: Vec<Rule>,
    classes: Vec<Class>,
    ambiguous: bool,
    floor: Option<Duration>,
    patience: Duration,
    patience_with_another_target: Duration,
    max_time: Duration,
    budget: Money,
    idempotency_key: Option<HeaderName>,
    attempt_header: Option<HeaderName>,
    seed: Option<u64>,
    classifier: C,
    repeat: R,
}

/// Which budget, if any.
#[derive(Clone, Debug)]
enum Money {
    Own,
    Given(Budget),
    None,
}

/// The base of the backoff: short, since a fallback waits behind it.
const BASE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_WITH_ANOTHER_TARGET: Duration = Duration::from_secs(3);

impl RetryPolicy {
    /// With other settings than those of [`http`](Self::http), which the builder begins with.
    pub fn builder() -> RetryPolicyBuilder {
        RetryPolicyBuilder {
            attempts: DEFAULT_ATTEMPTS.get(),
            backoff: Backoff::exponential(BASE),
            rules: Vec::new(),
            classes: vec![Class::Throttled, Class::Transient, Class::Stalled],
            ambiguous: false,
            floor: None,
            patience: PATIENCE,
            patience_with_another_target: PATIENCE_WITH_ANOTHER_TARGET,
            max_time: Duration::MAX,
            budget: Money::Own,
            idempotency_key: None,
            attempt_header: None,
            seed: None,
            classifier: HeadClassifier,
            repeat: Described,
        }
    }
}

impl<C, R> RetryPolicyBuilder<C, R> {
    /// At most this many attempts, the first one included: 3 by default, 1 for no retry, never 0.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// How the waits grow: 500 ms, doubling up to 20 s, with full jitter by default.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Something different for some failures.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Waits for servers that take long to recover, as some gateways document them: from 5 s after 500, 10 s after 502, 30 s
    /// after 503, 15 s after 504, each doubling up to 120 s, and never shorter than
    /// it begins.
    ///
    /// They are longer than the patience while another target is left: there the fallback goes on at once.
    pub fn slow_recovery(mut self) -> Self {
        let slow = [
            (StatusCode::INTERNAL_SERVER_ERROR, 5),
            (StatusCode::BAD_GATEWAY, 10),
            (StatusCode::SERVICE_UNAVAILABLE, 30),
            (StatusCode::GATEWAY_TIMEOUT, 15),
        ];
        for (status, seconds) in slow {
            let backoff = Backoff::exponential(Duration::from_secs(seconds)).cap(Duration::from_secs(120));
            let rule = Rule::status(status).backoff(backoff).floor(Duration::from_secs(seconds));
            self.rules.push(rule);
        }
        self
    }

    /// Tries a connection that cannot be made 5 times in all, from 2 s doubling up to the usual 20 s.
    pub fn patient_connect(self) -> Self {
        self.rule(Rule::unsent().attempts(5).backoff(Backoff::exponential(Duration::from_secs(2))))
    }

    /// Which classes of failures are retried: [`Throttled`](Class::Throttled), [`Transient`](Class::Transient) and
    /// [`Stalled`](Class::Stalled) by default, the last only where no other target is left.
    /// [`Refused`](Class::Refused) is not retried even if it is named.
    pub fn classes(mut self, classes: impl IntoIterator<Item = Class>) -> Self {
        self.classes = classes.into_iter().collect();
        self
    }

    /// Whether failures after which the work may have been done are retried even if doing it twice is not the same as doing
    /// it once. `false` by default; `true` in [`RetryPolicy::llm`].
    pub fn ambiguous(mut self, ambiguous: bool) -> Self {
        self.ambiguous = ambiguous;
        self
    }

    /// The shortest wait: by default a fifth of the backoff's base, at most 100 ms. After a limit or a hint it is at least
    /// 100 ms in any case.
    pub fn floor(mut self, floor: Duration) -> Self {
        self.floor = Some(floor);
        self
    }

    /// The longest wait asked for by the upstream that is waited out: 60 s by default. Above it the call stops at once, with
    /// the upstream's answer as it is.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same, and for the own backoff too, while another target is left: 3 s by default.
    pub fn patience_with_another_target(mut self, patience: Duration) -> Self {
        self.patience_with_another_target = patience;
        self
    }

    /// The longest time from the beginning of a call to the beginning of its last attempt; unlimited by default. The request's
    /// own [`Deadline`](crate::Deadline) holds in any case.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.max_time = time;
        self
    }

    /// A budget to share with other layers. By default the policy has one of its own, with the default terms.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Money::Given(budget);
        self
    }

    /// No budget: in an outage every call is made as often as attempts are allowed.
    pub fn no_budget(mut self) -> Self {
        self.budget = Money::None;
        self
    }

    /// Puts an `Idempotency-Key` into each call that has none: 32 random hexadecimal digits, the same for all its attempts.
    /// Off by default. Only where the upstream is known to heed it, since it makes every method count as idempotent; no
    /// provider of completions documents that it does.
    pub fn idempotency_key(self) -> Self {
        self.idempotency_key_in(HeaderName::from_static("idempotency-key"))
    }

    /// The same under another name. A caller's own key under that name is kept.
    pub fn idempotency_key_in(mut self, header: HeaderName) -> Self {
        self.idempotency_key = Some(header);
        self
    }

    /// Tells the upstream in this header which attempt it is, from 1. Off by default.
    pub fn attempt_header(mut self, header: HeaderName) -> Self {
        self.attempt_header = Some(header);
        self
    }

    /// Draws the same random numbers in every run: for tests. Never the same for two clones of the policy.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Judges results otherwise than by status and headers, or results of an own type: see [`Classify`](crate::Classify).
    pub fn classify<T>(self, classifier: T) -> RetryPolicyBuilder<T, R> {
        self.map(|_, repeat| (classifier, repeat))
    }

    /// Reads nothing from a request: no deadline, no upstream, no headers. For request types that are only `Clone`.
    pub fn blind(self) -> RetryPolicyBuilder<C, Blind> {
        self.map(|classifier, _| (classifier, Blind))
    }

    /// Copies requests by a closure: for those that are not `Clone`, or only at times. Where it answers `None`, the request
    /// is sent once.
    pub fn copy_with<Req, F>(self, copy: F) -> RetryPolicyBuilder<C, CopyWith<R, F>>
    where
        F: Fn(&Req) -> Option<Req>,
    {
        self.map(|classifier, reader| (classifier, CopyWith { reader, copy }))
    }

    fn map<T, Q>(self, map: impl FnOnce(C, R) -> (T, Q)) -> RetryPolicyBuilder<T, Q> {
        let (classifier, repeat) = map(self.classifier, self.repeat);
        RetryPolicyBuilder {
            classifier,
            repeat,
            attempts: self.attempts,
            backoff: self.backoff,
            rules: self.rules,
            classes: self.classes,
            ambiguous: self.ambiguous,
            floor: self.floor,
            patience: self.patience,
            patience_with_another_target: self.patience_with_another_target,
            max_time: self.max_time,
            budget: self.budget,
            idempotency_key: self.idempotency_key,
            attempt_header: self.attempt_header,
            seed: self.seed,
        }
    }

    /// The policy.
    ///
    /// # Errors
    ///
    /// `attempts` is zero, here or in a rule; the base of a backoff is zero or over its cap; its factor is no number of at
    /// least 1; its jitter is no share from 0 to 1; `floor` is over the cap.
    pub fn build(self) -> Result<RetryPolicy<C, R>, ConfigError> {
        let Some(attempts) = NonZeroU32::new(self.attempts) else {
            return Err(ConfigError::new("attempts", "must not be zero: it counts the first one too"));
        };
        self.backoff.check().map_err(|error| error.under("backoff"))?;
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check().map_err(|error| error.under(&format!("rules[{index}]")))?;
        }
        let floor = self.floor.unwrap_or_else(|| (self.backoff.base / 5).min(LEAST_AFTER_A_LIMIT));
        if floor > self.backoff.cap {
            return Err(ConfigError::new("floor", "must not be longer than the backoff's cap"));
        }
        let settings = Settings {
            attempts,
            most_attempts: self.rules.iter().filter_map(|rule| rule.attempts).fold(attempts, NonZeroU32::max),
            backoff: self.backoff,
            rules: self.rules,
            classes: self.classes,
            ambiguous: self.ambiguous,
            floor,
            patience: self.patience,
            patience_with_another_target: self.patience_with_another_target,
            max_time: self.max_time,
            attempt_header: self.attempt_header,
        };
        let budget = match self.budget {
            Money::Own => Some(Budget::default()),
            Money::Given(budget) => Some(budget),
            Money::None => None,
        };
        Ok(RetryPolicy {
            settings,
            budget,
            keys: self.idempotency_key.map(KeyMaker::new),
            rng: self.seed.map_or_else(Rng::fresh, Rng::seeded),
            classifier: self.classifier,
            repeat: self.repeat,
        })
    }
}
