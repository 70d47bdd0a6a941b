//! Routes that can be replaced while calls are under way.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Routes;

/// A handle on the routes of a layer: all its clones, and all services of the layer, share them.
///
/// ```
/// use seawall::call::Upstream;
/// use seawall::fallback::{FallbackLayer, Route, Routes, RoutesHandle, Target};
///
/// # fn main() -> Result<(), seawall::ConfigError> {
/// let routes = |model: &str| {
///     let one = Upstream::new("one", "https://api.one.example/v1")?;
///     Routes::builder().upstream(one).route(Route::to(model).target(Target::at("one"))).build()
/// };
/// let handle = RoutesHandle::new(routes("old")?);
/// let layer = FallbackLayer::new(&handle);
/// // While calls are under way:
/// handle.replace(routes("new")?);
/// assert_eq!(layer.routes().current().targets(Some("new")).len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RoutesHandle(Arc<Shared>);

struct Shared {
    /// Grows with every replacement, so that a service sees one without taking the lock.
    version: AtomicU64,
    current: Mutex<Routes>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoutesHandle {
    /// A handle on these routes.
    #[must_use]
    pub fn new(routes: Routes) -> Self {
        Self(Arc::new(Shared { version: AtomicU64::new(0), current: Mutex::new(routes) }))
    }

    /// From now on calls take these routes; those under way finish on the old ones. What was learned of the pace of
    /// targets that stay is kept.
    pub fn replace(&self, routes: Routes) {
        let mut current = self.0.lock();
        routes.adopt(&current);
        let old = std::mem::replace(&mut *current, routes);
        self.0.version.fetch_add(1, Ordering::Release);
        drop(current);
        drop(old);
    }

    /// The routes of calls that begin now.
    #[must_use]
    pub fn current(&self) -> Routes {
        self.0.lock().clone()
    }

    /// The same, and their version.
    pub(super) fn load(&self) -> (Routes, u64) {
        let current = self.0.lock();
        (current.clone(), self.version())
    }

    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }
}

impl From<Routes> for RoutesHandle {
    fn from(routes: Routes) -> Self {
        Self::new(routes)
    }
}

impl From<&RoutesHandle> for RoutesHandle {
    fn from(handle: &RoutesHandle) -> Self {
        handle.clone()
    }
}

impl fmt::Debug for RoutesHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RoutesHandle").field(&self.current()).finish()
    }
}
