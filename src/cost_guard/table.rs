//! Which price is whose.

mod recent;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use rustc_hash::FxHashMap;

use crate::call::Key;
use crate::cost_guard::loaders::{self, LoadError, LoadReport};
use crate::cost_guard::price::{Price, Short, Tariff};
use crate::time::{self, Instant};

/// Prices by upstream and model.
///
/// A price is looked up in this order: for this model at this upstream; for this model anywhere; the same for what the
/// model is an alias of; the longest pattern that fits, at this upstream and then anywhere; the default. Where an upstream of
/// yours is called otherwise than the provider in a price list, [`provider`](Self::provider) says so.
///
/// ```
/// use seawall::cost_guard::{Price, PriceTable};
///
/// let table = PriceTable::new()
///     .model("gpt-4o", Price::per_million("2.50", "10").unwrap())
///     .pattern("gpt-4o-2024-", Price::per_million("2.50", "10").unwrap())
///     .at("cheap", "gpt-4o", Price::per_million("2", "8").unwrap())
///     .alias("smart", "gpt-4o");
/// assert!(table.price(None, "smart").is_some());
/// assert!(table.price(None, "gpt-5").is_none(), "nothing is guessed");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PriceTable {
    anywhere: FxHashMap<Key, Entry>,
    at: FxHashMap<Key, FxHashMap<Key, Entry>>,
    aliases: FxHashMap<Key, Key>,
    /// Longest first.
    patterns: Vec<Pattern>,
    providers: FxHashMap<Key, Key>,
    default: Option<Entry>,
    source: Box<str>,
    loaded: Instant,
    /// No other table that was ever in use has it. 0: it was never in use.
    number: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    price: Arc<Price>,
    tariff: Arc<Tariff>,
}

#[derive(Clone, Debug)]
struct Pattern {
    upstream: Option<Key>,
    prefix: Box<str>,
    entry: Entry,
}

/// An alias may name an alias, but not for ever.
const MOST_ALIASES: usize = 4;

impl Default for PriceTable {
    fn default() -> Self {
        Self::new()
    }
}

impl PriceTable {
    /// No prices.
    pub fn new() -> Self {
        Self {
            anywhere: FxHashMap::default(),
            at: FxHashMap::default(),
            aliases: FxHashMap::default(),
            patterns: Vec::new(),
            providers: FxHashMap::default(),
            default: None,
            source: "code".into(),
            loaded: time::now(),
            number: 0,
        }
    }

    /// The price of a model wherever it is asked.
    pub fn model(mut self, model: impl Into<Key>, price: Price) -> Self {
        self.anywhere.insert(model.into(), Entry::new(price));
        self
    }

    /// The price of a model at one upstream, or at one provider of a price list.
    pub fn at(mut self, upstream: impl Into<Key>, model: impl Into<Key>, price: Price) -> Self {
        self.at.entry(upstream.into()).or_default().insert(model.into(), Entry::new(price));
        self
    }

    /// The price of all models whose name begins so; the longest beginning wins.
    pub fn pattern(self, prefix: &str, price: Price) -> Self {
        self.with_pattern(None, prefix, price)
    }

    /// The same at one upstream only.
    pub fn pattern_at(self, upstream: impl Into<Key>, prefix: &str, price: Price) -> Self {
        self.with_pattern(Some(upstream.into()), prefix, price)
    }

    fn with_pattern(mut self, upstream: Option<Key>, prefix: &str, price: Price) -> Self {
        let at = self.patterns.partition_point(|pattern| pattern.prefix.len() >= prefix.len());
        self.patterns.insert(at, Pattern { upstream, prefix: prefix.into(), entry: Entry::new(price) });
        self
    }

    /// Another name of a model.
    pub fn alias(mut self, alias: impl Into<Key>, model: impl Into<Key>) -> Self {
        self.aliases.insert(alias.into(), model.into());
        self
    }

    /// The provider, as the price list names it, that stands behind an upstream.
    pub fn provider(mut self, upstream: impl Into<Key>, provider: impl Into<Key>) -> Self {
        self.providers.insert(upstream.into(), provider.into());
        self
    }

    /// The price of whatever has none. Take the dearest that you may meet.
    pub fn default_price(mut self, price: Price) -> Self {
        self.default = Some(Entry::new(price));
        self
    }

    /// Where the prices come from, to be shown.
    pub fn source_name(mut self, source: &str) -> Self {
        self.source = source.into();
        self
    }

    /// Adds what `other` has and this has not: own entries win over those of a list.
    pub fn or(mut self, other: &Self) -> Self {
        fn fill<T: Clone>(into: &mut FxHashMap<Key, T>, from: &FxHashMap<Key, T>) {
            for (key, value) in from {
                into.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        fill(&mut self.anywhere, &other.anywhere);
        fill(&mut self.aliases, &other.aliases);
        fill(&mut self.providers, &other.providers);
        for (upstream, models) in &other.at {
            fill(self.at.entry(upstream.clone()).or_default(), models);
        }
        self.patterns.extend(other.patterns.iter().cloned());
        self.patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.prefix.len()));
        self.default = self.default.or_else(|| other.default.clone());
        self
    }

    /// The price of a model at an upstream.
    #[must_use]
    pub fn price(&self, upstream: Option<&str>, model: &str) -> Option<&Price> {
        let upstream = upstream.map(Key::from);
        self.find(upstream.as_ref(), Some(&Key::from(model))).map(|entry| &*entry.price)
    }

    /// How many models have a price, each upstream counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.anywhere.len() + self.at.values().map(FxHashMap::len).sum::<usize>()
    }

    /// Whether no model has a price.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.patterns.is_empty() && self.default.is_none()
    }

    /// Where the prices come from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How long ago the table was made.
    #[must_use]
    pub fn age(&self) -> Duration {
        time::now().saturating_duration_since(self.loaded)
    }

    pub(crate) fn tariff(&self, upstream: Option<&Key>, model: Option<&Key>) -> Option<&Arc<Tariff>> {
        self.find(upstream, model).map(|entry| &entry.tariff)
    }

    /// Whether no price depends on the upstream.
    fn is_same_at_all(&self) -> bool {
        self.at.is_empty() && self.patterns.iter().all(|pattern| pattern.upstream.is_none())
    }

    fn find(&self, upstream: Option<&Key>, model: Option<&Key>) -> Option<&Entry> {
        let Some(model) = model else { return self.default.as_ref() };
        let upstream = upstream.map(|upstream| self.providers.get(upstream).unwrap_or(upstream));
        let mut name = model;
        for _ in 0..=MOST_ALIASES {
            if let Some(entry) = self.exact(upstream, name) {
                return Some(entry);
            }
            let Some(other) = self.aliases.get(name) else { break };
            name = other;
        }
        self.by_pattern(upstream, name).or(self.default.as_ref())
    }

    fn exact(&self, upstream: Option<&Key>, model: &Key) -> Option<&Entry> {
        let there = upstream.filter(|_| !self.at.is_empty()).and_then(|upstream| self.at.get(upstream));
        there.and_then(|models| models.get(model)).or_else(|| self.anywhere.get(model))
    }

    fn by_pattern(&self, upstream: Option<&Key>, model: &Key) -> Option<&Entry> {
        let fits = |pattern: &&Pattern| model.as_str().starts_with(&*pattern.prefix);
        let own = |pattern: &&Pattern| pattern.upstream.is_some() && pattern.upstream.as_ref() == upstream;
        let here = self.patterns.iter().filter(own).find(fits);
        let anywhere = || self.patterns.iter().filter(|pattern| pattern.upstream.is_none()).find(fits);
        here.or_else(anywhere).map(|pattern| &pattern.entry)
    }
}

impl Entry {
    fn new(price: Price) -> Self {
        Self { tariff: Arc::new(Tariff::new(&price)), price: Arc::new(price) }
    }
}

/// A handle on the prices in use. Clones share it; a new table takes effect with the next call, while calls under way are
/// settled by the price they were admitted at.
///
/// ```
/// use seawall::cost_guard::{Price, PriceTable, Prices};
///
/// let prices = Prices::from(PriceTable::new().model("m", Price::per_million("1", "2").unwrap()));
/// assert!(prices.replace_from_litellm(b"{ half a fi", "prices.json").is_err());
/// assert_eq!(prices.table().len(), 1, "the old table stays");
/// ```
#[derive(Clone)]
pub struct Prices {
    current: Arc<Current>,
    /// What the user set, which wins over every list that is loaded later.
    own: Arc<PriceTable>,
}

struct Current {
    table: ArcSwap<PriceTable>,
    /// The number of that table.
    number: AtomicU64,
    /// Held by who replaces it.
    replacing: Mutex<()>,
}

impl From<PriceTable> for Prices {
    fn from(mut table: PriceTable) -> Self {
        table.number = fresh_number();
        let (number, own) = (AtomicU64::new(table.number), Arc::new(table));
        let current = Current { table: ArcSwap::new(own.clone()), number, replacing: Mutex::new(()) };
        Self { current: Arc::new(current), own }
    }
}

/// One that no table had before.
fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Prices {
    /// The table in use.
    #[must_use]
    pub fn table(&self) -> Arc<PriceTable> {
        self.current.table.load_full()
    }

    /// Puts another table in its place.
    pub fn replace(&self, mut table: PriceTable) {
        table.number = fresh_number();
        let number = table.number;
        let _alone = self.current.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.table.store(Arc::new(table));
        self.current.number.store(number, Ordering::Release);
    }

    /// Reads LiteLLM's price file, and puts it in the place of the list in use. The table that this handle was made
    /// from stays, and wins over the list.
    ///
    /// # Errors
    ///
    /// Where the file is too large, cut off, or not of that shape. The table in use then stays.
    pub fn replace_from_litellm(&self, file: &[u8], source: &str) -> Result<LoadReport, LoadError> {
        self.take(loaders::litellm(file)?, source)
    }

    /// Reads the `api.json` of models.dev, and does the same with it.
    ///
    /// # Errors
    ///
    /// Where the file is too large, cut off, or not of that shape. The table in use then stays.
    pub fn replace_from_models_dev(&self, file: &[u8], source: &str) -> Result<LoadReport, LoadError> {
        self.take(loaders::models_dev(file)?, source)
    }

    fn take(&self, (list, report): (PriceTable, LoadReport), source: &str) -> Result<LoadReport, LoadError> {
        if list.is_empty() {
            return Err(LoadError::NoPrices);
        }
        let mut table = PriceTable::clone(&self.own).or(&list).source_name(source);
        table.loaded = list.loaded;
        self.replace(table);
        Ok(report)
    }

    pub(crate) fn load(&self) -> Guard<Arc<PriceTable>> {
        self.current.table.load()
    }

    /// The price of a model at an upstream.
    #[inline]
    pub(crate) fn find(&self, upstream: Option<&Key>, model: Option<&Key>) -> Option<Found> {
        let number = self.current.number.load(Ordering::Acquire);
        if let Some(short) = recent::find(number, upstream, model) {
            return Some(Found { short, more: None });
        }
        let tariff = self.look_up(upstream, model)?;
        Some(match tariff.short() {
            Some(short) => Found { short, more: None },
            None => {
                Found { short: Short { max_output: tariff.max_output, ..Short::FREE }, more: Some(tariff) }
            }
        })
    }

    #[inline(never)]
    fn look_up(&self, upstream: Option<&Key>, model: Option<&Key>) -> Option<Arc<Tariff>> {
        let table = self.load();
        let tariff = table.tariff(upstream, model)?;
        if let Some(short) = tariff.short() {
            recent::note(&table, upstream, model, short);
        }
        Some(tariff.clone())
    }
}

/// A price that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) short: Short,
    /// Where the price depends on more than the class; of what is in short only the longest answer holds then.
    pub(crate) more: Option<Arc<Tariff>>,
}

impl fmt::Debug for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.load();
        f.debug_struct("Prices")
            .field("models", &table.len())
            .field("source", &table.source())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests;
