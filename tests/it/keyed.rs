//! One state a key, bounded; an eviction changes no decision.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use seawall::call::Key;
use seawall::gate::{Admission, Assigned, End, Gate, GateLayer, KeyFn, Keyed, PerKey};
use seawall::{BoxError, Refusal, RefusalKind};
use tower::{Layer, ServiceExt};

use crate::support::{Answer, TestGate};

/// Refuses for ever once it has been asked `limit` times; at rest until the first time.
#[derive(Clone, Default)]
struct Spent(Arc<AtomicUsize>, Arc<AtomicBool>);

impl<Req> Gate<Req> for Spent {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    fn admit(&self, _: &mut Req) -> Admission<(), Self::Wait> {
        if self.1.load(SeqCst) {
            return Admission::Refused(Refusal::new(RefusalKind::Custom));
        }
        if self.0.fetch_add(1, SeqCst) >= 1 {
            self.1.store(true, SeqCst);
        }
        Admission::Now(())
    }
}

impl PerKey for Spent {
    fn for_key(&self, _: &Key) -> Self {
        Self::default()
    }

    fn at_rest(&self) -> bool {
        self.0.load(SeqCst) < 2
    }
}

fn bound(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn keyed(n: usize) -> Keyed<Spent, KeyFn<impl Fn(&u64) -> Option<Key> + Clone>> {
    Keyed::new(Spent::default(), KeyFn::new(|request: &u64| Some(Key::from(*request))), bound(n))
}

#[tokio::test]
async fn each_key_has_a_state_of_its_own() {
    let service = GateLayer::from_gate(keyed(8))
        .at_head()
        .layer(tower::service_fn(|n: u64| async move { Ok::<_, BoxError>(n) }));
    for expected in [true, true, false, false] {
        assert_eq!(service.clone().oneshot(1).await.is_ok(), expected);
    }
    assert!(service.oneshot(2).await.is_ok(), "another key is not touched");
}

#[test]
fn a_flood_of_keys_is_bounded_and_a_spent_key_stays_spent() {
    let gate = keyed(100);
    for _ in 0..2 {
        assert!(matches!(gate.admit(&mut 7), Admission::Now(())));
    }
    for mut key in 1_000..101_000_u64 {
        let _ = gate.admit(&mut key);
    }
    assert!(gate.len() <= 100, "{} keys", gate.len());
    assert!(
        matches!(gate.admit(&mut 7), Admission::Refused(_)),
        "forgetting it would give it a new allowance"
    );
}

#[test]
fn newcomers_share_one_state_when_none_is_at_rest() {
    let gate = keyed(2);
    for mut key in [1, 1, 2, 2] {
        assert!(matches!(gate.admit(&mut key), Admission::Now(())));
    }
    assert!(matches!(gate.admit(&mut 3), Admission::Now(())));
    assert!(matches!(gate.admit(&mut 4), Admission::Now(())));
    assert!(matches!(gate.admit(&mut 5), Admission::Refused(_)), "3, 4 and 5 share what is left over");
    assert_eq!(gate.len(), 2);
}

#[test]
fn a_key_function_that_panics_harms_its_call_alone() {
    let gate = Keyed::new(
        Spent::default(),
        KeyFn::new(|request: &u64| {
            assert!(*request != 13, "scripted panic");
            None
        }),
        bound(4),
    );
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(gate.admit(&mut 13)))).is_err());
    assert!(matches!(gate.admit(&mut 1), Admission::Now(())));
    assert_eq!(gate.len(), 1, "no key is a key of its own");
}

#[tokio::test]
async fn an_assigned_gate_guards_its_key_and_no_other() {
    let gate = TestGate::default();
    let keys = KeyFn::new(|request: &u64| Some(Key::from(*request)));
    let service = GateLayer::from_gate(Assigned::new(keys, [(1, gate.clone())]))
        .at_head()
        .layer(tower::service_fn(|n: u64| async move { Ok::<_, BoxError>(n) }));
    assert!(service.clone().oneshot(1).await.is_ok() && service.clone().oneshot(2).await.is_ok());
    assert_eq!(gate.ends(), [End::Complete], "the other key's call was none of its business");
    gate.answer(Answer::Refused);
    assert!(service.clone().oneshot(1).await.is_err());
    assert!(service.oneshot(2).await.is_ok(), "nor is its refusal the other's");
}

#[test]
fn of_a_key_that_is_assigned_twice_the_last_gate_counts() {
    let gates = Assigned::by_upstream([("b", 1), ("a", 2), ("b", 3)]);
    assert_eq!(
        gates.iter().map(|(key, gate)| (key.as_str(), *gate)).collect::<Vec<_>>(),
        [("a", 2), ("b", 3)]
    );
    assert_eq!((gates.find("b"), gates.find("c")), (Some(&3), None));
}
