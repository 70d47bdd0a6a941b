//! What the pages say of defaults and events is what the code does: each line names a row of a page, and what it must be.

mod pages;

use std::num::NonZeroU64;
use std::time::Duration;

use http::Request;

use crate::bulkhead::BulkheadLayer;
use crate::call::{IntakeLayer, OutcomeLayer};
use crate::circuit_breaker::{CircuitBreaker, OnThrottled, Settings};
use crate::cost_guard::{Budget, CostGuardLayer, MemoryLedger, PriceTable, Usd, Window};
use crate::fallback::{FallbackLayer, Routes};
use crate::gate::{Admission, ByUpstream, Gate, Keyed};
use crate::monitor::{BreakerCause, BreakerState, Event, Monitor, Rules};
use crate::refusal::{Label, Refusal, RefusalKind};
use crate::retry::{self, RetryLayer, RetryPolicy};
use crate::timeout::TimeoutLayer;
use crate::token_bucket::{Quota, TokenBucketLayer};

const SECOND: Duration = Duration::from_secs(1);

const BULKHEAD: &str = include_str!("../bulkhead/mod.rs");
const BREAKER: &str = include_str!("../circuit_breaker/mod.rs");
const BUCKET: &str = include_str!("../token_bucket/mod.rs");
const RETRY: &str = include_str!("../retry/mod.rs");
const FALLBACK: &str = include_str!("../fallback/mod.rs");
const GUARD: &str = include_str!("../cost_guard/mod.rs");
const TIMEOUT: &str = include_str!("../timeout/mod.rs");
const CALL: &str = include_str!("../call/mod.rs");
const MONITOR: &str = include_str!("../monitor/mod.rs");

/// The page has a row that begins so.
#[track_caller]
fn says(page: &str, row: &str) {
    assert!(
        page.lines().any(|line| line.strip_prefix("//! ").is_some_and(|line| line.starts_with(row))),
        "{row}"
    );
}

/// What is built shows these settings in its `Debug`.
#[track_caller]
fn shows(built: &impl std::fmt::Debug, settings: &[&str]) {
    let text = format!("{built:?}");
    for setting in settings {
        assert!(text.contains(setting), "{setting} is not in {text}");
    }
}

fn minute(amount: u64) -> Quota {
    Quota::per_minute(NonZeroU64::new(amount).unwrap())
}

#[test]
fn the_breaker_s_defaults_are_those_of_its_page() {
    let rows = [
        "| failures in a row | 5 within 60 s |",
        "| failure rate | 50 % of at least 20 |",
        "| window | 30 s, in tenths |",
        "| slow calls | off |",
        "| open | 30 s ± 10 %, ×2 up to 5 min |",
        "| back to 30 s | after 5 min closed |",
        "| probes | 3 at once, 3 must succeed |",
        "| a probe's lease | the open time |",
        "| throttling | no vote |",
        "| given up without a head | a failure after 60 s |",
        "| an upstream's hint | at most 24 h |",
        "| credential | the upstream's own |",
        "| ramp after closing | off |",
        "| keys | 10 000,",
    ];
    for row in rows {
        says(BREAKER, row);
    }
    let told = Settings::builder()
        .consecutive_failures(5, 60 * SECOND)
        .failure_rate(0.5)
        .minimum_calls(20)
        .window(30 * SECOND)
        .open_for(30 * SECOND)
        .jitter(0.1)
        .open_growth(2)
        .open_at_most(300 * SECOND)
        .healthy_after(300 * SECOND)
        .probes(3)
        .probe_successes(3)
        .throttled(OnThrottled::Neutral)
        .abandoned_counts_after(60 * SECOND)
        .hint_at_most(24 * 3600 * SECOND)
        .own_credential(true);
    assert_eq!(Settings::default(), told.build().unwrap());
    shows(&Settings::default(), &["slow: None", "probe_lease: None", "ramp: None"]);
    assert_eq!(Keyed::<CircuitBreaker, ByUpstream>::DEFAULT_BOUND.get(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn the_bulkhead_s_defaults_are_those_of_its_page() {
    says(BULKHEAD, "| queue | as many as the limit |");
    says(BULKHEAD, "| longest wait | 10 s |");
    says(BULKHEAD, "| expected service time | zero |");
    says(BULKHEAD, "| keys | 10 000,");
    shows(&BulkheadLayer::builder(2), &["queue: None", "max_wait: 10s", "expected_service: 0ns"]);
    let gate = BulkheadLayer::new(2).gate().clone();
    let mut request = Request::new(());
    let admitted = [(); 5].map(|()| gate.admit(&mut request));
    let kinds = admitted.iter().map(|answer| match answer {
        Admission::Now(_) => "now",
        Admission::Later(_) => "later",
        Admission::Refused(_) => "refused",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["now", "now", "later", "later", "refused"]);
}

#[tokio::test(start_paused = true)]
async fn the_bucket_s_defaults_are_those_of_its_page() {
    says(BUCKET, "| burst of requests | what flows in within 10 s |");
    says(BUCKET, "| burst of tokens, and of units of your own | what flows in within a minute |");
    says(BUCKET, "| longest wait | 10 s |");
    says(BUCKET, "| waiters | 1 024 |");
    says(BUCKET, "| headroom | 1: all of it |");
    says(BUCKET, "| assumed output | 1 000 tokens |");
    says(BUCKET, "| longest pause for a hint | one hour |");
    says(BUCKET, "| left by its caller after it was sent | pays what is [known]");
    says(BUCKET, "| keys | 10 000,");
    let builder = TokenBucketLayer::builder().requests(minute(60)).tokens(minute(6_000));
    let settings =
        ["headroom: 1.0", "strict: false", "max_wait: Some(10s)", "max_waiters: 1024", "max_pause: 3600s"];
    shows(&builder, &settings);
    shows(&builder, &["abandoned: Known", "assumed_output: 1000"]);
    let bucket = builder.build().unwrap().gate().clone();
    assert_eq!(bucket.level("requests").unwrap().burst, 10);
    assert_eq!(bucket.level("tokens").unwrap().burst, 6_000);
}

#[test]
fn the_retry_s_defaults_are_those_of_its_page() {
    says(RETRY, "| attempts | 3 | 3 |");
    says(RETRY, "| wait | 0–500 ms, 0–1 s, … ≤ 20 s; at least 100 ms | the same |");
    says(RETRY, "| after an ambiguous failure | retried | only with an idempotent method or key |");
    says(RETRY, "| patience for a hint | 60 s; 3 s while another target is left | the same |");
    says(RETRY, "| budget an upstream | 0.2 a call, reserve 10 | the same |");
    says(RETRY, "| longest time | none but the deadline | the same |");
    let both = [
        "attempts: 3,",
        "base: 500ms, cap: 20s, growth: Exponential(2.0), jitter: Full",
        "classes: [Throttled, Transient, Stalled]",
        "floor: 100ms",
        "patience: 60s",
        "patience_with_another_target: 3s",
    ];
    shows(&RetryPolicy::llm(), &both);
    shows(&RetryPolicy::http(), &both);
    shows(&RetryPolicy::llm(), &["ambiguous: true"]);
    shows(&RetryPolicy::http(), &["ambiguous: false", &format!("max_time: {:?}", Duration::MAX)]);
    shows(RetryLayer::default().policy(), &["ambiguous: false"]);
    let budget = retry::Budget::default();
    assert_eq!(budget.left_in_thousandths(None), 10_000);
    (0..10).for_each(|_| assert!(budget.try_take(None)));
    (0..5).for_each(|_| budget.arrive(None));
    assert_eq!(budget.left_in_thousandths(None), 1_000, "five calls pay for one retry");
}

#[test]
fn the_fallback_s_defaults_are_those_of_its_page() {
    says(FALLBACK, "| attempts in all | 6,");
    says(FALLBACK, "| goes on after | throttled, transient, stalled, exhausted, unfit, refused |");
    says(FALLBACK, "| order | as listed |");
    says(FALLBACK, "| commits | at its first content |");
    says(FALLBACK, "| waits for content | 30 s and 500 ms a 1 000 tokens, at most 120 s |");
    says(FALLBACK, "| holds before content | 64 KiB |");
    says(FALLBACK, "| holds of a whole answer | 4 MiB |");
    says(FALLBACK, "| tells in headers | off |");
    let settings = [
        "max_attempts: 6",
        "triggers: {Throttled, Transient, Stalled, Exhausted, Unfit, Refused}",
        "first_content: Limit { base: 30s, per_1k_tokens: 500ms, most: 120s }",
        "hold_bytes: 65536",
        "answer_bytes: 4194304",
        "tell_headers: false",
    ];
    shows(&FallbackLayer::builder(Routes::builder().build().unwrap()), &settings);
    assert_eq!(crate::fallback::Commit::default(), crate::fallback::Commit::FirstContent);
    assert_eq!(crate::fallback::Order::default(), crate::fallback::Order::Listed);
}

#[test]
fn the_guard_s_defaults_are_those_of_its_page() {
    says(GUARD, "| input is bounded by | its [bytes]");
    says(GUARD, "| added by the upstream | 512 tokens |");
    says(GUARD, "| output without any bound | 32 768 tokens |");
    says(GUARD, "| input by reference, or of unknown size | refused |");
    says(GUARD, "| usage not reported | charged the [bound]");
    says(GUARD, "| patience for what others hold | 2 s |");
    says(GUARD, "| ledger that does not answer | refused |");
    says(GUARD, "| marks | 50, 80 and 100 % |");
    says(GUARD, "| keys a budget | 1 000 000 |");
    says(GUARD, "| budgets | at most 8 |");
    let settings = [
        "bound: Bytes",
        "framing: 512",
        "reference_allowance: None",
        "unknown_input: None",
        "unknown_output: 32768",
        "output_cap: None",
        "unreported: Bound",
        "unpriced: None",
        "patience: 2s",
        "fail_open: false",
        "observe_only: false",
    ];
    shows(&CostGuardLayer::builder(), &settings);
    assert_eq!(Budget::DEFAULT_MARKS, [50, 80, 100]);
    assert_eq!(MemoryLedger::DEFAULT_MOST_KEYS.get(), 1_000_000);
    assert_eq!(crate::cost_guard::ledger::MOST_BUDGETS, 8);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_is_refused_where_a_budget_has_a_limit() {
    says(GUARD, "| model without a price | refused, where any budget has a limit |");
    let kind =
        |budget| match CostGuardLayer::new(PriceTable::new(), budget).gate().admit(&mut Request::new(())) {
            Admission::Refused(refusal) => Some(refusal.kind()),
            _ => None,
        };
    assert_eq!(kind(Budget::new(Usd::dollars(1), Window::DAY)), Some(RefusalKind::Unpriced));
    assert_eq!(kind(Budget::unlimited(Window::DAY)), None);
}

#[test]
fn the_timeout_has_no_clock_unless_it_is_set() {
    assert!(TIMEOUT.contains("None of the clocks runs unless it is set"));
    assert_eq!(TimeoutLayer::builder().build().unwrap_err().field(), "total");
    let settings = ["head: None", "first_content: None", "idle: None", "propagate: None", "heed: None"];
    shows(&TimeoutLayer::new(SECOND), &settings);
}

#[test]
fn the_readers_defaults_are_those_of_their_page() {
    says(CALL, "| [`IntakeLayer::limit`] | 32 MiB are collected |");
    says(CALL, "| [`IntakeLayer::record`] | 64 KiB of what is not collected");
    says(CALL, "| bytes of an error that are read | 64 KiB |");
    says(CALL, "| [`OutcomeLayer::error_body_time`] | 5 s |");
    says(CALL, "| [`OutcomeLayer::grpc_frame_time`] | zero:");
    shows(&IntakeLayer::new(), &["limit: 33554432", "record: 65536"]);
    shows(&OutcomeLayer::new(), &["error_body_bytes: 65536", "error_body_time: 5s", "grpc_frame_time: 0ns"]);
}

#[test]
fn the_alert_rules_are_those_of_the_monitor_s_page() {
    says(MONITOR, "| success rate | below 99.5 % a warning, below 95 % critical |");
    says(MONITOR, "| slow | p99 to the head above 1.2 s |");
    says(MONITOR, "| fallbacks | 5 an hour |");
    says(MONITOR, "| trips of breakers | more than 3 an hour |");
    says(MONITOR, "| cost of a call | 150 % above what it was |");
    says(MONITOR, "| dearer target | twice as dear as those asked first |");
    says(MONITOR, "| samples that a rate wants | 20 |");
    says(MONITOR, "| all well, until it goes off | 60 s |");
    let settings = [
        "success_warning: Some(0.995)",
        "success_critical: Some(0.95)",
        "slow: Some((Head, 1.2s))",
        "fallbacks: Some(5)",
        "trips: Some(3)",
        "cost_growth: Some(1.5)",
        "dearer: Some(2.0)",
        "denied: true, budget_marks: true, target_out: true",
        "minimum: 20",
        "hold: 60s",
    ];
    shows(&Rules::default(), &settings);
    shows(&Monitor::builder(), &["most_targets: 64"]);
}

/// The name of each event: a new one does not compile until it is here.
fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Refused { .. } => "Refused",
        Event::WouldRefuse { .. } => "WouldRefuse",
        Event::BreakerMoved { .. } => "BreakerMoved",
        Event::Waited { .. } => "Waited",
        Event::Retrying { .. } => "Retrying",
        Event::GaveUp { .. } => "GaveUp",
        Event::BudgetMark { .. } => "BudgetMark",
        Event::Spent { .. } => "Spent",
        Event::Unpriced { .. } => "Unpriced",
        Event::Unreserved { .. } => "Unreserved",
        Event::Abandoned { .. } => "Abandoned",
        Event::FellOver { .. } => "FellOver",
        Event::NoTargetLeft { .. } => "NoTargetLeft",
        Event::Alert { .. } => "Alert",
    }
}

/// All of them, in the order of the type.
const EVENTS: [&str; 14] = [
    "Refused",
    "WouldRefuse",
    "BreakerMoved",
    "Waited",
    "Retrying",
    "GaveUp",
    "BudgetMark",
    "Spent",
    "Unpriced",
    "Unreserved",
    "Abandoned",
    "FellOver",
    "NoTargetLeft",
    "Alert",
];

/// The layers as the table of events calls them, their directories, and their pages.
const LAYERS: [(&str, &str, &str); 7] = [
    ("circuit breaker", "circuit_breaker", BREAKER),
    ("token bucket", "token_bucket", BUCKET),
    ("bulkhead", "bulkhead", BULKHEAD),
    ("cost guard", "cost_guard", GUARD),
    ("retry", "retry", RETRY),
    ("fallback", "fallback", FALLBACK),
    ("monitor", "monitor", MONITOR),
];

/// The names behind `Event::` in a text.
fn events_in(text: &str) -> Vec<&str> {
    let names = text.split("Event::").skip(1);
    let mut names: Vec<_> =
        names.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn every_event_that_a_page_names_exists() {
    let label = Label::new("a");
    let refused = Event::Refused { label: &label, refusal: &Refusal::new(RefusalKind::Full) };
    let (from, to) = (BreakerState::Closed, BreakerState::Open);
    let moved = Event::BreakerMoved { label: &label, from, to, cause: BreakerCause::Handle, open_for: None };
    for event in [refused, moved, Event::Unreserved { label: &label }, Event::Abandoned { label: &label }] {
        assert!(EVENTS.contains(&name(&event)));
        assert!(format!("{event:?}").starts_with(name(&event)));
    }
    let source = include_str!("../monitor/event.rs");
    for event in EVENTS {
        assert!(source.contains(&format!("Self::{event} {{ label, .. }}")), "{event}");
    }
    let pages = [include_str!("failure_semantics.rs"), include_str!("migration/tower.rs")];
    for page in LAYERS.iter().map(|(_, _, page)| *page).chain(pages) {
        for event in events_in(page) {
            assert!(EVENTS.contains(&event), "{event}");
        }
    }
}

/// The events that the sources of a layer raise: those behind a `raise`, not those that are only matched or linked.
fn raised(directory: &str) -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(directory);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for part in text.split("raise(").skip(1) {
            // The closure, up to the parenthesis that closes the call: it names the event, or two.
            let mut depth = 1;
            let mut is_inside = |c: char| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth > 0
            };
            let part: String = part.chars().map_while(|c| is_inside(c).then_some(c)).collect();
            names.extend(events_in(&part).into_iter().map(str::to_owned));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn the_table_of_events_says_who_raises_them() {
    let rows: Vec<_> =
        MONITOR.lines().filter(|line| line.contains("](Event::") && line.starts_with("//! | [`")).collect();
    assert_eq!(rows.len(), EVENTS.len(), "one row each");
    for (layer, directory, page) in LAYERS {
        let told: Vec<_> = rows.iter().filter(|row| row.contains(layer)).copied().collect();
        let told = told.join(" ");
        let told = events_in(&told);
        assert_eq!(told, raised(directory), "{layer}");
        for event in told {
            assert!(
                page.contains(&format!("Event::{event})")) || page.contains(&format!("Event::{event}`")),
                "{layer}: {event}"
            );
        }
    }
}

#[test]
fn every_metric_that_a_page_names_is_one_of_the_monitor_s() {
    let names = |text: &'static str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("seawall_") && word.len() > "seawall_".len()).collect::<Vec<_>>()
    };
    let known = names(MONITOR);
    let pages = [BULKHEAD, BREAKER, BUCKET, RETRY, FALLBACK, GUARD, TIMEOUT];
    for page in pages {
        for metric in names(page).into_iter().filter(|name| *name != "seawall_loom") {
            assert!(known.contains(&metric), "{metric}");
        }
        assert!(names(page).iter().any(|name| *name != "seawall_loom"), "each page names its metrics");
    }
}
