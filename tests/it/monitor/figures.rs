//! A scripted run through the whole stack, and what it comes to.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer, Upstream};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::gate::ByUpstream;
use seawall::monitor::{BreakerState, Gauge, Monitor, Rule, Series};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Class, RefusalKind};
use tower::util::BoxCloneService;
use tower::{ServiceBuilder, ServiceExt};

use super::{ANSWER, CONTENT, DONE, LAST, Reply, Upstreams, chat, json};

type Client =
    BoxCloneService<http::Request<http_body_util::Full<bytes::Bytes>>, http::Response<Answer>, BoxError>;
type Answer = http_body_util::combinators::BoxBody<bytes::Bytes, BoxError>;

struct Run {
    monitor: Monitor,
    upstreams: Upstreams,
    client: Client,
    alerts: Arc<Mutex<Vec<String>>>,
}

fn routes() -> Routes {
    let at = |name: &str| Upstream::new(name, &format!("http://{name}/v1")).unwrap();
    let route =
        Route::to("large").target(Target::at("a").model("a-large")).target(Target::at("b").model("b-large"));
    Routes::builder().upstream(at("a")).upstream(at("b")).route(route).build().unwrap()
}

fn run() -> Run {
    let alerts: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = alerts.clone();
    let monitor = Monitor::builder()
        .targets([("a", "a-large"), ("b", "b-large")])
        .on_alert(move |alert| told.lock().unwrap().push(alert.to_string()))
        .build()
        .unwrap();
    let price = |input, output| Price::per_million(input, output).unwrap();
    // $1 and $2 a million tokens at a, ten times as much at b.
    let prices = PriceTable::new().model("a-large", price("1", "2")).model("b-large", price("10", "20"));
    let budget = Budget::new(Usd::dollars(1), Window::TOTAL).named("all");
    let guard = CostGuardLayer::builder().prices(prices).budget(budget).observer(monitor.clone());
    let bulkhead = BulkheadLayer::builder(4).observer(monitor.clone()).build().unwrap();
    monitor.watch("slots", bulkhead.gate().clone());
    let upstreams = Upstreams::default();
    let asked = upstreams.clone();
    let client = ServiceBuilder::new()
        .map_response(|response: http::Response<_>| response.map(BodyExt::boxed))
        .layer(IntakeLayer::new())
        .layer(monitor.layer())
        .layer(FallbackLayer::builder(routes()).observer(monitor.clone()).build().unwrap())
        .layer(RetryLayer::new(RetryPolicy::llm()).observer(monitor.clone()))
        .layer(monitor.attempts())
        .layer(CircuitBreakerLayer::builder().keyed(ByUpstream).observer(monitor.clone()).build().unwrap())
        .layer(guard.build().unwrap())
        .layer(bulkhead)
        .layer(OutcomeLayer::new())
        .service_fn(move |request: http::Request<CallBody>| asked.clone().answer(request));
    Run { monitor, upstreams, client: client.boxed_clone(), alerts }
}

impl Run {
    async fn ask(&self) -> Result<http::Response<Answer>, BoxError> {
        self.client.clone().oneshot(chat("large")).await
    }

    async fn read(&self) -> u16 {
        let response = self.ask().await.unwrap();
        let status = response.status().as_u16();
        let _ = response.into_body().collect().await;
        status
    }
}

fn outcomes(series: &Series) -> Vec<(Class, u64)> {
    series.since_start.outcomes.iter().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(start_paused = true)]
async fn the_figures_of_a_scripted_run_are_those_counted_by_hand() {
    let run = run();
    let stream =
        |parts: &[(u64, &'static str)]| Reply { head: 100, status: 200, stream: true, parts: parts.into() };
    // 1: answered at once by a. 10 in (6 cached), 4 out.
    run.upstreams.says("a", [json(200, 200, ANSWER)]);
    assert_eq!(run.read().await, 200);
    // 2: a fails three times (two retries), b answers.
    run.upstreams.says("a", [json(10, 503, "{}"), json(10, 503, "{}"), json(10, 503, "{}")]);
    run.upstreams.says("b", [json(300, 200, ANSWER)]);
    assert_eq!(run.read().await, 200);
    // 3: a retry helps.
    run.upstreams.says("a", [json(10, 500, "{}"), json(200, 200, ANSWER)]);
    assert_eq!(run.read().await, 200);
    // 4: a stream: head after 0.1 s, content after 0.4 s, last byte after 2.4 s. 20 in, 5 out.
    run.upstreams.says("a", [stream(&[(300, CONTENT), (1500, LAST), (500, DONE)])]);
    assert_eq!(run.read().await, 200);
    // 5: nobody can answer that.
    run.upstreams.says("a", [json(10, 400, r#"{"error":{"message":"no"}}"#)]);
    assert_eq!(run.read().await, 400);
    // 6: the caller leaves in the middle of a stream.
    run.upstreams.says("a", [stream(&[(100, CONTENT), (9000, LAST)])]);
    let mut body = run.ask().await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    // 7: and before there is an answer.
    run.upstreams.says("a", [json(60_000, 200, ANSWER)]);
    assert!(tokio::time::timeout(Duration::from_secs(1), run.ask()).await.is_err());
    assert!(run.upstreams.nothing_left());

    let snapshot = run.monitor.snapshot();
    let calls = [(Class::Success, 4), (Class::Invalid, 1), (Class::Abandoned, 2)];
    assert_eq!(outcomes(&snapshot.calls), calls);
    let a = [(Class::Success, 3), (Class::Transient, 4), (Class::Invalid, 1), (Class::Abandoned, 2)];
    assert_eq!(outcomes(&snapshot.target("a", "a-large").unwrap().series), a);
    assert_eq!(outcomes(&snapshot.target("b", "b-large").unwrap().series), [(Class::Success, 1)]);
    let all = [(Class::Success, 4), (Class::Transient, 4), (Class::Invalid, 1), (Class::Abandoned, 2)];
    assert_eq!(outcomes(&snapshot.attempts), all);
    assert_eq!((snapshot.calls_in_flight, snapshot.attempts_in_flight), (0, 0));
    assert_eq!(snapshot.attempts_a_call(), Some(11.0 / 7.0));

    let (calls, attempts) = (&snapshot.calls.since_start, &snapshot.attempts.since_start);
    assert_eq!((calls.retries, calls.fallbacks), (3, 1), "as the loops told");
    assert_eq!((attempts.retries, attempts.fallbacks), (3, 1), "as the attempts were");
    let tokens = attempts.tokens;
    assert_eq!((tokens.input, tokens.output, tokens.cached), (50, 17, 18));
    assert_eq!(calls.success_rate(), Some(1.0), "callers alone are to blame for the rest");
    assert_eq!(attempts.success_rate(), Some(0.5));
    assert_eq!(snapshot.calls.hour, snapshot.calls.since_start, "the hour is not over");
}

#[tokio::test(start_paused = true)]
async fn money_is_that_of_the_guard_to_the_nano_dollar() {
    let run = run();
    run.upstreams.says("a", [json(10, 200, ANSWER), json(10, 500, "{}"), json(10, 200, ANSWER)]);
    run.read().await;
    run.read().await;
    let denied = json(10, 503, "{}");
    run.upstreams.says("a", [denied.clone(), denied.clone(), denied]);
    run.upstreams.says("b", [json(10, 200, ANSWER)]);
    run.read().await;
    let snapshot = run.monitor.snapshot();
    // 10 in and 4 out, none of them cheaper for being cached: $18 a million calls at a, $180 at b.
    let (at_a, at_b) = (Usd::nanos(18_000), Usd::nanos(180_000));
    let money = snapshot.target("b", "b-large").unwrap().series.since_start.money;
    assert_eq!((money.charged, money.spent, money.extra), (1, at_b, at_b));
    let money = snapshot.attempts.since_start.money;
    assert_eq!(money.spent, at_a.saturating_add(at_a).saturating_add(at_b));
    assert_eq!(money.extra, at_a.saturating_add(at_b), "the answered retry, and the other target");
    assert_eq!(snapshot.calls.since_start.money, money);
    assert!(money.reserved > money.spent);
    assert_eq!(snapshot.calls.since_start.cost_each(), Some(72e-6));
    run.monitor.tick();
    let told = run.alerts.lock().unwrap().clone();
    assert_eq!(told, ["warning: dearer_target of b/b-large is 10 (limit 2)"]);
}

#[tokio::test(start_paused = true)]
async fn times_end_at_the_last_byte() {
    let run = run();
    let parts = vec![(300, CONTENT), (1500, LAST), (500, DONE), (200, "")];
    run.upstreams.says("a", [Reply { head: 100, status: 200, stream: true, parts }]);
    run.read().await;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let snapshot = run.monitor.snapshot();
    let (calls, a) = (&snapshot.calls.minute, &snapshot.target("a", "a-large").unwrap().series.minute);
    // The fallback holds the head of a stream until its first content.
    let heads = [(calls.to_head, 400.0), (a.to_head, 100.0)];
    let rest = [calls, a].into_iter().flat_map(|f| [(f.to_content, 400.0), (f.to_end, 2600.0)]);
    for (latency, truth) in heads.into_iter().chain(rest) {
        assert_eq!((latency.count, latency.p99), (1, latency.p50));
        // A timer may fire a millisecond late.
        let told = millis(latency.p99);
        assert!((truth..=truth * 1.001 + 6.0).contains(&told), "{truth} ms: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_shows_as_trips_refusals_and_alerts() {
    let run = run();
    let failure = || json(10, 503, "{}");
    // Five failures in a row open the breaker of a: three of the first call, two of the second.
    run.upstreams.says("a", [failure(), failure(), failure(), failure(), failure()]);
    run.upstreams.says("b", [json(10, 200, ANSWER), json(10, 200, ANSWER), json(10, 200, ANSWER)]);
    for _ in 0..3 {
        assert_eq!(run.read().await, 200);
    }
    assert!(run.upstreams.nothing_left());
    let snapshot = run.monitor.snapshot();
    let [breaker] = &*snapshot.breakers else { panic!("{:?}", snapshot.breakers) };
    assert_eq!((&*breaker.key, breaker.state, breaker.trips), ("a", BreakerState::Open, 1));
    assert_eq!(snapshot.calls.hour.trips, 1);
    let layer = snapshot.layers.iter().find(|layer| layer.name == "circuit_breaker").unwrap();
    let a = &snapshot.target("a", "a-large").unwrap().series.hour;
    assert_eq!(layer.refusals.of(RefusalKind::Open), a.refusals.of(RefusalKind::Open));
    assert_eq!(a.outcomes.of(Class::Refused), a.refusals.total());
    assert!(a.refusals.of(RefusalKind::Open) >= 1);
    assert_eq!(a.to_head.count, 5, "a refusal has no time");
    let told = run.alerts.lock().unwrap().clone();
    assert_eq!(told, ["critical: target_out of circuit_breaker of a is 1 (limit 0)"], "before any tick");
    assert_eq!(snapshot.alerts[0].rule, Rule::TargetOut);
    let text = snapshot.prometheus();
    assert!(text.contains("seawall_breaker_state{breaker=\"circuit_breaker\",key=\"a\",state=\"open\"} 1\n"));
    assert!(
        text.contains("seawall_breaker_state{breaker=\"circuit_breaker\",key=\"a\",state=\"closed\"} 0\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_not_accepted_is_told_at_once() {
    let run = run();
    run.upstreams.says("a", [json(10, 401, "{}")]);
    run.upstreams.says("b", [json(10, 200, ANSWER)]);
    run.read().await;
    let told = run.alerts.lock().unwrap().clone();
    assert!(told.contains(&"critical: denied of a/a-large is 1 (limit 0)".to_owned()), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn handles_show_how_they_stand() {
    let run = run();
    run.upstreams.says("a", [json(60_000, 200, ANSWER)]);
    let mut call = Box::pin(run.ask());
    tokio::time::timeout(Duration::from_secs(1), call.as_mut()).await.unwrap_err();
    let snapshot = run.monitor.snapshot();
    assert_eq!((snapshot.calls_in_flight, snapshot.attempts_in_flight), (1, 1));
    assert_eq!(snapshot.watched[0].gauges, [Gauge::InFlight(1), Gauge::Limit(4), Gauge::Queued(0)]);
    drop(call);
    let snapshot = run.monitor.snapshot();
    assert_eq!(snapshot.watched[0].gauges[0], Gauge::InFlight(0));
    assert_eq!(snapshot.calls_in_flight, 0);
    run.monitor.unwatch("slots");
    assert!(run.monitor.snapshot().watched.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_driver_ticks() {
    let run = run();
    let failure = || json(10, 400, "{}");
    tokio::spawn(run.monitor.clone().run(Duration::from_secs(10)));
    run.upstreams.says("a", (0..5).map(|_| failure()));
    for _ in 0..5 {
        run.read().await;
    }
    assert!(run.alerts.lock().unwrap().is_empty(), "what callers do alerts nobody");
    for _ in 0..25 {
        run.upstreams.says("b", [json(10, 200, ANSWER)]);
        run.upstreams.says("a", [json(10, 404, r#"{"error":{"code":"model_not_found"}}"#)]);
        run.read().await;
    }
    tokio::time::sleep(Duration::from_secs(11)).await;
    let told = run.alerts.lock().unwrap().clone();
    assert_eq!(told, ["warning: fallbacks of calls is 25 (limit 5)"]);
}

fn is_send<F: Future + Send>(_: &F) {}

#[tokio::test]
async fn the_driver_can_be_spawned() {
    is_send(&Monitor::new().run(Duration::from_secs(1)));
}
