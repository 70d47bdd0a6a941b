//! The spans, with the attribute names of OpenTelemetry's conventions for generative AI, and the events.

use tracing::field::{Empty, display};
use tracing::{Span, info, info_span, warn};

use crate::call::Call;
use crate::monitor::gate::Scope;
use crate::monitor::{BreakerState, Event, words};
use crate::refusal::{Label, RefusalKind};
use crate::verdict::Class;

/// The span of a call or an attempt.
pub(in crate::monitor) struct Trace(Span);

impl Trace {
    /// A span with what is known of the request: no part of the prompt, no credential.
    pub(in crate::monitor) fn begin(scope: Scope, call: Option<&Call>) -> Self {
        // A span's name must be known to the compiler; all else is the same.
        macro_rules! span {
            ($name:literal) => {
                info_span!(
                    $name,
                    otel.kind = "client",
                    gen_ai.operation.name = "chat",
                    gen_ai.provider.name = Empty,
                    gen_ai.request.model = Empty,
                    gen_ai.request.max_tokens = Empty,
                    gen_ai.request.choice.count = Empty,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    gen_ai.usage.cache_read.input_tokens = Empty,
                    error.type = Empty,
                    seawall.outcome = Empty,
                    seawall.refusal = Empty,
                    seawall.attempt = Empty,
                    seawall.hop = Empty,
                )
            };
        }
        let span = match scope {
            Scope::Calls => span!("gen_ai.call"),
            Scope::Attempts => span!("gen_ai.attempt"),
        };
        if let Some(call) = call.filter(|_| !span.is_disabled()) {
            describe(&span, call);
        }
        Self(span)
    }

    /// Runs the inner service's code inside the span.
    #[inline]
    pub(in crate::monitor) fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.in_scope(run)
    }

    /// How it ended.
    pub(in crate::monitor) fn end(&self, class: Class, refused: Option<RefusalKind>, tokens: [u32; 3]) {
        let span = &self.0;
        if span.is_disabled() {
            return;
        }
        let word = words::class_word(class);
        span.record("seawall.outcome", word);
        if class != Class::Success {
            span.record("error.type", word);
        }
        if let Some(kind) = refused {
            span.record("seawall.refusal", kind.as_str());
        }
        let names = [
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.cache_read.input_tokens",
        ];
        for (name, tokens) in names.into_iter().zip(tokens).filter(|(_, tokens)| *tokens > 0) {
            span.record(name, tokens);
        }
    }
}

fn describe(span: &Span, call: &Call) {
    if let Some(upstream) = &call.upstream {
        span.record("gen_ai.provider.name", upstream.as_str());
    }
    if let Some(model) = &call.model {
        span.record("gen_ai.request.model", model.as_str());
    }
    if let Some(most) = call.output_bound {
        span.record("gen_ai.request.max_tokens", most);
    }
    if let Some(choices) = call.choices {
        span.record("gen_ai.request.choice.count", choices);
    }
    if let Some(attempt) = call.attempt {
        span.record("seawall.attempt", attempt);
    }
    if let Some(hop) = call.hop {
        span.record("seawall.hop", hop);
    }
}

/// What is worth a line: transitions, retries, fallbacks, marks, alerts. Refusals and charges are counted, not told.
pub(in crate::monitor) fn event(event: &Event<'_>) {
    let name = |label: &Label| label.name().to_owned();
    match event {
        Event::BreakerMoved { label, from, to, cause, .. } => {
            let key = label.key().map(ToString::to_string).unwrap_or_default();
            let (from, to) = (words::state_word(*from), words::state_word(*to));
            let layer = name(label);
            if to == words::state_word(BreakerState::Open) {
                warn!(layer, key, from, to, ?cause, "circuit breaker opened");
            } else {
                info!(layer, key, from, to, ?cause, "circuit breaker moved");
            }
        }
        Event::Retrying { label, attempt, after, verdict } => {
            let outcome = words::class_word(verdict.class());
            info!(layer = name(label), attempt, ?after, outcome, "retrying");
        }
        Event::FellOver { label, from, to, verdict } => {
            let outcome = words::class_word(verdict.class());
            info!(layer = name(label), from = display(from), to = display(to), outcome, "falling over");
        }
        Event::NoTargetLeft { label, asked, .. } => warn!(layer = name(label), asked, "no target left"),
        Event::BudgetMark { label, percent, spent, limit } => {
            let (spent, limit) = (display(spent), display(limit));
            warn!(layer = name(label), percent, spent, limit, "a budget passed a mark");
        }
        Event::Alert { alert, .. } if alert.on => warn!("{alert}"),
        Event::Alert { alert, .. } => info!("{alert}"),
        _ => {}
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
