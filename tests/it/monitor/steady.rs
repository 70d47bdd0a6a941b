//! What must stay true under load: no allocation, bounded memory, and figures that fit together.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use seawall::Fault;
use seawall::call::{Answer, Call, Describe, Usage};
use seawall::monitor::Monitor;
use tower::{Layer, Service};

#[derive(Clone)]
struct Prompt(Call);

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(&self.0)
    }
}

fn prompt(model: &str) -> Prompt {
    let mut call = Call::default();
    (call.upstream, call.model) = (Some("up".into()), Some(model.into()));
    Prompt(call)
}

struct Reply;

impl Answer for Reply {
    fn usage(&self) -> Option<Usage> {
        let mut usage = Usage::default();
        (usage.input, usage.output) = (Some(3), Some(2));
        Some(usage)
    }
}

#[derive(Clone, Copy)]
struct Model;

impl Service<Prompt> for Model {
    type Response = Reply;
    type Error = Fault<Infallible>;
    type Future = Ready<Result<Reply, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Prompt) -> Self::Future {
        ready(Ok(Reply))
    }
}

fn call<S: Service<Prompt>>(service: &mut S, prompt: Prompt) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    assert!(pin!(service.call(prompt)).poll(&mut cx).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_warm_monitor_allocates_nothing() {
    let monitor = Monitor::builder().target("up", "m").build().unwrap();
    let mut service = monitor.layer().at_head().layer(monitor.attempts().at_head().layer(Model));
    let prompt = prompt("m");
    let mut run = |calls: u32| {
        for _ in 0..calls {
            call(&mut service, prompt.clone());
        }
    };
    run(2_000);
    let counted = allocation_counter::measure(|| run(2_000));
    assert_eq!(counted.count_total, 0, "within an interval");
    // Two hours of intervals, so that every slot has been used; then further ones.
    let mut intervals = async |count: u32| {
        let mut total = 0;
        for _ in 0..count {
            tokio::time::advance(Duration::from_secs(10)).await;
            total += allocation_counter::measure(|| run(300)).count_total;
        }
        total
    };
    intervals(800).await;
    assert_eq!(intervals(400).await, 0, "over many intervals");
}

#[test]
fn a_snapshot_is_never_torn() {
    let monitor = Monitor::builder().target("up", "m").build().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (monitor, stop) = (monitor.clone(), &stop);
                scope.spawn(move || {
                    let mut service = monitor.attempts().at_head().layer(Model);
                    let mut calls = 0;
                    while !stop.load(Ordering::Relaxed) {
                        call(&mut service, prompt("m"));
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        let mut last = 0;
        for _ in 0..200 {
            let snapshot = monitor.snapshot();
            let target = snapshot.target("up", "m").unwrap();
            for figures in [&snapshot.attempts.since_start, &target.series.since_start, &target.series.minute]
            {
                let count = figures.count();
                assert_eq!((figures.to_head.count, figures.to_end.count), (count, count));
                assert_eq!((figures.tokens.input, figures.tokens.output), (3 * count, 2 * count));
            }
            let count = target.series.since_start.count();
            assert_eq!(count, snapshot.attempts.since_start.count(), "the total is the sum");
            assert!(count >= last, "nothing is lost");
            assert!(snapshot.attempts_in_flight <= 2);
            last = count;
        }
        stop.store(true, Ordering::Relaxed);
        let calls: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(monitor.snapshot().attempts.since_start.count(), calls);
    });
}
