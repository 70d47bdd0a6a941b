//! The layer and its settings.

use std::sync::Arc;

use tower_layer::Layer;

use super::Intake;
use crate::call::tokens::Ratios;

/// How much of a request is collected where nothing is said.
pub(crate) const LIMIT: usize = 32 << 20;

/// Reads each request once; see [the module](crate::call::intake).
#[derive(Clone, Debug)]
#[must_use]
pub struct IntakeLayer {
    pub(super) settings: Settings,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) limit: usize,
    pub(super) record: usize,
    pub(super) ratios: Option<Arc<Ratios>>,
}

impl IntakeLayer {
    /// Collects up to 32 MiB, and records up to 64 KiB of what it does not collect.
    pub fn new() -> Self {
        Self { settings: Settings { limit: LIMIT, record: 64 << 10, ratios: None } }
    }

    /// Collects bodies of up to this many bytes; 0 collects none. One that says it is larger is not read at all.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.settings.limit = bytes;
        self
    }

    /// Keeps up to this many bytes of a body that is neither JSON nor a form while it is first sent, so that it can be
    /// sent again; 0 keeps none.
    pub fn record(mut self, bytes: usize) -> Self {
        self.settings.record = bytes;
        self
    }

    /// Scales the estimate of the input by what is learned of each model. Share the ratios with whoever learns.
    pub fn ratios(mut self, ratios: Arc<Ratios>) -> Self {
        self.settings.ratios = Some(ratios);
        self
    }
}

impl Default for IntakeLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for IntakeLayer {
    type Service = Intake<S>;

    fn layer(&self, inner: S) -> Intake<S> {
        Intake { inner, settings: self.settings.clone() }
    }
}
