//! The layer as its users meet it, and its cores against simpler models.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic; the line says where")]

mod calls;
mod model;
mod overload;
mod settings;
mod slots;
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Bulkhead, BulkheadLayer, Slot, Wait};
use crate::call::{Call, Priority, Tagged};
use crate::gate::{Admission, End, Gate, Permit};
use crate::monitor::{Event, Observer};
use crate::{Deadline, RefusalKind};

const SECOND: Duration = Duration::from_secs(1);

/// A bulkhead of so many slots, with a queue of its own length.
fn bulkhead(limit: u32, queue: u32) -> Bulkhead {
    BulkheadLayer::builder(limit).queue(queue).build().unwrap().gate().clone()
}

type Asked = Tagged<()>;

fn asking(priority: u8, deadline: Option<Deadline>) -> Asked {
    let call = Call { priority: Priority::new(priority), deadline, ..Call::default() };
    Tagged { request: (), call }
}

fn admit(gate: &Bulkhead) -> Admission<Slot, Wait> {
    gate.admit(&mut asking(0, None))
}

#[track_caller]
fn now(admission: Admission<Slot, Wait>) -> Slot {
    match admission {
        Admission::Now(slot) => slot,
        other => panic!("expected a slot at once, not {other:?}"),
    }
}

#[track_caller]
fn later(admission: Admission<Slot, Wait>) -> tokio_test::task::Spawn<Wait> {
    match admission {
        Admission::Later(wait) => tokio_test::task::spawn(wait),
        other => panic!("expected a wait, not {other:?}"),
    }
}

#[track_caller]
fn refused(admission: Admission<Slot, Wait>) -> RefusalKind {
    match admission {
        Admission::Refused(refusal) => refusal.kind(),
        other => panic!("expected a refusal, not {other:?}"),
    }
}

fn give_back(mut slot: Slot) {
    slot.settle(End::Complete, None);
}

#[track_caller]
fn assert_at_rest(gate: &Bulkhead) {
    assert_eq!((gate.in_flight(), gate.queued()), (0, 0));
}

/// The most that were inside at once.
#[derive(Clone, Default)]
struct Peak {
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Peak {
    async fn stay(&self, time: Duration) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        tokio::time::sleep(time).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Writes down what it hears.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn event(&self, event: &Event<'_>) {
        let what = match event {
            Event::Refused { refusal, .. } => format!("refused {:?}", refusal.kind()),
            Event::Waited { wait, .. } => format!("waited {wait:?}"),
            Event::Abandoned { .. } => "abandoned".to_owned(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(what);
    }
}
