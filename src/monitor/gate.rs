//! The monitor's layer: a gate that admits all, and whose permit sees each call to its end.

use std::fmt;
use std::future::Ready;

use super::look::{ByAnswer, ByClass};
use super::monitor::Monitor;
use super::permit::Watched;
use crate::call::{Blind, Described, Read};
use crate::gate::{Admission, BodyEnd, Gate, gate_layer};
use crate::refusal::Refusal;

/// The layer by which a [`Monitor`] sees calls, or attempts, to the end of their responses: made by [`Monitor::layer`] and
/// [`Monitor::attempts`], see the [module](super) for an example.
///
/// It admits all and changes nothing. `.at_head()` ends a call at its head, for responses without a body; `.respond()`
/// takes any error type, for servers.
#[derive(Clone, Debug)]
pub struct MonitorLayer<G = Watcher, M = BodyEnd> {
    gate: G,
    mode: M,
}

gate_layer!(MonitorLayer);

impl<R, M> MonitorLayer<Watcher<R, ByAnswer>, M> {
    /// Lets a classifier say what a response means, in place of the response itself: for own types that do not.
    pub fn classify<C>(self, classifier: C) -> MonitorLayer<Watcher<R, ByClass<C>>, M> {
        let Watcher { monitor, scope, reader, .. } = self.gate;
        MonitorLayer { gate: Watcher { monitor, scope, reader, look: ByClass(classifier) }, mode: self.mode }
    }
}

impl<R, L, M> MonitorLayer<Watcher<R, L>, M> {
    /// Reads nothing from a request, and so takes any request type. All is one target then.
    pub fn blind(self) -> MonitorLayer<Watcher<Blind, L>, M> {
        let Watcher { monitor, scope, look, .. } = self.gate;
        MonitorLayer { gate: Watcher { monitor, scope, reader: Blind, look }, mode: self.mode }
    }
}

/// What one layer of a monitor looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Calls,
    Attempts,
}

/// The gate of a monitor: it admits all.
#[derive(Clone)]
pub struct Watcher<R = Described, L = ByAnswer> {
    pub(super) monitor: Monitor,
    scope: Scope,
    reader: R,
    look: L,
}

impl Watcher {
    pub(super) fn layer(monitor: Monitor, scope: Scope) -> MonitorLayer {
        let gate = Self { monitor, scope, reader: Described, look: ByAnswer };
        MonitorLayer { gate, mode: BodyEnd }
    }
}

impl<R, L> Watcher<R, L> {
    /// The monitor.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
}

impl<Req, R, L> Gate<Req> for Watcher<R, L>
where
    R: Read<Req>,
    L: Clone,
{
    type Permit = Watched<L>;
    type Wait = Ready<Result<Watched<L>, Refusal>>;

    #[inline]
    fn admit(&self, request: &mut Req) -> Admission<Watched<L>, Self::Wait> {
        let call = self.reader.call(request);
        Admission::Now(Watched::begin(&self.monitor, self.scope, call, self.look.clone()))
    }
}

impl<R, L> fmt::Debug for Watcher<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("scope", &self.scope).finish_non_exhaustive()
    }
}
