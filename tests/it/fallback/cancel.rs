//! Both loops over all that holds something: dropped after any number of polls, or panicking anywhere, all of it comes back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body::Body;
use seawall::bulkhead::{Bulkhead, BulkheadLayer};
use seawall::call::{IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer};
use seawall::fallback::{Commit, FallbackLayer};
use seawall::gate::GateLayer;
use seawall::retry::{Backoff, Jitter, RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use tower::{ServiceBuilder, ServiceExt};

use super::provider::*;
use crate::support::{Answer, TestGate, poll_once};

/// All that is held of a call, below the loops.
struct Gauges {
    providers: Providers,
    bulkhead: Bulkhead,
    breaker: CircuitBreaker,
    gate: TestGate,
}

impl Gauges {
    fn are_back(&self, when: &str) {
        assert_eq!((self.bulkhead.in_flight(), self.bulkhead.queued()), (0, 0), "{when}: slots");
        assert_eq!(self.gate.held(), 0, "{when}: permits");
        assert_eq!(self.providers.alive.now(), 0, "{when}: calls and bodies");
        assert_eq!(self.breaker.snapshot().probes_out, 0, "{when}: probes");
    }
}

/// The loops, and below them a bulkhead of one, so that an attempt which holds on starves the next.
fn stack(
    providers: Providers,
    commit: Commit,
    holds: bool,
) -> (Client<impl Body<Data = bytes::Bytes, Error = seawall::BoxError> + Send>, Gauges) {
    let (breaker, bulkhead, gate) = (CircuitBreakerLayer::new(), BulkheadLayer::new(1), TestGate::default());
    let gauges = Gauges {
        providers: providers.clone(),
        bulkhead: bulkhead.gate().clone(),
        breaker: breaker.gate().clone(),
        gate: gate.clone(),
    };
    let backoff = Backoff::exponential(Duration::from_millis(200)).jitter(Jitter::None);
    let policy = RetryPolicy::builder().ambiguous(true).backoff(backoff).build().unwrap();
    let below = ServiceBuilder::new()
        .layer(breaker)
        .layer(bulkhead)
        .layer(GateLayer::from_gate(gate))
        .layer(TimeoutLayer::builder().head(10 * SECOND).idle(10 * SECOND).build().unwrap())
        .layer(OutcomeLayer::new())
        .service(providers);
    let fallback = FallbackLayer::new(routes(route().commit(commit)));
    let retry = RetryLayer::new(policy);
    let client = if holds {
        let inner = ServiceBuilder::new().layer(retry.until_content()).service(below);
        tower::util::BoxCloneService::new(
            over(IntakeLayer::new(), fallback, inner).map_response(|response| response.map(boxed)),
        )
    } else {
        let inner = ServiceBuilder::new().layer(retry).service(below);
        tower::util::BoxCloneService::new(
            over(IntakeLayer::new(), fallback, inner).map_response(|response| response.map(boxed)),
        )
    };
    (client, gauges)
}

fn boxed<B>(body: B) -> std::pin::Pin<Box<dyn Body<Data = bytes::Bytes, Error = seawall::BoxError> + Send>>
where
    B: Body<Data = bytes::Bytes, Error = seawall::BoxError> + Send + 'static,
{
    Box::pin(body)
}

/// Each way to fail, with waits between the frames, and then a good stream.
fn eventful() -> Providers {
    let pause = Step::Wait(Duration::from_millis(120));
    let failing = steps(vec![send(PING), pause.clone(), send(STREAM_ERROR)]);
    let cut = steps(vec![send(ROLE), pause.clone(), Step::Cut]);
    let good = vec![send(ROLE), pause.clone(), send(TOKEN), pause, send(STOP), send(DONE)];
    let slow = status(503, "{}").after(Duration::from_millis(120));
    Providers::new().on("a", [slow, failing, cut]).on("b", [Reply::Reset, steps(good)])
}

/// Polls a call and its body; 60 ms pass after each that is pending. How many were needed, where the end was reached.
async fn drive<B>(client: Client<B>, gauges: &Gauges, polls: usize, gate: Answer) -> Option<usize>
where
    B: Body<Data = bytes::Bytes, Error = seawall::BoxError> + Send + 'static,
{
    gauges.gate.answer(gate);
    let mut call = Box::pin(client.oneshot(request(CHAT)));
    let mut body = None;
    for spent in 0..polls {
        match &mut body {
            None => match poll_once(call.as_mut()) {
                Poll::Ready(response) => body = Some(Box::pin(response.unwrap().into_body())),
                Poll::Pending => tokio::time::advance(Duration::from_millis(60)).await,
            },
            Some(body) => match body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(None) => return Some(spent),
                Poll::Ready(Some(frame)) => drop(frame.unwrap()),
                Poll::Pending => tokio::time::advance(Duration::from_millis(60)).await,
            },
        }
        // A gate that said "later" says "now" a little after.
        if spent % 3 == 2 {
            gauges.gate.answer(Answer::Now);
        }
    }
    None
}

#[tokio::test(start_paused = true)]
async fn dropped_after_any_number_of_polls_the_loops_give_everything_back() {
    for (commit, holds, gate) in [
        (Commit::Head, false, Answer::Now),
        (Commit::FirstContent, false, Answer::Later),
        (Commit::FirstContent, true, Answer::Now),
        (Commit::End, false, Answer::Now),
        (Commit::End, true, Answer::Later),
    ] {
        let mut needed = None;
        let mut polls = 0;
        while needed.is_none() {
            let (client, gauges) = stack(eventful(), commit, holds);
            needed = drive(client, &gauges, polls, gate).await;
            gauges.are_back(&format!("{commit:?}, held by retry: {holds}, after {polls} polls"));
            polls += 1;
            assert!(polls < 300, "it comes to its end");
        }
        assert!(needed > Some(10), "it did not answer at once: {needed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_at_any_attempt_gives_everything_back_and_harms_no_other_call() {
    let panics = || steps(vec![send(PING), Step::Panic]);
    for (a, b, commit) in [
        (vec![Reply::Panics], vec![ok()], Commit::FirstContent),
        (vec![status(503, "{}"), Reply::Panics], vec![ok()], Commit::FirstContent),
        (vec![Reply::Reset, Reply::Reset, Reply::Reset], vec![Reply::Panics], Commit::FirstContent),
        (vec![panics()], vec![ok()], Commit::FirstContent),
        (vec![panics()], vec![ok()], Commit::End),
        (vec![steps(vec![send(STREAM_ERROR)])], vec![panics()], Commit::End),
        (vec![panics()], vec![ok()], Commit::Head),
    ] {
        for holds in [false, true] {
            let providers = Providers::new().on("a", a.clone()).on("b", b.clone());
            let (client, gauges) = stack(providers.clone(), commit, holds);
            let mut call = Box::pin({
                let client = client.clone();
                async move { read(client.oneshot(request(CHAT)).await.unwrap()).await.status }
            });
            let panicked = loop {
                match catch_unwind(AssertUnwindSafe(|| poll_once(call.as_mut()))) {
                    Err(_) => break true,
                    Ok(Poll::Ready(_)) => break false,
                    Ok(Poll::Pending) => tokio::time::advance(Duration::from_millis(60)).await,
                }
            };
            assert!(panicked, "the panic is the caller's to see");
            drop(call);
            gauges.are_back(&format!("{commit:?}, held by retry: {holds}"));
            let _ = providers.on("a", [ok()]);
            let got = read(client.oneshot(request(CHAT)).await.unwrap()).await;
            assert_eq!((got.status, got.by()), (200, "a"), "the next call is served");
            gauges.are_back("after the next call");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b185_no_call_that_was_left_goes_on_in_the_background() {
    let gate = TestGate::default();
    let endless = steps(vec![send(TOKEN), Step::Stall]);
    let providers = Providers::new().on("a", [endless]);
    let below = ServiceBuilder::new().layer(GateLayer::from_gate(gate.clone())).layer(OutcomeLayer::new());
    let client = over(IntakeLayer::new(), two(), below.service(providers.clone()));
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut body = Box::pin(client.clone().oneshot(request(CHAT)).await.unwrap().into_body());
        assert!(body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())).is_ready());
        clients.push(body);
    }
    assert_eq!((gate.held(), providers.alive.now()), (100, 100));
    drop(clients);
    assert_eq!((gate.held(), providers.alive.now(), gate.ends().len()), (0, 0, 100));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "nothing was spawned");
}
