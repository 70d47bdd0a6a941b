//! What a caller sees of a chain when a provider misbehaves in one of sixteen ways, and what the providers see.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use seawall::call::{IntakeLayer, Outcome, OutcomeLayer};
use seawall::circuit_breaker::{CircuitBreakerLayer, Settings};
use seawall::fallback::{Commit, FallbackLayer, Route, Target, Triggers};
use seawall::gate::ByUpstream;
use seawall::monitor::BreakerState;
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, Class};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::provider::*;

const WHOLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";

fn until_the_end() -> FallbackLayer {
    FallbackLayer::new(routes(route().commit(Commit::End)))
}

/// The usual stack with the clocks of an attempt: 5 s to the head, 10 s to content, 10 s of silence.
fn timed(
    layer: FallbackLayer,
    providers: &Providers,
) -> Client<impl Body<Data = Bytes, Error = BoxError> + Send + use<>> {
    let clocks = TimeoutLayer::builder().head(5 * SECOND).first_content(10 * SECOND).idle(10 * SECOND);
    let inner = ServiceBuilder::new().layer(clocks.build().unwrap()).layer(OutcomeLayer::new());
    over(IntakeLayer::new(), layer, inner.service(providers.clone()))
}

async fn ask_timed(layer: FallbackLayer, providers: &Providers) -> Got {
    read(timed(layer, providers).oneshot(request(CHAT)).await.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_limited_target_is_left_at_once_whatever_it_asks_for() {
    for wait in ["2", "86400"] {
        let limited = status(429, "{}").header("retry-after", wait);
        let providers = Providers::new().on("a", [limited]).on("b", [ok()]);
        let start = seawall::time::now();
        assert_eq!(ask(two(), &providers).await.by(), "b");
        assert_eq!((start.elapsed(), providers.asked()), (Duration::ZERO, vec!["a".into(), "b".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn one_failure_moves_one_call_and_an_outage_moves_them_all() {
    for failure in [status(500, "{}"), status(503, "{}"), Reply::Reset] {
        let providers = Providers::new().on("a", [failure.clone(), ok()]).on("b", [ok()]);
        assert_eq!(ask(two(), &providers).await.by(), "b");
        assert_eq!(ask(two(), &providers).await.by(), "a", "the next call starts at the first target");
        let providers = Providers::new().on("a", [failure]).on("b", [ok()]);
        for _ in 0..3 {
            assert_eq!(ask(two(), &providers).await.by(), "b");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_target_is_dropped_in_time_and_not_asked_twice() {
    let providers = Providers::new().on("a", [Reply::Silent]).on("b", [ok()]);
    let start = seawall::time::now();
    let got = ask_timed(two(), &providers).await;
    assert_eq!((got.by(), start.elapsed()), ("b", 5 * SECOND));
    assert_eq!(providers.asked(), ["a", "b"]);
    let first = &got.served.unwrap().attempts().as_slice()[0].clone();
    assert_eq!(first.verdict().unwrap().class(), Class::Stalled);
    assert_eq!(providers.alive.now(), 0, "the silent call is gone");
}

#[tokio::test(start_paused = true)]
async fn late_content_falls_over_by_the_clock_below_or_by_the_own_limit() {
    let late = || steps(vec![send(ROLE), Step::Wait(20 * SECOND), send(TOKEN), send(DONE)]);
    let providers = Providers::new().on("a", [late()]).on("b", [healthy_stream()]);
    let start = seawall::time::now();
    let got = ask_timed(two(), &providers).await;
    assert_eq!((got.by(), start.elapsed(), got.body.contains("[DONE]")), ("b", 10 * SECOND, true));
    let own = FallbackLayer::builder(routes(route())).first_content(3 * SECOND).build().unwrap();
    let start = seawall::time::now();
    assert_eq!(ask(own.clone(), &providers).await.by(), "b");
    assert_eq!(start.elapsed(), 3 * SECOND);
    // The last target is not given up: what is there goes on.
    let providers = Providers::new().on("a", [late()]).on("b", [late()]);
    let got = ask(own, &providers).await;
    assert_eq!((got.by(), got.body.clone()), ("b", [ROLE, TOKEN, DONE].concat()));
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_never_a_success_and_whole_where_it_was_held() {
    let forty = || std::iter::repeat_n(send(TOKEN), 40).chain([Step::Cut]).collect();
    let sixty = std::iter::repeat_n(send(WHOLE), 60).chain([send(STOP), send(DONE)]).collect();
    let providers = Providers::new().on("a", [steps(forty())]).on("b", [steps(sixty)]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.by(), got.broken, got.body.matches("Hi").count()), ("a", true, 40));
    assert_eq!(got.outcome.unwrap().verdict().unwrap().class(), Class::Transient);
    let got = ask(until_the_end(), &providers).await;
    assert_eq!((got.by(), got.broken, got.body.matches("Hi").count()), ("b", false, 60));
    // A clean end without the end of the stream is a cut too.
    let providers = Providers::new().on("a", [stream(&[ROLE, TOKEN])]).on("b", [healthy_stream()]);
    assert_eq!(ask(until_the_end(), &providers).await.by(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_stall_in_the_middle_ends_in_an_error_or_at_the_second_target() {
    let stalled = || steps(vec![send(TOKEN), Step::Wait(30 * SECOND), send(DONE)]);
    let providers = Providers::new().on("a", [stalled()]).on("b", [healthy_stream()]);
    let start = seawall::time::now();
    let got = ask_timed(two(), &providers).await;
    assert_eq!((got.by(), got.broken, start.elapsed()), ("a", true, 10 * SECOND));
    assert_eq!(got.outcome.unwrap().verdict().unwrap().class(), Class::Stalled);
    let got = ask_timed(until_the_end(), &providers).await;
    assert_eq!((got.by(), got.broken), ("b", false));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_chunk_passes_as_it_is_and_harms_nothing() {
    let bad = "data: {\"choices\":[{\"delta\":{\"cont\n\n";
    let providers = Providers::new().on("a", [stream(&[bad, TOKEN, bad, STOP, USAGE, DONE])]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.by(), got.body.clone()), ("a", [bad, TOKEN, bad, STOP, USAGE, DONE].concat()));
    assert_eq!(got.outcome.unwrap().usage().total(), Some(9));
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_done_ends_with_its_body_and_keeps_its_usage() {
    for layer in [two(), until_the_end()] {
        let providers = Providers::new().on("a", [stream(&[ROLE, TOKEN, STOP, USAGE])]);
        let start = seawall::time::now();
        let got = ask(layer, &providers).await;
        assert_eq!((got.by(), start.elapsed()), ("a", Duration::ZERO));
        let outcome = got.outcome.unwrap();
        assert!(outcome.verdict().unwrap().is_success());
        assert_eq!(outcome.usage().total(), Some(9));
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_event_is_the_end_though_the_connection_stays_open() {
    let providers = Providers::new().on("a", [steps(vec![send(TOKEN), send(DONE), Step::Stall])]);
    let response = client(until_the_end(), &providers).oneshot(request(CHAT)).await.unwrap();
    assert!(Outcome::of(&response).unwrap().is_finished(), "the head is there, and the whole answer with it");
}

#[tokio::test(start_paused = true)]
async fn too_long_a_context_goes_to_a_larger_one_and_only_once_to_each() {
    let long =
        r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    let providers = Providers::new().on("a", [status(400, long)]).on("b", [ok()]).on("c", [ok()]);
    let route = Route::to("large")
        .target(Target::at("a").context(8_000))
        .target(Target::at("b").context(8_000))
        .target(Target::at("c").context(128_000));
    let got = ask(FallbackLayer::new(routes(route)), &providers).await;
    assert_eq!(got.by(), "c");
    let told = got.served.unwrap().attempts().to_string();
    assert_eq!(told, "a: Unfit (400), b: passed over (Context)");
    let unknown = Route::to("large").target(Target::at("a").context(8_000)).target(Target::at("b"));
    assert_eq!(
        ask(FallbackLayer::new(routes(unknown)), &providers).await.by(),
        "b",
        "an unknown size may fit"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_stops_is_asked_once_and_its_reason_passed_on() {
    let blocked =
        r#"{"error":{"message":"filtered","code":"content_filter","type":"invalid_request_error"}}"#;
    let providers = Providers::new().on("a", [status(400, blocked)]).on("b", [ok()]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.status, got.body.as_str(), providers.asked().len()), (400, blocked, 1));
    let opted = FallbackLayer::builder(routes(route())).fallback_on(Triggers::default().on_policy());
    assert_eq!(ask(opted.build().unwrap(), &providers).await.by(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_wins_over_failures_that_follow_it() {
    let providers = Providers::new().on("a", [status(400, "bad")]).on("b", [status(503, "busy")]);
    let all = FallbackLayer::builder(routes(route())).fallback_on(Triggers::default().on(Class::Invalid));
    let got = ask(all.build().unwrap(), &providers).await;
    assert_eq!((got.status, got.body.as_str(), providers.asked().len()), (400, "bad", 2));
    assert_eq!(got.attempts.unwrap().asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_flapping_target_is_left_alone_and_back_soon_after_it_recovers() {
    let breaker = CircuitBreakerLayer::builder().keyed(ByUpstream).build().unwrap();
    let outage = vec![status(503, "{}"); 5].into_iter().chain([ok()]);
    let providers = Providers::new().on("a", outage).on("b", [ok()]);
    let layer = FallbackLayer::builder(routes(route())).health(breaker.gate().clone()).build().unwrap();
    let inner = ServiceBuilder::new().layer(breaker.clone()).layer(OutcomeLayer::new());
    let mut client = over(IntakeLayer::new(), layer, inner.service(providers.clone()));
    let mut servers = Vec::new();
    for _ in 0..45 {
        let got = read(client.ready().await.unwrap().call(request(CHAT)).await.unwrap()).await;
        assert_eq!(got.status, 200, "no caller notices");
        servers.push(got.by().to_owned());
        tokio::time::sleep(SECOND).await;
    }
    let asked_a = providers.asked().iter().filter(|host| *host == "a").count();
    let served_by_a = servers.iter().filter(|name| *name == "a").count();
    assert_eq!(asked_a, 5 + served_by_a, "while it is open nobody asks it");
    assert!(servers.iter().take(38).any(|name| name == "a"), "back within the open time and its jitter");
    assert_eq!(breaker.gate().get(&"a".into()).state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_answer_names_who_served_it_and_what_was_used() {
    let providers = Providers::new().on("a", [Reply::Reset]).on("b", [ok()]);
    let got = ask(two(), &providers).await;
    let served = got.served.unwrap();
    assert_eq!(served.target().model().unwrap().as_str(), "b-mini");
    assert_eq!(served.attempts().to_string(), "a: Transient");
    assert_eq!(got.outcome.unwrap().usage().total(), Some(9));
    let call = providers.seen()[1].call.clone().unwrap();
    assert_eq!((call.upstream, call.model), (Some("b".into()), Some("b-mini".into())));
}

#[tokio::test(start_paused = true)]
async fn a_poison_request_counts_at_the_breaker_of_its_first_target_only() {
    let settings = Settings::builder().consecutive_failures(3, 60 * SECOND).first_target_only(true);
    let breaker = CircuitBreakerLayer::builder().settings(settings).keyed(ByUpstream).build().unwrap();
    let providers = Providers::new().on("a", [status(500, "{}")]).on("b", [status(500, "{}")]);
    let inner = breaker.layer(OutcomeLayer::new().layer(providers.clone()));
    let mut client = over(IntakeLayer::new(), two(), inner);
    for _ in 0..3 {
        let _ = client.ready().await.unwrap().call(request(CHAT)).await;
    }
    let state = |name: &str| breaker.gate().get(&name.into()).state();
    assert_eq!((state("a"), state("b")), (BreakerState::Open, BreakerState::Closed));
}
