//! The limits that an upstream states in its headers.
//!
//! [`Limits::read`] knows the headers of OpenAI, Azure, Anthropic, Groq, Mistral, Cerebras, Cohere, Together, Fireworks
//! and xAI, the generic `X-RateLimit-*` and `X-Rate-Limit-*`, and the IETF drafts up to 10. It reads a head in one
//! pass and allocates nothing.
//!
//! # A reset is a level or a wait
//!
//! OpenAI, Groq and Anthropic say when the bucket is *full* again ([`Reset::Full`]). That is no time to wait: with 499
//! of 500 requests a minute left it is 120 ms, and with none left a whole minute, though the next request fits after
//! 120 ms. But it tells how fast the bucket fills, and so whether a limit is one of a minute or of a day. Others say
//! when a window begins anew ([`Reset::Window`]), and that is a wait.
//!
//! ```
//! use std::time::Duration;
//! use seawall::provider::limits::{Dimension, Limits};
//!
//! let mut headers = http::HeaderMap::new();
//! headers.insert("x-ratelimit-limit-requests", "500".parse().unwrap());
//! headers.insert("x-ratelimit-remaining-requests", "499".parse().unwrap());
//! headers.insert("x-ratelimit-reset-requests", "120ms".parse().unwrap());
//!
//! let limits = Limits::read(&headers, Duration::from_secs(1_795_953_600));
//! let requests = limits.of(Dimension::Requests).next().expect("they are stated");
//! assert_eq!(requests.window, Some(Duration::from_secs(60)));
//! ```

mod field;
mod name;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::HeaderMap;

use super::hint;
use super::hint::value::{self, Time};
use name::{Family, Name, What};

/// Limits beyond these are not kept; no provider states as many.
const MOST: usize = 12;
/// Numbers above this are nonsense.
const LARGEST: u64 = 1_000_000_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dimension {
    /// Requests.
    Requests,
    /// Tokens in and out.
    Tokens,
    /// Tokens in. Whether cached ones count is the provider's rule.
    InputTokens,
    /// Tokens in that did not come from a cache.
    UncachedInputTokens,
    /// Tokens out.
    OutputTokens,
}

/// What a reset says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reset {
    /// After this time the bucket is full. The next request fits much earlier.
    Full(Duration),
    /// After this time the window begins anew; until then what is left is all there is.
    Window(Duration),
}

/// One limit. `None` is "not said"; what cannot be (−1, a limit of 0, more left than the limit) is not said either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// What it counts.
    pub dimension: Dimension,
    /// The window it is for: from the name, the policy, or from how fast the bucket fills.
    pub window: Option<Duration>,
    /// How many a window.
    pub limit: Option<u64>,
    /// How many are left.
    pub remaining: Option<u64>,
    /// When that changes.
    pub reset: Option<Reset>,
}

/// How fast a bucket fills: so many units in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refill {
    /// Units, at least one.
    pub units: u64,
    /// In this time, never zero.
    pub per: Duration,
}

/// All limits that a head states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    all: [Option<Limit>; MOST],
    over_limit: bool,
}

impl Limits {
    /// Reads the limits from a head. `wall` is the time since the Unix epoch, for resets that are dates; the response's
    /// own `Date` goes before it.
    #[must_use]
    pub fn read(headers: &HeaderMap, wall: Duration) -> Self {
        Self::read_at(headers, hint::now(headers, wall))
    }

    /// Whether any header's name begins as those do that are read: a quick look.
    pub(crate) fn may_be_in(headers: &HeaderMap) -> bool {
        const BEGINNINGS: [&str; 6] =
            ["x-rate", "rate", "anthropic-rate", "x-token", "x-endpoint", "x-trial"];
        headers.keys().any(|name| BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning)))
    }

    /// The same, at a time that was read from the head.
    pub(crate) fn read_at(headers: &HeaderMap, now: Duration) -> Self {
        let mut drafts: [Option<Draft>; MOST] = [None; MOST];
        let mut limits = Self { all: [None; MOST], over_limit: false };
        let (mut by_the_second, mut fields) = (false, false);
        for (header, value) in headers {
            let header = header.as_str();
            match header {
                "x-ratelimit-over-limit" => limits.over_limit |= value.as_bytes() == b"yes",
                "ratelimit" | "ratelimit-policy" => fields = true,
                _ => {
                    let Some(name) = Name::read(header) else { continue };
                    by_the_second |= name.family == Family::TokenLimit;
                    if let Some(draft) = Draft::of(&mut drafts, &name) {
                        draft.take(&name, value, now);
                    }
                }
            }
        }
        for draft in drafts.into_iter().flatten() {
            limits.add(draft.finish(by_the_second));
        }
        if fields {
            let lines = |name| headers.get_all(name).iter().map(http::HeaderValue::as_bytes);
            field::read(&mut limits, lines("ratelimit"), lines("ratelimit-policy"));
        }
        limits
    }

    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.all.iter().flatten()
    }

    /// Those of one dimension: there can be several, for several windows.
    pub fn of(&self, dimension: Dimension) -> impl Iterator<Item = &Limit> {
        self.iter().filter(move |limit| limit.dimension == dimension)
    }

    /// Whether none is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.iter().all(Option::is_none)
    }

    /// Whether the upstream says that it served this call although it was over its limit (`x-ratelimit-over-limit`).
    #[must_use]
    pub const fn is_over_limit(&self) -> bool {
        self.over_limit
    }

    fn add(&mut self, limit: Limit) {
        let limit = limit.checked();
        let says_nothing = limit.limit.is_none() && limit.remaining.is_none() && limit.reset.is_none();
        if says_nothing {
            return;
        }
        if let Some(slot) = self.all.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(limit);
        }
    }
}

impl Limit {
    /// How fast the bucket fills, where it can be told: the limit over its window, or else what is used over the time
    /// until it is full.
    #[must_use]
    pub fn refill(&self) -> Option<Refill> {
        if let (Some(units), Some(per)) = (self.limit, self.window) {
            return Some(Refill { units, per });
        }
        let (Some(limit), Some(remaining), Some(Reset::Full(per))) = (self.limit, self.remaining, self.reset)
        else {
            return None;
        };
        let units = limit.checked_sub(remaining)?;
        (units > 0 && per >= COARSEST).then_some(Refill { units, per })
    }

    /// How long to wait because of this limit: only if nothing is left, and only as far as that can be told.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if self.remaining.is_some_and(|remaining| remaining > 0) {
            return None;
        }
        match self.reset? {
            Reset::Window(wait) => Some(wait),
            // The next request fits when one is back. How many tokens the next one needs is not known here.
            Reset::Full(_) if self.dimension == Dimension::Requests && self.remaining == Some(0) => {
                let refill = self.refill()?;
                let nanos = refill.per.as_nanos().div_ceil(u128::from(refill.units));
                Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
            }
            Reset::Full(_) => None,
        }
    }

    /// Without what cannot be.
    fn checked(mut self) -> Self {
        let sane = |number: &u64| *number <= LARGEST;
        self.limit = self.limit.filter(sane).filter(|limit| *limit > 0);
        self.remaining =
            self.remaining.filter(sane).filter(|left| self.limit.is_none_or(|limit| *left <= limit));
        // A week is absurd, unless the window is a day or longer.
        let longest = match self.window {
            Some(window) if window >= DAY => hint::LONGEST,
            _ => 7 * DAY,
        };
        self.reset = self.reset.filter(|reset| match reset {
            Reset::Full(time) | Reset::Window(time) => *time <= longest,
        });
        self
    }
}

/// Below this a time until full is mostly rounding: it is told in milliseconds.
const COARSEST: Duration = Duration::from_millis(10);

/// A limit while its headers are read.
#[derive(Clone, Copy, Debug)]
struct Draft {
    /// The name of the first of its headers.
    name: Name,
    limit: Limit,
    /// A limit was given that means "unknown": what is said to be left then means nothing either.
    void: bool,
}

impl Draft {
    fn of<'d>(drafts: &'d mut [Option<Self>; MOST], name: &Name) -> Option<&'d mut Self> {
        let same = |draft: &Self| {
            draft.name.family == name.family
                && draft.name.dimension == name.dimension
                && draft.name.window == name.window
        };
        let slot = drafts.iter_mut().find(|slot| slot.as_ref().is_none_or(same))?;
        Some(slot.get_or_insert(Self {
            name: *name,
            limit: Limit {
                dimension: name.dimension,
                window: name.window,
                limit: None,
                remaining: None,
                reset: None,
            },
            void: false,
        }))
    }

    fn take(&mut self, name: &Name, value: &http::HeaderValue, now: Duration) {
        // Of several values under one name the cautious one counts: the smaller number, the longer time.
        match name.what {
            What::Limit => match field::limit_with_policies(value.as_bytes()) {
                Some((limit, window)) if limit > 0 => {
                    self.limit.limit = Some(self.limit.limit.map_or(limit, |said| said.min(limit)));
                    self.limit.window = self.limit.window.or(window);
                }
                _ => self.void = true,
            },
            What::Remaining => {
                if let Some(left) = value::text(value).and_then(|text| text.parse::<u64>().ok()) {
                    self.limit.remaining = Some(self.limit.remaining.map_or(left, |said| said.min(left)));
                }
            }
            What::Reset => {
                let reset = value::text(value).and_then(|text| value::time(text, now));
                if let Some(reset) = reset.and_then(|time| self.reset_of(time, now)) {
                    self.limit.reset = Some(self.limit.reset.map_or(reset, |said| longer(said, reset)));
                }
            }
        }
    }

    fn reset_of(&self, time: Time, now: Duration) -> Option<Reset> {
        let until = |epoch: u128| epoch.checked_sub(now.as_nanos());
        let (nanos, full) = match time {
            // Names without a dimension are those of servers with windows, whatever form their times have.
            Time::Units(nanos) => (nanos, self.name.family == Family::Named),
            Time::Date(epoch) if self.name.family == Family::Anthropic => (until(epoch)?, true),
            Time::Date(epoch) | Time::Epoch(epoch) => (until(epoch)?, false),
            Time::Seconds(nanos) => (nanos, false),
        };
        let time = Duration::from_nanos(u64::try_from(nanos).ok()?);
        Some(if full { Reset::Full(time) } else { Reset::Window(time) })
    }

    fn finish(mut self, by_the_second: bool) -> Limit {
        if self.void && self.limit.limit.is_none() {
            self.limit.remaining = None;
            self.limit.reset = None;
        }
        if by_the_second && matches!(self.name.family, Family::Bare | Family::TokenLimit) {
            self.limit.window = self.limit.window.or(Some(Duration::from_secs(1)));
        }
        self.limit.window = self.limit.window.or_else(|| self.window());
        self.limit
    }

    /// The window of a bucket that is full after a known time: the limit, at the rate at which it fills.
    fn window(&self) -> Option<Duration> {
        const WINDOWS: [u64; 4] = [1, 60, 3_600, 86_400];

        let (Some(Reset::Full(full)), Some(limit), Some(left)) =
            (self.limit.reset, self.limit.limit, self.limit.remaining)
        else {
            return None;
        };
        let used = limit.checked_sub(left).filter(|used| *used > 0)?;
        if full < COARSEST {
            return None;
        }
        let nanos = full.as_nanos().checked_mul(u128::from(limit))? / u128::from(used);
        let near = |seconds: &u64| {
            let window = u128::from(*seconds) * u128::from(value::SECOND);
            nanos.abs_diff(window) <= window / 5
        };
        WINDOWS.into_iter().find(near).map(Duration::from_secs)
    }
}

fn longer(said: Reset, other: Reset) -> Reset {
    let time = |reset| match reset {
        Reset::Full(time) | Reset::Window(time) => time,
    };
    if time(other) > time(said) { other } else { said }
}
