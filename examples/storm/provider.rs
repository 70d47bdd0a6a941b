//! The provider as all set-ups see it, and what it saw of them. In process it is simulated; over sockets it is that of
//! `examples/support`. What goes wrong is done in front of it, and counted there, in both.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use seawall::BoxError;
use seawall::call::CallBody;
use seawall::fault::{FaultHandle, FaultLayer, Inject};
use seawall::time::{Instant, now};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::scenario::{Scenario, exponential};

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Client = BoxCloneSyncService<Request<CallBody>, Response<Body>, BoxError>;

/// Which call, told by the caller; and which attempt of it, told by the provider's door.
pub(crate) const CALL: &str = "x-storm-call";
pub(crate) const ATTEMPT: &str = "x-storm-attempt";

/// 200 tokens in and 100 out, in nano-dollars: $0.42 and $1.10 a million at the first, three times that at the second.
pub(crate) const PRICES: [(u64, u64); 2] = [(420, 1_100), (1_260, 3_300)];
pub(crate) const TOKENS: (u64, u64) = (200, 100);

/// From the request to the head, and from there to the end.
pub(crate) const HEAD: Duration = Duration::from_millis(500);
pub(crate) const REST: Duration = Duration::from_secs(2);

/// What the providers saw, both together.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Counts>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) attempts: u64,
    pub(crate) throttled: u64,
    /// In nano-dollars; and what of it went to attempts after a call's first.
    pub(crate) billed: u64,
    pub(crate) billed_again: u64,
    calls: HashMap<HeaderValue, u64>,
}

impl Seen {
    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which attempt of its call this is, from 1.
    fn arrives(&self, call: HeaderValue) -> u64 {
        let mut counts = self.counts();
        counts.attempts += 1;
        let attempt = counts.calls.entry(call).or_default();
        *attempt += 1;
        *attempt
    }

    pub(crate) fn bill(&self, amount: u64, attempt: Option<&HeaderValue>) {
        let mut counts = self.counts();
        counts.billed += amount;
        if attempt.is_some_and(|attempt| attempt != "1") {
            counts.billed_again += amount;
        }
    }
}

/// A provider with its faults in front: a client of it, and the switch.
pub(crate) fn with_faults(
    client: Client,
    scenario: &Scenario,
    tally: &Seen,
    seed: u64,
) -> Result<(Client, FaultHandle), BoxError> {
    let mut faults = FaultLayer::builder().seed(seed).on();
    for (share, fault) in &scenario.faults {
        faults = faults.rate(*share, fault.clone());
    }
    let faults = faults.build()?;
    let handle = faults.handle();
    let client = match scenario.workers {
        Some(workers) => Queue::start(workers, client),
        None => client,
    };
    let client = faults.layer(client).map_response(|response| response.map(BodyExt::boxed_unsync));
    Ok((door(client, tally.clone()), handle))
}

/// Counts who comes, and with what they leave.
fn door<S>(inner: S, tally: Seen) -> Client
where
    S: tower::Service<Request<CallBody>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    BoxCloneSyncService::new(service_fn(move |mut request: Request<CallBody>| {
        let (inner, tally) = (inner.clone(), tally.clone());
        async move {
            let call = request.headers().get(CALL).cloned().ok_or("a call of nobody")?;
            let attempt = tally.arrives(call);
            request.headers_mut().insert(ATTEMPT, HeaderValue::from(attempt));
            let response = inner.oneshot(request).await?;
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                tally.counts().throttled += 1;
            }
            Ok(response)
        }
    }))
}

/// Takes the provider down and up again, for ever.
pub(crate) async fn flap(handle: FaultHandle, time: Duration) {
    loop {
        handle.rates([(1.0, Inject::status(StatusCode::SERVICE_UNAVAILABLE))]).expect("a share of one");
        sleep(time).await;
        handle.rates([]).expect("no share at all");
        sleep(time).await;
    }
}

/// The simulated provider: its limit, its pace and its bill.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Settings>);

struct Settings {
    price: u64,
    instant: bool,
    tally: Seen,
    state: Mutex<State>,
}

struct State {
    /// The bucket: its size, what is in it, what comes in a second, and when it was last filled.
    limit: Option<(f64, f64, f64, Instant)>,
    random: fastrand::Rng,
}

impl Simulated {
    pub(crate) fn client(scenario: &Scenario, which: usize, tally: &Seen, seed: u64) -> Client {
        let (input, output) = PRICES[which];
        let limit = scenario.limit.filter(|_| which == 0).map(|(requests, per)| {
            let size = f64::from(requests);
            (size, size, size / per.as_secs_f64(), now())
        });
        let state = Mutex::new(State { limit, random: fastrand::Rng::with_seed(seed) });
        let price = input * TOKENS.0 + output * TOKENS.1;
        let instant = scenario.workers.is_some();
        let this = Self(Arc::new(Settings { price, instant, tally: tally.clone(), state }));
        BoxCloneSyncService::new(service_fn(move |request| this.clone().answer(request)))
    }

    async fn answer(self, request: Request<CallBody>) -> Result<Response<Body>, BoxError> {
        let random = match self.admit() {
            Ok(random) => random,
            Err(wait) => return throttled(wait),
        };
        // A provider does its work, whether somebody waits for it or not.
        self.0.tally.bill(self.0.price, request.headers().get(ATTEMPT));
        let pace = |time: Duration| if self.0.instant { Duration::ZERO } else { time.mul_f64(random) };
        wait(pace(HEAD)).await;
        let apart = pace(REST) / 4;
        let frames = stream::iter(events()).then(move |text| async move {
            wait(apart).await;
            Ok::<_, BoxError>(Frame::data(Bytes::from(text)))
        });
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok(response.body(StreamBody::new(frames).boxed_unsync())?)
    }

    /// How long this answer takes beside the others, or how long to wait for room.
    fn admit(&self) -> Result<f64, Duration> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((size, level, rate, filled)) = &mut state.limit {
            let now = now();
            *level = (*level + (now - *filled).as_secs_f64() * *rate).min(*size);
            *filled = now;
            if *level < 0.999_999 {
                return Err(Duration::from_secs_f64((1.0 - *level) / *rate));
            }
            *level -= 1.0;
        }
        Ok(0.6 + 0.8 * state.random.f64())
    }
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

fn events() -> [String; 4] {
    let chunk = |text| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let (input, output) = TOKENS;
    let usage =
        format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{input},"completion_tokens":{output}}}}}"#);
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    [
        format!("data: {}\n\n", chunk("It will hold, ")),
        format!("data: {}\n\n", chunk("as long as the wall does.")),
        format!("data: {stop}\n\ndata: {usage}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ]
}

fn throttled(wait: Duration) -> Result<Response<Body>, BoxError> {
    let text = r#"{"error":{"type":"requests","code":"rate_limit_exceeded","message":"too many requests"}}"#;
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let response = Response::builder()
        .status(StatusCode::TOO_MANY_REQUESTS)
        .header("content-type", "application/json")
        .header("retry-after-ms", wait.as_millis().to_string());
    Ok(response.body(body)?)
}

/// A few workers behind a queue that knows nothing of who has given up.
struct Queue;

type Job = Box<dyn FnOnce() -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

impl Queue {
    fn start(workers: super::scenario::Workers, client: Client) -> Client {
        let (queue, jobs) = mpsc::unbounded_channel::<Job>();
        let jobs = Arc::new(tokio::sync::Mutex::new(jobs));
        let start = now();
        for worker in 0..workers.count {
            let jobs = jobs.clone();
            let mut random = fastrand::Rng::with_seed(1_000 + worker as u64);
            tokio::spawn(async move {
                loop {
                    let Some(job) = jobs.lock().await.recv().await else { return };
                    let (from, to) = workers.frozen;
                    if start.elapsed() >= from {
                        sleep_until(start + to).await;
                    }
                    sleep(exponential(&mut random, workers.busy)).await;
                    job().await;
                }
            });
        }
        BoxCloneSyncService::new(service_fn(move |request: Request<CallBody>| {
            let (queue, client) = (queue.clone(), client.clone());
            async move {
                let (done, answer) = oneshot::channel();
                let job: Job = Box::new(move || {
                    Box::pin(async move {
                        let _ = done.send(client.oneshot(request).await);
                    })
                });
                queue.send(job).map_err(|_| "the workers are gone")?;
                answer.await?
            }
        }))
    }
}
