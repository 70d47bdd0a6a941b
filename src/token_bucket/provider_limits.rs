//! What providers say of their limits over HTTP.

use std::fmt;
use std::sync::Arc;

use http::Response;

use crate::call::{Outcome, Usage};
use crate::provider::hint;
use crate::provider::limits::{Dimension, Limit, Limits};
use crate::time::{SystemWall, Wall};
use crate::token_bucket::learn::{ReadLimits, Said, Stated};
use crate::verdict::{Class, Verdict};

/// Reads what the headers of a response say of limits, as [`Limits`] knows them for the common providers. The default.
///
/// | the headers say | it goes to the dimension |
/// |---|---|
/// | requests | `requests` |
/// | tokens, or the most restrictive of several | `tokens` |
/// | input tokens, input tokens that did not come from a cache, output tokens | `input_tokens`, `uncached_input_tokens`, `output_tokens` |
///
/// A layer has those dimensions that it was given; what is said of others is not heard. A limit that cannot be (−1, or 0
/// of 0, as "unknown" is written) says nothing. The time at which an upstream's bucket is *full* again pauses nobody.
///
/// On a throttled response whose verdict has no hint of its own, the wait that its headers ask for pauses everybody. What an
/// [`Outcome`] that is already complete reports of usage is taken at once: that of an error, or of a response that a layer
/// below has read to its end.
///
/// A response without such headers costs a look at their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProviderLimits;

impl<B> ReadLimits<Response<B>> for ProviderLimits {
    fn read(&self, response: &Response<B>, verdict: Verdict, say: &mut dyn FnMut(Said<'_>)) {
        let headers = response.headers();
        let throttled = verdict.class() == Class::Throttled && verdict.hint().is_none();
        if throttled && let Some(wait) = hint::read(headers, &[], SystemWall.since_epoch()) {
            say(Said::Wait(wait));
        }
        if Limits::may_be_in(headers) {
            for limit in Limits::read(headers, SystemWall.since_epoch()).iter() {
                if let Some(stated) = stated(limit) {
                    say(Said::Limit(stated));
                }
            }
        }
        // An error was read whole before it was passed on; a good answer may have been.
        let whole = |outcome: &&Arc<Outcome>| outcome.to_end().is_some() || !verdict.is_success();
        if let Some(outcome) = Outcome::of(response).filter(whole) {
            let usage = outcome.usage();
            if !usage.is_empty() {
                say(Said::Used(&usage));
            }
        }
    }
}

fn stated(limit: &Limit) -> Option<Stated<'static>> {
    let dimension = match limit.dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
        Dimension::InputTokens => "input_tokens",
        Dimension::UncachedInputTokens => "uncached_input_tokens",
        Dimension::OutputTokens => "output_tokens",
    };
    let says = limit.limit.is_some() || limit.remaining.is_some();
    says.then_some(Stated { dimension, window: limit.window, limit: limit.limit, remaining: limit.remaining })
}

/// Reads limits with one reader, and usage with a closure.
#[derive(Clone, Copy)]
pub struct UsageBy<L, F> {
    pub(super) limits: L,
    pub(super) usage: F,
}

impl<Res, L, F> ReadLimits<Res> for UsageBy<L, F>
where
    L: ReadLimits<Res>,
    F: Fn(&Res) -> Option<Usage>,
{
    fn read(&self, response: &Res, verdict: Verdict, say: &mut dyn FnMut(Said<'_>)) {
        self.limits.read(response, verdict, say);
        if let Some(usage) = (self.usage)(response) {
            say(Said::Used(&usage));
        }
    }
}

impl<L: fmt::Debug, F> fmt::Debug for UsageBy<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageBy").field("limits", &self.limits).finish_non_exhaustive()
    }
}
