//! How an answer ends decides, not how it begins.

use std::future::{Ready, ready};
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;
use crate::call::Outcome;
use crate::refusal::Phase;
use crate::time;
use crate::{Class, Classify, Scope, StatusClassifier, Verdict, classify};

/// Two frames, then the end or a failure.
fn stream(breaks: bool) -> Body {
    let data = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
    let mut frames = vec![data("one"), data("two")];
    if breaks {
        frames.push(Err(BoxError::from("connection reset")));
    }
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

type Serve = dyn Fn() -> Result<Answer, BoxError> + Send + Sync;

#[derive(Clone)]
struct Answering(Arc<Serve>);

impl Service<Request<()>> for Answering {
    type Response = Answer;
    type Error = BoxError;
    type Future = Ready<Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), BoxError>> {
        Ok(()).into()
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready((self.0)())
    }
}

fn answering(serve: impl Fn() -> Result<Answer, BoxError> + Send + Sync + 'static) -> Answering {
    Answering(Arc::new(serve))
}

/// A 200 stream whose reader comes to this verdict while the body passes.
fn with_outcome(verdict: Option<Verdict>, finished: bool, breaks: bool) -> Answering {
    answering(move || {
        let outcome = Arc::new(Outcome::new(time::now()));
        if let Some(verdict) = verdict {
            outcome.set_verdict(verdict);
        }
        if finished {
            outcome.mark_finished();
        }
        let mut response = Response::new(stream(breaks));
        response.extensions_mut().insert(outcome);
        Ok(response)
    })
}

/// As if the verdict became known only while the body passes.
struct ByStatusAlone;

impl Classify<Answer, BoxError> for ByStatusAlone {
    fn classify(&self, result: Result<&Answer, &BoxError>) -> Verdict {
        match result {
            Ok(response) => Verdict::of_status(response.status()),
            Err(error) => StatusClassifier.classify(Err::<&Answer, _>(error)),
        }
    }
}

fn by_status_alone() -> CircuitBreakerBuilder<ByStatusAlone> {
    simple().classify(ByStatusAlone)
}

/// Failures in a row after one call whose body is read to its end.
async fn failures_after(inner: Answering) -> (usize, u64) {
    let layer = by_status_alone().build().unwrap();
    if let Ok(response) = layer.layer(inner).oneshot(Request::new(())).await {
        let _ = response.into_body().collect().await;
    }
    let snapshot = layer.gate().snapshot();
    (snapshot.consecutive_failures, snapshot.calls)
}

#[tokio::test(start_paused = true)]
async fn a_good_head_votes_only_when_its_body_ends() {
    let layer = simple().build().unwrap();
    let service = layer.layer(answering(|| Ok(Response::new(stream(false)))));
    let mut body = service.oneshot(Request::new(())).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(layer.gate().snapshot().calls, 0);
    while body.frame().await.is_some() {}
    assert_eq!(layer.gate().snapshot().calls, 1);
    assert_eq!(layer.gate().snapshot().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_is_one_failure() {
    assert_eq!(failures_after(answering(|| Ok(Response::new(stream(true))))).await, (1, 1));
    assert_eq!(failures_after(answering(|| Ok(Response::new(stream(false))))).await, (0, 1));
}

#[tokio::test(start_paused = true)]
async fn b151_an_error_event_inside_a_200_stream_is_a_failure() {
    let error = Verdict::new(Class::Transient);
    assert_eq!(failures_after(with_outcome(Some(error), false, false)).await, (1, 1));
    assert_eq!(failures_after(with_outcome(Some(Verdict::SUCCESS), true, false)).await, (0, 1));
    assert_eq!(
        failures_after(with_outcome(None, false, false)).await,
        (0, 1),
        "nothing was read: the head counts"
    );
}

#[tokio::test(start_paused = true)]
async fn b026_what_was_read_of_head_and_trailers_counts() {
    let layer = simple().build().unwrap();
    let unavailable = with_outcome(Some(Verdict::new(Class::Transient)), false, false);
    let head = layer.layer(unavailable).oneshot(Request::new(())).await.unwrap();
    assert_eq!(layer.gate().snapshot().failures, 1, "it was in the head: nothing waits for the body");
    drop(head);
    assert_eq!(layer.gate().snapshot().abandoned, 0);
}

#[tokio::test(start_paused = true)]
async fn what_breaks_after_its_last_event_was_complete() {
    assert_eq!(failures_after(with_outcome(Some(Verdict::SUCCESS), true, true)).await, (0, 1));
    assert_eq!(failures_after(with_outcome(Some(Verdict::SUCCESS), false, true)).await, (1, 1), "it was not");
    let throttled = Verdict::new(Class::Throttled);
    assert_eq!(failures_after(with_outcome(Some(throttled), false, true)).await, (0, 0), "no vote");
}

#[tokio::test(start_paused = true)]
async fn a_failing_head_decides_also_if_its_body_is_dropped() {
    let layer = simple().build().unwrap();
    let failing = answering(|| Ok(Response::builder().status(500).body(stream(false)).unwrap()));
    for _ in 0..3 {
        drop(layer.layer(failing.clone()).oneshot(Request::new(())).await);
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
    assert_eq!(layer.gate().snapshot().abandoned, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_dropped_on_its_way_is_no_vote() {
    let layer = simple().build().unwrap();
    for frames in [0, 1] {
        let service = layer.layer(answering(|| Ok(Response::new(stream(false)))));
        let mut body = service.oneshot(Request::new(())).await.unwrap().into_body();
        for _ in 0..frames {
            body.frame().await.unwrap().unwrap();
        }
        tokio::time::advance(secs(3600)).await;
    }
    let snapshot = layer.gate().snapshot();
    assert_eq!((snapshot.calls, snapshot.abandoned), (0, 2), "however long it took: a head had come");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_at_the_last_event_or_after_an_error_event_is_not_leaving() {
    for (verdict, failures) in [(Verdict::SUCCESS, 0), (Verdict::new(Class::Transient), 1)] {
        let layer = by_status_alone().build().unwrap();
        let inner = with_outcome(Some(verdict), failures == 0, false);
        drop(layer.layer(inner).oneshot(Request::new(())).await.unwrap());
        let snapshot = layer.gate().snapshot();
        assert_eq!((snapshot.calls, snapshot.failures), (1, failures));
    }
}

#[tokio::test(start_paused = true)]
async fn b194_a_body_that_fails_after_its_head_is_counted_once() {
    let layer = simple().consecutive_failures(4, secs(60)).build().unwrap();
    let service = layer.layer(answering(|| Ok(Response::new(stream(true)))));
    for _ in 0..3 {
        let mut body = service.clone().oneshot(Request::new(())).await.unwrap().into_body();
        while body.frame().await.is_some() {}
    }
    let snapshot = layer.gate().snapshot();
    assert_eq!((snapshot.state, snapshot.calls, snapshot.failures), (BreakerState::Closed, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_or_denied_account_opens_at_once_where_it_is_the_upstreams_own() {
    for status in [401, 402] {
        let layer = simple().build().unwrap();
        let service = over(&layer, &Upstream::answering(status));
        assert_eq!(call(&service).await, Ok(status));
        assert!(call(&service).await.is_err());
        let callers = simple().own_credential(false).build().unwrap();
        let service = over(&callers, &Upstream::answering(status));
        for _ in 0..10 {
            assert_eq!(call(&service).await, Ok(status));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_opens_until_its_hint() {
    let exhausted = Verdict::new(Class::Exhausted).with_scope(Scope::Model).with_hint(Some(secs(7)));
    let layer = simple().build().unwrap();
    drop(layer.layer(with_outcome(Some(exhausted), false, false)).oneshot(Request::new(())).await);
    assert_eq!(layer.gate().snapshot().open_left, Some(secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_ours_is_a_failure_and_a_refusal_of_ours_is_no_vote() {
    let refusing = |kind| answering(move || Err(Refusal::new(kind).into()));
    assert_eq!(failures_after(refusing(RefusalKind::TimedOut(Phase::Head))).await, (1, 1));
    for kind in [RefusalKind::Full, RefusalKind::Open, RefusalKind::BudgetExhausted, RefusalKind::RateLimited]
    {
        assert_eq!(failures_after(refusing(kind)).await, (0, 0), "{kind:?}");
    }
    assert_eq!(failures_after(answering(|| Err("connection reset".into()))).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_a_layer_below_refuses_gives_its_slot_back() {
    let layer = simple().probes(1).build().unwrap();
    open(&layer, &Upstream::default()).await;
    tokio::time::advance(secs(30)).await;
    let full = layer.layer(answering(|| Err(Refusal::new(RefusalKind::Full).into())));
    for _ in 0..10 {
        let refusal = call(&full).await.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::Full, "not its own");
    }
    assert_eq!(layer.gate().state(), BreakerState::HalfOpen);
}

async fn slow_calls(until: SlowUntil, head: Duration, rest: Duration, sent_before: Option<Duration>) -> u64 {
    let layer = simple().slow_call_rate(secs(1), 1.0).slow_until(until).build().unwrap();
    let service = layer.layer(tower::service_fn(move |_: Request<()>| async move {
        let outcome = sent_before.map(|before| Arc::new(Outcome::new(time::now() - before)));
        tokio::time::sleep(head).await;
        let mut response = Response::new(stream(false));
        if let Some(outcome) = outcome {
            outcome.mark_head(time::now());
            response.extensions_mut().insert(outcome);
        }
        Ok::<_, BoxError>(response)
    }));
    let response = service.oneshot(Request::new(())).await.unwrap();
    tokio::time::sleep(rest).await;
    let _ = response.into_body().collect().await;
    layer.gate().snapshot().slow_calls
}

#[tokio::test(start_paused = true)]
async fn a_call_is_slow_by_the_part_of_it_that_is_asked_for() {
    let (short, long) = (millis(10), secs(2));
    assert_eq!(slow_calls(SlowUntil::End, short, long, None).await, 1);
    assert_eq!(slow_calls(SlowUntil::Head, short, long, None).await, 0, "a long stream is not slow");
    assert_eq!(slow_calls(SlowUntil::Head, long, short, None).await, 1);
    assert_eq!(slow_calls(SlowUntil::Content, long, short, None).await, 1);
    assert_eq!(slow_calls(SlowUntil::End, short, short, None).await, 0);
}

#[tokio::test(start_paused = true)]
async fn where_an_outcome_says_when_it_was_sent_the_time_begins_there() {
    tokio::time::advance(secs(10)).await;
    let (short, long) = (millis(10), secs(2));
    assert_eq!(slow_calls(SlowUntil::End, short, short, Some(long)).await, 1);
    assert_eq!(slow_calls(SlowUntil::Head, short, short, Some(long)).await, 1);
    assert_eq!(slow_calls(SlowUntil::Head, short, long, Some(Duration::ZERO)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn b188_a_panic_in_a_key_or_settings_closure_harms_that_call_alone() {
    let panics = Arc::new(AtomicUsize::new(0));
    let (in_key, in_settings) = (panics.clone(), panics.clone());
    let layer = simple()
        .keyed_by(move |_: &Request<()>| {
            assert_ne!(in_key.load(Ordering::SeqCst), 1, "a bug in the key");
            Some("key".into())
        })
        .settings_by_key(move |_| {
            assert_ne!(in_settings.load(Ordering::SeqCst), 2, "a bug in the settings");
            Settings::default()
        })
        .build()
        .unwrap();
    let service = over(&layer, &Upstream::answering(200));
    for bug in [1, 2] {
        panics.store(bug, Ordering::SeqCst);
        assert!(AssertUnwindSafe(call(&service)).catch_unwind().await.is_err());
    }
    panics.store(0, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(call(&service).await, Ok(200));
    }
    assert_eq!(layer.gate().get(&"key".into()).snapshot().calls, 10);
}

#[tokio::test(start_paused = true)]
async fn b188_a_classifier_that_panics_on_a_probe_gives_the_slot_back() {
    let panics = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let bug = panics.clone();
    let layer = simple()
        .probes(1)
        .classify(classify::responses(move |response: &Answer| {
            assert!(!bug.load(Ordering::SeqCst), "a bug");
            Verdict::of_status(response.status())
        }))
        .observer(|_: &Event<'_>| panic!("another bug, in the observer"))
        .build()
        .unwrap();
    let upstream = Upstream::answering(503);
    let service = layer.layer(upstream.service());
    for _ in 0..3 {
        service.clone().oneshot(Request::new(())).await.unwrap();
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
    tokio::time::advance(secs(30)).await;
    upstream.answer(200);
    panics.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        let call = AssertUnwindSafe(service.clone().oneshot(Request::new(()))).catch_unwind().await;
        assert!(call.is_err(), "the call that met the bug");
        assert_eq!(layer.gate().snapshot().probes_out, 0);
        assert_eq!(layer.gate().state(), BreakerState::HalfOpen);
    }
    panics.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        service.clone().oneshot(Request::new(())).await.unwrap();
    }
    assert_eq!(layer.gate().state(), BreakerState::Closed);
}
