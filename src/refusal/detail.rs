//! What a refusal carries behind its pointer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use crate::call::Key;
use crate::verdict::Verdict;

/// Who refuses: the layer's name, and for a keyed one what its keys are and which key this is.
///
/// Made once when a layer or a key's state is made; a refusal only shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    name: Box<str>,
    key_class: Option<Box<str>>,
    key: Option<Key>,
    limit: Option<(Box<str>, Box<str>)>,
    /// What few refusals have.
    previous: Option<Shared>,
}

/// Equal to itself alone: errors cannot be compared.
#[derive(Clone, Debug)]
struct Shared(Arc<Previous>);

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Shared {}

impl Label {
    /// A layer of this name.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), key_class: None, key: None, limit: None, previous: None }
    }

    /// The same of a refusal that came after a failure of the upstream.
    pub(super) fn after(mut self, previous: Previous) -> Self {
        self.previous = Some(Shared(Arc::new(previous)));
        self
    }

    /// This label, with the failure that the one before it told.
    #[cold]
    pub(super) fn instead_of(before: &Self, label: Arc<Self>) -> Arc<Self> {
        match &before.previous {
            Some(previous) => {
                Arc::new(Self { previous: Some(previous.clone()), ..Arc::unwrap_or_clone(label) })
            }
            None => label,
        }
    }

    pub(super) fn previous(&self) -> Option<&Previous> {
        self.previous.as_ref().map(|previous| &*previous.0)
    }

    /// With one state a key, named after this class (`upstream`, `model`, `tenant` …).
    #[must_use]
    pub fn with_key_class(mut self, class: impl Into<Box<str>>) -> Self {
        self.key_class = Some(class.into());
        self
    }

    /// The state of this key.
    #[must_use]
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// The limit that was hit, where the layer has several: what it counts (`requests`, `tokens` …), and how many there
    /// may be.
    #[must_use]
    pub fn with_limit(mut self, dimension: impl Into<Box<str>>, limit: impl Into<Box<str>>) -> Self {
        self.limit = Some((dimension.into(), limit.into()));
        self
    }

    /// The layer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its keys are.
    #[must_use]
    pub fn key_class(&self) -> Option<&str> {
        self.key_class.as_deref()
    }

    /// Which key this is.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// What the limit that was hit counts.
    #[must_use]
    pub fn dimension(&self) -> Option<&str> {
        self.limit.as_ref().map(|(dimension, _)| &**dimension)
    }

    /// How many there may be.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_ref().map(|(_, limit)| &**limit)
    }
}

/// The upstream's own failure before a refusal.
#[derive(Clone)]
pub struct Previous {
    verdict: Verdict,
    status: Option<StatusCode>,
    error: Option<Arc<dyn Error + Send + Sync>>,
}

impl Previous {
    /// A failure with this verdict.
    #[must_use]
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, status: None, error: None }
    }

    /// The status it had.
    #[must_use]
    pub const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// The error it was.
    #[must_use]
    pub fn with_error(mut self, error: Arc<dyn Error + Send + Sync>) -> Self {
        self.error = Some(error);
        self
    }

    /// What it meant.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Its status, if it was an HTTP response.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.as_ref().map(|error| &**error as &(dyn Error + 'static))
    }
}

impl fmt::Debug for Previous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Previous")
            .field("verdict", &self.verdict)
            .field("status", &self.status)
            .field("error", &self.error)
            .finish()
    }
}
