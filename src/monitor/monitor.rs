//! The monitor: one handle for all.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use super::alert::{Alert, Alerts, Rules};
use super::book::Book;
use super::directory::Directory;
use super::gate::{MonitorLayer, Scope, Watcher};
use super::gauges::Gauges;
use super::snapshot::{Snapshot, Target};
use super::stripes::{MANY, MOST, Record, What, thread_number};
use super::{Observer, Observers};
use crate::call::Key;
use crate::config_error::ConfigError;
use crate::refusal::Label;
use crate::time::{Instant, Origin};

/// Counts what calls and attempts come to, listens to the layers, and tells: see the [module](crate::monitor).
///
/// A handle: its clones share all. Give one clone to every layer as its observer.
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
/// use seawall::monitor::Monitor;
/// use tower::ServiceBuilder;
///
/// let monitor = Monitor::new();
/// let bulkhead = BulkheadLayer::builder(16).observer(monitor.clone()).build()?;
/// monitor.watch("models", bulkhead.gate().clone());
/// let layers = ServiceBuilder::new().layer(monitor.layer()).layer(monitor.attempts()).layer(bulkhead);
/// println!("{}", monitor.snapshot());
/// # let _ = layers;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Monitor {
    /// For calls and for attempts: one for each processor. Each has a reference count of its own, so that threads do not
    /// meet on one; permits hold it, so it counts what is under way too.
    stripes: [Arc<[Arc<Stripe>]>; 2],
    pub(super) inner: Arc<Inner>,
}

/// The place where one thread, or a few, leave what they record.
#[repr(align(128))]
pub(super) struct Stripe {
    records: Mutex<Vec<Record>>,
    pub(super) inner: Arc<Inner>,
}

/// What all share.
pub(super) struct Inner {
    began: Origin,
    pub(super) directory: Directory,
    declared: usize,
    book: Mutex<Book>,
    watched: Mutex<Vec<(String, Arc<dyn Gauges>)>>,
    alerts: Mutex<Alerts>,
    pub(super) on_alert: Option<OnAlert>,
    pub(super) observers: Observers,
    pub(super) label: Label,
}

/// Hears of alerts.
pub(super) type OnAlert = Box<dyn Fn(&Alert) + Send + Sync>;

impl Default for Monitor {
    fn default() -> Self {
        Self::new()
    }
}

impl Monitor {
    /// With the usual alert rules and up to 64 targets, none of them declared.
    #[must_use]
    pub fn new() -> Self {
        MonitorBuilder::default().make()
    }

    /// As [`new`](Self::new), with more to be set.
    pub fn builder() -> MonitorBuilder {
        MonitorBuilder::default()
    }

    /// The layer that sees calls: outermost, so that it sees what callers see.
    #[must_use]
    pub fn layer(&self) -> MonitorLayer {
        Watcher::layer(self.clone(), Scope::Calls)
    }

    /// The layer that sees attempts, each at its target: below retry, above the circuit breaker.
    #[must_use]
    pub fn attempts(&self) -> MonitorLayer {
        Watcher::layer(self.clone(), Scope::Attempts)
    }

    /// Shows a handle's state in snapshots from now on, under this name; one of the same name is replaced.
    pub fn watch(&self, name: impl Into<String>, handle: impl Gauges + 'static) {
        let name = name.into();
        let mut watched = self.inner.lock_watched();
        watched.retain(|(known, _)| *known != name);
        watched.push((name, Arc::new(handle)));
    }

    /// No longer shows the handle of this name.
    pub fn unwatch(&self, name: &str) {
        self.inner.lock_watched().retain(|(known, _)| known != name);
    }

    /// All figures as they are now. Takes well under a millisecond, during which calls go on.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let inner = &*self.inner;
        self.empty();
        let now = inner.now();
        let mut snapshot = {
            let mut book = inner.book();
            let (calls, attempts, targets) = book.series(now);
            Snapshot {
                uptime: Duration::from_nanos(now),
                calls,
                attempts,
                targets: self.named(targets),
                layers: book.layer_events(&inner.directory.layers()),
                breakers: book.breakers.clone(),
                budgets: book.budgets.clone(),
                ..Snapshot::default()
            }
        };
        snapshot.calls_in_flight = self.under_way(Scope::Calls);
        snapshot.attempts_in_flight = self.under_way(Scope::Attempts);
        snapshot.watched = inner.gauges();
        snapshot.alerts = inner.alerts().firing();
        snapshot
    }

    /// All figures as they are now, as text for Prometheus; see [`Snapshot::prometheus`].
    #[must_use]
    pub fn prometheus(&self) -> String {
        self.snapshot().prometheus()
    }

    /// Evaluates the alert rules now, and tells of those that have gone on or off since the last time.
    ///
    /// [`run`](Self::run) does so again and again. What cannot wait (a denied credential, a mark of a budget, a breaker
    /// that opens) is told at once, without this.
    pub fn tick(&self) {
        let snapshot = self.snapshot();
        let edges = self.inner.alerts().evaluate(&snapshot);
        self.inner.tell(&edges);
    }

    /// Evaluates the alert rules again and again, as long as the future is polled: spawn it. Dropping it stops it.
    pub async fn run(self, every: Duration) {
        loop {
            tokio::time::sleep(every.max(Duration::from_millis(1))).await;
            self.tick();
        }
    }

    #[inline]
    pub(super) fn mine(&self, scope: Scope) -> &Arc<Stripe> {
        let stripes = &self.stripes[scope as usize];
        // Within bounds, whatever the number: the length is a power of two.
        &stripes[thread_number() & (stripes.len() - 1)]
    }

    /// Puts all that threads have recorded into the book.
    pub(super) fn empty(&self) {
        self.stripes.iter().flat_map(|stripes| &**stripes).for_each(|stripe| stripe.empty());
    }

    /// The number of a target that has figures of its own.
    pub(super) fn target_number(&self, upstream: &str, model: &str) -> Option<u16> {
        self.inner.directory.find(upstream, model)
    }

    /// Each permit holds its stripe; the monitor itself holds each once.
    fn under_way(&self, scope: Scope) -> u64 {
        let held = self.stripes[scope as usize].iter().map(|stripe| Arc::strong_count(stripe) - 1);
        u64::try_from(held.sum::<usize>()).unwrap_or(u64::MAX)
    }

    fn named(&self, series: Vec<super::Series>) -> Vec<Target> {
        let names = self.inner.directory.targets();
        let declared = self.inner.declared;
        let mut series = series.into_iter();
        let mut targets = Vec::with_capacity(names.len());
        for (number, (upstream, model)) in names.into_iter().enumerate() {
            let series = series.next().unwrap_or_default();
            let silent = series.since_start.count() == 0 && series.since_start.money.charged == 0;
            if !silent || (1..=declared).contains(&number) {
                let (upstream, model) = (upstream.as_str().into(), model.as_str().into());
                targets.push(Target { upstream, model, series });
            }
        }
        targets
    }
}

impl Stripe {
    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something that happened at this instant.
    #[inline]
    pub(super) fn record(&self, at: u64, what: What) {
        let mut records = self.records();
        records.push(Record { at, what });
        if records.len() >= MANY {
            self.write_down(&mut records);
        }
    }

    /// Puts the records into the book; not yet, if somebody is at it and there is room for more.
    #[cold]
    fn write_down(&self, records: &mut Vec<Record>) {
        let mut book = match self.inner.book.try_lock() {
            Ok(book) => book,
            Err(_) if records.len() < MOST => return,
            Err(_) => self.inner.book(),
        };
        take_all(&mut book, records);
    }

    /// Puts all records into the book. The lock of the records is always taken before that of the book.
    fn empty(&self) {
        let mut records = self.records();
        take_all(&mut self.inner.book(), &mut records);
    }
}

/// Takes each record where it lies. None is left to be counted again, whatever becomes of one.
fn take_all(book: &mut Book, records: &mut Vec<Record>) {
    let mut taken = std::mem::take(records);
    for record in &taken {
        book.take(record);
    }
    taken.clear();
    *records = taken;
}

impl Inner {
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.began.elapsed()
    }

    /// Nanoseconds from the monitor's start to this instant.
    #[inline]
    pub(super) fn nanos(&self, instant: Instant) -> u64 {
        self.began.to(instant)
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn alerts(&self) -> MutexGuard<'_, Alerts> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_watched(&self) -> MutexGuard<'_, Vec<(String, Arc<dyn Gauges>)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watched(&self) -> Vec<(String, Arc<dyn Gauges>)> {
        self.lock_watched().clone()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("directory", &self.inner.directory).finish_non_exhaustive()
    }
}

/// Builds a [`Monitor`].
#[must_use = "a builder does nothing until `build`"]
pub struct MonitorBuilder {
    targets: Vec<(Key, Key)>,
    most: NonZeroUsize,
    rules: Rules,
    on_alert: Option<OnAlert>,
    observers: Observers,
    name: Box<str>,
}

/// How many targets there may be where nothing is said.
const MOST_TARGETS: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");
/// No more can be numbered.
const ALL_TARGETS: usize = 10_000;

impl Default for MonitorBuilder {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            most: MOST_TARGETS,
            rules: Rules::default(),
            on_alert: None,
            observers: Observers::default(),
            name: "monitor".into(),
        }
    }
}

impl MonitorBuilder {
    /// Declares a target: an upstream, and a model there. It has its own figures from the start.
    pub fn target(mut self, upstream: impl Into<Key>, model: impl Into<Key>) -> Self {
        self.targets.push((upstream.into(), model.into()));
        self
    }

    /// Declares many: all that the routes can lead to.
    pub fn targets<U: Into<Key>, N: Into<Key>>(mut self, targets: impl IntoIterator<Item = (U, N)>) -> Self {
        self.targets.extend(targets.into_iter().map(|(upstream, model)| (upstream.into(), model.into())));
        self
    }

    /// How many targets may have figures of their own; the declared ones always have. Default: 64. About 100 KB each,
    /// where there is much traffic.
    ///
    /// A model that is not declared gets a place when an upstream has served it; until then, and where there is no
    /// place left, it is counted as `other`. So names that callers make up take no place.
    pub fn most_targets(mut self, most: NonZeroUsize) -> Self {
        self.most = most;
        self
    }

    /// The alert rules. Default: [`Rules::default`].
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Hears of each alert that goes on or off, once. It must not block: it is called from [`Monitor::tick`], and for
    /// what cannot wait from the call that brought it about.
    pub fn on_alert(mut self, hear: impl Fn(&Alert) + Send + Sync + 'static) -> Self {
        self.on_alert = Some(Box::new(hear));
        self
    }

    /// Who hears of alerts as events.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.add(observer);
        self
    }

    /// The name in its events. Default: `monitor`.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The monitor.
    ///
    /// # Errors
    /// An empty `name`; more than 10 000 `targets`; a rate that is none, or a factor that is not above zero, in `rules`.
    pub fn build(self) -> Result<Monitor, ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new("name", "must not be empty"));
        }
        if self.targets.len().max(self.most.get()) > ALL_TARGETS {
            return Err(ConfigError::new("targets", "must be at most 10 000"));
        }
        if let Some(field) = self.rules.fault() {
            return Err(ConfigError::new(field, "must be a rate between 0 and 1, or a factor above 0"));
        }
        Ok(self.make())
    }

    fn make(self) -> Monitor {
        let directory = Directory::new(&self.targets, self.most.get());
        let inner = Arc::new(Inner {
            began: Origin::new(),
            declared: directory.targets().len() - 1,
            directory,
            book: Mutex::new(Book::default()),
            watched: Mutex::default(),
            alerts: Mutex::new(Alerts::new(self.rules)),
            on_alert: self.on_alert,
            observers: self.observers,
            label: Label::new(self.name),
        });
        let records = || Mutex::new(Vec::with_capacity(MOST));
        let stripe = |_| Arc::new(Stripe { records: records(), inner: inner.clone() });
        let processors = available_parallelism().map_or(1, usize::from).next_power_of_two();
        let stripes = [(); 2].map(|()| (0..processors).map(stripe).collect());
        Monitor { stripes, inner }
    }
}

impl fmt::Debug for MonitorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorBuilder")
            .field("targets", &self.targets)
            .field("most_targets", &self.most)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
