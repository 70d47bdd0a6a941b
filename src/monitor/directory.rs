//! The names of targets and layers, and their numbers. Read without a lock; bounded, whatever comes from outside.

use std::fmt;
use std::hash::Hasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use rustc_hash::FxHasher;

use crate::call::Key;

/// The upstream of calls for which no fallback named one.
const NO_UPSTREAM: &str = "default";
/// The model of requests that name none.
const NO_MODEL: &str = "unknown";
/// What all share that have no place of their own.
pub(super) const OTHER: &str = "other";
/// The number of the target, and of the layer, that all others share.
pub(super) const OTHERS: u16 = 0;
/// No more layers than this have a place of their own.
const MOST_LAYERS: usize = 64;

/// Names that have numbers. A number stays what it is and no name leaves, so who looks one up takes no lock and no count.
pub(super) struct Directory {
    targets: Targets,
    layers: ArcSwap<Vec<Box<str>>>,
    writing: Mutex<()>,
}

/// The targets. An entry lies at the first free place from the one that its hash names: a place that was never written
/// ends the search, and most are free.
struct Targets {
    places: Box<[OnceLock<Entry>]>,
    /// How many there are; who writes holds the lock.
    len: AtomicUsize,
    /// How many there may be.
    most: usize,
}

struct Entry {
    upstream: Key,
    model: Key,
    number: u16,
}

impl Targets {
    /// At least half of the places stay free.
    fn new(most: usize) -> Self {
        let most = most.min(usize::from(u16::MAX));
        let places = (most * 2).next_power_of_two();
        Self { places: (0..places).map(|_| OnceLock::new()).collect(), len: AtomicUsize::new(0), most }
    }

    /// The entry of these names, or the place for it.
    #[inline]
    fn look(&self, upstream: &str, model: &str) -> Result<u16, &OnceLock<Entry>> {
        // Its keys are few and proven, so a quick hash serves, whoever looks up what.
        let mut hasher = FxHasher::default();
        hasher.write(upstream.as_bytes());
        hasher.write(model.as_bytes());
        let mask = self.places.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are as good as the others")]
        let mut at = hasher.finish() as usize;
        loop {
            let place = &self.places[at & mask];
            match place.get() {
                None => return Err(place),
                Some(entry) if entry.model.as_str() == model && entry.upstream.as_str() == upstream => {
                    return Ok(entry.number);
                }
                Some(_) => at = at.wrapping_add(1),
            }
        }
    }

    #[inline]
    fn find(&self, upstream: &str, model: &str) -> Option<u16> {
        self.look(upstream, model).ok()
    }

    /// One more, or the one that is there; `None` if there is no room. One thread at a time.
    fn add(&self, upstream: &str, model: &str) -> Option<u16> {
        let place = match self.look(upstream, model) {
            Ok(number) => return Some(number),
            Err(place) => place,
        };
        let len = self.len.load(Ordering::Relaxed);
        let number = u16::try_from(len).ok().filter(|_| len < self.most)?;
        let entry = Entry { upstream: upstream.into(), model: model.into(), number };
        place.set(entry).ok()?;
        self.len.store(len + 1, Ordering::Relaxed);
        Some(number)
    }

    /// The names, by their numbers.
    fn names(&self) -> Vec<(Key, Key)> {
        let mut entries: Vec<&Entry> = self.places.iter().filter_map(OnceLock::get).collect();
        entries.sort_unstable_by_key(|entry| entry.number);
        // A number that is still being written ends the list: those that follow it are told the next time.
        let whole = entries.iter().enumerate().take_while(|(at, entry)| usize::from(entry.number) == *at);
        whole.map(|(_, entry)| (entry.upstream.clone(), entry.model.clone())).collect()
    }
}

impl Directory {
    /// With these targets from the start; `most` targets in all, beside the one that others share.
    pub(super) fn new(declared: &[(Key, Key)], most: usize) -> Self {
        let targets = Targets::new(most.max(declared.len()).saturating_add(1));
        targets.add(OTHER, OTHER);
        for (upstream, model) in declared {
            targets.add(upstream.as_str(), model.as_str());
        }
        Self { targets, layers: ArcSwap::from_pointee(vec![OTHER.into()]), writing: Mutex::new(()) }
    }

    /// The number of a target, and whether it is its own. A model that nobody declared and no upstream has served yet shares
    /// that of the others at its upstream, so that names made up by callers take no place.
    #[inline]
    pub(super) fn target(&self, upstream: Option<&Key>, model: Option<&Key>) -> (u16, bool) {
        let upstream = upstream.map_or(NO_UPSTREAM, Key::as_str);
        let asked = model.map_or(NO_MODEL, Key::as_str);
        if let Some(number) = self.targets.find(upstream, asked) {
            return (number, true);
        }
        if model.is_some()
            && let Some(number) = self.targets.find(upstream, OTHER)
        {
            return (number, false);
        }
        let known = if model.is_some() { OTHER } else { NO_MODEL };
        (self.enter(upstream, known), model.is_none())
    }

    /// The number of a target that has its own.
    pub(super) fn find(&self, upstream: &str, model: &str) -> Option<u16> {
        self.targets.find(upstream, model)
    }

    /// An upstream has served this model: it gets a number of its own, if there is room.
    pub(super) fn proven(&self, upstream: Option<&Key>, model: &Key) -> u16 {
        self.enter(upstream.map_or(NO_UPSTREAM, Key::as_str), model.as_str())
    }

    #[cold]
    fn enter(&self, upstream: &str, model: &str) -> u16 {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.targets.add(upstream, model);
        number.or_else(|| self.targets.find(upstream, OTHER)).unwrap_or(OTHERS)
    }

    /// The number of a layer.
    pub(super) fn layer(&self, name: &str) -> u16 {
        let find = |names: &[Box<str>]| names.iter().position(|known| **known == *name);
        if let Some(at) = find(&self.layers.load()) {
            return u16::try_from(at).unwrap_or(OTHERS);
        }
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.layers.load();
        let at = match find(&names) {
            Some(at) => at,
            None if names.len() > MOST_LAYERS => return OTHERS,
            None => {
                let mut names = Vec::clone(&names);
                names.push(name.into());
                let at = names.len() - 1;
                self.layers.store(Arc::new(names));
                at
            }
        };
        u16::try_from(at).unwrap_or(OTHERS)
    }

    /// The names of all targets, by their numbers.
    pub(super) fn targets(&self) -> Vec<(Key, Key)> {
        self.targets.names()
    }

    /// The names of all layers, by their numbers.
    pub(super) fn layers(&self) -> Vec<Box<str>> {
        Vec::clone(&self.layers.load())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("targets", &self.targets()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::from(text)
    }

    #[test]
    fn a_declared_target_is_known_from_the_start() {
        let directory = Directory::new(&[(key("a"), key("m"))], 8);
        assert_eq!(directory.target(Some(&key("a")), Some(&key("m"))), (1, true));
        assert!(!directory.target(Some(&key("a")), Some(&key("n"))).1);
    }

    #[test]
    fn a_model_gets_its_place_when_an_upstream_has_served_it() {
        let directory = Directory::new(&[], 8);
        let (others, known) = directory.target(None, Some(&key("m")));
        assert!(!known);
        assert_eq!(directory.target(None, Some(&key("made up"))), (others, false));
        let own = directory.proven(None, &key("m"));
        assert_ne!(own, others);
        assert_eq!(directory.target(None, Some(&key("m"))), (own, true));
    }

    #[test]
    fn a_million_names_from_outside_make_no_target() {
        let directory = Directory::new(&[], 8);
        for n in 0..1_000_000_u64 {
            let name = Key::from(n);
            directory.target(Some(&key("a")), Some(&name));
        }
        assert_eq!(directory.targets().len(), 2, "the others of all, and those of the upstream");
        for n in 0..1_000_000_u64 {
            directory.proven(Some(&Key::from(n)), &Key::from(n));
        }
        assert_eq!(directory.targets().len(), 9, "the bound holds for what is proven too");
    }

    #[test]
    fn names_of_a_full_directory_are_found_and_told_in_order() {
        let directory = Directory::new(&[], 100);
        let numbers: Vec<u16> = (0..100_u64).map(|n| directory.proven(None, &Key::from(n))).collect();
        assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
        for (n, &number) in (0..100_u64).zip(&numbers) {
            assert_eq!(directory.target(None, Some(&Key::from(n))), (number, true));
            assert_eq!(directory.targets()[usize::from(number)], (key(NO_UPSTREAM), Key::from(n)));
        }
        assert_eq!(directory.proven(None, &key("one more")), OTHERS);
    }

    #[test]
    fn layers_are_bounded_too() {
        let directory = Directory::new(&[], 8);
        for n in 0..1000 {
            directory.layer(&format!("layer {n}"));
        }
        assert_eq!(directory.layers().len(), 1 + MOST_LAYERS);
        assert_eq!(directory.layer("one more"), OTHERS);
        assert_eq!(directory.layer("layer 3"), 4);
    }
}
