//! What a header's name says: which number of which limit.

use std::time::Duration;

use super::Dimension;

/// Which number of a limit a header holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Limit,
    Remaining,
    Reset,
}

/// A family of headers: one header name can mean two things, but not within a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Resets are dates at which the bucket is full.
    Anthropic,
    /// `x-ratelimit-limit-requests` and its kin.
    Named,
    /// `x-tokenlimit-limit`, whose sender counts by the second.
    TokenLimit,
    /// `X-RateLimit-Limit`, `RateLimit-Limit`: no dimension in the name.
    Bare,
}

/// What a header's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) family: Family,
    pub(super) what: What,
    pub(super) dimension: Dimension,
    pub(super) window: Option<Duration>,
}

impl Name {
    /// Reads a lower-case name; most names have nothing to do with limits.
    pub(super) fn read(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
            let (dimension, what) = rest.rsplit_once('-')?;
            let mut name = Self::new(Family::Anthropic, what, dimension)?;
            // All of these are limits a minute.
            name.window = Some(Duration::from_secs(60));
            return Some(name);
        }
        if let Some(rest) = name.strip_prefix("x-ratelimit-").or_else(|| name.strip_prefix("x-rate-limit-")) {
            let (what, dimension) = rest.split_once('-').unwrap_or((rest, ""));
            return Self::new(Family::Named, what, dimension);
        }
        if let Some(rest) = name.strip_prefix("ratelimit-") {
            return Self::new(Family::Bare, rest, "");
        }
        if let Some(rest) = name.strip_prefix("x-tokenlimit-") {
            return Self::new(Family::TokenLimit, rest, "tokens");
        }
        let by_size =
            name.strip_prefix("x-ratelimitbysize-").or_else(|| name.strip_prefix("ratelimitbysize-"));
        if let Some(rest) = by_size {
            let (what, window) = rest.split_once('-').unwrap_or((rest, ""));
            let mut name = Self::new(Family::Named, what, "tokens")?;
            name.window = if window.is_empty() { None } else { Some(window_of(window)?) };
            return Some(name);
        }
        match name {
            "x-endpoint-monthly-call-limit" => Self::new(Family::Named, "limit", "requests-month"),
            "x-trial-endpoint-call-limit" => Self::new(Family::Named, "limit", "requests"),
            "x-trial-endpoint-call-remaining" => Self::new(Family::Named, "remaining", "requests"),
            _ => None,
        }
    }

    fn new(family: Family, what: &str, rest: &str) -> Option<Self> {
        let what = match what {
            "limit" => What::Limit,
            "remaining" => What::Remaining,
            "reset" => What::Reset,
            _ => return None,
        };
        let family = if rest.is_empty() { Family::Bare } else { family };
        let (dimension, window) = dimension_of(rest)?;
        Some(Self { family, what, dimension, window })
    }
}

/// `requests`, `tokens-minute`, `minute`; an unknown word is another limit, about which nothing is known.
fn dimension_of(rest: &str) -> Option<(Dimension, Option<Duration>)> {
    if let Some(dimension) = plain(rest) {
        return Some((dimension, None));
    }
    if let Some(window) = window_of(rest) {
        return Some((Dimension::Requests, Some(window)));
    }
    let at = rest.rfind("-5-minute").or_else(|| rest.rfind('-'))?;
    Some((plain(rest.get(..at)?)?, Some(window_of(rest.get(at + 1..)?)?)))
}

fn plain(name: &str) -> Option<Dimension> {
    let dimension = match name {
        "" | "requests" | "req" => Dimension::Requests,
        "tokens" => Dimension::Tokens,
        "input-tokens" | "tokens-prompt" => Dimension::InputTokens,
        "output-tokens" | "tokens-generated" => Dimension::OutputTokens,
        "tokens-cache-adjusted-prompt" => Dimension::UncachedInputTokens,
        _ => return None,
    };
    Some(dimension)
}

fn window_of(name: &str) -> Option<Duration> {
    let seconds = match name {
        "second" => 1,
        "minute" => 60,
        "5-minute" => 300,
        "hour" => 3_600,
        "day" => 86_400,
        "month" => 30 * 86_400,
        _ => return None,
    };
    Some(Duration::from_secs(seconds))
}
