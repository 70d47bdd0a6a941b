//! How single calls end, without a stack around them.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{Call, Outcome};
use seawall::monitor::{Event, Fanout, Monitor};
use seawall::{BoxError, Class, RefusalKind, Verdict, classify};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{Probe, TestBody, read};

fn ended(monitor: &Monitor) -> Vec<(Class, u64)> {
    let snapshot = monitor.snapshot();
    let outcomes = &snapshot.calls.since_start.outcomes;
    assert_eq!(snapshot.calls_in_flight, 0);
    outcomes.iter().filter(|(_, count)| *count > 0).collect()
}

fn answering(
    answer: impl Fn() -> Result<Response<TestBody>, BoxError> + Clone + Send + 'static,
) -> impl tower::Service<Request<()>, Response = Response<TestBody>, Error = BoxError, Future: Send> + Clone {
    service_fn(move |_: Request<()>| std::future::ready(answer()))
}

#[tokio::test]
async fn b194_each_call_counts_once_however_it_ends() {
    let good = || Ok(Response::new(TestBody::of(&["a", "b"])));
    let broken = || Ok(Response::new(TestBody::of(&["a"]).with_error()));
    let failed = || Err("connection refused".into());
    let monitor = Monitor::new();
    let response = monitor.layer().layer(answering(good)).oneshot(Request::new(())).await.unwrap();
    assert_eq!(monitor.snapshot().calls_in_flight, 1);
    read(response.into_body()).await;
    assert_eq!(ended(&monitor), [(Class::Success, 1)]);
    let response = monitor.layer().layer(answering(broken)).oneshot(Request::new(())).await.unwrap();
    read(response.into_body()).await;
    assert!(monitor.layer().layer(answering(failed)).oneshot(Request::new(())).await.is_err());
    assert_eq!(ended(&monitor), [(Class::Success, 1), (Class::Transient, 2)]);
}

#[tokio::test]
async fn b037_a_caller_who_leaves_is_counted_apart() {
    let monitor = Monitor::new();
    let never = service_fn(|_: Request<()>| std::future::pending::<Result<Response<TestBody>, BoxError>>());
    for _ in 0..20 {
        let mut call = Box::pin(monitor.layer().layer(never).oneshot(Request::new(())));
        assert!(crate::support::poll_once(call.as_mut()).is_pending());
    }
    assert_eq!(ended(&monitor), [(Class::Abandoned, 20)]);
    assert_eq!(monitor.snapshot().calls.minute.success_rate(), None);
}

#[tokio::test]
async fn a_failed_response_that_nobody_reads_is_a_failure() {
    let monitor = Monitor::new();
    let failing = || Ok(Response::builder().status(503).body(TestBody::of(&["busy"]))?);
    drop(monitor.layer().layer(answering(failing)).oneshot(Request::new(())).await.unwrap());
    assert_eq!(ended(&monitor), [(Class::Transient, 1)]);
    assert_eq!(monitor.snapshot().calls.minute.to_end.count, 0, "it has no end");
}

#[tokio::test]
async fn a_stream_that_is_complete_is_a_success_though_its_rest_is_dropped() {
    let monitor = Monitor::new();
    let finished = || {
        let outcome = Arc::new(Outcome::new(seawall::time::now()));
        outcome.mark_finished();
        outcome.set_verdict(Verdict::SUCCESS);
        let mut response = Response::new(TestBody::of(&["a"]));
        response.extensions_mut().insert(outcome);
        Ok(response)
    };
    drop(monitor.layer().layer(answering(finished)).oneshot(Request::new(())).await.unwrap());
    assert_eq!(ended(&monitor), [(Class::Success, 1)]);
}

#[tokio::test]
async fn a_panic_is_a_failure_of_that_call_alone() {
    let monitor = Monitor::new();
    let probe = Probe::new();
    *probe.script.panic_in.lock().unwrap() = Some(crate::support::PanicIn::Future);
    let service = monitor.layer().layer(probe);
    let call = tokio::spawn(service.oneshot(Request::new(())));
    assert!(call.await.is_err_and(|error| error.is_panic()));
    assert_eq!(ended(&monitor), [(Class::Transient, 1)]);
}

#[tokio::test]
async fn a_refusal_told_as_a_response_is_a_refusal() {
    let monitor = Monitor::new();
    let server = ServiceBuilder::new()
        .layer(monitor.layer().respond())
        .layer(BulkheadLayer::new(0).respond())
        .service(answering(|| Ok(Response::new(TestBody::of(&[])))));
    let response = server.oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), 503);
    drop(response);
    assert_eq!(ended(&monitor), [(Class::Refused, 1)]);
    assert_eq!(monitor.snapshot().calls.minute.refusals.of(RefusalKind::Full), 1);
}

struct Foreign(&'static str);

#[tokio::test]
async fn own_types_are_classified_by_a_closure() {
    let monitor = Monitor::new();
    let layer = monitor.layer().blind().at_head().classify(classify::from_fn(
        |answer: Result<&String, &BoxError>| match answer {
            Ok(text) if text == "busy" => Verdict::new(Class::Throttled),
            Ok(_) => Verdict::SUCCESS,
            Err(_) => Verdict::new(Class::Transient),
        },
    ));
    let service = layer.layer(service_fn(async |Foreign(text)| Ok::<_, BoxError>(text.to_owned())));
    service.clone().oneshot(Foreign("busy")).await.unwrap();
    service.oneshot(Foreign("fine")).await.unwrap();
    assert_eq!(ended(&monitor), [(Class::Success, 1), (Class::Throttled, 1)]);
}

#[tokio::test]
async fn models_that_callers_make_up_are_one_target() {
    let monitor = Monitor::new();
    let unknown = || Ok(Response::builder().status(404).body(TestBody::of(&[]))?);
    let request = |model: &str| {
        let mut call = Call::default();
        call.model = Some(model.into());
        let mut request = Request::new(());
        request.extensions_mut().insert(call);
        request
    };
    let service = monitor.attempts().layer(answering(unknown));
    for n in 0..1000 {
        drop(service.clone().oneshot(request(&format!("made up {n}"))).await.unwrap());
    }
    let good = monitor.attempts().layer(answering(|| Ok(Response::new(TestBody::of(&[]).exact()))));
    for n in 0..100 {
        read(good.clone().oneshot(request(&format!("real {n}"))).await.unwrap().into_body()).await;
    }
    let snapshot = monitor.snapshot();
    assert_eq!(snapshot.target("default", "other").unwrap().series.minute.outcomes.of(Class::Unfit), 1000);
    assert_eq!(snapshot.target("default", "real 3").unwrap().series.minute.count(), 1);
    assert!(snapshot.targets.len() <= 65, "{}", snapshot.targets.len());
    assert_eq!(snapshot.attempts.minute.count(), 1100, "none is lost");
}

#[test]
fn observers_are_many_and_one_that_panics_harms_nobody() {
    let heard: Arc<Mutex<Vec<&str>>> = Arc::default();
    let hear = |name: &'static str| {
        let heard = heard.clone();
        move |_: &Event<'_>| heard.lock().unwrap().push(name)
    };
    let panics = |_: &Event<'_>| panic!("an observer's own fault");
    let layer = BulkheadLayer::builder(0)
        .observer(hear("first"))
        .observer(panics)
        .observer(Fanout::new().and(panics).and(hear("second")))
        .build()
        .unwrap();
    let service = layer.at_head().layer(service_fn(async |()| Ok::<_, BoxError>(())));
    let refused = futures_util::FutureExt::now_or_never(service.oneshot(())).unwrap();
    assert!(refused.is_err());
    assert_eq!(*heard.lock().unwrap(), ["first", "second"]);
}

#[test]
fn a_monitor_is_an_observer_of_refusals() {
    let monitor = Monitor::new();
    let layer = BulkheadLayer::builder(0).name("mine").observer(monitor.clone()).build().unwrap();
    let service = layer.at_head().layer(service_fn(async |()| Ok::<_, BoxError>(())));
    for _ in 0..3 {
        futures_util::FutureExt::now_or_never(service.clone().oneshot(())).unwrap().unwrap_err();
    }
    let snapshot = monitor.snapshot();
    assert_eq!((&*snapshot.layers[0].name, snapshot.layers[0].refusals.total()), ("mine", 3));
    assert!(snapshot.to_string().contains("mine: {\"full\": 3} refused"));
}
