//! What the layers have to say, and what becomes of it: figures, alerts, exports.
//!
//! Layers that decide raise typed [`Event`]s, one for each decision, to their [`Observer`]s. A [`Monitor`] is one handle for all
//! that follows from them and from the calls themselves: it is an observer, it gives the layers that see calls and
//! attempts to the end of their bodies, and it tells what it counted, over the last minute, five minutes, the last hour and
//! since the start, in total and by target.
//!
//! # Where to put it
//!
//! | layer | where | what it counts |
//! |---|---|---|
//! | [`Monitor::layer`] | outermost, below the intake; on a server outermost of all | calls, as callers see them |
//! | [`Monitor::attempts`] | below retry, above the circuit breaker | attempts, by target: retries, fallbacks, refusals |
//! | `.observer(monitor.clone())` | on each layer that has one (all but timeout, intake and outcome) | moves of breakers, waits, refusals by layer, money, marks of budgets |
//! | [`Monitor::watch`] | – | the state of a handle at the time of a snapshot: slots, queue, levels, pauses |
//!
//! Either layer alone is of use; without the one above, or without observers, its figures stay zero.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full};
//! use seawall::BoxError;
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
//! use seawall::circuit_breaker::CircuitBreakerLayer;
//! use seawall::monitor::{Monitor, Rules};
//! use seawall::retry::{RetryLayer, RetryPolicy};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let monitor = Monitor::builder()
//!     .target("default", "gpt-5")
//!     .rules(Rules::default().fallbacks(10))
//!     .on_alert(|alert| eprintln!("{alert}"))
//!     .build()?;
//! let bulkhead = BulkheadLayer::builder(16).observer(monitor.clone()).build()?;
//! monitor.watch("bulkhead", bulkhead.gate().clone());
//!
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(monitor.layer())
//!     .layer(RetryLayer::new(RetryPolicy::llm()).observer(monitor.clone()))
//!     .layer(monitor.attempts())
//!     .layer(CircuitBreakerLayer::builder().observer(monitor.clone()).build()?)
//!     .layer(bulkhead)
//!     .layer(OutcomeLayer::new())
//!     // In place of this: a client of hyper, reqwest or tonic.
//!     .service_fn(|_request: Request<CallBody>| async {
//!         Ok::<_, BoxError>(Response::new(Full::new(Bytes::from("{}"))))
//!     });
//! // Evaluates the alert rules every ten seconds.
//! tokio::spawn(monitor.clone().run(std::time::Duration::from_secs(10)));
//!
//! let request = Request::post("https://api.example.com/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(Full::new(Bytes::from(r#"{"model":"gpt-5","messages":[]}"#)))?;
//! client.oneshot(request).await?.into_body().collect().await?;
//!
//! let snapshot = monitor.snapshot();
//! assert_eq!(snapshot.calls.minute.count(), 1);
//! assert_eq!(snapshot.target("default", "gpt-5").unwrap().series.hour.success_rate(), Some(1.0));
//! println!("{snapshot}"); // a table
//! let text = monitor.prometheus(); // what a `/metrics` route answers
//! assert!(text.contains(r#"seawall_calls_total{outcome="success"} 1"#));
//! # Ok(())
//! # }
//! ```
//!
//! # What counts
//!
//! A call counts when it is over: when its body ends, fails or is dropped. A caller who leaves early is *abandoned*, a class of
//! its own and nobody's failure; dropping a failed response, or what follows a stream's terminal event, is not leaving
//! early. The success rate leaves out what callers are to blame for ([`Figures::success_rate`]).
//!
//! Times of a call run from its arrival here; times of an attempt from its sending, as the
//! [`Outcome`](crate::call::Outcome) says, so that waits in queues above are not held against the upstream. Refusals,
//! and attempts without a response, have no time: else an outage would look fast.
//!
//! A snapshot tells the usual percentiles; [`Monitor::histogram`] hands out all values, as an `hdrhistogram`.
//!
//! Targets are bounded ([`MonitorBuilder::most_targets`]), and a model that a caller made up takes no place: it is counted as
//! `other` until an upstream has served it.
//!
//! # Events
//!
//! | event | raised by |
//! |---|---|
//! | [`Refused`](Event::Refused) | circuit breaker, token bucket, bulkhead, cost guard |
//! | [`WouldRefuse`](Event::WouldRefuse) | circuit breaker, cost guard, where they only observe |
//! | [`BreakerMoved`](Event::BreakerMoved) | circuit breaker |
//! | [`Waited`](Event::Waited) | token bucket, bulkhead, cost guard |
//! | [`Abandoned`](Event::Abandoned) | circuit breaker, token bucket, bulkhead |
//! | [`Retrying`](Event::Retrying) | retry |
//! | [`GaveUp`](Event::GaveUp) | retry |
//! | [`FellOver`](Event::FellOver) | fallback |
//! | [`NoTargetLeft`](Event::NoTargetLeft) | fallback |
//! | [`BudgetMark`](Event::BudgetMark) | cost guard |
//! | [`Spent`](Event::Spent) | cost guard |
//! | [`Unpriced`](Event::Unpriced) | cost guard |
//! | [`Unreserved`](Event::Unreserved) | cost guard |
//! | [`Alert`](Event::Alert) | monitor |
//!
//! No event carries a prompt, an answer or a credential. An observer must not block; its panic is contained.
//!
//! # Alerts
//!
//! | rule | default |
//! |---|---|
//! | success rate | below 99.5 % a warning, below 95 % critical |
//! | slow | p99 to the head above 1.2 s |
//! | fallbacks | 5 an hour |
//! | trips of breakers | more than 3 an hour |
//! | cost of a call | 150 % above what it was |
//! | dearer target | twice as dear as those asked first |
//! | denied credentials, marks of budgets, targets that are out | told |
//! | samples that a rate wants | 20 |
//! | all well, until it goes off | 60 s |
//!
//!
//! [`Rules`] hold thresholds with usual defaults. Each alert is told once when it goes on and once when it goes off, to
//! [`MonitorBuilder::on_alert`] and as [`Event::Alert`]; it goes off only when all has been well, with a margin, for a
//! while. [`Monitor::tick`] evaluates the rules, [`Monitor::run`] does so again and again.
//!
//! # Metrics
//!
//! [`Snapshot::prometheus`] writes these; with the feature `metrics` a `Publisher` hands them to the crate of that name. With
//! the feature `tracing` each call and each attempt is a span with the attribute names of OpenTelemetry's conventions for
//! generative AI, and transitions are events; neither ever holds a prompt or a credential. Names and labels are stable.
//! Counters count since the start; quantiles are those of five minutes.
//! The upstream is `default` where no fallback names one.
//!
//! | name | type | labels |
//! |---|---|---|
//! | `seawall_uptime_seconds` | gauge | – |
//! | `seawall_calls_in_flight` | gauge | – |
//! | `seawall_calls_total` | counter | `outcome` |
//! | `seawall_call_refusals_total` | counter | `kind` |
//! | `seawall_call_head_seconds` | summary | – |
//! | `seawall_call_content_seconds` | summary | – |
//! | `seawall_call_end_seconds` | summary | – |
//! | `seawall_call_retries_total` | counter | – |
//! | `seawall_call_fallbacks_total` | counter | – |
//! | `seawall_attempts_in_flight` | gauge | – |
//! | `seawall_attempts_total` | counter | `upstream`, `model`, `outcome` |
//! | `seawall_attempt_refusals_total` | counter | `upstream`, `model`, `kind` |
//! | `seawall_attempt_head_seconds` | summary | `upstream`, `model` |
//! | `seawall_attempt_content_seconds` | summary | `upstream`, `model` |
//! | `seawall_attempt_end_seconds` | summary | `upstream`, `model` |
//! | `seawall_attempt_tokens_total` | counter | `upstream`, `model`, `type` |
//! | `seawall_attempt_retries_total` | counter | `upstream`, `model` |
//! | `seawall_attempt_fallbacks_total` | counter | `upstream`, `model` |
//! | `seawall_charged_attempts_total` | counter | `upstream`, `model` |
//! | `seawall_spent_dollars_total` | counter | `upstream`, `model` |
//! | `seawall_reserved_dollars_total` | counter | `upstream`, `model` |
//! | `seawall_extra_spent_dollars_total` | counter | `upstream`, `model` |
//! | `seawall_layer_refusals_total` | counter | `layer`, `kind` |
//! | `seawall_layer_would_refuse_total` | counter | `layer` |
//! | `seawall_layer_waits_total` | counter | `layer` |
//! | `seawall_layer_wait_seconds_total` | counter | `layer` |
//! | `seawall_layer_abandoned_total` | counter | `layer` |
//! | `seawall_layer_gave_up_total` | counter | `layer` |
//! | `seawall_layer_no_target_left_total` | counter | `layer` |
//! | `seawall_layer_unpriced_total` | counter | `layer` |
//! | `seawall_layer_unreserved_total` | counter | `layer` |
//! | `seawall_breaker_state` | gauge | `breaker`, `key`, `state` |
//! | `seawall_breaker_trips_total` | counter | `breaker`, `key` |
//! | `seawall_budget_marks_total` | counter | `budget` |
//! | `seawall_budget_mark_percent` | gauge | `budget` |
//! | `seawall_budget_spent_dollars` | gauge | `budget` |
//! | `seawall_budget_limit_dollars` | gauge | `budget` |
//! | `seawall_handle_in_flight` | gauge | `handle` |
//! | `seawall_handle_limit` | gauge | `handle` |
//! | `seawall_handle_queued` | gauge | `handle` |
//! | `seawall_handle_level` | gauge | `handle`, `dimension` |
//! | `seawall_handle_capacity` | gauge | `handle`, `dimension` |
//! | `seawall_handle_pause_seconds` | gauge | `handle` |
//! | `seawall_handle_breaker_state` | gauge | `handle`, `state` |
//! | `seawall_alert` | gauge | `rule`, `severity`, `subject` |
//!
//! # Cancellation
//!
//! Dropping a call or a body counts it as abandoned, and nothing else: the monitor holds nothing of it. A panic of the inner
//! service counts as a failure.
//!
//! # What it costs
//!
//! A call: two or three clock reads, and a record in a buffer of its thread's own under a lock that nobody else wants.
//! Every hundred or so records go into the book at once. No allocation once it is warm, no float, no formatting. A
//! target takes up to about 100 KB. A snapshot of fifty busy targets takes a tenth of a millisecond.

mod alert;
mod book;
mod counts;
mod directory;
mod event;
mod gate;
mod gauges;
mod histogram;
#[cfg(feature = "serde")]
mod json;
mod listen;
mod look;
#[expect(clippy::module_inception, reason = "the handle that the module is named after")]
mod monitor;
mod permit;
mod prometheus;
#[cfg(feature = "metrics")]
mod publish;
mod report;
mod sketch;
mod snapshot;
mod spans;
mod stripes;
mod table;
mod trace;
mod words;

pub use alert::{Alert, Rule, Rules, Severity, Timing};
pub(crate) use event::Observers;
pub use event::{Basis, BreakerCause, BreakerState, Event, Fanout, Observer, StopCause};
pub use gate::{MonitorLayer, Watcher};
pub use gauges::{Gauge, Gauges};
pub use histogram::{Of, Span, Until};
pub use look::{ByAnswer, ByClass, Look};
pub use monitor::{Monitor, MonitorBuilder};
pub use permit::Watched;
pub use prometheus::CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use publish::Publisher;
pub use snapshot::{
    Breaker, Budget, Figures, Latency, LayerEvents, Money, Outcomes, Refusals, Series, Snapshot, Target,
    Tokens, Watching,
};
