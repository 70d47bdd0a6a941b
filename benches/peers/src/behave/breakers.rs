//! Circuit breakers: a window of ten calls or of a second, half of which may fail; one probe, one success closes.

use std::sync::Arc;
use std::time::Duration;

use seatbelt::breaker::{Breaker, HalfOpenMode};
use seawall::circuit_breaker::CircuitBreakerLayer as OurLayer;
use seawall::{Class, Fault, Verdict, classify};
use tower::Layer;
use tower_resilience::circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};

use super::subject::{Broken, Call, Fate, Seen, Subject, Told, Upstream};
use super::{Found, Row, holds};

/// How long a breaker stays open.
const OPEN: Duration = Duration::from_millis(40);
/// The window of those that have one in time: seatbelt knows no shorter one.
const WINDOW: Duration = Duration::from_secs(1);

fn ours() -> Subject {
    let judge = |result: Result<&(), &Fault<Broken>>| {
        if result.is_ok() { Verdict::SUCCESS } else { Verdict::new(Class::Transient) }
    };
    let builder = OurLayer::builder().classify(classify::from_fn(judge)).blind();
    let builder = builder.without_consecutive_failures().count_window(10).minimum_calls(10).failure_rate(0.5);
    let builder = builder.open_for(OPEN).open_at_most(OPEN).jitter(0.0).probes(1).probe_successes(1);
    let layer = builder.abandoned_counts_after(Duration::from_millis(1)).build().expect("it is sound");
    let service = layer.at_head().layer(Upstream(|| Fault::Inner(Broken::Failed)));
    Subject::of(service, |error| matches!(error, Fault::Refused(_)))
}

fn resilience() -> Subject {
    let builder = CircuitBreakerLayer::builder().sliding_window_size(10).minimum_number_of_calls(10);
    let builder = builder.failure_rate_threshold(0.5).wait_duration_in_open(OPEN);
    let layer = builder.permitted_calls_in_half_open(1).build().expect("it is sound");
    Subject::of(layer.layer(Upstream(|| Broken::Failed)), CircuitBreakerError::is_circuit_open)
}

fn seatbelt() -> Subject {
    let context = seatbelt::ResilienceContext::<Fate, Result<(), Broken>>::new(tick::Clock::new_tokio());
    let layer = Breaker::layer("breaker", &context)
        .recovery_with(|result: &Result<(), Broken>, _| match result {
            Ok(()) => seatbelt::RecoveryInfo::never(),
            Err(_) => seatbelt::RecoveryInfo::retry(),
        })
        .rejected_input_error(|_, _| Broken::Refused)
        .failure_threshold(0.5)
        .min_throughput(10)
        .sampling_duration(WINDOW)
        .break_duration(OPEN)
        .half_open_mode(HalfOpenMode::quick());
    let service = tower::ServiceBuilder::new().layer(layer).service(Upstream(|| Broken::Failed));
    Subject::of(service, |error| *error == Broken::Refused)
}

/// Its breaker is always around a limiter, which here never limits.
fn throttle_net() -> Subject {
    use throttle_net::{CircuitBreaker, Throttle, ThrottleError, Trip};
    let trip = Trip::Ratio { window: 10, ratio: 0.5, min_calls: 10 };
    let breaker = CircuitBreaker::builder().trip(trip).cooldown(OPEN).half_open(1, 1);
    let breaker = Arc::new(breaker.build(Throttle::per_second(900_000_000)));
    let service = throttle_net::tower::CircuitBreakerLayer::new(breaker).layer(Upstream(|| Broken::Failed));
    Subject::of(service, |error| {
        matches!(error.downcast_ref::<ThrottleError>(), Some(ThrottleError::CircuitOpen { .. }))
    })
}

fn failsafe() -> Subject {
    use failsafe::futures::CircuitBreaker;
    let policy = failsafe::failure_policy::consecutive_failures(10, failsafe::backoff::constant(OPEN));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    Subject::new(move |fate| {
        let call = breaker.call(tower::Service::call(&mut Upstream(|| Broken::Failed), fate));
        Box::pin(async move {
            match call.await {
                Ok(()) => Seen::Served,
                Err(failsafe::Error::Rejected) => Seen::Refused,
                Err(failsafe::Error::Inner(_)) => Seen::Failed,
            }
        })
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "no executor runs, and peers know no other clock than the real one"
)]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Lets calls fail until one is refused; how many failed.
fn trip(breaker: &Subject) -> u32 {
    (0..5_000).find(|_| breaker.now(Fate::Bad) == Seen::Refused).unwrap_or(5_000)
}

/// Half-open after failures, with one probe that hangs.
fn probed(breaker: &Subject) -> (Call, Told) {
    trip(breaker);
    sleep(OPEN * 2);
    breaker.hang()
}

fn slides(breaker: &Subject) -> Result<(), String> {
    (0..1_000).for_each(|_| assert_eq!(breaker.now(Fate::Good), Seen::Served));
    sleep(WINDOW + WINDOW / 5);
    let failures = trip(breaker);
    holds(failures <= 20, || format!("it took {failures} failures"))
}

fn late_failure(breaker: &Subject) -> Result<(), String> {
    let (mut late, told) = breaker.hang();
    let (mut probe, probe_told) = probed(breaker);
    told.bad();
    late.look();
    probe_told.good();
    probe.look();
    holds(breaker.now(Fate::Good) == Seen::Served, || "it opened again, though its probe succeeded".into())
}

fn late_success(breaker: &Subject) -> Result<(), String> {
    let mut late = [breaker.hang(), breaker.hang()];
    let _probe = probed(breaker);
    for (call, told) in &mut late {
        told.good();
        call.look();
    }
    holds(breaker.now(Fate::Good) == Seen::Refused, || "it closed, though its probe hung".into())
}

fn earlier_period(breaker: &Subject) -> Result<(), String> {
    let mut late: Vec<_> = (0..20).map(|_| breaker.hang()).collect();
    let (mut probe, told) = probed(breaker);
    told.good();
    probe.look();
    for (call, told) in &mut late {
        told.bad();
        call.look();
    }
    holds(breaker.now(Fate::Good) == Seen::Served, || "they opened it again".into())
}

fn one_probe(breaker: &Subject) -> Result<(), String> {
    trip(breaker);
    sleep(OPEN * 2);
    let calls: Vec<_> = (0..200).map(|_| breaker.hang()).collect();
    let passed =
        calls.into_iter().filter_map(|(mut call, _)| (call.look() != Seen::Refused).then_some(())).count();
    holds(passed == 1, || format!("{passed} of 200 passed"))
}

fn hung_probe(breaker: &Subject) -> Result<(), String> {
    let _probe = probed(breaker);
    sleep(OPEN * 10);
    holds(breaker.now(Fate::Good) == Seen::Served, || "all refused after ten open times".into())
}

fn dropped_calls(breaker: &Subject) -> Result<(), String> {
    let hung: Vec<_> = (0..20).map(|_| breaker.hang()).collect();
    sleep(OPEN);
    drop(hung);
    holds(breaker.now(Fate::Good) == Seen::Refused, || "it saw none of them".into())
}

fn row(must: &'static str, run: fn(&Subject) -> Result<(), String>, of_failsafe: bool) -> Row {
    let failsafe: Found = of_failsafe.then(|| run(&failsafe()));
    let (resilience, seatbelt) = (Some(run(&resilience())), Some(run(&seatbelt())));
    let found = [Some(run(&ours())), None, resilience, seatbelt, failsafe, None, Some(run(&throttle_net()))];
    Row { must, found }
}

pub fn rows() -> Vec<Row> {
    vec![
        row(
            "the window slides: after 1 000 good calls and a pause, 20 failures open the breaker",
            slides,
            false,
        ),
        row("a late failure does not reopen a half-open breaker", late_failure, true),
        row("late successes do not close it while its probe hangs", late_success, true),
        row("20 late failures of an earlier closed period do not open it", earlier_period, true),
        row("of 200 calls at once one passes as the probe", one_probe, true),
        row("a probe that hangs does not shut the upstream out for good", hung_probe, true),
        row("20 calls that a timeout outside dropped open it", dropped_calls, true),
    ]
}
