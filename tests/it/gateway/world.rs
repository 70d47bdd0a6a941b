//! The gateway in front of two providers, and a caller in front of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use seawall::cost_guard::{AccountState, Ledger};
use seawall::monitor::BreakerState;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::app::server;
use super::app::state::{self, Gateway, Limits, Options};
use crate::provider::{Builder, Price, Provider};

/// Longer than any test.
pub(super) const LONG: Duration = Duration::from_secs(300);
/// A limit that a test waits for; a healthy answer takes a few milliseconds.
pub(super) const SHORT: Duration = Duration::from_millis(500);
/// How many tokens a whole answer has.
pub(super) const TOKENS: usize = 60;

/// How the gateway is set up, where a test cares.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) commit: &'static str,
    pub(super) total: Duration,
    /// To the head, to the first content, and between frames.
    pub(super) limit: Duration,
    pub(super) open_for: Duration,
    pub(super) budget: &'static str,
    /// Of a million input and output tokens at both, in thousandths of a dollar.
    pub(super) price: (u64, u64),
    /// How many tokens an answer has, where the request allows as many.
    pub(super) tokens: usize,
    /// How many requests the log of each provider holds.
    pub(super) log: usize,
    /// What is added to the section of the first upstream.
    pub(super) first: &'static str,
    /// What is added at the end.
    pub(super) more: &'static str,
    pub(super) limits: Limits,
    pub(super) drain: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            commit: "first_content",
            total: LONG,
            limit: LONG,
            open_for: LONG,
            budget: "limit = \"1.00\"\nwindow = \"total\"",
            price: (420, 1_100),
            tokens: TOKENS,
            log: 4_096,
            first: "",
            more: "",
            limits: Limits::default(),
            drain: LONG,
        }
    }
}

/// A directory that is gone with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("seawall-gateway-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.0.join("gateway.toml")
    }

    pub(super) fn write(&self, text: &str) -> PathBuf {
        std::fs::write(self.file(), text).unwrap();
        self.file()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All of it.
pub(super) struct World {
    pub(super) first: Provider,
    pub(super) second: Provider,
    pub(super) gateway: Gateway,
    pub(super) address: SocketAddr,
    pub(super) folder: Folder,
    pub(super) setup: Setup,
    client: Client<HttpConnector, Full<Bytes>>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<bool>,
}

fn provider(name: &str, setup: &Setup) -> Builder {
    Provider::builder(name)
        .key(&secret(name))
        .models([model(name)])
        .tokens(setup.tokens as u64)
        .log(setup.log)
        .price(Price::nanos(setup.price.0, setup.price.1))
}

pub(super) fn secret(name: &str) -> String {
    format!("secret-of-{name}")
}

pub(super) fn model(name: &str) -> &'static str {
    if name == "first" { "model-a" } else { "model-b" }
}

pub(super) fn chat(stream: bool) -> Value {
    json!({
        "model": "chat", "stream": stream, "stream_options": {"include_usage": true}, "max_tokens": 100,
        "messages": [{"role": "user", "content": "Say something."}]
    })
}

/// A request as a client library makes it.
pub(super) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", secret("caller")))
        .body(Full::new(body.into()))
        .unwrap()
}

pub(super) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).body(Full::default()).unwrap()
}

/// The configuration of these two.
pub(super) fn config(setup: &Setup, first: &Provider, second: &Provider) -> String {
    let (total, limit, open_for) =
        (setup.total.as_millis(), setup.limit.as_millis(), setup.open_for.as_millis());
    let open_at_most = 2 * open_for;
    let dollars = |thousandths: u64| format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    let (input, output) = (dollars(setup.price.0), dollars(setup.price.1));
    format!(
        r#"
[upstreams.first]
base_url = "{}"
api_key = "{}"
max_concurrent = 200
{}
[upstreams.second]
base_url = "{}"
api_key = "{}"
max_concurrent = 200
[[routes]]
model = "chat"
commit = "{}"
targets = [{{ upstream = "first", model = "model-a" }}, {{ upstream = "second", model = "model-b" }}]
[retry]
base = "5ms"
[fallback]
tell_headers = true
[timeout]
total = "{total}ms"
head = "{limit}ms"
first_content = "{limit}ms"
idle = "{limit}ms"
[breaker]
open_for = "{open_for}ms"
open_at_most = "{open_at_most}ms"
[alerts]
enabled = false
[[budgets]]
{}
[prices."model-a"]
input_per_million = "{input}"
output_per_million = "{output}"
[prices."model-b"]
input_per_million = "{input}"
output_per_million = "{output}"
{}
"#,
        first.url(),
        secret("first"),
        setup.first,
        second.url(),
        secret("second"),
        setup.commit,
        setup.budget,
        setup.more,
    )
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub(super) async fn with(setup: Setup) -> Self {
        let first = provider("first", &setup).start().await.unwrap();
        let second = provider("second", &setup).start().await.unwrap();
        let folder = Folder::new();
        let file = folder.write(&config(&setup, &first, &second));
        let options = Options { file: Some(file), quiet: true, limits: setup.limits, ..Options::default() };
        let gateway = Gateway::new(state::read(&folder.file()).unwrap(), options).unwrap();
        let listener = server::listen(SocketAddr::from(([127, 0, 0, 1], 0)), false).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = server::serve(listener, gateway.clone(), setup.drain, async {
            let _ = stopped.await;
        });
        // A connection that is kept could be one that the gateway is about to close.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let (stop, serving) = (Some(stop), tokio::spawn(serving));
        Self { first, second, gateway, address, folder, setup, client, stop, serving }
    }

    /// Another configuration in the file of this one.
    pub(super) fn rewrite(&self, change: impl FnOnce(String) -> String) {
        self.folder.write(&change(config(&self.setup, &self.first, &self.second)));
    }

    /// One request; its response as it comes.
    pub(super) async fn send(&self, mut request: Request<Full<Bytes>>) -> Response<Incoming> {
        let path = request.uri().path_and_query().unwrap().to_string();
        *request.uri_mut() = format!("http://{}{path}", self.address).parse().unwrap();
        self.client.request(request).await.unwrap()
    }

    /// One request, read to its end.
    pub(super) async fn ask(&self, request: Request<Full<Bytes>>) -> Got {
        let got = read(self.send(request).await).await;
        let told = format!("{:?} {}", got.headers, got.body);
        assert!(!told.contains("secret-of-"), "the caller sees no secret: {told}");
        assert!(got.headers.contains_key("x-request-id"), "{told}");
        got
    }

    pub(super) async fn chat(&self, stream: bool) -> Got {
        self.ask(post("/v1/chat/completions", chat(stream).to_string())).await
    }

    /// What the gateway says of itself.
    pub(super) async fn text(&self, path: &str) -> String {
        let got = read(self.send(get(path)).await).await;
        assert_eq!(got.status, 200, "{path}: {}", got.body);
        got.body
    }

    /// How often each provider was asked.
    pub(super) fn asked(&self) -> [usize; 2] {
        [self.first.requests(), self.second.requests()]
    }

    pub(super) fn breaker(&self, name: &str) -> BreakerState {
        let current = self.gateway.current();
        let mut breakers = current.stack.breakers().iter();
        breakers.find(|(key, _)| key.as_str() == name).unwrap().1.state()
    }

    /// Tells it to stop.
    pub(super) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Whether it ended with all calls done.
    pub(super) async fn stopped(&mut self) -> bool {
        (&mut self.serving).await.unwrap()
    }

    /// Spent of all budgets, and held, in nano-dollars.
    pub(super) fn money(&self) -> (u64, u64) {
        let current = self.gateway.current();
        let ledger = current.stack.ledger();
        let accounts =
            ledger.budgets().iter().flat_map(|budget| ledger.accounts(budget.name())).collect::<Vec<_>>();
        let sum = |of: fn(&AccountState) -> u64| accounts.iter().map(|(_, one)| of(one)).sum();
        (sum(|one| one.spent.as_nanos()), sum(|one| one.reserved.as_nanos()))
    }

    /// What must be true after every day: nobody holds anything, nobody saw the secret of another, and what was spent
    /// covers the bills. Returns what was spent and what was billed.
    pub(super) async fn settle(&self) -> (u64, u64) {
        for provider in [&self.first, &self.second] {
            provider.when(|log| log.iter().all(|seen| seen.ended.is_some())).await;
            for seen in provider.seen() {
                check_secrets(provider.name(), &seen);
            }
        }
        until("all is given back", || {
            let snapshot = self.gateway.current().stack.monitor().snapshot();
            let slots =
                self.gateway.current().stack.bulkheads().iter().map(|(_, slots)| slots.in_flight()).sum();
            (snapshot.calls_in_flight, snapshot.attempts_in_flight, slots, self.money().1) == (0, 0, 0_u32, 0)
        })
        .await;
        let (spent, billed) = (self.money().0, self.first.billed() + self.second.billed());
        assert!(spent >= billed, "{spent} spent, {billed} billed");
        (spent, billed)
    }

    pub(super) async fn settle_to_the_bill(&self) {
        let (spent, billed) = self.settle().await;
        assert_eq!(spent, billed);
    }
}

/// Lets all others run until this is so. Fails only where it never is.
pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(LONG / 10, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

fn check_secrets(name: &str, seen: &crate::provider::Seen) {
    let other = if name == "first" { "second" } else { "first" };
    for secret in [secret(other), secret("caller")] {
        // Marked as sensitive, a header does not show in its text.
        let all =
            seen.headers.values().map(http::HeaderValue::as_bytes).chain([&*seen.body, seen.path.as_bytes()]);
        for text in all {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains(&secret), "{name} saw {secret}: {text}");
        }
    }
}

/// What a caller got.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) broken: bool,
}

impl Got {
    /// Who served it.
    pub(super) fn by(&self) -> &str {
        self.headers.get("x-served-by").map_or("", |name| name.to_str().unwrap())
    }

    /// The tokens in it.
    pub(super) fn tokens(&self) -> usize {
        (0..TOKENS).filter(|index| self.body.contains(&format!("w{index} "))).count()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// An error in OpenAI's shape: its status, code and type.
    #[track_caller]
    pub(super) fn error(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        assert!(error["message"].as_str().unwrap().ends_with('.'), "{}", self.body);
        let text = |name: &str| error[name].as_str().unwrap_or("-").to_owned();
        (self.status, text("code"), text("type"))
    }
}

/// Reads a response to its end.
pub(super) async fn read(response: Response<Incoming>) -> Got {
    let (head, body) = response.into_parts();
    let (data, _, error) = crate::support::read(body).await;
    let (status, body) = (head.status.as_u16(), String::from_utf8(data).unwrap());
    Got { status, headers: head.headers, body, broken: error.is_some() }
}

/// The next bytes of a response.
pub(super) async fn next(response: &mut Response<Incoming>) -> Bytes {
    response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap()
}

/// A whole answer of this provider, with its usage.
#[track_caller]
pub(super) fn assert_served(got: &Got, by: &str) {
    assert_eq!((got.status, got.by(), got.broken, got.tokens()), (200, by, false, TOKENS), "{}", got.body);
    assert!(got.body.contains(&format!("\"model\":\"{}\"", model(by))), "{}", got.body);
}
