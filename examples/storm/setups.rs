//! What stands between the callers and the provider: from nothing to all of it.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::retry::{Backoff, Budget, RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, Config, ConfigError};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder, ServiceExt};

use super::provider::{Body, Client, PRICES};
use super::scenario::Scenario;

pub(crate) type Stack = BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, BoxError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetUp {
    Bare,
    Retry,
    Breaker,
    Queue,
    All,
}

pub(crate) const ALL: [SetUp; 5] = [SetUp::Bare, SetUp::Retry, SetUp::Breaker, SetUp::Queue, SetUp::All];

/// The largest answer that is read before it is passed on: a broken one is repeated as a whole.
const ANSWER: usize = 1 << 20;
const ATTEMPTS: u32 = 5;
/// One in five attempts fails on an ordinary day here: the default of 0.2 would leave nothing for the others.
const BUDGET: f64 = 0.3;
const BASE: Duration = Duration::from_millis(500);
const OPEN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];

impl SetUp {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "no protection",
            Self::Retry => "retry",
            Self::Breaker => "retry, breaker",
            Self::Queue => "+ few at once, queue",
            Self::All => "all layers",
        }
    }

    /// The stack. `urls` are the providers' own; its own times are divided by how much faster than life it goes.
    pub(crate) fn stack(
        self,
        client: Client,
        scenario: &Scenario,
        urls: &[String],
        faster: u32,
    ) -> Result<Stack, BoxError> {
        if self == Self::All {
            let config = Config::from_json(&settings(scenario, urls, faster), |_| None)?;
            return Ok(boxed(config.client(client)?.0));
        }
        let outer = ServiceBuilder::new().layer(IntakeLayer::new());
        if self == Self::Bare {
            return Ok(boxed(outer.layer(OutcomeLayer::new()).service(client)));
        }
        let attempt = TimeoutLayer::builder().head(scenario.head).build()?;
        let retry = RetryLayer::new(policy(faster)?).buffer_response(ANSWER);
        let outer = outer.layer(retry);
        let inner = ServiceBuilder::new().layer(attempt).layer(OutcomeLayer::new());
        if self == Self::Retry {
            return Ok(boxed(outer.layer(inner).service(client)));
        }
        let [open, longest] = OPEN.map(|time| time / faster);
        let breaker = CircuitBreakerLayer::builder().open_for(open).open_at_most(longest).build()?;
        let outer = outer.layer(breaker);
        if self == Self::Breaker {
            return Ok(boxed(outer.layer(inner).service(client)));
        }
        let bulkhead = BulkheadLayer::builder(scenario.slots)
            .queue(10_000)
            .max_wait(scenario.patience)
            .expected_service(Duration::ZERO)
            .build()?;
        Ok(boxed(outer.layer(bulkhead).layer(inner).service(client)))
    }
}

fn policy(faster: u32) -> Result<RetryPolicy, ConfigError> {
    RetryPolicy::builder()
        .ambiguous(true)
        .attempts(ATTEMPTS)
        .backoff(Backoff::exponential(BASE / faster))
        .budget(Budget::builder().ratio(BUDGET).build()?)
        .build()
}

/// The configuration of the recommended stack: what `Config` takes from a file.
fn settings(scenario: &Scenario, urls: &[String], faster: u32) -> String {
    let time = |time: Duration| format!("{}ms", time.as_millis());
    let limit = scenario.limit.map_or(String::new(), |(requests, per)| {
        let minute = f64::from(requests) * 60.0 / per.as_secs_f64();
        format!(r#""requests_per_minute": {minute:.0},"#)
    });
    let price = |which: usize| {
        let dollars = |nanos: u64| format!("{}.{:03}", nanos / 1_000, nanos % 1_000);
        let (input, output) = PRICES[which];
        format!(
            r#"{{ "input_per_million": "{}", "output_per_million": "{}" }}"#,
            dollars(input),
            dollars(output)
        )
    };
    let second = if scenario.second {
        [
            format!(r#", "second": {{ "base_url": "{}" }}"#, urls[1]),
            r#", { "upstream": "second", "model": "dear" }"#.into(),
        ]
    } else {
        [String::new(), String::new()]
    };
    // A bulkhead as wide as a worker pool is worth it; where the bucket paces the calls it may be wide.
    let slots = if scenario.limit.is_some() { 32 } else { scenario.slots };
    format!(
        r#"{{
  "upstreams": {{ "first": {{ {limit} "base_url": "{url}", "max_concurrent": {slots} }} {upstream} }},
  "routes": [{{
    "model": "chat", "commit": "end",
    "targets": [{{ "upstream": "first", "model": "cheap" }} {target}]
  }}],
  "limits": {{ "max_wait": "{patience}", "max_waiters": 10000, "headroom": 0.98 }},
  "bulkhead": {{ "queue": 10000, "max_wait": "{patience}" }},
  "retry": {{ "attempts": {ATTEMPTS}, "base": "{base}" }},
  "retry_budget": {{ "ratio": {BUDGET} }},
  "breaker": {{ "open_for": "{open}", "open_at_most": "{longest}" }},
  "timeout": {{ "total": "{patience}", "head": "{head}", "first_content": "{head}", "idle": "{head}" }},
  "budgets": [{{ "limit": "100.00", "window": "day" }}],
  "prices": {{ "cheap": {cheap}, "dear": {dear} }}
}}"#,
        url = urls[0],
        upstream = second[0],
        target = second[1],
        patience = time(scenario.patience),
        base = time(BASE / faster),
        open = time(OPEN[0] / faster),
        longest = time(OPEN[1] / faster),
        head = time(scenario.head),
        cheap = price(0),
        dear = price(1),
    )
}

fn boxed<S, B>(service: S) -> Stack
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let body = |body: B| body.map_err(Into::into).boxed_unsync();
    BoxCloneSyncService::new(service.map_response(move |response| response.map(body)))
}

/// What all set-ups have beneath them: the provider whose address a request has.
pub(crate) fn by_address(clients: Vec<(String, Client)>) -> Client {
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<CallBody>| {
        let address = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let client = clients.iter().find(|(known, _)| *known == address).map(|(_, client)| client.clone());
        async move { client.ok_or_else(|| format!("nobody is at {address}"))?.oneshot(request).await }
    }))
}
