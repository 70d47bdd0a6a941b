//! The layer and its settings.

use tower_layer::Layer;

use super::handle::FaultHandle;
use super::inject::Inject;
use super::plan::{Plan, Rates};
use super::service::Faulty;
use crate::config_error::ConfigError;
use crate::rng::Rng;

/// Injects faults into an HTTP service; see [the module](crate::fault).
///
/// ```
/// use seawall::fault::{FaultLayer, Inject};
///
/// let layer = FaultLayer::builder().rate(0.05, Inject::reset()).seed(1).build()?;
/// let handle = layer.handle();
/// handle.on(); // the game begins
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultLayer {
    handle: FaultHandle,
}

impl FaultLayer {
    /// Switched off, and without faults: all comes from its [`handle`](Self::handle).
    #[must_use]
    pub fn new() -> Self {
        Self { handle: FaultHandle::new(false, Plan::default(), Rng::fresh()) }
    }

    /// Switched off and without faults at first, with a seed of its own.
    pub fn builder() -> FaultBuilder {
        FaultBuilder { script: Vec::new(), rates: Vec::new(), seed: None, on: false }
    }

    /// What switches the faults, and changes them, while calls run.
    #[must_use]
    pub fn handle(&self) -> FaultHandle {
        self.handle.clone()
    }
}

impl Default for FaultLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty::new(inner, self.handle.clone())
    }
}

/// Builds a [`FaultLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct FaultBuilder {
    script: Vec<Inject>,
    rates: Vec<(f64, Inject)>,
    seed: Option<u64>,
    on: bool,
}

impl FaultBuilder {
    /// What happens to the next calls, one after the other. Adds to what is there; empty by default.
    pub fn script(mut self, faults: impl IntoIterator<Item = Inject>) -> Self {
        self.script.extend(faults);
        self
    }

    /// What happens to this share of the calls beyond the script, from 0 to 1. Adds to what is there; none by default.
    pub fn rate(mut self, share: f64, fault: Inject) -> Self {
        self.rates.push((share, fault));
        self
    }

    /// What chance is drawn from: the same seed gives the same faults to calls in the same order. A fresh one by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts switched on. By default it starts switched off.
    pub fn on(mut self) -> Self {
        self.on = true;
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// `rate`: one that is not from 0 to 1, or more than 1 in the sum.
    pub fn build(self) -> Result<FaultLayer, ConfigError> {
        let plan = Plan { script: self.script.into(), rates: Rates::new(self.rates)? };
        let rng = self.seed.map_or_else(Rng::fresh, Rng::seeded);
        Ok(FaultLayer { handle: FaultHandle::new(self.on, plan, rng) })
    }
}
