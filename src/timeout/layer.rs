//! The layer and its settings.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use tower_layer::Layer;

use super::clocks::Clocks;
use super::limit::Limit;
use super::service::Timeout;
use crate::call::{Blind, Call, Described};
use crate::config_error::ConfigError;
use crate::gate::{BodyEnd, Head, Respond};
use crate::refusal::{Label, Phase, Refusal, RefusalKind};
use crate::time::{self, Instant};

/// Ends what takes too long; see [the module](crate::timeout).
///
/// ```
/// use std::time::Duration;
/// use seawall::timeout::TimeoutLayer;
///
/// // Outermost: two minutes for the whole call. On a server: whatever is too late is a 504.
/// let client = TimeoutLayer::new(Duration::from_secs(120));
/// let server = TimeoutLayer::new(Duration::from_secs(120)).respond();
/// # let _ = (client, server);
/// ```
#[derive(Clone, Debug)]
pub struct TimeoutLayer<R = Described, M = BodyEnd> {
    pub(super) settings: Arc<Settings>,
    pub(super) reader: R,
    pub(super) mode: M,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) total: Option<Limit>,
    head: Option<Limit>,
    first_content: Option<Limit>,
    idle: Option<Limit>,
    pub(super) propagate: Option<HeaderName>,
    pub(super) heed: Option<HeaderName>,
    label: Option<Arc<Label>>,
}

impl TimeoutLayer {
    /// A layer with a limit on the whole call alone; zero refuses every call that does not answer at once.
    #[must_use]
    pub fn new(total: Duration) -> Self {
        let settings = Settings { total: Some(Limit::fixed(total)), ..Settings::default() };
        Self { settings: Arc::new(settings), reader: Described, mode: BodyEnd }
    }

    /// No limit at first; each clock is set on its own.
    pub fn builder() -> TimeoutBuilder {
        TimeoutBuilder { settings: Settings::default(), reader: Described }
    }
}

impl<R, M> TimeoutLayer<R, M> {
    /// Watches the call until the response is there, and no body: for responses that have none. Only `total` and `head`
    /// have a meaning then.
    pub fn at_head(self) -> TimeoutLayer<R, Head> {
        TimeoutLayer { settings: self.settings, reader: self.reader, mode: Head }
    }

    /// Tells a refusal as a 504 response, so that a server answers with it. After the head it is still an error of the
    /// body.
    pub fn respond(self) -> TimeoutLayer<R, Respond> {
        TimeoutLayer { settings: self.settings, reader: self.reader, mode: Respond }
    }
}

impl<S, R: Clone, M: Clone> Layer<S> for TimeoutLayer<R, M> {
    type Service = Timeout<S, R, M>;

    fn layer(&self, inner: S) -> Timeout<S, R, M> {
        Timeout::new(inner, self.clone())
    }
}

/// Builds a [`TimeoutLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TimeoutBuilder<R = Described> {
    settings: Settings,
    reader: R,
}

impl<R> TimeoutBuilder<R> {
    /// Limits the whole call, to the end of its body, and sets its deadline. No limit by default.
    pub fn total(mut self, limit: impl Into<Limit>) -> Self {
        self.settings.total = Some(limit.into());
        self
    }

    /// Limits the time to the head of the response. No limit by default.
    pub fn head(mut self, limit: impl Into<Limit>) -> Self {
        self.settings.head = Some(limit.into());
        self
    }

    /// Limits the time to the first bytes that carry an answer. No limit by default. Where no
    /// [`OutcomeLayer`](crate::call::OutcomeLayer) below reads the stream, any data is content.
    pub fn first_content(mut self, limit: impl Into<Limit>) -> Self {
        self.settings.first_content = Some(limit.into());
        self
    }

    /// Limits the silence between two frames of the body. No limit by default. Time in which the caller does not ask for
    /// more is no silence.
    pub fn idle(mut self, limit: impl Into<Limit>) -> Self {
        self.settings.idle = Some(limit.into());
        self
    }

    /// Tells the upstream the time left, in this header: `grpc-timeout` in gRPC's own format, any other in whole
    /// milliseconds. Not told by default.
    pub fn propagate(mut self, header: HeaderName) -> Self {
        self.settings.propagate = Some(header);
        self
    }

    /// Takes the caller's own limit on the whole call from this header, in the same formats; the shorter of it and `total`
    /// holds. What is malformed is no limit. Not heeded by default.
    pub fn heed(mut self, header: HeaderName) -> Self {
        self.settings.heed = Some(header);
        self
    }

    /// Names the layer in its refusals; `timeout` by default.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.settings.label = Some(Arc::new(Label::new(name)));
        self
    }

    /// Reads nothing from a request, and so takes any type: neither its deadline nor its size count.
    pub fn blind(self) -> TimeoutBuilder<Blind> {
        TimeoutBuilder { settings: self.settings, reader: Blind }
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// A clock whose limit is zero, or no clock at all and no header to heed: the error names it.
    pub fn build(self) -> Result<TimeoutLayer<R>, ConfigError> {
        let s = &self.settings;
        let clocks =
            [("total", s.total), ("head", s.head), ("first_content", s.first_content), ("idle", s.idle)];
        for (field, limit) in clocks {
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(ConfigError::new(field, "must be longer than zero; leave it out for no limit"));
            }
        }
        if clocks.iter().all(|(_, limit)| limit.is_none()) && s.heed.is_none() {
            return Err(ConfigError::new("total", "set at least one of total, head, first_content and idle"));
        }
        Ok(TimeoutLayer { settings: Arc::new(self.settings), reader: self.reader, mode: BodyEnd })
    }
}

impl Settings {
    /// The clocks of a call that began at `started` and is sent at `now`. An earlier deadline of its own holds.
    pub(super) fn clocks(
        &self,
        started: Instant,
        now: Instant,
        call: Option<&Call>,
        deadline: Option<Instant>,
    ) -> Clocks {
        let from =
            |start, limit: Option<Limit>| limit.and_then(|limit| time::checked_add(start, limit.of(call)));
        let total = from(started, self.total);
        Clocks {
            total: total.map(|at| deadline.map_or(at, |deadline| deadline.min(at))).or(deadline),
            head: from(now, self.head),
            first_content: from(now, self.first_content),
            idle: self.idle.map(|limit| limit.of(call)),
        }
    }

    pub(super) fn refusal(&self, phase: Phase) -> Refusal {
        let refusal = Refusal::new(RefusalKind::TimedOut(phase));
        match &self.label {
            Some(label) => refusal.with_label(label.clone()),
            None => refusal,
        }
    }
}
