//! Readiness, cancellation, copies, and policies that misbehave.

use std::future::ready;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Waker;

use futures_util::FutureExt;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt, service_fn};

use super::*;
use crate::call::Describe;
use crate::gate::{Admission, Gate, GateLayer};
use crate::verdict::{Verdict, classify};

/// A request that counts how often it was cloned.
#[derive(Default)]
struct Counted(Arc<AtomicUsize>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, SeqCst);
        Self(self.0.clone())
    }
}

impl Describe for Counted {}

type Result3 = Result<u32, BoxError>;

/// An own type's policy: zero is a failure that may pass.
fn own() -> RetryPolicyBuilder<impl crate::Classify<u32, BoxError>> {
    steady().classify(classify::responses(|answer: &u32| match answer {
        0 => Verdict::new(crate::Class::Transient),
        _ => Verdict::SUCCESS,
    }))
}

#[tokio::test(start_paused = true)]
async fn no_copy_is_made_where_no_attempt_can_follow() {
    for (attempts, answers, clones) in [(1, 0, 0), (1, 7, 0), (2, 7, 1), (2, 0, 1), (3, 0, 2)] {
        let (request, calls) = (Counted::default(), AtomicUsize::new(0));
        let count = request.0.clone();
        let policy = own().attempts(attempts).build().unwrap();
        let service = service_fn(|_: Counted| {
            calls.fetch_add(1, SeqCst);
            ready(Result3::Ok(answers))
        });
        let answer = RetryLayer::new(policy).layer(service).oneshot(request).await;
        assert_eq!(answer.unwrap(), answers);
        assert_eq!(count.load(SeqCst), clones, "{attempts} attempts, answer {answers}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_call_allocates_nothing() {
    let policy = own().build().unwrap();
    let mut service = RetryLayer::new(policy).layer(service_fn(|n: u32| ready(Result3::Ok(n))));
    let call =
        |service: &mut Retry<_, _>| service.ready().now_or_never().unwrap().unwrap().call(7).now_or_never();
    call(&mut service);
    let counted = allocation_counter::measure(|| {
        assert_eq!(call(&mut service).unwrap().unwrap(), 7);
    });
    assert_eq!(counted.count_total, 0);
}

#[tokio::test(start_paused = true)]
async fn b173_every_attempt_goes_to_an_instance_that_was_ready() {
    // The upstream panics if it is called without being ready; the limit, if its permit is not taken first.
    let upstream = Upstream::statuses([503, 503, 200]);
    let limited = ConcurrencyLimit::new(upstream.clone(), 1);
    let buffered = tower::buffer::Buffer::new(limited, 4);
    let service = RetryLayer::new(steady().build().unwrap()).layer(buffered);
    assert_eq!(service.oneshot(post()).await.unwrap().status(), 200);
    assert_eq!(upstream.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reserved_during_the_wait() {
    let upstream = Upstream::statuses([503, 503, 200]);
    let limited = ConcurrencyLimit::new(upstream.clone(), 1);
    let mut service = RetryLayer::new(steady().build().unwrap()).layer(limited.clone());
    // The retry's own handle takes the only slot when it is polled ready, and its call gives it back.
    let call = tokio::spawn(service.ready().await.unwrap().call(post()));
    tokio::time::sleep(ms(100)).await;
    let mut other = limited.clone();
    other.ready().now_or_never().expect("the slot is free while the other waits").unwrap();
    other.call(post()).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert_eq!(upstream.gaps(), [ms(100), ms(400)]);
}

/// A service whose readiness fails from a certain poll on.
#[derive(Clone)]
struct Dying(Arc<AtomicUsize>);

impl Service<u32> for Dying {
    type Response = u32;
    type Error = BoxError;
    type Future = std::future::Ready<Result3>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let alive = self.0.fetch_add(1, SeqCst) == 0;
        Poll::Ready(if alive { Ok(()) } else { Err("the worker is gone".into()) })
    }

    fn call(&mut self, _request: u32) -> Self::Future {
        ready(Ok(0))
    }
}

#[tokio::test(start_paused = true)]
async fn b182_a_readiness_error_ends_the_call_unchanged() {
    let polls = Arc::new(AtomicUsize::new(0));
    let service = RetryLayer::new(own().attempts(9).build().unwrap()).layer(Dying(polls.clone()));
    assert_eq!(service.clone().oneshot(1).await.unwrap_err().to_string(), "the worker is gone");
    assert_eq!(polls.load(SeqCst), 2, "and it is not asked again");
    assert_eq!(
        service.oneshot(1).await.unwrap_err().to_string(),
        "the worker is gone",
        "from poll_ready too"
    );
}

#[tokio::test(start_paused = true)]
async fn b187_dropped_during_the_wait_nothing_goes_on() {
    let upstream = Upstream::statuses([503]);
    let backoff = Backoff::fixed(secs(60)).cap(secs(60)).jitter(Jitter::None);
    let policy = steady().backoff(backoff).build().unwrap();
    let budget = policy.budget().unwrap().clone();
    let mut call = Box::pin(RetryLayer::new(policy).layer(upstream.clone()).oneshot(post()));
    assert!(tokio::time::timeout(secs(90), call.as_mut()).await.is_err());
    assert_eq!(upstream.calls(), 2);
    drop(call);
    tokio::time::sleep(secs(600)).await;
    assert_eq!(upstream.calls(), 2);
    assert_eq!(budget.left_in_thousandths(None), 8000, "what was taken stays taken");
}

#[tokio::test(start_paused = true)]
async fn b184_dropped_while_it_calls_the_inner_future_goes_too() {
    let alive = Arc::new(());
    let held = alive.clone();
    let service = service_fn(move |_: u32| {
        let held = held.clone();
        async move {
            let answer = std::future::pending::<Result3>().await;
            drop(held);
            answer
        }
    });
    let mut call = Box::pin(RetryLayer::new(own().build().unwrap()).layer(service).oneshot(1));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(Arc::strong_count(&alive), 2 + 1, "the call, and the closure with its template");
    drop(call);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_always_says_again_is_bounded_and_lets_others_run() {
    let calls = AtomicUsize::new(0);
    let service = service_fn(|_: u32| {
        calls.fetch_add(1, SeqCst);
        ready(Result3::Ok(0))
    });
    let always = from_fn(|_: &mut Attempt<'_, u32, u32, BoxError>| Decision::Again { after: Duration::ZERO });
    assert_eq!(RetryLayer::new(always).layer(service).oneshot(1).await.unwrap(), 0);
    assert_eq!(calls.swap(0, SeqCst), 3);
    // Without a bound of attempts worth the name, whoever wants it to end must be able to run.
    let endless = RetryLayer::new(always.attempts(NonZeroU32::MAX)).layer(service);
    let call = endless.oneshot(1);
    let mut call = std::pin::pin!(call);
    assert!(call.as_mut().now_or_never().is_none(), "it yields between two attempts");
    assert_eq!(calls.load(SeqCst), 1);
    for polls in 2..9 {
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(calls.load(SeqCst), polls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_says_again_past_the_deadline_or_for_ever_is_not_obeyed() {
    #[derive(Clone)]
    struct Dated(crate::Deadline);
    impl Describe for Dated {
        fn deadline(&self) -> Option<crate::Deadline> {
            Some(self.0)
        }
    }
    let service = service_fn(|_: Dated| ready(Result3::Ok(0)));
    let after = |after| from_fn(move |_: &mut Attempt<'_, Dated, u32, BoxError>| Decision::Again { after });
    let start = time::now();
    for wait in [secs(5), secs(6), Duration::MAX] {
        let request = Dated(crate::Deadline::within(secs(5)));
        assert_eq!(RetryLayer::new(after(wait)).layer(service).oneshot(request).await.unwrap(), 0);
        assert_eq!(time::now(), start, "{wait:?}");
    }
    let never = Dated(crate::Deadline::NEVER);
    assert_eq!(RetryLayer::new(after(Duration::MAX)).layer(service).oneshot(never).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_panics_harms_its_call_alone() {
    let bomb = from_fn(|attempt: &mut Attempt<'_, u32, u32, BoxError>| match attempt.request() {
        0 => panic!("scripted"),
        _ => Decision::Stop(StopCause::Answered),
    });
    let service = RetryLayer::new(bomb).layer(service_fn(|n: u32| ready(Result3::Ok(n))));
    assert!(tokio::spawn(service.clone().oneshot(0)).await.unwrap_err().is_panic());
    assert_eq!(service.oneshot(7).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_an_own_type_behind_a_pointer_sees_and_edits_each_attempt() {
    struct Escalate;
    impl Policy<u32, u32, BoxError> for Escalate {
        fn verdict(&self, _result: Result<&u32, &BoxError>) -> Verdict {
            Verdict::SUCCESS
        }
        fn decide(&self, attempt: &mut Attempt<'_, u32, u32, BoxError>) -> Decision {
            assert_eq!(attempt.number(), *attempt.request());
            assert_eq!(attempt.waited(), (attempt.number() > 1).then_some(ms(10)));
            *attempt.request_mut() += 1;
            Decision::Again { after: ms(10) }
        }
        fn copy(&self, request: &u32) -> Option<u32> {
            Some(*request)
        }
    }
    let policy: Arc<dyn Policy<u32, u32, BoxError> + Send + Sync> = Arc::new(Escalate);
    let service = RetryLayer::new(policy).layer(service_fn(|n: u32| ready(Result3::Ok(n))));
    assert_eq!(tokio::spawn(service.oneshot(1)).await.unwrap().unwrap(), 3);
}

/// Refuses all but the first two.
#[derive(Clone, Default)]
struct TwoOnly(Arc<AtomicUsize>);

impl<Req> Gate<Req> for TwoOnly {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    fn admit(&self, _request: &mut Req) -> Admission<(), Self::Wait> {
        match self.0.fetch_add(1, SeqCst) {
            0 | 1 => Admission::Now(()),
            _ => Admission::Refused(Refusal::new(RefusalKind::Open)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b016_over_a_real_gate_two_calls_reach_the_upstream() {
    let upstream = Upstream::statuses([503]);
    let layer = RetryLayer::new(steady().attempts(5).build().unwrap());
    let service = layer.layer(GateLayer::from_gate(TwoOnly::default()).layer(upstream.clone()));
    let error = service.oneshot(post()).await.unwrap_err();
    assert_eq!(upstream.calls(), 2);
    let refusal = crate::refusal::find(&*error).unwrap();
    assert_eq!(refusal.previous().unwrap().status().map(|status| status.as_u16()), Some(503));
}

#[tokio::test(start_paused = true)]
async fn clients_of_one_policy_and_of_its_clones_do_not_retry_in_step() {
    let policy = RetryPolicy::builder().ambiguous(true).seed(7).build().unwrap();
    let gap = async |policy: RetryPolicy| {
        let upstream = Upstream::statuses([503, 200]);
        RetryLayer::new(policy).layer(upstream.clone()).oneshot(post()).await.unwrap();
        upstream.gaps()[0]
    };
    let mut gaps = Vec::new();
    for _ in 0..8 {
        gaps.push(gap(policy.clone()).await);
    }
    gaps.sort_unstable();
    gaps.dedup();
    assert!(gaps.len() >= 7, "{gaps:?}");
}

#[test]
fn the_layer_the_service_and_the_future_can_be_sent() {
    fn send<T: Send>(_: &T) {}
    // A service that is `Send` alone is enough.
    let inner = tower::util::BoxCloneService::new(service_fn(|n: u32| ready(Result3::Ok(n))));
    let layer = RetryLayer::new(own().build().unwrap());
    let mut service = layer.layer(inner);
    send(&layer);
    send(&service);
    send(&service.call(1));
}
