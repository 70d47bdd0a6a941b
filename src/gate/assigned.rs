//! Gates that are assigned to keys.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::call::{Key, Outcome};
use crate::gate::{Admission, ByUpstream, End, Follow, Gate, Heads, Keys, Permit};
use crate::refusal::Refusal;

/// Gates that are assigned to keys: each guards the requests of its key, and all other requests pass.
///
/// Where [`Keyed`](crate::gate::Keyed) makes a gate for whatever key comes, here each is given beforehand, with settings
/// of its own: the limits of each upstream, for example. Its size is fixed when it is made. A key that is given twice has
/// the gate that was given last.
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
/// use seawall::gate::{Assigned, GateLayer};
///
/// let first = BulkheadLayer::new(15).gate().clone();
/// let second = BulkheadLayer::new(4).gate().clone();
/// let layer = GateLayer::from_gate(Assigned::by_upstream([("first", first), ("second", second)]));
/// # let _ = layer;
/// ```
pub struct Assigned<G, K = ByUpstream> {
    gates: Arc<[(Key, G)]>,
    keys: K,
}

impl<G> Assigned<G> {
    /// One gate for each upstream named, as the fallback layer names it in the [`Call`](crate::call::Call).
    pub fn by_upstream<N: Into<Key>>(gates: impl IntoIterator<Item = (N, G)>) -> Self {
        Self::new(ByUpstream, gates)
    }
}

impl<G, K> Assigned<G, K> {
    /// One gate for each key named, and how the key of a request is found.
    pub fn new<N: Into<Key>>(keys: K, gates: impl IntoIterator<Item = (N, G)>) -> Self {
        let mut table: Vec<(Key, G)> = Vec::new();
        for (key, gate) in gates {
            let key = key.into();
            match table.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) => *old = gate,
                None => table.push((key, gate)),
            }
        }
        table.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        Self { gates: table.into(), keys }
    }

    /// The gate of this key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&G> {
        let at = self.gates.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        self.gates.get(at).map(|(_, gate)| gate)
    }

    /// All keys that have a gate, in the order of their names, each with its gate.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &G)> {
        self.gates.iter().map(|(key, gate)| (key, gate))
    }
}

impl<Req, G, K> Gate<Req> for Assigned<G, K>
where
    G: Gate<Req>,
    K: Keys<Req>,
{
    type Permit = AssignedPermit<G::Permit>;
    type Wait = AssignedWait<G::Wait>;

    fn admit(&self, request: &mut Req) -> Admission<Self::Permit, Self::Wait> {
        let gate = self.keys.key(request).and_then(|key| self.find(key.as_str()));
        match gate.map(|gate| gate.admit(request)) {
            None => Admission::Now(AssignedPermit(None)),
            Some(Admission::Now(permit)) => Admission::Now(AssignedPermit(Some(permit))),
            Some(Admission::Later(wait)) => Admission::Later(AssignedWait { wait }),
            Some(Admission::Refused(refusal)) => Admission::Refused(refusal),
        }
    }
}

/// The permit of an [`Assigned`] gate, or of a request that needed none.
#[derive(Debug)]
pub struct AssignedPermit<P>(Option<P>);

impl<P: Permit> Permit for AssignedPermit<P> {
    fn settle(&mut self, end: End, outcome: Option<&Outcome>) {
        if let Some(permit) = &mut self.0 {
            permit.settle(end, outcome);
        }
    }

    fn pending(&mut self) {
        if let Some(permit) = &mut self.0 {
            permit.pending();
        }
    }
}

impl<Res, E, P: Heads<Res, E>> Heads<Res, E> for AssignedPermit<P> {
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        self.0.as_mut().map_or(Follow::Settle, |permit| permit.head(head))
    }
}

pin_project! {
    /// The wait at an [`Assigned`] gate.
    pub struct AssignedWait<W> {
        #[pin]
        wait: W,
    }
}

impl<P, W: Future<Output = Result<P, Refusal>>> Future for AssignedWait<W> {
    type Output = Result<AssignedPermit<P>, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let permit = ready!(self.project().wait.poll(cx));
        Poll::Ready(permit.map(|permit| AssignedPermit(Some(permit))))
    }
}

impl<G, K: Clone> Clone for Assigned<G, K> {
    fn clone(&self) -> Self {
        Self { gates: self.gates.clone(), keys: self.keys.clone() }
    }
}

impl<G, K> fmt::Debug for Assigned<G, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.gates.iter().map(|(key, _)| key)).finish()
    }
}

impl<W> fmt::Debug for AssignedWait<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AssignedWait")
    }
}
