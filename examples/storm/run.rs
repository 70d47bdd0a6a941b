//! One cell of the table: a set-up in a scenario.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::TokioExecutor;
use seawall::BoxError;
use seawall::time::now;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use super::provider::{self, ATTEMPT, CALL, Client, Counts, HEAD, PRICES, REST, Seen, Simulated, TOKENS};
use super::scenario::Scenario;
use super::setups::{SetUp, Stack, by_address};
use super::support::{Billing, Limits, Pace, Price, Provider};

/// What became of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) scenario: char,
    pub(crate) set_up: SetUp,
    /// When each call came in, and how long it took if it was served; in the scenario's own time.
    pub(crate) calls: Vec<(Duration, Option<Duration>)>,
    pub(crate) tally: Counts,
}

/// How many frames an answer has.
const FRAMES: u32 = 4;

/// In virtual time, which stands still while anything has work to do.
pub(crate) fn simulated(scenario: &Scenario, set_up: SetUp, seed: u64) -> Result<Cell, BoxError> {
    // What no seed is given for is drawn from this thread's: the same in every run.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let tally = Seen::default();
        let hosts = ["first.test", "second.test"];
        let clients = [0, 1].map(|which| Simulated::client(scenario, which, &tally, seed));
        let clients = hosts.into_iter().map(str::to_owned).zip(clients).collect();
        run(scenario, set_up, clients, tally, (1, seed)).await
    })
}

/// Over sockets on loopback, with providers of its own.
pub(crate) async fn real(scenario: Scenario, set_up: SetUp, seed: u64) -> Result<Cell, BoxError> {
    let faster = scenario.faster;
    let scenario = scenario.faster_than_life();
    let tally = Seen::default();
    let mut providers = Vec::new();
    let mut clients = Vec::new();
    for (which, (input, output)) in PRICES.into_iter().enumerate() {
        // A token stands for many, so that there are fewer frames to be sent.
        let price = Price::nanos(input, output * TOKENS.1 / u64::from(FRAMES));
        let provider = start(&scenario, which, price, faster).await?;
        let client = Http::builder(TokioExecutor::new()).build_http();
        let client = client.map_err(BoxError::from).map_response(|response: http::Response<_>| {
            response.map(|body: hyper::body::Incoming| body.map_err(BoxError::from).boxed_unsync())
        });
        let address = provider.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        clients.push((address, BoxCloneSyncService::new(client)));
        providers.push(provider);
    }
    let mut cell = run(&scenario, set_up, clients, tally.clone(), (faster, seed)).await?;
    for request in providers.iter().flat_map(Provider::seen) {
        tally.bill(request.billed, request.headers.get(ATTEMPT));
    }
    cell.tally = tally.counts().clone();
    Ok(cell)
}

async fn start(scenario: &Scenario, which: usize, price: Price, faster: u32) -> Result<Provider, BoxError> {
    let provider =
        Provider::builder("storm").price(price).billing(Billing::Whole).log(1 << 20).tokens(FRAMES.into());
    let provider = match scenario.limit.filter(|_| which == 0) {
        Some((requests, per)) => provider.limits(Limits::per(per, requests.into(), 0)),
        None => provider,
    };
    let provider = if scenario.workers.is_some() {
        provider
    } else {
        let first_token = Duration::ZERO;
        provider.pace(Pace { head: HEAD / faster, first_token, token: REST / FRAMES / faster })
    };
    Ok(provider.start().await?)
}

async fn run(
    scenario: &Scenario,
    set_up: SetUp,
    clients: Vec<(String, Client)>,
    tally: Seen,
    (faster, seed): (u32, u64),
) -> Result<Cell, BoxError> {
    let urls: Vec<String> = clients.iter().map(|(address, _)| format!("http://{address}/v1")).collect();
    let mut faulty = Vec::new();
    let mut tasks = JoinSet::new();
    for (which, (address, client)) in clients.into_iter().enumerate() {
        let healthy = Scenario { faults: Vec::new(), workers: None, ..scenario.clone() };
        let of = if which == 0 { scenario } else { &healthy };
        let (client, handle) = provider::with_faults(client, of, &tally, seed)?;
        if let Some(time) = scenario.flaps.filter(|_| which == 0) {
            tasks.spawn(provider::flap(handle, time));
        }
        faulty.push((address, client));
    }
    let stack = set_up.stack(by_address(faulty), scenario, &urls, faster)?;
    let calls = callers(&stack, scenario, &urls[0], seed).await?;
    let calls = calls.into_iter().map(|(due, took)| (due * faster, took.map(|took| took * faster))).collect();
    let tally = tally.counts().clone();
    Ok(Cell { scenario: scenario.key, set_up, calls, tally })
}

type Calls = Vec<(Duration, Option<Duration>)>;

/// Calls as they come, whatever became of those before.
async fn callers(stack: &Stack, scenario: &Scenario, url: &str, seed: u64) -> Result<Calls, BoxError> {
    let start = now();
    let mut calls = JoinSet::new();
    for (number, due) in scenario.load.arrivals(seed).into_iter().enumerate() {
        sleep_until(start + due).await;
        let answer = timeout(scenario.patience, ask(stack.clone(), request(url, number)?));
        calls.spawn(async move {
            let asked = now();
            let served = matches!(answer.await, Ok(Ok(true)));
            (due, served.then(|| now() - asked))
        });
    }
    let mut done = calls.join_all().await;
    done.sort_unstable();
    Ok(done)
}

fn request(url: &str, number: usize) -> Result<Request<Full<Bytes>>, BoxError> {
    let prompt = "What holds against the sea? ".repeat(28);
    let body = format!(
        r#"{{"model":"chat","stream":true,"stream_options":{{"include_usage":true}},"max_tokens":100,"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    );
    let request = Request::post(format!("{url}/chat/completions"))
        .header("content-type", "application/json")
        .header(CALL, number);
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

/// Whether the answer is there: a good head, all of the stream, and no error in it.
async fn ask(stack: Stack, request: Request<Full<Bytes>>) -> Result<bool, BoxError> {
    let response = stack.oneshot(request).await?;
    let good = response.status().is_success();
    let text = response.into_body().collect().await?.to_bytes();
    Ok(good && text.ends_with(b"data: [DONE]\n\n"))
}
