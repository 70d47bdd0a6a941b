//! What stands between the callers and the provider: from nothing to all of it.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer, Upstream};
use seawall::circuit_breaker::{CircuitBreakerLayer, Settings, SettingsBuilder};
use seawall::cost_guard::{CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{Commit, FallbackLayer, Route, Routes, Target};
use seawall::gate::{Assigned, ByUpstream, GateLayer};
use seawall::retry::{Backoff, Budget, RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucket, TokenBucketLayer};
use seawall::{BoxError, ConfigError, cost_guard};
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
const ATTEMPTS: u32 = 6;
/// Four retries for ten calls, and thirty saved up: nearly one in four attempts fails in the first scenario, which is more
/// than the defaults of 0.2 and 10 are made for.
const BUDGET: (f64, u32) = (0.4, 30);
/// Long enough for every burst.
const QUEUE: u32 = 10_000;
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
            return all_layers(client, scenario, urls, faster);
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
        let breaker =
            CircuitBreakerLayer::builder().settings(opens_for(Settings::tolerant(), faster)).build()?;
        let outer = outer.layer(breaker);
        if self == Self::Breaker {
            return Ok(boxed(outer.layer(inner).service(client)));
        }
        let bulkhead =
            BulkheadLayer::builder(scenario.slots).queue(QUEUE).max_wait(scenario.patience).build()?;
        Ok(boxed(outer.layer(bulkhead).layer(inner).service(client)))
    }
}

fn policy(faster: u32) -> Result<RetryPolicy, ConfigError> {
    RetryPolicy::builder()
        .ambiguous(true)
        .attempts(ATTEMPTS)
        .backoff(Backoff::exponential(BASE / faster))
        .budget(Budget::builder().ratio(BUDGET.0).reserve(BUDGET.1).build()?)
        .build()
}

/// Soon hears that the provider is back.
fn opens_for(settings: SettingsBuilder, faster: u32) -> SettingsBuilder {
    let [open, longest] = OPEN.map(|time| time / faster);
    settings.open_for(open).open_at_most(longest)
}

/// The recommended order, each gate with a state for each provider. The bucket stands at the first alone, which has a limit.
fn all_layers(client: Client, scenario: &Scenario, urls: &[String], faster: u32) -> Result<Stack, BoxError> {
    let settings = if scenario.second { Settings::fast() } else { Settings::tolerant() };
    let breakers =
        CircuitBreakerLayer::builder().settings(opens_for(settings, faster)).keyed(ByUpstream).build()?;
    // Where the bucket paces the calls there is no need for few of them.
    let slots = if scenario.limit.is_some() { 64 } else { scenario.slots };
    let bulkheads =
        BulkheadLayer::builder(slots).queue(QUEUE).max_wait(scenario.patience).keyed(ByUpstream).build()?;
    let fallback = FallbackLayer::builder(routes(scenario, urls)?)
        .health(breakers.gate().clone())
        .max_attempts(2 * ATTEMPTS)
        .build()?;
    let total = TimeoutLayer::new(scenario.patience);
    let attempt =
        TimeoutLayer::builder().head(scenario.head).first_content(scenario.head).idle(scenario.head);
    let stack = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(total)
        .layer(fallback)
        // The whole answer is part of the attempt, so that what breaks is repeated here.
        .layer(RetryLayer::new(policy(faster)?).buffer_response(ANSWER))
        .layer(breakers)
        .layer(guard()?)
        .layer(GateLayer::from_gate(buckets(scenario)?))
        .layer(bulkheads)
        .layer(attempt.build()?)
        .layer(OutcomeLayer::new())
        .service(client);
    Ok(boxed(stack))
}

fn routes(scenario: &Scenario, urls: &[String]) -> Result<Routes, ConfigError> {
    let mut routes = Routes::builder();
    let mut route = Route::to("chat").commit(Commit::Head);
    let targets = [("first", "cheap"), ("second", "dear")];
    for ((name, model), url) in targets.into_iter().zip(urls).take(if scenario.second { 2 } else { 1 }) {
        routes = routes.upstream(Upstream::new(name, url)?);
        route = route.target(Target::at(name).model(model).attempts(ATTEMPTS));
    }
    routes.route(route).build()
}

fn buckets(scenario: &Scenario) -> Result<Assigned<TokenBucket>, BoxError> {
    let Some((requests, per)) = scenario.limit else {
        return Ok(Assigned::by_upstream(Vec::<(&str, TokenBucket)>::new()));
    };
    let quota =
        Quota::one_every(per / requests).ok_or("a limit of no time")?.burst(u64::from(requests).try_into()?);
    let bucket = TokenBucketLayer::builder()
        .requests(quota)
        .headroom(0.98)
        .max_wait(scenario.patience)
        .max_waiters(NonZeroUsize::new(QUEUE as usize).unwrap_or(NonZeroUsize::MIN))
        .build()?;
    Ok(Assigned::by_upstream([("first", bucket.gate().clone())]))
}

/// A hundred dollars a day: never spent here, and reserved and settled all the same.
fn guard() -> Result<CostGuardLayer, BoxError> {
    let mut table = PriceTable::new();
    for (model, (input, output)) in ["cheap", "dear"].into_iter().zip(PRICES) {
        let dollars = |nanos: u64| format!("{}.{:03}", nanos / 1_000, nanos % 1_000);
        table = table.model(model, Price::per_million(&dollars(input), &dollars(output))?);
    }
    Ok(CostGuardLayer::new(table, cost_guard::Budget::new(Usd::dollars(100), Window::DAY)))
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
