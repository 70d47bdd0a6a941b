//! The names of targets and layers, and their numbers. Read without a lock; bounded, whatever comes from outside.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustc_hash::FxHashMap;

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

/// Names that have numbers. A number stays what it is.
pub(super) struct Directory {
    names: ArcSwap<Names>,
    writing: Mutex<()>,
    most: usize,
}

#[derive(Clone)]
struct Names {
    /// By upstream, then by model. Its keys are few and proven, so a quick hash serves, whoever looks up what.
    numbers: FxHashMap<Key, FxHashMap<Key, u16>>,
    targets: Vec<(Key, Key)>,
    layers: Vec<Box<str>>,
}

impl Names {
    fn find(&self, upstream: &str, model: &str) -> Option<u16> {
        self.numbers.get(upstream)?.get(model).copied()
    }

    fn add(&mut self, upstream: &str, model: &str) -> u16 {
        let number = u16::try_from(self.targets.len()).unwrap_or(OTHERS);
        self.targets.push((upstream.into(), model.into()));
        self.numbers.entry(upstream.into()).or_default().insert(model.into(), number);
        number
    }
}

impl Directory {
    /// With these targets from the start; `most` targets in all, beside the one that others share.
    pub(super) fn new(targets: &[(Key, Key)], most: usize) -> Self {
        let mut names =
            Names { numbers: FxHashMap::default(), targets: Vec::new(), layers: vec![OTHER.into()] };
        names.add(OTHER, OTHER);
        for (upstream, model) in targets {
            if names.find(upstream.as_str(), model.as_str()).is_none() {
                names.add(upstream.as_str(), model.as_str());
            }
        }
        let most = most.max(names.targets.len() - 1);
        Self { names: ArcSwap::from_pointee(names), writing: Mutex::new(()), most }
    }

    /// The number of a target, and whether it is its own. A model that nobody declared and no upstream has served yet shares
    /// that of the others at its upstream, so that names made up by callers take no place.
    #[inline]
    pub(super) fn target(&self, upstream: Option<&Key>, model: Option<&Key>) -> (u16, bool) {
        let upstream = upstream.map_or(NO_UPSTREAM, Key::as_str);
        let asked = model.map_or(NO_MODEL, Key::as_str);
        let names = self.names.load();
        if let Some(number) = names.find(upstream, asked) {
            return (number, true);
        }
        if model.is_some()
            && let Some(number) = names.find(upstream, OTHER)
        {
            return (number, false);
        }
        drop(names);
        let known = if model.is_some() { OTHER } else { NO_MODEL };
        (self.enter(upstream, known), model.is_none())
    }

    /// An upstream has served this model: it gets a number of its own, if there is room.
    pub(super) fn proven(&self, upstream: Option<&Key>, model: &Key) -> u16 {
        self.enter(upstream.map_or(NO_UPSTREAM, Key::as_str), model.as_str())
    }

    #[cold]
    fn enter(&self, upstream: &str, model: &str) -> u16 {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.names.load();
        if let Some(number) = names.find(upstream, model) {
            return number;
        }
        if names.targets.len() > self.most {
            return names.find(upstream, OTHER).unwrap_or(OTHERS);
        }
        let mut names = Names::clone(&names);
        let number = names.add(upstream, model);
        self.names.store(Arc::new(names));
        number
    }

    /// The number of a layer.
    pub(super) fn layer(&self, name: &str) -> u16 {
        let find = |names: &Names| names.layers.iter().position(|known| **known == *name);
        if let Some(at) = find(&self.names.load()) {
            return u16::try_from(at).unwrap_or(OTHERS);
        }
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.names.load();
        let at = match find(&names) {
            Some(at) => at,
            None if names.layers.len() > MOST_LAYERS => return OTHERS,
            None => {
                let mut names = Names::clone(&names);
                names.layers.push(name.into());
                let at = names.layers.len() - 1;
                self.names.store(Arc::new(names));
                at
            }
        };
        u16::try_from(at).unwrap_or(OTHERS)
    }

    /// The names of all targets, by their numbers.
    pub(super) fn targets(&self) -> Vec<(Key, Key)> {
        self.names.load().targets.clone()
    }

    /// The names of all layers, by their numbers.
    pub(super) fn layers(&self) -> Vec<Box<str>> {
        self.names.load().layers.clone()
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
