//! How a bulkhead is built.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::gate::{Bulkhead, Settings};
use super::rank::{ByCall, RankFn};
use crate::call::{Blind, Described, Key, Priority};
use crate::config_error::ConfigError;
use crate::gate::{BodyEnd, KeyFn, Keyed, gate_layer};
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;

const NAME: &str = "bulkhead";
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The layer of a bulkhead: see the [module](crate::bulkhead).
///
/// It has one state, which all services that it makes share, and their clones, and its own clones. A second layer is a
/// second state.
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
///
/// let layer = BulkheadLayer::new(16);
/// // The same limit for all services that a clone makes.
/// let handle = layer.clone().gate().clone();
/// handle.set_limit(8);
/// assert_eq!(layer.gate().limit(), 8);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BulkheadLayer<G = Bulkhead, M = BodyEnd> {
    gate: G,
    mode: M,
}

impl BulkheadLayer {
    /// At most `limit` calls at once, to the end of their responses; as many again may wait, each for 10 s.
    ///
    /// Zero means none: such a bulkhead refuses all calls at once, until [`Bulkhead::set_limit`] opens it.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let settings = Settings { limit, queue: None, max_wait: MAX_WAIT, expected_service: Duration::ZERO };
        let gate = Bulkhead::new(settings, Label::new(NAME), Observers::default(), Described, ByCall);
        Self { gate, mode: BodyEnd }
    }

    /// As [`new`](Self::new), with more to be set.
    pub fn builder(limit: u32) -> BulkheadBuilder {
        BulkheadBuilder {
            limit,
            queue: None,
            max_wait: MAX_WAIT,
            expected_service: Duration::ZERO,
            name: NAME.into(),
            observers: Observers::default(),
            reader: Described,
            rank: ByCall,
            states: OneState,
        }
    }
}

impl<R: Clone, P: Clone, M> BulkheadLayer<Bulkhead<R, P>, M> {
    /// Lets no call wait: one that finds no free slot is refused at once.
    ///
    /// The layer gets a new state: a handle taken before is not one on it.
    pub fn refuse(self) -> Self {
        let settings = Settings { queue: Some(0), ..self.gate.settings() };
        Self { gate: self.gate.anew(settings, self.gate.label().clone()), mode: self.mode }
    }
}

gate_layer!(BulkheadLayer);

/// Builds a [`BulkheadLayer`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct BulkheadBuilder<R = Described, P = ByCall, K = OneState> {
    limit: u32,
    queue: Option<u32>,
    max_wait: Duration,
    expected_service: Duration,
    name: Box<str>,
    observers: Observers,
    reader: R,
    rank: P,
    states: K,
}

/// One state for all requests.
#[derive(Clone, Copy, Debug)]
pub struct OneState;

/// One state a key.
#[derive(Clone, Copy, Debug)]
pub struct EachKey<K> {
    keys: K,
    bound: usize,
}

type States<R, P, K> = Keyed<Bulkhead<R, P>, K>;

impl<R, P, K> BulkheadBuilder<R, P, K> {
    /// How many calls may wait. Default: as many as may run, also when that changes. Zero lets none wait.
    ///
    /// A queue is worth its place only while those in it can still be served in time: at most
    /// *(timeout − service time) × calls served a second*. A longer one makes every call late.
    pub fn queue(mut self, length: u32) -> Self {
        self.queue = Some(length);
        self
    }

    /// Lets no call wait: one that finds no free slot is refused at once.
    pub fn refuse(self) -> Self {
        self.queue(0)
    }

    /// How long a call may wait. Default: 10 s. `Duration::MAX` is for ever; zero lets none wait.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = longest;
        self
    }

    /// The time that a call needs once it is admitted. Default: zero.
    ///
    /// A waiter with a [`Deadline`](crate::Deadline) is refused as soon as this much is no longer left, rather than
    /// served for nothing. A call that need not wait is not asked.
    pub fn expected_service(mut self, time: Duration) -> Self {
        self.expected_service = time;
        self
    }

    /// The name in refusals and events. Default: `bulkhead`.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Who hears of refusals, of waits and of callers who left while they waited.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.add(observer);
        self
    }

    /// Finds the priority of a request by a closure, in place of the request's [`Call`](crate::call::Call).
    ///
    /// It runs before anything is taken, and only for a call that may have to wait.
    pub fn priority_by<Req, F>(self, priority: F) -> BulkheadBuilder<R, RankFn<F>, K>
    where
        F: Fn(&Req) -> Priority,
    {
        self.with(|reader, _, states| (reader, RankFn::new(priority), states))
    }

    /// Reads nothing from a request, and so takes any request type. No deadline is known then.
    pub fn blind(self) -> BulkheadBuilder<Blind, P, K> {
        self.with(|_, rank, states| (Blind, rank, states))
    }

    /// One state for each key, such as [`ByUpstream`](crate::gate::ByUpstream): `limit` calls at once *each*.
    pub fn keyed<L>(self, keys: L) -> BulkheadBuilder<R, P, EachKey<L>> {
        let bound = Keyed::<Bulkhead, L>::DEFAULT_BOUND.get();
        self.with(|reader, rank, _| (reader, rank, EachKey { keys, bound }))
    }

    /// One state for each key that a closure finds.
    pub fn keyed_by<Req, F>(self, key: F) -> BulkheadBuilder<R, P, EachKey<KeyFn<F>>>
    where
        F: Fn(&Req) -> Option<Key>,
    {
        self.keyed(KeyFn::new(key))
    }

    fn with<R2, P2, K2>(self, change: impl FnOnce(R, P, K) -> (R2, P2, K2)) -> BulkheadBuilder<R2, P2, K2> {
        let (reader, rank, states) = change(self.reader, self.rank, self.states);
        BulkheadBuilder {
            limit: self.limit,
            queue: self.queue,
            max_wait: self.max_wait,
            expected_service: self.expected_service,
            name: self.name,
            observers: self.observers,
            reader,
            rank,
            states,
        }
    }

    /// The gate that the settings make, and what kind of states there are to be.
    fn gate(self) -> Result<(Bulkhead<R, P>, K), ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new("name", "must not be empty"));
        }
        if self.expected_service == Duration::MAX {
            return Err(ConfigError::new("expected_service", "must end: no deadline leaves time for ever"));
        }
        let settings = Settings {
            limit: self.limit,
            // A queue in which nobody may stay is none: its refusals then say `Full`, not that a wait was too long.
            queue: if self.max_wait.is_zero() { Some(0) } else { self.queue },
            max_wait: self.max_wait,
            expected_service: self.expected_service,
        };
        let label = Label::new(self.name);
        Ok((Bulkhead::new(settings, label, self.observers, self.reader, self.rank), self.states))
    }
}

impl<R, P> BulkheadBuilder<R, P> {
    /// The layer.
    ///
    /// # Errors
    /// An empty `name`; an `expected_service` of `Duration::MAX`.
    pub fn build(self) -> Result<BulkheadLayer<Bulkhead<R, P>>, ConfigError> {
        let (gate, OneState) = self.gate()?;
        Ok(BulkheadLayer { gate, mode: BodyEnd })
    }
}

impl<R: Clone, P: Clone, K> BulkheadBuilder<R, P, EachKey<K>> {
    /// The most keys that have a state at once. Default: 10 000. Beyond it a state at rest makes room, and where there
    /// is none, newcomers share one.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.states.bound = keys;
        self
    }

    /// The layer.
    ///
    /// # Errors
    /// An empty `name`; an `expected_service` of `Duration::MAX`; `max_keys` of zero.
    pub fn build(self) -> Result<BulkheadLayer<States<R, P, K>>, ConfigError> {
        let (gate, EachKey { keys, bound }) = self.gate()?;
        let bound =
            NonZeroUsize::new(bound).ok_or_else(|| ConfigError::new("max_keys", "must not be zero"))?;
        Ok(BulkheadLayer { gate: Keyed::new(gate, keys, bound), mode: BodyEnd })
    }
}
