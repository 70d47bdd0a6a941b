//! One state a key, bounded.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::quality::RandomState;
use rustc_hash::FxBuildHasher;

use crate::call::{Describe, Key};
use crate::gate::{Admission, Gate};
use crate::sync::{Mutex, MutexGuard, lock};

/// A gate that can be made anew for each key.
pub trait PerKey: Clone {
    /// A gate with a state of its own, fresh, for this key. Called outside any lock.
    #[must_use]
    fn for_key(&self, key: &Key) -> Self;

    /// Whether the state may be forgotten: nobody but the table holds it, and it decides as a fresh one would.
    fn at_rest(&self) -> bool;
}

/// How the key of a request is found. No key at all is a key of its own.
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
/// use seawall::call::Key;
/// use seawall::gate::Keys;
///
/// /// One state for each host.
/// #[derive(Clone, Copy, Debug)]
/// struct ByHost;
///
/// impl<B> Keys<http::Request<B>> for ByHost {
///     fn key(&self, request: &http::Request<B>) -> Option<Key> {
///         request.uri().host().map(Key::from)
///     }
/// }
///
/// let layer = BulkheadLayer::builder(16).keyed(ByHost).build()?;
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub trait Keys<Req> {
    /// The key whose state decides about this request.
    fn key(&self, request: &Req) -> Option<Key>;
}

/// One state for each upstream, as the fallback layer names it in the [`Call`](crate::call::Call).
#[derive(Clone, Copy, Debug, Default)]
pub struct ByUpstream;

/// One state for each model asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByModel;

/// One state for each tenant: a verified identity.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByTenant;

/// The key is found by a closure.
#[derive(Clone, Copy)]
pub struct KeyFn<F>(F);

impl<F> KeyFn<F> {
    /// Finds the key of a request by a closure.
    pub fn new<Req>(key: F) -> Self
    where
        F: Fn(&Req) -> Option<Key>,
    {
        Self(key)
    }
}

impl<Req: Describe> Keys<Req> for ByUpstream {
    fn key(&self, request: &Req) -> Option<Key> {
        request.call()?.upstream.clone()
    }
}

impl<Req: Describe> Keys<Req> for ByModel {
    fn key(&self, request: &Req) -> Option<Key> {
        request.call()?.model.clone()
    }
}

impl<Req: Describe> Keys<Req> for ByTenant {
    fn key(&self, request: &Req) -> Option<Key> {
        request.call()?.tenant.clone()
    }
}

impl<Req, F> Keys<Req> for KeyFn<F>
where
    F: Fn(&Req) -> Option<Key>,
{
    fn key(&self, request: &Req) -> Option<Key> {
        (self.0)(request)
    }
}

/// A gate with one state a key.
///
/// Bounded: beyond the bound a state *at rest* makes room (nobody holds it, and it decides as a fresh one would). Where
/// none of those looked at is at rest, the newcomer shares one overflow state with others like it. So an eviction never
/// changes a decision, and a flood of new keys neither grows the table nor pushes out a state that is busy.
///
/// Builders make one by `.keyed(…)`; the layer's `gate()` is then the handle on all states:
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
/// use seawall::gate::ByUpstream;
///
/// let layer = BulkheadLayer::builder(8).keyed(ByUpstream).build()?;
/// layer.gate().get(&"the small one".into()).set_limit(2);
/// assert_eq!(layer.gate().len(), 1);
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub struct Keyed<G, K> {
    table: Arc<Table<G>>,
    keys: K,
}

struct Table<G> {
    template: G,
    overflow: G,
    shards: Vec<Mutex<Shard<G>>>,
    len: AtomicUsize,
    bound: usize,
}

struct Shard<G> {
    index: HashMap<Key, usize, RandomState>,
    slots: Vec<(Key, G)>,
    /// Where the search for a state at rest goes on.
    hand: usize,
}

/// Small tables have one shard, so that their bound is exact.
const MOST_SHARDS: usize = 16;
const KEYS_A_SHARD: usize = 256;
/// How many states a newcomer looks at to find one at rest.
const LOOK_AT: usize = 16;

impl<G: PerKey, K> Keyed<G, K> {
    /// The bound on keys where none is given.
    pub const DEFAULT_BOUND: NonZeroUsize = NonZeroUsize::new(10_000).expect("ten thousand is not zero");

    /// One copy of `template` a key, at most `bound` of them.
    pub fn new(template: G, keys: K, bound: NonZeroUsize) -> Self {
        let shard = || Mutex::new(Shard { index: HashMap::default(), slots: Vec::new(), hand: 0 });
        let table = Table {
            overflow: template.for_key(&Key::from("(overflow)")),
            template,
            shards: (0..(bound.get() / KEYS_A_SHARD).clamp(1, MOST_SHARDS)).map(|_| shard()).collect(),
            len: AtomicUsize::new(0),
            bound: bound.get(),
        };
        Self { table: Arc::new(table), keys }
    }

    /// The gate of this key: a handle on its state, which is made if there is none.
    pub fn get(&self, key: &Key) -> G {
        self.table.get(key)
    }

    /// The gate of this key, if it has a state.
    pub fn find(&self, key: &Key) -> Option<G> {
        self.table.lock(key).gate(key).cloned()
    }

    /// How many keys have a state.
    pub fn len(&self) -> usize {
        self.table.len.load(Ordering::Relaxed)
    }

    /// Whether no key has a state.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys that have a state, in no order.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(self.len());
        for shard in &self.table.shards {
            keys.extend(lock(shard).slots.iter().map(|(key, _)| key.clone()));
        }
        keys
    }
}

impl<G: PerKey> Table<G> {
    #[inline]
    fn shard(&self, key: &Key) -> &Mutex<Shard<G>> {
        // Which lock a key has is no secret: all that can be gained is a wait of nanoseconds. The index is hashed with a seed
        // that nobody outside knows.
        let shards = self.shards.len();
        let shard = if shards == 1 { 0 } else { (FxBuildHasher.hash_one(key) >> 32) % shards as u64 };
        &self.shards[usize::try_from(shard).unwrap_or(0)]
    }

    fn lock(&self, key: &Key) -> MutexGuard<'_, Shard<G>> {
        lock(self.shard(key))
    }

    #[inline]
    fn get(&self, key: &Key) -> G {
        let known = self.lock(key).gate(key).cloned();
        known.unwrap_or_else(|| self.make(key))
    }

    #[cold]
    fn make(&self, key: &Key) -> G {
        // Made outside the lock: it may run a user's closure. Another thread may come first, and then its state counts.
        let fresh = self.template.for_key(key);
        let mut shard = self.lock(key);
        if let Some(gate) = shard.gate(key) {
            return gate.clone();
        }
        if !self.make_room(&mut shard) {
            return self.overflow.clone();
        }
        let slot = shard.slots.len();
        shard.slots.push((key.clone(), fresh.clone()));
        shard.index.insert(key.clone(), slot);
        fresh
    }

    /// Counts one more key, or takes the place of one at rest in this shard.
    fn make_room(&self, shard: &mut Shard<G>) -> bool {
        let below = |len: usize| (len < self.bound).then_some(len + 1);
        if self.len.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).is_ok() {
            return true;
        }
        shard.evict_one()
    }
}

impl<G> Shard<G> {
    #[inline]
    fn gate(&self, key: &Key) -> Option<&G> {
        let &slot = self.index.get(key)?;
        self.slots.get(slot).map(|(_, gate)| gate)
    }
}

impl<G: PerKey> Shard<G> {
    fn evict_one(&mut self) -> bool {
        for _ in 0..LOOK_AT.min(self.slots.len()) {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            if self.slots.get(self.hand).is_some_and(|(_, gate)| gate.at_rest()) {
                let (key, _) = self.slots.swap_remove(self.hand);
                self.index.remove(&key);
                if let Some((moved, _)) = self.slots.get(self.hand) {
                    self.index.insert(moved.clone(), self.hand);
                }
                return true;
            }
        }
        false
    }
}

impl<G, K> Keyed<G, K> {
    /// The key whose state decides about a request.
    pub(crate) fn key_of<Req>(&self, request: &Req) -> Key
    where
        K: Keys<Req>,
    {
        self.keys.key(request).unwrap_or_else(|| Key::from(""))
    }
}

impl<Req, G, K> Gate<Req> for Keyed<G, K>
where
    G: Gate<Req> + PerKey,
    K: Keys<Req>,
{
    type Permit = G::Permit;
    type Wait = G::Wait;

    fn admit(&self, request: &mut Req) -> Admission<G::Permit, G::Wait> {
        self.get(&self.key_of(request)).admit(request)
    }
}

impl<G, K: Clone> Clone for Keyed<G, K> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), keys: self.keys.clone() }
    }
}

impl<G, K> fmt::Debug for Keyed<G, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.table.len.load(Ordering::Relaxed);
        f.debug_struct("Keyed").field("keys", &len).field("bound", &self.table.bound).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for KeyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFn")
    }
}
