//! What the layer offers beside deciding.

use super::*;
use crate::call::Call;
use crate::gate::{ByModel, Gate, Keyed, PerKey};
use crate::{Class, Verdict, classify};

#[tokio::test(start_paused = true)]
async fn a_refusal_says_who_is_open_and_how_long() {
    let layer = simple().name("openai").build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(10)).await;
    let refusal = call(&over(&layer, &upstream)).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.name()), (RefusalKind::Open, "openai"));
    assert_eq!(refusal.retry_after(), Some(secs(20)));
    assert_eq!(upstream.calls(), 3, "the upstream was not asked");
}

#[tokio::test(start_paused = true)]
async fn each_decision_is_one_event() {
    let log = Log::default();
    let layer = simple().probe_successes(1).observer(log.observer()).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    let service = over(&layer, &upstream);
    assert!(call(&service).await.is_err());
    tokio::time::advance(secs(30)).await;
    assert!(call(&service).await.is_ok());
    tokio::time::advance(secs(60)).await;
    upstream.answer(200);
    assert!(call(&service).await.is_ok());
    layer.gate().force_open();
    layer.gate().reset();
    layer.gate().reset();
    let expected = [
        "Closed Open Consecutive",
        "refused Open",
        "Open HalfOpen TimeOver",
        "HalfOpen Open ProbeFailed",
        "Open HalfOpen TimeOver",
        "HalfOpen Closed ProbesSucceeded",
        "Closed Open Handle",
        "Open Closed Handle",
    ];
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn one_that_only_observes_decides_and_reports_but_refuses_nothing() {
    let log = Log::default();
    let layer =
        simple().probes(1).probe_successes(1).observe_only(true).observer(log.observer()).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    let service = over(&layer, &upstream);
    for _ in 0..5 {
        assert_eq!(call(&service).await, Ok(503));
    }
    assert_eq!(log.count("would refuse Open"), 5);
    assert_eq!(log.count("refused Open"), 0);
    assert_eq!(layer.gate().snapshot().open_left, Some(secs(30)), "what it let through has no vote");
    assert!(!Gate::<Request<()>>::shut(layer.gate()));
    tokio::time::advance(secs(30)).await;
    upstream.answer(200);
    assert_eq!(call(&service).await, Ok(200));
    assert_eq!(layer.gate().state(), BreakerState::Closed, "its probes do");
}

#[tokio::test(start_paused = true)]
async fn a_marked_call_passes_an_open_breaker() {
    let layer = simple().probe_successes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    upstream.answer(200);
    let service = over(&layer, &upstream);
    assert!(ask(&service, Request::new(())).await.is_err());
    let mut marked = Request::new(());
    marked.extensions_mut().insert(Call { probe: true, ..Call::default() });
    assert_eq!(ask(&service, marked).await, Ok(200));
    assert_eq!(layer.gate().state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn all_services_of_a_layer_share_its_state_and_two_layers_do_not() {
    let (layer, other) = (simple().build().unwrap(), simple().build().unwrap());
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    assert!(call(&over(&layer, &upstream)).await.is_err());
    assert!(call(&over(&layer.clone(), &upstream)).await.is_err());
    assert!(call(&over(&CircuitBreakerLayer::from_gate(layer.gate().clone()), &upstream)).await.is_err());
    assert!(call(&over(&other, &upstream)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn settings_can_differ_by_key() {
    let layer = simple()
        .keyed_by(|request: &Request<()>| request.uri().host().map(Into::into))
        .settings_by_key(|key| match key.as_str() {
            "weak" => Settings::builder().consecutive_failures(1, secs(60)).build().unwrap(),
            _ => Settings::default(),
        })
        .build()
        .unwrap();
    let upstream = Upstream::answering(503);
    let service = over(&layer, &upstream);
    let to = |host: &str| Request::builder().uri(format!("http://{host}/")).body(()).unwrap();
    for host in ["weak", "strong"] {
        assert_eq!(ask(&service, to(host)).await, Ok(503));
    }
    assert!(ask(&service, to("weak")).await.is_err());
    assert_eq!(ask(&service, to("strong")).await, Ok(503));
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_at_rest_and_held_by_nobody_makes_room() {
    let template = simple().build().unwrap().gate().clone();
    let keyed = Keyed::new(template, ByModel, 2.try_into().unwrap());
    let (first, _held) = (keyed.get(&"first".into()), keyed.get(&"held".into()));
    assert!(!first.at_rest(), "somebody holds it");
    first.force_open();
    drop(first);
    keyed.get(&"third".into());
    assert!(keyed.find(&"first".into()).is_some(), "open: it is not forgotten");
    keyed.get(&"first".into()).reset();
    keyed.get(&"third".into());
    assert!(keyed.find(&"first".into()).is_none());
    assert!(keyed.find(&"third".into()).is_some());
    assert_eq!(keyed.len(), 2);
}

#[derive(Debug)]
struct Reply {
    busy: bool,
}

#[tokio::test(start_paused = true)]
async fn it_serves_own_types_of_any_kind() {
    struct Ask;
    let layer = simple()
        .classify(classify::from_fn(|result: Result<&Reply, &BoxError>| match result {
            Ok(Reply { busy: false }) => Verdict::SUCCESS,
            _ => Verdict::new(Class::Transient),
        }))
        .blind()
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(tower::service_fn(|_: Ask| async { Ok::<_, BoxError>(Reply { busy: true }) }));
    for _ in 0..3 {
        assert!(service.clone().oneshot(Ask).await.unwrap().busy);
    }
    assert!(service.oneshot(Ask).await.is_err());
    assert_eq!(layer.gate().state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn on_a_server_a_refusal_is_an_answer() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    let response = layer.respond().layer(upstream.service()).oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "30");
}

#[tokio::test(start_paused = true)]
async fn throttling_does_as_configured() {
    for (on_throttled, failures, state) in [
        (OnThrottled::Neutral, 0, BreakerState::Closed),
        (OnThrottled::Failure, 1, BreakerState::Closed),
        (OnThrottled::Opens, 1, BreakerState::Open),
    ] {
        let layer = simple().throttled(on_throttled).build().unwrap();
        assert_eq!(call(&over(&layer, &Upstream::answering(429))).await, Ok(429));
        let snapshot = layer.gate().snapshot();
        assert_eq!((snapshot.failures, snapshot.state), (failures, state), "{on_throttled:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn looking_changes_nothing() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(31)).await;
    for _ in 0..10 {
        assert_eq!(layer.gate().state(), BreakerState::Open);
        assert_eq!(layer.gate().snapshot().open_left, Some(Duration::ZERO));
        assert!(format!("{:?}", layer.gate()).contains("Open"));
        assert!(!Gate::<Request<()>>::shut(layer.gate()));
    }
    assert_eq!(layer.gate().snapshot().generation, 1);
    assert!(call(&over(&layer, &upstream)).await.is_ok(), "the probe is the call's to take");
}

#[test]
fn a_layer_is_built_before_any_runtime_is_there() {
    let layer = CircuitBreakerLayer::new();
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    assert_eq!(layer.gate().name(), "circuit_breaker");
    assert_eq!(layer.gate().key(), None);
}

#[test]
fn a_wrong_setting_of_a_layer_is_named() {
    let error = CircuitBreakerLayer::builder().failure_rate(f64::NAN).build().unwrap_err();
    assert_eq!(error.field(), "failure_rate");
    let error = CircuitBreakerLayer::builder().probes(0).keyed(ByModel).build().unwrap_err();
    assert_eq!(error.field(), "probes");
    let error =
        CircuitBreakerLayer::builder().settings(Settings::fast().window(Duration::ZERO)).build().unwrap_err();
    assert_eq!(error.field(), "window");
}
