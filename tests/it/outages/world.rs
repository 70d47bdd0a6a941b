//! Two providers, and the recommended stack in front of them.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, Credential, IntakeLayer, OutcomeLayer, Upstream};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price as Rate, PriceTable, Usd, Window};
use seawall::fallback::{Attempts, Commit, FallbackLayer, Route, Routes, Target};
use seawall::gate::ByUpstream;
use seawall::monitor::BreakerState;
use seawall::retry::{Backoff, RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, RefusalKind};
use serde_json::{Value, json};
use tower::util::BoxCloneService;
use tower::{ServiceBuilder, ServiceExt};

use crate::fallback::provider::{Got, read};
use crate::provider::{Builder, Price, Provider, Seen};

/// Longer than any test.
pub(super) const LONG: Duration = Duration::from_secs(300);
/// A limit that a test waits for; a healthy answer takes a few milliseconds.
pub(super) const SHORT: Duration = Duration::from_millis(500);
/// How many tokens a whole answer has.
pub(super) const TOKENS: usize = 60;

type Body = UnsyncBoxBody<Bytes, BoxError>;
type Service = BoxCloneService<Request<CallBody>, Response<Body>, BoxError>;

/// How the stack is set up, where a test cares.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) commit: Commit,
    pub(super) total: Duration,
    /// To the head, to the first content, and between frames.
    pub(super) limit: Duration,
    pub(super) open_for: Duration,
    /// The context of the first target, in tokens.
    pub(super) context: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { commit: Commit::FirstContent, total: LONG, limit: LONG, open_for: LONG, context: None }
    }
}

/// A caller in front of two providers.
pub(super) struct World {
    pub(super) first: Provider,
    pub(super) second: Provider,
    service: Service,
    breaker: Box<dyn Fn(&str) -> BreakerState>,
    /// Slots in use, and what is reserved.
    held: Box<dyn Fn() -> (u32, Usd)>,
    spent: Box<dyn Fn() -> Usd>,
}

fn provider(name: &str) -> Builder {
    Provider::builder(name).key(&secret(name)).models([model(name)]).tokens(TOKENS as u64)
}

pub(super) fn secret(name: &str) -> String {
    format!("secret-of-{name}")
}

fn model(name: &str) -> &'static str {
    if name == "first" { "model-a" } else { "model-b" }
}

fn upstream(provider: &Provider) -> Upstream {
    let credential = Credential::bearer(&secret(provider.name())).unwrap();
    Upstream::new(provider.name(), &provider.url()).unwrap().credential(credential)
}

pub(super) fn chat(stream: bool) -> Value {
    json!({
        "model": "chat", "stream": stream, "stream_options": {"include_usage": true}, "max_tokens": 100,
        "messages": [{"role": "user", "content": "Say something."}]
    })
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub(super) async fn with(setup: Setup) -> Self {
        let first = provider("first").price(Price::nanos(420, 1_100)).start().await.unwrap();
        let second = provider("second").price(Price::nanos(2_000, 10_000)).start().await.unwrap();
        let mut target = Target::at("first").model("model-a");
        if let Some(context) = setup.context {
            target = target.context(context);
        }
        let route = Route::to("chat")
            .target(target)
            .target(Target::at("second").model("model-b"))
            .commit(setup.commit);
        let routes = Routes::builder().upstream(upstream(&first)).upstream(upstream(&second)).route(route);

        let policy =
            RetryPolicy::builder().ambiguous(true).backoff(Backoff::exponential(Duration::from_millis(5)));
        let breaker = CircuitBreakerLayer::builder()
            .open_for(setup.open_for)
            .jitter(0.0)
            .keyed(ByUpstream)
            .build()
            .unwrap();
        let prices = PriceTable::new().at("first", "model-a", Rate::per_million("0.42", "1.10").unwrap()).at(
            "second",
            "model-b",
            Rate::per_million("2", "10").unwrap(),
        );
        let guard = CostGuardLayer::new(prices, Budget::new(Usd::dollars(1), Window::TOTAL));
        let quota = Quota::per_minute(NonZeroU64::new(60_000).unwrap());
        let bucket = TokenBucketLayer::builder().requests(quota).keyed(ByUpstream).build().unwrap();
        let bulkhead = BulkheadLayer::builder(15).keyed(ByUpstream).build().unwrap();
        let limit = setup.limit;
        let attempt = TimeoutLayer::builder().head(limit).first_content(limit).idle(limit).build().unwrap();
        let chain =
            FallbackLayer::builder(routes.build().unwrap()).health(breaker.gate().clone()).tell_headers();

        let (gate, slots, ledger, audit) =
            (breaker.gate().clone(), bulkhead.gate().clone(), guard.gate().clone(), guard.gate().clone());
        let client = Client::builder(TokioExecutor::new()).build_http::<CallBody>();
        let service = ServiceBuilder::new()
            .layer(IntakeLayer::new())
            .layer(TimeoutLayer::new(setup.total))
            .layer(chain.build().unwrap())
            .layer(RetryLayer::new(policy.build().unwrap()))
            .layer(breaker)
            .layer(guard)
            .layer(bucket)
            .layer(bulkhead)
            .layer(attempt)
            .layer(OutcomeLayer::new())
            .map_err(BoxError::from)
            .service(client);
        let service = ServiceExt::<Request<CallBody>>::map_response(service, |response| {
            response.map(BodyExt::boxed_unsync)
        });
        let account = move || audit.ledger().account("total budget", "").unwrap();
        Self {
            first,
            second,
            service: BoxCloneService::new(service),
            breaker: Box::new(move |name| gate.get(&name.into()).state()),
            held: Box::new(move || {
                let slots = ["first", "second"].map(|name| slots.get(&name.into()).in_flight());
                (slots.iter().sum(), account().reserved)
            }),
            spent: Box::new(move || ledger.ledger().account("total budget", "").unwrap().spent),
        }
    }

    pub(super) fn breaker(&self, name: &str) -> BreakerState {
        (self.breaker)(name)
    }

    /// One call; its response as it comes.
    pub(super) async fn call(&self, body: &Value) -> Result<Response<Body>, BoxError> {
        let request = Request::post("http://gateway.invalid/v1/chat/completions")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", secret("caller")))
            .body(CallBody::from(body.to_string()))?;
        self.service.clone().oneshot(request).await
    }

    /// One call, read to its end.
    pub(super) async fn ask(&self, body: &Value) -> Result<Got, BoxError> {
        let result = match self.call(body).await {
            Ok(response) => Ok(read(response).await),
            Err(error) => Err(error),
        };
        let told = match &result {
            Ok(got) => format!("{:?} {} {:?} {:?}", got.headers, got.body, got.served, got.attempts),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!told.contains("secret-of-"), "the caller sees no secret: {told}");
        result
    }

    /// One call that gets a response, whole or streamed.
    pub(super) async fn chat(&self, stream: bool) -> Got {
        self.ask(&chat(stream)).await.unwrap()
    }

    /// How often each provider was asked.
    pub(super) fn asked(&self) -> [usize; 2] {
        [self.first.requests(), self.second.requests()]
    }

    /// What must be true after every bad day: nobody holds anything, nobody saw the secret of another, and what was spent
    /// covers the bills. Returns what the bills say beyond or below, for the days on which all is known.
    pub(super) async fn settle(self) -> Bills {
        for provider in [&self.first, &self.second] {
            provider.when(|log| log.iter().all(|seen| seen.ended.is_some())).await;
            assert_eq!(provider.active(), 0);
            for seen in provider.seen() {
                check_secrets(provider.name(), &seen);
            }
        }
        assert_eq!((self.held)(), (0, Usd::ZERO), "slots and reservations");
        let bills =
            Bills { spent: (self.spent)().as_nanos(), billed: self.first.billed() + self.second.billed() };
        assert!(bills.spent >= bills.billed, "{bills:?}");
        bills
    }
}

/// What the caller counted, and what the providers did, in nano-dollars.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bills {
    pub(super) spent: u64,
    pub(super) billed: u64,
}

impl Bills {
    pub(super) fn assert_equal(&self) {
        assert_eq!(self.spent, self.billed);
    }
}

fn check_secrets(name: &str, seen: &Seen) {
    let other = if name == "first" { "second" } else { "first" };
    let all = format!("{} {:?} {}", seen.path, seen.headers, String::from_utf8_lossy(&seen.body));
    for secret in [secret(other), secret("caller")] {
        // Marked as sensitive, a header does not show in the text.
        let hidden = seen.headers.values().any(|value| value.as_bytes().ends_with(secret.as_bytes()));
        assert!(!hidden && !all.contains(&secret), "{name} saw {secret}: {all}");
    }
    assert_eq!(seen.model.as_deref(), Some(model(name)), "each is asked for its own model");
}

/// The tokens in an answer.
pub(super) fn tokens(got: &Got) -> usize {
    (0..TOKENS).filter(|index| got.body.contains(&format!("w{index} "))).count()
}

/// A whole answer of this provider, with its usage.
#[track_caller]
pub(super) fn assert_served(got: &Got, by: &str) {
    assert_eq!((got.status, got.by(), got.broken, tokens(got)), (200, by, false, TOKENS), "{}", got.body);
    assert_eq!(got.headers["x-served-by"], by);
    let outcome = got.outcome.as_ref().unwrap();
    assert!(outcome.verdict().unwrap().is_success());
    assert_eq!(outcome.usage().output, Some(TOKENS as u64));
    let model = model(by);
    assert!(got.body.contains(&format!("\"model\":\"{model}\"")), "{}", got.body);
}

/// What an error says of its kind and of the targets that were asked.
pub(super) fn refused(error: &BoxError) -> (Option<RefusalKind>, String) {
    let kind = seawall::refusal::find(&**error).map(|refusal| refusal.kind());
    (kind, Attempts::find(&**error).map(ToString::to_string).unwrap_or_default())
}
