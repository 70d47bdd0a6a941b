//! What is measured beside what, and the bars.

use crate::drive::{Echo, Loop, Model, Prompt, calls};
use crate::ours::{number, prompt};
use crate::{ours, stacks, theirs, waiting};

/// One layer beside one peer.
pub struct Row {
    pub layer: &'static str,
    pub ours: Loop,
    pub peer: &'static str,
    pub theirs: Loop,
    /// The most that ours may cost, as a multiple of the peer's; `None` is no bar.
    pub bar: Option<f64>,
}

pub const LIMIT: &str = "tower ConcurrencyLimit";
/// What tower has too.
pub const FOUR: &str = "retry, token bucket, bulkhead, timeout";
pub const TOWER_STACK: &str = "tower's Retry, ConcurrencyLimit, RateLimit, Timeout";
pub const GOVERNOR: &str = "governor check";

fn limit() -> Loop {
    calls(theirs::concurrency_limit(Echo), 7_u64)
}

fn limit_of_model() -> Loop {
    calls(theirs::concurrency_limit(Model), Prompt::described())
}

fn row(layer: &'static str, ours: Loop, peer: &'static str, theirs: Loop, bar: Option<f64>) -> Row {
    Row { layer, ours, peer, theirs, bar }
}

/// Against the bars.
pub fn bars() -> Vec<Row> {
    vec![
        row("bulkhead", number(ours::bulkhead()), LIMIT, limit(), Some(1.0)),
        row("circuit breaker", number(ours::breaker()), LIMIT, limit(), Some(1.0)),
        row("token bucket", number(ours::bucket()), GOVERNOR, theirs::governor(), Some(1.2)),
        row(
            "token bucket, two dimensions",
            number(ours::bucket_of_two()),
            GOVERNOR,
            theirs::governor(),
            Some(2.0),
        ),
        row("token bucket in use", number(ours::bucket_in_use()), GOVERNOR, theirs::governor(), Some(1.2)),
        row(
            "token bucket in use, two dimensions",
            number(ours::bucket_of_two_in_use()),
            GOVERNOR,
            theirs::governor(),
            Some(2.0),
        ),
        row("cost guard, one budget", prompt(ours::guard()), LIMIT, limit_of_model(), Some(2.0)),
        row("cost guard, three budgets", prompt(ours::guard_of_three()), LIMIT, limit_of_model(), Some(5.0)),
        row("monitor of calls", prompt(ours::monitor_of_calls()), LIMIT, limit_of_model(), Some(3.0)),
        row("monitor of attempts", prompt(ours::monitor_of_attempts()), LIMIT, limit_of_model(), Some(3.0)),
        row("retry that does not retry", number(ours::retry()), LIMIT, limit(), Some(0.6)),
        row("fallback at its first target", prompt(ours::fallback()), LIMIT, limit_of_model(), Some(1.5)),
        row(
            "all six",
            prompt(ours::all_six()),
            "tower-resilience's seven",
            stacks::resilience_seven(),
            Some(0.25),
        ),
        row("breaker, refusal, held open", number(ours::breaker_held_open()), LIMIT, limit(), Some(0.8)),
        row("breaker, refusal, opened", number(ours::breaker_opened()), LIMIT, limit(), Some(0.8)),
        row("bulkhead, refusal", number(ours::bulkhead_full()), LIMIT, limit(), Some(0.8)),
        row("token bucket, refusal", number(ours::bucket_empty()), LIMIT, limit(), Some(0.8)),
    ]
}

/// Beside each peer that does the same work.
pub fn others() -> Vec<Row> {
    vec![
        row(
            "bare service",
            calls(Echo, 7_u64),
            "bare service, described",
            calls(Model, Prompt::described()),
            None,
        ),
        row("a gate that decides nothing", number(ours::gate()), LIMIT, limit(), None),
        row(
            "circuit breaker",
            number(ours::breaker()),
            "tower-resilience",
            theirs::resilience_breaker(),
            None,
        ),
        row("circuit breaker", number(ours::breaker()), "seatbelt", theirs::seatbelt_breaker(), None),
        row("circuit breaker", number(ours::breaker()), "failsafe", theirs::failsafe(), None),
        row("bulkhead", number(ours::bulkhead()), "tower-resilience", theirs::resilience_bulkhead(), None),
        row("token bucket", number(ours::bucket()), "tower RateLimit", theirs::rate_limit(), None),
        row("token bucket", number(ours::bucket()), "tower-resilience", theirs::resilience_limiter(), None),
        row("token bucket", number(ours::bucket()), "throttle-net", theirs::throttle_net_limiter(), None),
        row(
            "token bucket in a circuit breaker",
            number(ours::bucket_in_breaker()),
            "throttle-net",
            theirs::throttle_net_breaker(),
            None,
        ),
        row("retry", number(ours::retry()), "tower Retry", theirs::retry(), None),
        row("retry", number(ours::retry()), "tower-resilience", theirs::resilience_retry(), None),
        row("retry", number(ours::retry()), "seatbelt", theirs::seatbelt_retry(), None),
        row("timeout", number(ours::timeout()), "tower Timeout", theirs::timeout(), None),
        row("timeout", number(ours::timeout()), "tower-resilience", theirs::resilience_timeout(), None),
        row("fallback", prompt(ours::fallback()), "tower-resilience", theirs::resilience_fallback(), None),
    ]
}

/// Whole stacks.
pub fn stacks() -> Vec<Row> {
    let all_six = || prompt(ours::all_six());
    vec![
        row(FOUR, number(stacks::four()), TOWER_STACK, stacks::tower_four(), None),
        row("all six", all_six(), TOWER_STACK, stacks::tower_four(), None),
        row("all six", all_six(), "tower-resilience's six", stacks::resilience_six(), None),
    ]
}

/// Two calls each: one that is admitted at once, and one that waits for its place.
pub fn waits() -> Vec<Row> {
    const WAIT: &str = "tower ConcurrencyLimit, a wait";
    vec![
        row(
            "bulkhead, a wait of 10 s at most",
            waiting::bulkhead(),
            WAIT,
            waiting::concurrency_limit(),
            None,
        ),
        row("bulkhead, a wait", waiting::bulkhead_for_ever(), WAIT, waiting::concurrency_limit(), None),
    ]
}
