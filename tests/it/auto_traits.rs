//! What users may send to another thread, clone and pin: a change here is a change of the public API.

use seawall::gate::{BodyEnd, GateBody, GateLayer, Gated, Head, ResponseFuture};
use seawall::{BoxError, Deadline, Fault, Refusal, Verdict};

use crate::support::{Probe, Req, TestBody, TestGate, TestPermit};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}
fn cloned<T: Clone>() {}

#[test]
fn services_futures_and_bodies_cross_threads() {
    send::<Gated<Probe, TestGate>>();
    sync::<Gated<Probe, TestGate>>();
    cloned::<Gated<Probe, TestGate>>();
    cloned::<GateLayer<TestGate, Head>>();
    send::<ResponseFuture<Probe, TestGate, BodyEnd, Req>>();
    send::<GateBody<TestBody, TestPermit>>();
    unpin::<GateBody<TestBody, TestPermit>>();
}

#[test]
fn words_cross_threads() {
    send::<Refusal>();
    sync::<Refusal>();
    sync::<Fault<BoxError>>();
    sync::<Verdict>();
    cloned::<Deadline>();
}
