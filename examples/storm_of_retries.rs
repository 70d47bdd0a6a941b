//! What retries make of an outage: as they are usually built, and as this crate builds them.
//!
//! A server with 30 workers and an unbounded queue can do 300 calls a second and gets 280. Then it freezes for ten seconds.
//! Its clients give an attempt one second. Everything runs in virtual time, so two minutes of it take a few seconds.
//!
//! ```sh
//! cargo run --release --example storm_of_retries
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::future::{Future, Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, ConfigError, time};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

const WORKERS: usize = 30;
const SERVICE_TIME: Duration = Duration::from_millis(100);
/// Calls a second that come in.
const LOAD: f64 = 280.0;
const PATIENCE: Duration = Duration::from_secs(1);
/// The server works, freezes, and works again.
const FREEZE: std::ops::Range<u64> = 10..20;

fn main() -> Result<(), BoxError> {
    println!("All attempts fail, 1000 calls a second for 10 s. Attempts a call:");
    let amplified = |policy: RetryPolicy, layers| virtual_time(amplification(policy, layers, 1000, 10));
    println!("  without a budget            {:.2}", amplified(without_budget()?, 1));
    println!("  with the default budget     {:.2}", amplified(RetryPolicy::llm(), 1));
    println!("  three layers of them        {:.2}", amplified(RetryPolicy::llm(), 3));

    println!(
        "\nShare of calls served, second by second; the server freezes from {} s to {} s.",
        FREEZE.start, FREEZE.end
    );
    let usual = virtual_time(storm(usual, 60));
    let ours = virtual_time(storm(ours, 60));
    let patient = virtual_time(storm(ours_by_default, 60));
    println!("  second   retry, timeout     seawall   with the breaker's defaults");
    for (second, ((usual, ours), patient)) in usual.iter().zip(&ours).zip(&patient).enumerate() {
        if second >= 6 && second % 3 == 0 {
            let [usual, ours, patient] = [usual, ours, patient].map(|share| share * 100.0);
            println!("  {second:>6}  {usual:>13.0} %  {ours:>8.0} %  {patient:>26.0} %");
        }
    }
    println!("\n95 % are served again, so many seconds after the freeze:");
    for (name, served) in [("retry, timeout", usual), ("seawall", ours), ("with the defaults", patient)] {
        match recovery(&served) {
            Some(seconds) => println!("  {name:<18} {seconds}"),
            None => println!("  {name:<18} never"),
        }
    }
    Ok(())
}

/// Three attempts, at once, and a time limit for each: what many clients do.
pub(crate) fn usual(
    server: Server,
) -> impl Service<Request<()>, Response: Send, Error: Send, Future: Send> + Clone + Send {
    ServiceBuilder::new()
        .layer(tower::retry::RetryLayer::new(Thrice(2)))
        .layer(tower::timeout::TimeoutLayer::new(PATIENCE))
        .service(service_fn(move |_: Request<()>| server.clone().answer()))
}

/// The order that this crate recommends: the retries outside of what bounds them, the time limit innermost. The breaker stays
/// open for 2 s, so that it soon hears that the server is back.
pub(crate) fn ours(
    server: Server,
) -> impl Service<Request<()>, Response: Send, Error: Send, Future: Send> + Clone + Send {
    let breaker =
        CircuitBreakerLayer::builder().open_for(Duration::from_secs(2)).open_at_most(Duration::from_secs(4));
    stack(server, breaker.build().expect("the settings are sound"))
}

/// The same with a breaker that stays open for the 30 s that are the default.
pub(crate) fn ours_by_default(
    server: Server,
) -> impl Service<Request<()>, Response: Send, Error: Send, Future: Send> + Clone + Send {
    stack(server, CircuitBreakerLayer::new())
}

fn stack(
    server: Server,
    breaker: CircuitBreakerLayer,
) -> impl Service<Request<()>, Response: Send, Error: Send, Future: Send> + Clone + Send {
    let attempt = TimeoutLayer::builder().head(PATIENCE);
    ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::llm()))
        .layer(breaker)
        .layer(BulkheadLayer::new(150).refuse())
        .layer(attempt.build().expect("the settings are sound"))
        .service(service_fn(move |_: Request<()>| server.clone().answer()))
}

#[derive(Clone)]
struct Thrice(u32);

impl<Res, E> tower::retry::Policy<Request<()>, Res, E> for Thrice {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request<()>, result: &mut Result<Res, E>) -> Option<Self::Future> {
        if result.is_ok() {
            return None;
        }
        self.0 = self.0.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<()>) -> Option<Request<()>> {
        Some(request.clone())
    }
}

/// 30 workers behind a queue that knows nothing of who has given up.
#[derive(Clone)]
pub(crate) struct Server(mpsc::UnboundedSender<oneshot::Sender<()>>);

impl Server {
    fn start() -> Self {
        let (queue, jobs) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let jobs = Arc::new(tokio::sync::Mutex::new(jobs));
        let start = time::now();
        for worker in 0..WORKERS {
            let jobs = jobs.clone();
            let mut random = fastrand::Rng::with_seed(1000 + worker as u64);
            tokio::spawn(async move {
                loop {
                    let Some(job) = jobs.lock().await.recv().await else { return };
                    if FREEZE.contains(&start.elapsed().as_secs()) {
                        sleep_until(start + Duration::from_secs(FREEZE.end)).await;
                    }
                    sleep(exponential(&mut random, SERVICE_TIME)).await;
                    let _ = job.send(());
                }
            });
        }
        Self(queue)
    }

    async fn answer(self) -> Result<Response<Empty<Bytes>>, BoxError> {
        let (done, answer) = oneshot::channel();
        self.0.send(done)?;
        answer.await?;
        Ok(Response::new(Empty::new()))
    }
}

fn exponential(random: &mut fastrand::Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - random.f64()).ln())
}

/// The share of calls that were served, by the second in which they came in.
pub(crate) async fn storm<S>(stack: impl FnOnce(Server) -> S, seconds: u64) -> Vec<f64>
where
    S: Service<Request<()>, Response: Send, Error: Send, Future: Send> + Clone + Send + 'static,
{
    let service = stack(Server::start());
    let tally = Arc::new(Mutex::new(vec![(0_u32, 0_u32); usize::try_from(seconds).unwrap_or(0)]));
    let mut random = fastrand::Rng::with_seed(7);
    let start = time::now();
    let mut due = start;
    while due < start + Duration::from_secs(seconds) {
        sleep_until(due).await;
        let second = usize::try_from((due - start).as_secs()).unwrap_or(0);
        let (service, tally) = (service.clone(), tally.clone());
        tokio::spawn(async move {
            let served = service.oneshot(Request::new(())).await.is_ok();
            let mut tally = tally.lock().expect("nobody panics with it");
            tally[second].0 += 1;
            tally[second].1 += u32::from(served);
        });
        due += exponential(&mut random, Duration::from_secs_f64(1.0 / LOAD));
    }
    sleep(Duration::from_secs(10)).await;
    let tally = tally.lock().expect("nobody panics with it");
    tally.iter().map(|(all, served)| f64::from(*served) / f64::from(*all)).collect()
}

/// After how many seconds without the freeze 95 % are served, from then on for five seconds.
pub(crate) fn recovery(served: &[f64]) -> Option<u64> {
    let end = usize::try_from(FREEZE.end).ok()?;
    let well = |window: &[f64]| window.iter().sum::<f64>() / 5.0 >= 0.95 && window[0] >= 0.95;
    served.get(end..)?.windows(5).position(well).map(|seconds| seconds as u64)
}

/// Attempts a call where all fail, through so many layers of retry, each with a budget of its own.
pub(crate) async fn amplification(policy: RetryPolicy, layers: u32, a_second: u64, seconds: u64) -> f64 {
    let attempts = Arc::new(AtomicU64::new(0));
    let counted = attempts.clone();
    let failing = service_fn(move |_: Request<()>| {
        counted.fetch_add(1, SeqCst);
        ready(Err::<Response<Empty<Bytes>>, _>(BoxError::from("down")))
    });
    // Each layer has a budget of its own, as clients of clients have.
    let anew = || RetryLayer::new(renewed(&policy));
    let one = ServiceBuilder::new().layer(anew()).service(failing);
    let three = ServiceBuilder::new().layer(anew()).layer(anew()).service(one.clone());
    let pause = Duration::from_secs(1) / u32::try_from(a_second).unwrap_or(u32::MAX);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..a_second * seconds {
        if layers == 1 {
            tasks.spawn(finish(one.clone().oneshot(Request::new(()))));
        } else {
            tasks.spawn(finish(three.clone().oneshot(Request::new(()))));
        }
        sleep(pause).await;
    }
    while tasks.join_next().await.is_some() {}
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let ratio = attempts.load(SeqCst) as f64 / (a_second * seconds) as f64;
    ratio
}

async fn finish<T>(call: impl Future<Output = T>) {
    let _ = call.await;
}

/// The same terms with another budget, where there is one.
fn renewed(policy: &RetryPolicy) -> RetryPolicy {
    if policy.budget().is_some() { RetryPolicy::llm() } else { policy.clone() }
}

pub(crate) fn without_budget() -> Result<RetryPolicy, ConfigError> {
    RetryPolicy::builder().ambiguous(true).no_budget().build()
}

/// Runs on a clock that stands still while anything has work to do, and jumps to the next timer when nothing has.
pub(crate) fn virtual_time<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime with a timer needs nothing that can be missing").block_on(run)
}
