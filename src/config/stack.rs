//! The recommended stack of a client, from a configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use crate::bulkhead::Bulkhead;
use crate::call::intake::Intake;
use crate::call::{Call, IntakeLayer, Key, OutcomeLayer, Outcomes};
use crate::circuit_breaker::CircuitBreaker;
use crate::config_error::ConfigError;
use crate::cost_guard::{CostGuard, CostGuardLayer, MemoryLedger, Prices};
use crate::fallback::config::TriggerConfig;
use crate::fallback::{Fallback, FallbackLayer, RoutesHandle, Standing, Target, Triggers};
use crate::gate::{Assigned, BodyEnd, GateLayer, Gated};
use crate::retry::{Budget, Retry, RetryLayer};
use crate::timeout::{Limit, Timeout, TimeoutLayer};
use crate::token_bucket::TokenBucket;

use super::Config;
use super::gates::{Changes, Plan, UpstreamGates};
use super::money::{self, Tenant};
use super::retries::UpstreamPolicies;
use super::sections::{BudgetSection, File, RetryBudgetSection, TimeoutSection};
use super::tenants::{Tenants, TenantsLayer};
use crate::monitor::{Monitor, Watcher};

/// The recommended stack around a client `S`.
pub type Stacked<S> = Intake<Tenants<Behind<Watcher, Timeout<Chain<Attempt<S>>>>>>;
/// The loops: over targets, and over attempts at one.
type Chain<S> = Fallback<Retry<UpstreamPolicies, Behind<Watcher, S>>>;
/// The gates that each attempt passes, and its own clocks.
type Attempt<S> = Behind<
    Assigned<CircuitBreaker>,
    Behind<CostGuard, Behind<Assigned<TokenBucket>, Behind<Assigned<Bulkhead>, Timeout<Outcomes<S>>>>>,
>;
type Behind<G, S> = Gated<S, G, BodyEnd>;

/// The recommended stack of a configuration: a [`Layer`], and the handles on what it is made of. Cheap to clone; all its
/// services and clones share their state.
///
/// ```
/// use seawall::Config;
///
/// let config = |limit: u32| {
///     let text = format!(
///         r#"{{ "upstreams": {{ "one": {{ "base_url": "https://api.one.test/v1", "max_concurrent": {limit} }} }},
///              "routes": [ {{ "model": "*", "targets": [ {{ "upstream": "one" }} ] }} ] }}"#
///     );
///     Config::from_json(&text, |_| None)
/// };
/// let stack = config(8)?.stack()?;
/// let bulkhead = stack.bulkheads().find("one").unwrap().clone();
/// // Another file, while calls run: the bulkhead stays, with another limit.
/// let stack = stack.renew(&config(16)?)?;
/// assert_eq!(bulkhead.limit(), 16);
/// # let _ = stack;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Stack(pub(super) Arc<Built>);

pub(super) struct Built {
    intake: IntakeLayer,
    tenants: TenantsLayer,
    pub(super) total: TimeoutLayer,
    fallback: FallbackLayer,
    pub(super) retry: RetryLayer<UpstreamPolicies>,
    breakers: Assigned<CircuitBreaker>,
    guard: CostGuardLayer,
    buckets: Assigned<TokenBucket>,
    bulkheads: Assigned<Bulkhead>,
    pub(super) attempt: TimeoutLayer,
    gates: Vec<UpstreamGates>,
    budgets: Vec<BudgetSection>,
    retry_budget: (RetryBudgetSection, Budget),
    monitor: Monitor,
}

impl<S: Clone> Layer<S> for Stack {
    type Service = Stacked<S>;

    fn layer(&self, inner: S) -> Stacked<S> {
        let built = &*self.0;
        let inner = built.attempt.layer(OutcomeLayer::new().layer(inner));
        let inner = GateLayer::from_gate(built.bulkheads.clone()).layer(inner);
        let inner = GateLayer::from_gate(built.buckets.clone()).layer(inner);
        let inner = GateLayer::from_gate(built.breakers.clone()).layer(built.guard.layer(inner));
        let inner = built.retry.layer(built.monitor.attempts().layer(inner));
        let inner = built.monitor.layer().layer(built.total.layer(built.fallback.layer(inner)));
        built.intake.layer(built.tenants.layer(inner))
    }
}

impl Stack {
    pub(super) fn new(config: &Config, monitor: Monitor, old: Option<&Self>) -> Result<Self, ConfigError> {
        let file = &*config.file;
        let mut changes = Changes::new();
        let gates = gates(file, &monitor, old, &mut changes)?;
        let (ledger, budgets) = ledger(file, old, &mut changes)?;
        let prices = money::prices(file)?;
        let guard = file.cost.guard().prices(prices.clone()).ledger(ledger).observer(monitor.clone());
        let retry_budget = retry_budget(file, old)?;
        let policies = policies(file, &retry_budget.1)?;
        let (total, attempt) = clocks(&file.timeout).map_err(|error| error.under("timeout"))?;
        let routes = match old {
            Some(old) => old.routes().clone(),
            None => RoutesHandle::new(config.routes.clone()),
        };
        let fallback = fallback(file, &routes, prices, gates.clone(), &monitor)?;
        let built = Built {
            intake: file.max_body.map_or_else(IntakeLayer::new, |bytes| IntakeLayer::new().limit(bytes)),
            tenants: TenantsLayer(match Tenant::of(&file.budgets)? {
                Tenant::Header(name) => Some(name),
                Tenant::None | Tenant::Client => None,
            }),
            total,
            fallback,
            retry: RetryLayer::new(policies).observer(monitor.clone()),
            breakers: assigned(&gates, |gates| Some(gates.breaker.clone())),
            guard: guard.build()?,
            buckets: assigned(&gates, |gates| gates.bucket.clone()),
            bulkheads: assigned(&gates, |gates| gates.bulkhead.clone()),
            attempt,
            gates,
            budgets,
            retry_budget,
            monitor,
        };
        // From here on nothing fails, so that what runs is either the old configuration or the new one.
        for change in changes {
            change();
        }
        if let Some(old) = old {
            routes.replace(config.routes.clone());
            old.unwatch();
        }
        let stack = Self(Arc::new(built));
        stack.watch();
        Ok(stack)
    }

    /// A stack of another configuration that goes on with the state of this one: what is spent and held of budgets, the
    /// circuit breakers, token buckets and bulkheads of upstreams that stay, the monitor with its alert rules, the routes'
    /// handle and the retry budget. Give new calls to it; calls under way end on this one.
    ///
    /// A gate stays where its settings are the same; a bucket also where only requests or tokens a minute differ, a bulkhead
    /// also where only `max_concurrent` does. Any other gate begins anew.
    ///
    /// # Errors
    ///
    /// As for [`Config::stack`], and where `budgets` differ in more than their limits: what is spent would be forgotten. Then
    /// nothing has changed.
    pub fn renew(&self, config: &Config) -> Result<Self, ConfigError> {
        Self::new(config, self.0.monitor.clone(), Some(self))
    }

    /// The routes: to see them, or to put others in their place.
    #[must_use]
    pub fn routes(&self) -> &RoutesHandle {
        self.0.fallback.routes()
    }

    /// The circuit breaker of each upstream.
    #[must_use]
    pub fn breakers(&self) -> &Assigned<CircuitBreaker> {
        &self.0.breakers
    }

    /// The token bucket of each upstream that has a limit of requests or tokens.
    #[must_use]
    pub fn buckets(&self) -> &Assigned<TokenBucket> {
        &self.0.buckets
    }

    /// The bulkhead of each upstream that has a `max_concurrent`.
    #[must_use]
    pub fn bulkheads(&self) -> &Assigned<Bulkhead> {
        &self.0.bulkheads
    }

    /// What is spent, and what is held.
    #[must_use]
    pub fn ledger(&self) -> &MemoryLedger {
        self.0.guard.gate().ledger()
    }

    /// The prices in use.
    #[must_use]
    pub fn prices(&self) -> &Prices {
        self.0.guard.gate().prices()
    }

    /// What has happened, in figures.
    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.0.monitor
    }

    /// Shows the state of each upstream's gates in snapshots, under its name.
    fn watch(&self) {
        for gates in &self.0.gates {
            self.monitor().watch(gates.name.as_str(), gates.clone());
        }
    }

    fn unwatch(&self) {
        for gates in &self.0.gates {
            self.monitor().unwatch(gates.name.as_str());
        }
    }

    /// The budget of retries.
    #[must_use]
    pub fn retry_budget(&self) -> &Budget {
        &self.0.retry_budget.1
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("routes", self.routes()).finish_non_exhaustive()
    }
}

fn gates(
    file: &File,
    monitor: &Monitor,
    old: Option<&Stack>,
    changes: &mut Changes,
) -> Result<Vec<UpstreamGates>, ConfigError> {
    let each = file.upstreams.iter().map(|(name, section)| {
        let key = Key::from(name.as_str());
        let was = old.and_then(|old| old.0.gates.iter().find(|gates| gates.name == key));
        let gates = Plan::of(section, file).gates(&key, monitor, was, changes);
        gates.map_err(|error| error.under(&format!("upstreams.{name}")))
    });
    each.collect()
}

fn assigned<G>(gates: &[UpstreamGates], gate: impl Fn(&UpstreamGates) -> Option<G>) -> Assigned<G> {
    Assigned::by_upstream(gates.iter().filter_map(|gates| Some((gates.name.clone(), gate(gates)?))))
}

/// A new ledger, or the old one with new limits.
fn ledger(
    file: &File,
    old: Option<&Stack>,
    changes: &mut Changes,
) -> Result<(MemoryLedger, Vec<BudgetSection>), ConfigError> {
    let mut builder = MemoryLedger::builder();
    let mut limits = Vec::new();
    for (at, section) in file.budgets.iter().enumerate() {
        let budget = section.budget().map_err(|error| error.under(&format!("budgets[{at}]")))?;
        limits.push((section.name(), budget.limit()));
        builder = builder.budget(budget);
    }
    let fresh = builder.build()?;
    let Some(old) = old else { return Ok((fresh, file.budgets.clone())) };
    let was = &old.0.budgets;
    let same = was.len() == file.budgets.len()
        && file.budgets.iter().zip(was).all(|(section, was)| section.is_same(was));
    if !same {
        let problem =
            "can change their limits while running, but nothing else: what is spent would be forgotten";
        return Err(ConfigError::new("budgets", problem));
    }
    let kept = old.ledger().clone();
    let ledger = kept.clone();
    changes.push(Box::new(move || {
        for (name, limit) in limits {
            // The names are those of the ledger's budgets, as was just compared.
            let _ = kept.set_limit(&name, limit);
        }
    }));
    Ok((ledger, file.budgets.clone()))
}

fn retry_budget(file: &File, old: Option<&Stack>) -> Result<(RetryBudgetSection, Budget), ConfigError> {
    let section = &file.retry_budget;
    let budget = section.budget().map_err(|error| error.under("retry_budget"))?;
    match old.map(|old| &old.0.retry_budget) {
        Some((was, kept)) if was == section => Ok((section.clone(), kept.clone())),
        _ => Ok((section.clone(), budget)),
    }
}

fn policies(file: &File, budget: &Budget) -> Result<UpstreamPolicies, ConfigError> {
    let common = file.retry.policy(budget).map_err(|error| error.under("retry"))?;
    let mut own = Vec::new();
    for (name, upstream) in &file.upstreams {
        if upstream.retry != crate::config::sections::RetrySection::default() {
            let policy = upstream.retry.or(&file.retry).policy(budget);
            let policy = policy.map_err(|error| error.under(&format!("upstreams.{name}.retry")))?;
            own.push((Key::from(name.as_str()), policy));
        }
    }
    Ok(UpstreamPolicies { common, own })
}

/// The longest that a whole call may take where nothing is said: what the official clients wait.
const TOTAL: Duration = Duration::from_secs(600);
/// The longest silence within a response.
const IDLE: Duration = Duration::from_secs(30);

/// 30 s and 500 ms a 1 000 tokens, at most 120 s.
fn by_size() -> Limit {
    Limit::by_size(Duration::from_secs(30), Duration::from_millis(500)).at_most(Duration::from_secs(120))
}

fn clocks(section: &TimeoutSection) -> Result<(TimeoutLayer, TimeoutLayer), ConfigError> {
    let total = TimeoutLayer::builder().total(section.total.map_or(TOTAL, |time| time.0)).build()?;
    let attempt = TimeoutLayer::builder()
        .head(section.head.map_or_else(by_size, |time| time.0.into()))
        .first_content(section.first_content.map_or_else(by_size, |time| time.0.into()))
        .idle(section.idle.map_or(IDLE, |time| time.0))
        .build()?;
    Ok((total, attempt))
}

fn fallback(
    file: &File,
    routes: &RoutesHandle,
    prices: Prices,
    gates: Vec<UpstreamGates>,
    monitor: &Monitor,
) -> Result<FallbackLayer, ConfigError> {
    let section = &file.fallback;
    let standing = move |target: &Target| {
        let of = gates.iter().find(|gates| gates.name == *target.upstream().name());
        of.map_or(Standing::Serves, UpstreamGates::standing)
    };
    let mut builder = FallbackLayer::builder(routes)
        .price(move |target, call| price(&prices, target, call))
        .health(standing)
        .observer(monitor.clone());
    if let Some(time) = file.timeout.first_content {
        builder = builder.first_content(time.0);
    }
    if let Some(attempts) = section.max_attempts {
        builder = builder.max_attempts(attempts);
    }
    if let Some(on) = &section.on {
        builder = builder.fallback_on(on.iter().copied().fold(Triggers::none(), TriggerConfig::add));
    }
    if let Some(bytes) = section.hold_bytes {
        builder = builder.hold_bytes(bytes);
    }
    if let Some(bytes) = section.answer_bytes {
        builder = builder.answer_bytes(bytes);
    }
    if section.tell_headers == Some(true) {
        builder = builder.tell_headers();
    }
    builder.build().map_err(|error| error.under("fallback"))
}

/// About what a call costs at a target: its estimated input, and all the output that it allows.
fn price(prices: &Prices, target: &Target, call: Option<&Call>) -> Option<u64> {
    let asked = target.model().or_else(|| call?.model.as_ref())?;
    let table = prices.table();
    let price = table.price(Some(target.upstream().name().as_str()), asked.as_str())?;
    let input = call.and_then(|call| call.estimate).map_or(0, |estimate| estimate.input_tokens);
    let output = call.and_then(|call| call.output_bound).or(price.max_output).unwrap_or(1_000);
    Some(price.rates.input.cost(input).saturating_add(price.rates.output.cost(output)).as_nanos())
}
