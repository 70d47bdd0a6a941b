//! A burst of work against a provider with limits, with and without a token bucket, on a simulated clock.
//!
//! Thirty-two workers call a provider that serves 60 requests and 100 000 tokens a minute, 17 or 40 times faster than it
//! allows, for five simulated minutes. Run it with `cargo run --example burst`; it ends by itself, at once.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::call::{Answer, Call, Describe, Estimate};
use seawall::time::{Instant, now};
use seawall::token_bucket::{Quota, Said, Stated, TokenBucketLayer};
use seawall::{BoxError, Class, Verdict, classify};
use tokio::time::sleep;
use tower::{Layer, Service, ServiceExt};

const MINUTE: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(300);
const WORKERS: u64 = 32;

/// Which provider is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Fills continuously; its bucket holds one minute.
    Refill,
    /// Counts what it served within the last minute.
    Sliding,
    /// As `Refill`, with half the limits that the layer was told.
    Half,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) attempts: u32,
    pub(crate) throttled: u32,
    /// Attempts and 429s after the first minute.
    pub(crate) later: (u32, u32),
    /// Served, as a share of what the limit allows in the time.
    pub(crate) throughput: f64,
}

impl Outcome {
    pub(crate) fn throttled_share(&self) -> f64 {
        share(self.throttled, self.attempts)
    }

    pub(crate) fn throttled_later(&self) -> f64 {
        share(self.later.1, self.later.0)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

/// A request for a completion.
#[derive(Clone, Debug)]
struct Prompt {
    call: Call,
    tokens: u64,
}

impl Prompt {
    fn random(random: &mut fastrand::Rng) -> Self {
        let (input, output) = (random.u64(100..1_500), random.u64(100..1_000));
        let mut call = Call::default();
        call.estimate = Some(Estimate::new(input, input * 4));
        call.output_bound = Some(output);
        Self { call, tokens: input + output }
    }
}

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }
}

/// What the provider answers: its limits, and perhaps that it is too much now.
#[derive(Clone, Copy, Debug)]
struct Reply {
    throttled: Option<Duration>,
    limits: [(u64, u64); 2],
}

impl Answer for Reply {}

struct Provider {
    scenario: Scenario,
    limits: [f64; 2],
    levels: [f64; 2],
    filled: Instant,
    log: VecDeque<(Instant, f64)>,
    started: Instant,
    attempts: u32,
    throttled: u32,
    later: (u32, u32),
    served: [f64; 2],
}

impl Provider {
    fn new(scenario: Scenario) -> Self {
        let limits = if scenario == Scenario::Half { [30.0, 50_000.0] } else { [60.0, 100_000.0] };
        Self {
            scenario,
            limits,
            levels: limits,
            filled: now(),
            log: VecDeque::new(),
            started: now(),
            attempts: 0,
            throttled: 0,
            later: (0, 0),
            served: [0.0; 2],
        }
    }

    fn arrives(&mut self, tokens: f64) -> Reply {
        let now = now();
        self.refresh(now);
        let costs = [1.0, tokens];
        let missing = [0, 1].map(|i| (costs[i] - self.levels[i]) / self.limits[i]);
        let missing = missing[0].max(missing[1]);
        let later = u32::from(now - self.started >= MINUTE);
        self.attempts += 1;
        self.later.0 += later;
        let throttled = (missing > 1e-9).then(|| match (self.scenario, self.log.front()) {
            (Scenario::Sliding, Some((first, _))) => *first + MINUTE - now,
            _ => MINUTE.mul_f64(missing),
        });
        if throttled.is_some() {
            self.throttled += 1;
            self.later.1 += later;
        } else {
            for (i, cost) in costs.into_iter().enumerate() {
                self.levels[i] -= cost;
                self.served[i] += cost;
            }
            self.log.push_back((now, tokens));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
        let limits = [0, 1].map(|i| (self.limits[i] as u64, self.levels[i].max(0.0) as u64));
        Reply { throttled, limits }
    }

    fn refresh(&mut self, now: Instant) {
        if self.scenario == Scenario::Sliding {
            while let Some(&(_, tokens)) = self.log.front().filter(|(at, _)| now - *at >= MINUTE) {
                self.log.pop_front();
                self.levels[0] += 1.0;
                self.levels[1] += tokens;
            }
        } else {
            let part = (now - self.filled).as_secs_f64() / MINUTE.as_secs_f64();
            for (level, limit) in self.levels.iter_mut().zip(self.limits) {
                *level = (*level + part * limit).min(limit);
            }
        }
        self.filled = now;
    }
}

/// The way to the provider: 20 to 50 ms there, then the work of an answer, or 150 ms for a refusal.
async fn send(provider: Arc<Mutex<Provider>>, prompt: Prompt, work: Duration) -> Result<Reply, BoxError> {
    sleep(Duration::from_micros(fastrand::u64(20_000..50_000))).await;
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let reply = provider.lock().map_err(|_| "poisoned")?.arrives(prompt.tokens as f64);
    sleep(if reply.throttled.is_some() { Duration::from_millis(150) } else { work }).await;
    Ok(reply)
}

async fn work<S>(service: S, seed: u64, until: Instant)
where
    S: Service<Prompt, Response = Reply, Error = BoxError> + Clone,
{
    let mut random = fastrand::Rng::with_seed(seed);
    while now() < until {
        if service.clone().oneshot(Prompt::random(&mut random)).await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Runs the workers against the provider, offering `times` its limit of requests, with or without the layer.
pub(crate) async fn run(scenario: Scenario, times: f64, layered: bool) -> Outcome {
    let provider = Arc::new(Mutex::new(Provider::new(scenario)));
    // One call a second is the limit, so 32 workers offer `times` as much if a call takes so long.
    let answer = Duration::from_secs_f64(32.0 / times);
    let inner = {
        let provider = provider.clone();
        tower::service_fn(move |prompt| send(provider.clone(), prompt, answer))
    };
    let until = now() + RUN;
    let workers: Vec<_> = if layered {
        let layered = layer(scenario).layer(inner);
        (0..WORKERS).map(|seed| tokio::spawn(work(layered.clone(), seed, until))).collect()
    } else {
        (0..WORKERS).map(|seed| tokio::spawn(work(inner.clone(), seed, until))).collect()
    };
    sleep(RUN).await;
    for worker in workers {
        worker.abort();
    }
    let provider = provider.lock().expect("no worker panics");
    let minutes = RUN.as_secs_f64() / MINUTE.as_secs_f64();
    let used = [0, 1].map(|i| provider.served[i] / (provider.limits[i] * minutes));
    Outcome {
        attempts: provider.attempts,
        throttled: provider.throttled,
        later: provider.later,
        throughput: used[0].max(used[1]),
    }
}

type Bucket = seawall::token_bucket::TokenBucket<
    seawall::token_bucket::Upstream<classify::FromFn<fn(Result<&Reply, &BoxError>) -> Verdict>, Reader>,
>;
type Reader = fn(&Reply, Verdict, &mut dyn FnMut(Said<'_>));

fn layer(scenario: Scenario) -> TokenBucketLayer<Bucket, seawall::gate::Head> {
    const REQUESTS: Quota = Quota::per_minute(NonZeroU64::new(60).unwrap());
    const TOKENS: Quota = Quota::per_minute(NonZeroU64::new(100_000).unwrap());
    const LARGEST: NonZeroU64 = NonZeroU64::new(2_500).unwrap();

    let builder = TokenBucketLayer::builder().requests(REQUESTS);
    let builder = match scenario {
        // The way there takes 20 to 50 ms, so that two calls can come closer together than they left.
        Scenario::Sliding => builder.tokens(TOKENS.burst(LARGEST)).strict().headroom(0.98),
        Scenario::Refill | Scenario::Half => builder.tokens(TOKENS),
    };
    let verdict: fn(Result<&Reply, &BoxError>) -> Verdict = |result| match result {
        Ok(Reply { throttled: None, .. }) => Verdict::SUCCESS,
        Ok(reply) => Verdict::new(Class::Throttled).with_hint(reply.throttled),
        Err(error) => {
            seawall::Failure::refusal(error).map_or(Verdict::new(Class::Transient), |no| no.verdict())
        }
    };
    let limits: Reader = |reply, _, say| {
        for (dimension, (limit, left)) in ["requests", "tokens"].into_iter().zip(reply.limits) {
            let stated = Stated { window: Some(MINUTE), limit: Some(limit), ..Stated::new(dimension) };
            say(Said::Limit(Stated { remaining: Some(left), ..stated }));
        }
    };
    let builder =
        builder.classify(classify::from_fn(verdict)).limits(limits).max_wait(Duration::from_secs(120));
    builder.build().expect("the settings above can be built").at_head()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
#[allow(clippy::print_stdout, reason = "an example prints")]
async fn main() {
    println!(
        "{:<10} {:>7} {:>7} {:>9} {:>7} {:>12} {:>11}",
        "provider", "offered", "layer", "attempts", "429s", "429s later", "throughput"
    );
    for scenario in [Scenario::Refill, Scenario::Sliding, Scenario::Half] {
        for times in [17.0, 40.0] {
            for layered in [false, true] {
                let outcome = run(scenario, times, layered).await;
                println!(
                    "{:<10} {times:>6}x {:>7} {:>9} {:>6.2}% {:>11.2}% {:>10.1}%",
                    format!("{scenario:?}"),
                    if layered { "yes" } else { "no" },
                    outcome.attempts,
                    outcome.throttled_share() * 100.0,
                    outcome.throttled_later() * 100.0,
                    outcome.throughput * 100.0,
                );
            }
        }
    }
}
