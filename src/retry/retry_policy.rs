//! The ready-made policy.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::backoff::{Backoff, Jitter, between};
use super::budget::Budget;
use super::idempotency::KeyMaker;
use super::policy::{Attempt, Decision, Policy};
use super::request::Repeat;
use super::rule::Rule;
use crate::call::{Call, Described, Key, Read};
use crate::deadline::Deadline;
use crate::monitor::StopCause;
use crate::provider::HeadClassifier;
use crate::rng::Rng;
use crate::time::{self, Instant};
use crate::verdict::{Class, Classify, Reach, Verdict};

/// The ready-made policy: backoff, hints, patience and a budget, by the [`Verdict`] on each result.
///
/// Built by [`llm`](Self::llm), [`http`](Self::http) or [`builder`](Self::builder). Before it lets a call wait it asks, in
/// this order: is a failure of this class retried? is it safe to? are attempts left? is the wait within patience and the
/// deadline? is there a token in the budget? On the first *no* the caller gets the failure as it is.
///
/// `C` judges results, `R` reads and copies requests. A clone shares the budget, and draws other random numbers.
///
/// ```
/// use std::time::Duration;
/// use seawall::retry::RetryPolicy;
///
/// let policy = RetryPolicy::builder()
///     .attempts(5)
///     .ambiguous(true)
///     .patience(Duration::from_secs(20))
///     .build()?;
/// assert!(RetryPolicy::builder().attempts(0).build().is_err(), "the first attempt counts");
/// # let _ = policy;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct RetryPolicy<C = HeadClassifier, R = Described> {
    pub(super) settings: Settings,
    pub(super) budget: Option<Budget>,
    pub(super) keys: Option<KeyMaker>,
    pub(super) rng: Rng,
    pub(super) classifier: C,
    pub(super) repeat: R,
}

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) attempts: NonZeroU32,
    /// The most that any rule allows.
    pub(super) most_attempts: NonZeroU32,
    pub(super) backoff: Backoff,
    pub(super) rules: Vec<Rule>,
    pub(super) classes: Vec<Class>,
    /// Whether a failure after which the work may have been done is retried whatever the request is.
    pub(super) ambiguous: bool,
    pub(super) floor: Duration,
    pub(super) patience: Duration,
    pub(super) patience_with_another_target: Duration,
    pub(super) max_time: Duration,
    pub(super) attempt_header: Option<HeaderName>,
}

/// The least wait where the upstream asked for one, or is at a limit: so that "0 seconds" is no hot loop.
pub(super) const LEAST_AFTER_A_LIMIT: Duration = Duration::from_millis(100);

/// How much longer than the upstream asked a wait may be, so that its clients do not come back in one instant: a quarter,
/// and never more than 5 s.
const MOST_SPREAD: Duration = Duration::from_secs(5);

impl RetryPolicy {
    /// For completions: they have no side effect, so ambiguous failures are retried too. 3 attempts, 500 ms doubling up to
    /// 20 s with full jitter, and a budget of its own.
    ///
    /// A completion that was cut off may still be billed: the upstream may have done the work.
    #[must_use]
    pub fn llm() -> Self {
        Self::builder().ambiguous(true).build().expect("the defaults are within their bounds")
    }

    /// For any HTTP service, and the default: as [`llm`](Self::llm), but a failure after which the work may have been done is
    /// retried only where doing it twice is the same as doing it once: with an idempotent method or an `Idempotency-Key`.
    /// What was proven not to have been processed, and what was turned away by a limit, is retried with every method.
    #[must_use]
    pub fn http() -> Self {
        Self::builder().build().expect("the defaults are within their bounds")
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::http()
    }
}

impl<C, R> RetryPolicy<C, R> {
    /// The budget: a handle.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Whether the failure may be met by doing it again at all, whatever the time.
    fn helps(&self, verdict: Verdict, another_target: bool, idempotent: bool) -> Result<(), StopCause> {
        let class = verdict.class();
        if class == Class::Refused {
            return Err(StopCause::Refused);
        }
        if !self.settings.classes.contains(&class) {
            return Err(StopCause::NotRetried);
        }
        if class == Class::Stalled && another_target {
            return Err(StopCause::AnotherTarget);
        }
        // Who is at its limit has turned the request away, and not begun with it.
        let unprocessed = verdict.reach() != Reach::Unknown || class == Class::Throttled;
        if self.settings.ambiguous || idempotent || unprocessed {
            Ok(())
        } else {
            Err(StopCause::NotIdempotent)
        }
    }

    /// The most particular rule for this failure.
    fn rule(&self, verdict: Verdict, status: Option<StatusCode>) -> Option<&Rule> {
        let fitting = self.settings.rules.iter().filter_map(|rule| Some((rule.fit(verdict, status)?, rule)));
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, rule)| rule)
    }

    fn wait(&self, attempt: Asked<'_>) -> Wait {
        let Asked { number, waited, verdict, rule } = attempt;
        let backoff = rule.and_then(|rule| rule.backoff.as_ref()).unwrap_or(&self.settings.backoff);
        let own = backoff.delay(number, waited, &self.rng);
        let limited = verdict.class() == Class::Throttled || verdict.hint().is_some();
        let least = if limited { LEAST_AFTER_A_LIMIT } else { Duration::ZERO };
        let least = least.max(self.settings.floor).max(rule.and_then(|rule| rule.floor).unwrap_or_default());
        let demanded = verdict.hint().unwrap_or_default().max(least);
        let spread = if own >= demanded || backoff.jitter == Jitter::None {
            Duration::ZERO
        } else {
            between(Duration::ZERO, (demanded / 4).min(MOST_SPREAD), &self.rng)
        };
        Wait { least: own.max(demanded), spread }
    }

    /// Whether the wait is one that the call has the patience for.
    fn is_patient(&self, wait: Wait, verdict: Verdict, another_target: bool) -> bool {
        if another_target {
            return wait.least <= self.settings.patience_with_another_target;
        }
        verdict.hint().is_none_or(|hint| hint <= self.settings.patience)
    }
}

/// What a wait depends on.
#[derive(Clone, Copy)]
struct Asked<'a> {
    number: u32,
    waited: Option<Duration>,
    verdict: Verdict,
    rule: Option<&'a Rule>,
}

/// Timers fire at whole milliseconds, and so up to one late.
const TIMER: Duration = Duration::from_millis(1);

/// A wait, and by how much it is longer so that not all clients come back at once.
#[derive(Clone, Copy)]
struct Wait {
    least: Duration,
    spread: Duration,
}

impl Wait {
    /// The wait that ends before `end`: spread, or else as it is.
    fn before(self, now: Instant, end: Option<Instant>) -> Option<Duration> {
        let fits = |wait: &Duration| {
            let at = time::checked_add(now, wait.saturating_add(TIMER));
            at.is_some_and(|at| end.is_none_or(|end| at <= end))
        };
        [self.least.saturating_add(self.spread), self.least].into_iter().find(fits)
    }
}

impl<Req, Res, E, C, R> Policy<Req, Res, E> for RetryPolicy<C, R>
where
    C: Classify<Res, E>,
    R: Repeat<Req>,
{
    #[inline]
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict {
        self.classifier.classify(result)
    }

    #[inline]
    fn ends_with_success(&self) -> bool {
        true
    }

    #[inline]
    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision {
        if attempt.verdict().is_success() {
            return Decision::Stop(StopCause::Answered);
        }
        match self.weigh(attempt) {
            Ok(after) => {
                let next = attempt.number().saturating_add(1);
                self.mark(attempt.request_mut(), next);
                Decision::Again { after }
            }
            Err(cause) => Decision::Stop(cause),
        }
    }

    #[inline]
    fn copy(&self, request: &Req) -> Option<Req> {
        self.repeat.copy(request)
    }

    #[inline]
    fn keep(&self, request: &Req) -> Option<Req> {
        self.repeat.keep(request)
    }

    #[inline]
    fn unpack(&self, kept: &mut Req) {
        self.repeat.unpack(kept);
    }

    #[inline]
    fn max_attempts(&self) -> NonZeroU32 {
        self.settings.most_attempts
    }

    #[inline]
    fn share(&self, request: &Req) -> Option<NonZeroU32> {
        self.repeat.reader().call(request).and_then(|call| call.most_attempts)
    }

    #[inline]
    fn begin(&self, request: &mut Req) {
        if let Some(budget) = &self.budget {
            budget.arrive(upstream(self.repeat.reader().call(request)));
        }
        if let Some(keys) = &self.keys
            && let Some(headers) = self.repeat.reader().headers_mut(request)
        {
            keys.put(headers);
        }
        self.mark(request, 1);
    }

    #[inline]
    fn may_repeat(&self, request: &Req) -> bool {
        self.repeat.reader().may_repeat(request)
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        self.repeat.reader().deadline(request)
    }

    fn status(&self, response: &Res) -> Option<StatusCode> {
        self.classifier.status(response)
    }
}

impl<C, R> RetryPolicy<C, R> {
    /// The wait before the next attempt, or why there is none. The token is taken last: nothing is paid for a retry that is
    /// not made.
    #[cold]
    fn weigh<Req, Res, E>(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Result<Duration, StopCause>
    where
        C: Classify<Res, E>,
        R: Repeat<Req>,
    {
        let (verdict, reader) = (attempt.verdict(), self.repeat.reader());
        let call = reader.call(attempt.request());
        let another_target = call.is_some_and(|call| call.another_target);
        self.helps(verdict, another_target, reader.is_idempotent(attempt.request()))?;
        if !self.repeat.is_whole(attempt.request()) {
            return Err(StopCause::NotReplayable);
        }
        let status = attempt.result().ok().and_then(|response| self.classifier.status(response));
        let rule = self.rule(verdict, status);
        let attempts = rule.and_then(|rule| rule.attempts).unwrap_or(self.settings.attempts);
        if attempt.number() >= attempts.get() {
            return Err(StopCause::Attempts);
        }
        if verdict.reach() == Reach::Unprocessed && !attempt.memory.was_free {
            attempt.memory.was_free = true;
            return Ok(Duration::ZERO);
        }
        let asked = Asked { number: attempt.number(), waited: attempt.waited(), verdict, rule };
        let wait = self.wait(asked);
        if !self.is_patient(wait, verdict, another_target) {
            return Err(StopCause::Impatient);
        }
        let now = time::now();
        let by_time = time::checked_add(attempt.started().min(now), self.settings.max_time);
        let by_deadline = reader.deadline(attempt.request()).and_then(Deadline::instant);
        let end = [by_time, by_deadline].into_iter().flatten().min();
        let Some(after) = wait.before(now, end) else {
            let in_time = wait.before(now, by_time).is_some();
            return Err(if in_time { StopCause::Deadline } else { StopCause::Time });
        };
        match &self.budget {
            Some(budget) if !budget.try_take(upstream(call)) => Err(StopCause::Budget),
            _ => Ok(after),
        }
    }

    /// Writes into the request which attempt it is.
    #[inline]
    fn mark<Req>(&self, request: &mut Req, number: u32)
    where
        R: Repeat<Req>,
    {
        self.repeat.reader().set_attempt(request, number);
        if let Some(name) = &self.settings.attempt_header
            && let Some(headers) = self.repeat.reader().headers_mut(request)
        {
            headers.insert(name, HeaderValue::from(number));
        }
    }
}

#[inline]
fn upstream(call: Option<&Call>) -> Option<&Key> {
    call.and_then(|call| call.upstream.as_ref())
}

impl<C, R> fmt::Debug for RetryPolicy<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("attempts", &self.settings.attempts)
            .field("backoff", &self.settings.backoff)
            .field("rules", &self.settings.rules)
            .field("classes", &self.settings.classes)
            .field("ambiguous", &self.settings.ambiguous)
            .field("floor", &self.settings.floor)
            .field("patience", &self.settings.patience)
            .field("patience_with_another_target", &self.settings.patience_with_another_target)
            .field("max_time", &self.settings.max_time)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
