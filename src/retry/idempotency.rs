//! Keys by which an upstream knows that it has seen a call before.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

/// Makes one key a call and puts it into the request, unless the caller has put one there.
#[derive(Clone)]
pub(super) struct KeyMaker {
    name: HeaderName,
    /// Keyed by the operating system's randomness: what it makes of a counter does not repeat, here or in another process.
    hasher: RandomState,
    count: Arc<AtomicU64>,
}

impl KeyMaker {
    pub(super) fn new(name: HeaderName) -> Self {
        Self { name, hasher: RandomState::new(), count: Arc::new(AtomicU64::new(0)) }
    }

    pub(super) fn put(&self, headers: &mut HeaderMap) {
        if headers.contains_key(&self.name) {
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let (high, low) = (self.hasher.hash_one((count, 0_u8)), self.hasher.hash_one((count, 1_u8)));
        let key = format!("{high:016x}{low:016x}");
        let key = HeaderValue::try_from(key).expect("hexadecimal digits are a header value");
        headers.insert(&self.name, key);
    }
}
