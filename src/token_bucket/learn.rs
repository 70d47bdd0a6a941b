//! What a response says about the upstream's limits.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response};

use crate::call::Usage;
use crate::token_bucket::provider_limits::ProviderLimits;
use crate::verdict::{Class, Classify, StatusClassifier, Verdict};

/// Something that the head of a response says about limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Said<'a> {
    /// The upstream asks everybody to wait this long.
    Wait(Duration),
    /// The state of one limit.
    Limit(Stated<'a>),
    /// What this response has used, all of it: the call is settled to that at once.
    Used(&'a Usage),
}

/// What an upstream states of one limit. `None` is "not said".
///
/// A limit of 0, more left than the limit, or absurd numbers are nonsense and change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated<'a> {
    /// The name of the dimension that it is about: `requests`, `tokens`, or your own.
    pub dimension: &'a str,
    /// The window it is for. A limit whose window is not the quota's own period says nothing about the rate; what is left
    /// of a longer one bounds what is left here.
    pub window: Option<Duration>,
    /// How many a window.
    pub limit: Option<u64>,
    /// How many are left.
    pub remaining: Option<u64>,
}

/// Numbers above this are nonsense.
const LARGEST: u64 = 1_000_000_000_000_000;
/// Waits above this are nonsense, and most likely a date that was read as a number.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

impl<'a> Stated<'a> {
    /// Of this dimension nothing is said yet.
    #[must_use]
    pub const fn new(dimension: &'a str) -> Self {
        Self { dimension, window: None, limit: None, remaining: None }
    }

    /// Whether it can be true.
    pub(super) fn is_sound(&self) -> bool {
        let left_of = self.limit.zip(self.remaining);
        self.limit.is_none_or(|limit| limit > 0 && limit <= LARGEST)
            && self.remaining.is_none_or(|remaining| remaining <= LARGEST)
            && left_of.is_none_or(|(limit, remaining)| remaining <= limit)
            && self.window.is_none_or(|window| !window.is_zero())
    }
}

/// A wait that can be meant.
pub(super) fn sound_wait(wait: Duration) -> Option<Duration> {
    (!wait.is_zero() && wait <= LONGEST).then_some(wait)
}

/// Reads the upstream's limits from a response.
///
/// Called once a response, when its head is there, outside any lock; a panic harms that call alone. Closures
/// `Fn(&Res, Verdict, &mut dyn FnMut(Said<'_>))` are readers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot read limits from `{Res}`",
    label = "no reader of limits for this response type",
    note = "the default reads an `http::Response`; for your own type call `.classify(..)`, which reads none, \
            and then `.limits(..)` with a reader of your own"
)]
pub trait ReadLimits<Res> {
    /// Says all that the response says. `verdict` is what it means.
    fn read(&self, response: &Res, verdict: Verdict, say: &mut dyn FnMut(Said<'_>));
}

impl<Res, F> ReadLimits<Res> for F
where
    F: Fn(&Res, Verdict, &mut dyn FnMut(Said<'_>)),
{
    fn read(&self, response: &Res, verdict: Verdict, say: &mut dyn FnMut(Said<'_>)) {
        self(response, verdict, say);
    }
}

/// Reads nothing. What a verdict's own hint says still counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLimits;

impl<Res> ReadLimits<Res> for NoLimits {
    fn read(&self, _response: &Res, _verdict: Verdict, _say: &mut dyn FnMut(Said<'_>)) {}
}

/// Reads `retry-after-ms` and `retry-after` of throttled responses whose verdict has no hint of its own, and nothing
/// else: for upstreams whose other headers are not to be believed.
///
/// Plain decimals only, rounded up; the longest of several under one name. Zero, negative and malformed values, and
/// waits of more than a week, are no information.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryAfter;

impl<B> ReadLimits<Response<B>> for RetryAfter {
    fn read(&self, response: &Response<B>, verdict: Verdict, say: &mut dyn FnMut(Said<'_>)) {
        if verdict.class() != Class::Throttled || verdict.hint().is_some() {
            return;
        }
        let headers = response.headers();
        let millis = longest(headers, "retry-after-ms", 1_000_000);
        if let Some(wait) = millis.or_else(|| longest(headers, "retry-after", 1_000_000_000)) {
            say(Said::Wait(wait));
        }
    }
}

fn longest(headers: &HeaderMap, name: &str, unit_nanos: u64) -> Option<Duration> {
    let waits = headers.get_all(name).iter().filter_map(|value| decimal(value, unit_nanos));
    waits.filter_map(sound_wait).max()
}

/// A plain decimal number of units, rounded up to the nanosecond.
fn decimal(value: &HeaderValue, unit_nanos: u64) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits =
        |text: &str| !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    let nanos = (number * u128::from(unit_nanos)).div_ceil(scale);
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// What the bucket makes of a response: its verdict, and the limits that it states.
pub trait Feedback<Res, E> {
    /// Reads a result.
    fn feedback(&self, result: Result<&Res, &E>, say: &mut dyn FnMut(Said<'_>)) -> Verdict;
}

/// Feedback from a classifier and a reader of limits.
#[derive(Clone, Copy, Default)]
pub struct Upstream<C = StatusClassifier, L = ProviderLimits> {
    pub(super) classifier: C,
    pub(super) limits: L,
}

impl<Res, E, C, L> Feedback<Res, E> for Upstream<C, L>
where
    C: Classify<Res, E>,
    L: ReadLimits<Res>,
{
    fn feedback(&self, result: Result<&Res, &E>, say: &mut dyn FnMut(Said<'_>)) -> Verdict {
        let verdict = self.classifier.classify(result);
        if let Ok(response) = result {
            self.limits.read(response, verdict, say);
        }
        verdict
    }
}

impl<C, L> fmt::Debug for Upstream<C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}
