//! The layer and its builder.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use crate::call::{Blind, Described, Key};
use crate::config_error::ConfigError;
use crate::cost_guard::bound::{Bound, Sizing};
use crate::cost_guard::budget::{Budget, BudgetKey};
use crate::cost_guard::gate::{CostGuard, Inner, Without};
use crate::cost_guard::ledger::{Ledger, MemoryLedger, MemoryLedgerBuilder};
use crate::cost_guard::reader::{TenantBy, TenantHeader};
use crate::cost_guard::settle::Unreported;
use crate::cost_guard::table::{PriceTable, Prices};
use crate::cost_guard::window::Window;
use crate::gate::{BodyEnd, gate_layer};
use crate::money::Usd;
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;
use crate::stripes::Stripes;
use crate::time::{SystemWall, Wall};

/// Keeps calls within a budget. See the [module](crate::cost_guard).
///
/// ```
/// use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Price, PriceTable, Usd, Window};
///
/// // A dollar a day for each tenant, as the authentication above has named it; and only watch at first.
/// let prices = PriceTable::new().model("gpt-4o", Price::per_million("2.50", "10")?.with_max_output(16_384));
/// let layer = CostGuardLayer::builder()
///     .prices(prices)
///     .budget(Budget::new(Usd::dollars(1), Window::DAY).by(BudgetKey::Tenant))
///     .observe_only()
///     .build()?;
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CostGuardLayer<G = CostGuard, M = BodyEnd> {
    gate: G,
    mode: M,
}

gate_layer!(CostGuardLayer);

impl CostGuardLayer {
    /// One budget, these prices, and the defaults.
    #[must_use]
    pub fn new(prices: impl Into<Prices>, budget: Budget) -> Self {
        let builder = Self::builder().prices(prices);
        builder.finish(MemoryLedger::new(budget))
    }

    /// Everything can be set.
    pub fn builder() -> CostGuardBuilder {
        CostGuardBuilder {
            reader: Described,
            ledger: MemoryLedger::builder(),
            settings: Settings {
                prices: PriceTable::new().into(),
                sizing: Sizing::default(),
                rule: Unreported::default(),
                patience: DEFAULT_PATIENCE,
                unpriced: None,
                observe_only: false,
                fail_open: false,
                extra_cap: None,
                wall: Arc::new(SystemWall),
                name: "cost_guard".into(),
                observers: Observers::default(),
            },
        }
    }
}

const DEFAULT_PATIENCE: Duration = Duration::from_secs(2);

/// Builds a [`CostGuardLayer`].
#[must_use]
pub struct CostGuardBuilder<R = Described, B = MemoryLedgerBuilder> {
    reader: R,
    ledger: B,
    settings: Settings,
}

struct Settings {
    prices: Prices,
    sizing: Sizing,
    rule: Unreported,
    patience: Duration,
    unpriced: Option<Unpriced>,
    observe_only: bool,
    fail_open: bool,
    extra_cap: Option<Usd>,
    wall: Arc<dyn Wall>,
    name: Box<str>,
    observers: Observers,
}

/// What becomes of a call whose price is not known. For a price that holds for all others, give the table a
/// [default](PriceTable::default_price).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpriced {
    /// It is refused: the default wherever a budget has a limit.
    Refuse,
    /// It passes, and is charged nothing: the default without a limit.
    Free,
}

impl<R> CostGuardBuilder<R, MemoryLedgerBuilder> {
    /// Adds a budget. A call must fit into all that apply to it, at once or not at all.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.ledger = self.ledger.budget(budget);
        self
    }

    /// A budget for further attempts alone, beside the whole: retries, and targets after the first. It has the window and
    /// the key of the first budget.
    pub fn extra_cap(mut self, limit: Usd) -> Self {
        self.settings.extra_cap = Some(limit);
        self
    }

    /// How many keys each budget keeps account of. Default: 1 000 000.
    pub fn most_keys(mut self, keys: NonZeroUsize) -> Self {
        self.ledger = self.ledger.most_keys(keys);
        self
    }

    /// Another wall clock than the system's, for calendar windows and off-peak hours.
    pub fn wall(mut self, wall: impl Wall + 'static) -> Self {
        let wall: Arc<dyn Wall> = Arc::new(wall);
        self.settings.wall = wall.clone();
        self.ledger = self.ledger.wall(move || wall.since_epoch());
        self
    }

    /// A ledger of your own, or one that other guards share. It brings its budgets; those added here are dropped.
    pub fn ledger<L: Ledger>(self, ledger: L) -> CostGuardBuilder<R, Given<L>> {
        CostGuardBuilder { reader: self.reader, ledger: Given(ledger), settings: self.settings }
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// Where two budgets have one name, or there are too many.
    pub fn build(mut self) -> Result<CostGuardLayer<CostGuard<R>>, ConfigError> {
        if let Some(limit) = self.settings.extra_cap {
            let first = self.ledger.first();
            let (window, key) =
                first.map_or((Window::DAY, BudgetKey::All), |first| (first.window, first.key));
            let cap = Budget::new(limit, window).by(key).extra_only().named("budget of further attempts");
            self.ledger = self.ledger.budget(cap);
        }
        let ledger = std::mem::replace(&mut self.ledger, MemoryLedger::builder()).build()?;
        Ok(self.finish(ledger))
    }
}

/// A ledger that was given.
#[derive(Clone, Debug)]
pub struct Given<L>(L);

impl<R, L: Ledger> CostGuardBuilder<R, Given<L>> {
    /// The layer.
    ///
    /// # Errors
    ///
    /// Where a cap on further attempts was asked for: the ledger that was given has its own budgets.
    pub fn build(self) -> Result<CostGuardLayer<CostGuard<R, L>>, ConfigError> {
        if self.settings.extra_cap.is_some() {
            return Err(ConfigError::new(
                "extra_cap",
                "is a budget of the ledger that was given: add it there",
            ));
        }
        let Given(ledger) = self.ledger;
        let builder = CostGuardBuilder { reader: self.reader, ledger: (), settings: self.settings };
        Ok(builder.finish(ledger))
    }
}

impl<B> CostGuardBuilder<Described, B> {
    /// Reads nothing from a request, and so takes any: its price is the table's default, and its input is bounded by
    /// [`unknown_input`](CostGuardBuilder::unknown_input).
    pub fn blind(self) -> CostGuardBuilder<Blind, B> {
        CostGuardBuilder { reader: Blind, ledger: self.ledger, settings: self.settings }
    }
}

impl<R, B> CostGuardBuilder<R, B> {
    /// Prices, or a handle on prices that others share. Default: none, which refuses every call under a limit.
    pub fn prices(mut self, prices: impl Into<Prices>) -> Self {
        self.settings.prices = prices.into();
        self
    }

    /// The tenant is found by a closure. It must be a verified identity.
    pub fn tenant_by<Req, F>(self, tenant: F) -> CostGuardBuilder<TenantBy<R, F>, B>
    where
        F: Fn(&Req) -> Option<Key>,
    {
        let reader = TenantBy { reader: self.reader, tenant };
        CostGuardBuilder { reader, ledger: self.ledger, settings: self.settings }
    }

    /// The tenant stands in a header, which an authentication before this layer must have set or checked.
    pub fn tenant_header(self, header: HeaderName) -> CostGuardBuilder<TenantHeader<R>, B> {
        let reader = TenantHeader { reader: self.reader, header };
        CostGuardBuilder { reader, ledger: self.ledger, settings: self.settings }
    }

    /// How the input's tokens are bounded. Default: [`Bound::Bytes`].
    pub fn bound(mut self, bound: Bound) -> Self {
        self.settings.sizing.bound = bound;
        self
    }

    /// Tokens that the upstream adds to a request of its own: roles, separators, instructions for tools. Default: 512.
    pub fn framing(mut self, tokens: u64) -> Self {
        self.settings.sizing.framing = tokens;
        self
    }

    /// Tokens reserved for what the input only refers to (URLs, file ids). Default: none, such calls are refused.
    pub fn reference_allowance(mut self, tokens: u64) -> Self {
        self.settings.sizing.reference = Some(tokens);
        self
    }

    /// Input tokens reserved for a call of which nothing is known. Default: none, such calls are refused.
    pub fn unknown_input(mut self, tokens: u64) -> Self {
        self.settings.sizing.unknown_input = Some(tokens);
        self
    }

    /// Output tokens reserved where neither the call nor the price table bounds the answer. Default: 32 768.
    pub fn unknown_output(mut self, tokens: u64) -> Self {
        self.settings.sizing.unknown_output = tokens;
        self
    }

    /// No answer is longer than this, whatever the call allows. Default: none. A cap below what upstreams do answer lets
    /// calls exceed what was reserved for them.
    pub fn output_cap(mut self, tokens: u64) -> Self {
        self.settings.sizing.output_cap = Some(tokens);
        self
    }

    /// What is charged where the upstream does not say what was used. Default: [`Unreported::Bound`].
    pub fn unreported(mut self, rule: Unreported) -> Self {
        self.settings.rule = rule;
        self
    }

    /// What becomes of a call whose price is not known. Default: refused, if any budget has a limit.
    pub fn unpriced(mut self, unpriced: Unpriced) -> Self {
        self.settings.unpriced = Some(unpriced);
        self
    }

    /// How long a call waits for what others hold, in the order of coming, before it is refused as *contended*. Default:
    /// 2 s; zero refuses at once.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Counts and reports, and refuses nothing.
    pub fn observe_only(mut self) -> Self {
        self.settings.observe_only = true;
        self
    }

    /// Where the ledger's store does not answer, calls pass, unreserved. Default: they are refused.
    pub fn fail_open(mut self) -> Self {
        self.settings.fail_open = true;
        self
    }

    /// The guard's name in refusals and events. Default: `cost_guard`.
    pub fn name(mut self, name: &str) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Who listens to what it decides.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.settings.observers.add(observer);
        self
    }

    fn finish<L: Ledger>(self, ledger: L) -> CostGuardLayer<CostGuard<R, L>> {
        let Settings {
            prices,
            sizing,
            rule,
            patience,
            unpriced,
            observe_only,
            fail_open,
            wall,
            name,
            observers,
            ..
        } = self.settings;
        let limited = ledger.budgets().iter().any(|budget| budget.limit().is_some());
        let free = if limited { Unpriced::Refuse } else { Unpriced::Free };
        let inner = Inner {
            prices,
            unpriced_free: unpriced.unwrap_or(free) == Unpriced::Free,
            unbounded_free: !limited,
            ledger,
            sizing,
            rule,
            patience,
            observe_only,
            without: if fail_open { Without::Pass } else { Without::Refuse },
            wall,
            label: Arc::new(Label::new(name)),
            observers,
        };
        let inner = Stripes::new(&Arc::new(inner));
        CostGuardLayer { gate: CostGuard { reader: self.reader, inner }, mode: BodyEnd }
    }
}

impl<R, B> fmt::Debug for CostGuardBuilder<R, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { name, sizing, rule, patience, unpriced, .. } = &self.settings;
        f.debug_struct("CostGuardBuilder")
            .field("name", name)
            .field("bound", &sizing.bound)
            .field("framing", &sizing.framing)
            .field("reference_allowance", &sizing.reference)
            .field("unknown_input", &sizing.unknown_input)
            .field("unknown_output", &sizing.unknown_output)
            .field("output_cap", &sizing.output_cap)
            .field("unreported", rule)
            .field("unpriced", unpriced)
            .field("patience", patience)
            .field("fail_open", &self.settings.fail_open)
            .field("observe_only", &self.settings.observe_only)
            .finish_non_exhaustive()
    }
}
