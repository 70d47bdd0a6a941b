//! What can be set, what cannot, and what changes while calls run.

use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

use super::*;
use crate::gate::{ByModel, Keyed, PerKey};

#[test]
fn b082_a_limit_of_zero_refuses_at_once_and_never_hangs() {
    let layer = BulkheadLayer::new(0);
    let gate = layer.gate();
    assert!(Gate::<Asked>::shut(gate), "the inner service need not be asked");
    assert_eq!(refused(admit(gate)), RefusalKind::Full);
    gate.set_limit(1);
    assert!(!Gate::<Asked>::shut(gate));
    give_back(now(admit(gate)));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_becomes_zero_sends_the_waiters_away_and_leaves_those_that_run() {
    let gate = bulkhead(1, 4);
    let slot = now(admit(&gate));
    let mut wait = later(admit(&gate));
    assert_pending!(wait.poll());
    gate.set_limit(0);
    assert!(wait.is_woken());
    assert_eq!(assert_ready_err!(wait.poll()).kind(), RefusalKind::Full);
    assert_eq!((gate.in_flight(), gate.queued()), (1, 0));
    give_back(slot);
    assert_eq!(refused(admit(&gate)), RefusalKind::Full);
}

#[test]
fn b086_what_runs_is_counted_and_not_derived_from_the_limit() {
    let gate = bulkhead(4, 0);
    let mut running: Vec<_> = (0..4).map(|_| now(admit(&gate))).collect();
    gate.set_limit(1);
    assert_eq!((gate.in_flight(), gate.limit()), (4, 1));
    for left in (1..4).rev() {
        give_back(running.pop().unwrap());
        assert_eq!(gate.in_flight(), left);
        assert_eq!(refused(admit(&gate)), RefusalKind::Full);
    }
    give_back(running.pop().unwrap());
    give_back(now(admit(&gate)));
    assert_at_rest(&gate);
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_admits_waiters_only_below_it() {
    let gate = bulkhead(3, 4);
    let mut running: Vec<_> = (0..3).map(|_| now(admit(&gate))).collect();
    let mut wait = later(admit(&gate));
    gate.set_limit(2);
    give_back(running.pop().unwrap());
    assert_pending!(wait.poll());
    assert_eq!((gate.in_flight(), gate.queued()), (2, 1));
    give_back(running.pop().unwrap());
    give_back(assert_ready_ok!(wait.poll()));
}

#[tokio::test(start_paused = true)]
async fn a_higher_limit_wakes_as_many_waiters_as_it_has_room_for() {
    let gate = bulkhead(1, 4);
    let _slot = now(admit(&gate));
    let mut waits: Vec<_> = (0..3).map(|_| later(admit(&gate))).collect();
    for wait in &mut waits {
        assert_pending!(wait.poll());
    }
    gate.set_limit(3);
    assert_eq!(waits.iter().map(tokio_test::task::Spawn::is_woken).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!((gate.in_flight(), gate.queued()), (3, 1));
}

#[test]
fn w11_the_queue_is_as_long_as_the_limit_by_default_and_follows_it() {
    let layer = BulkheadLayer::new(1);
    let gate = layer.gate();
    let mut slots = vec![now(admit(gate))];
    let waits: Vec<_> =
        (0..10_000).map(|_| admit(gate)).filter(|it| matches!(it, Admission::Later(_))).collect();
    assert_eq!(waits.len(), 1, "ten thousand calls must not queue behind one slot");
    drop(waits);
    gate.set_limit(2);
    slots.push(now(admit(gate)));
    let waits = [later(admit(gate)), later(admit(gate))];
    assert_eq!(refused(admit(gate)), RefusalKind::Full);
    drop(waits);
    slots.into_iter().for_each(give_back);
}

#[tokio::test(start_paused = true)]
async fn w10_without_a_queue_a_full_bulkhead_says_full_at_once() {
    let none = BulkheadLayer::builder(1).refuse().build().unwrap();
    let no_wait = BulkheadLayer::builder(1).queue(8).max_wait(Duration::ZERO).build().unwrap();
    let begun = crate::time::now();
    for layer in [BulkheadLayer::new(1).refuse(), none, no_wait] {
        let slot = now(admit(layer.gate()));
        assert!(Gate::<Asked>::shut(layer.gate()));
        assert_eq!(refused(admit(layer.gate())), RefusalKind::Full);
        give_back(slot);
        assert!(!Gate::<Asked>::shut(layer.gate()), "it is only full, not closed");
    }
    assert_eq!(crate::time::now(), begun, "no time passed");
}

#[test]
fn a_refusing_layer_is_another_state_than_the_one_it_was_made_from() {
    let queueing = BulkheadLayer::new(1);
    let refusing = queueing.clone().refuse();
    let _slot = now(admit(queueing.gate()));
    drop(later(admit(queueing.gate())));
    let _other = now(admit(refusing.gate()));
    assert_eq!(refused(admit(refusing.gate())), RefusalKind::Full);
}

#[test]
fn b193_a_wrong_setting_names_its_field() {
    let field = |error: Option<crate::ConfigError>| error.expect("it must not build").field().to_owned();
    let builder = || BulkheadLayer::builder(1);
    assert_eq!(field(builder().name("").build().err()), "name");
    assert_eq!(field(builder().expected_service(Duration::MAX).build().err()), "expected_service");
    assert_eq!(field(builder().keyed(ByModel).max_keys(0).build().err()), "max_keys");
    assert_eq!(field(builder().keyed(ByModel).name("").build().err()), "name");
}

#[test]
fn every_extreme_that_has_a_meaning_builds() {
    let layer = BulkheadLayer::builder(u32::MAX)
        .queue(u32::MAX)
        .max_wait(Duration::MAX)
        .expected_service(Duration::from_secs(u64::MAX))
        .build()
        .unwrap();
    give_back(now(layer.gate().admit(&mut asking(0, Some(Deadline::within(SECOND))))));
    let full = layer.gate();
    full.set_limit(1);
    let _slot = now(admit(full));
    let hurried = full.admit(&mut asking(0, Some(Deadline::within(SECOND))));
    assert_eq!(refused(hurried), RefusalKind::Deadline, "no deadline leaves that much");
}

#[test]
fn each_key_has_slots_of_its_own_and_a_busy_state_is_not_at_rest() {
    let layer = BulkheadLayer::builder(1)
        .refuse()
        .keyed_by(|call: &Asked| call.call.model.clone())
        .max_keys(2)
        .name("models")
        .build()
        .unwrap();
    let gate: &Keyed<_, _> = layer.gate();
    let ask = |model: &str| {
        let mut asked = asking(0, None);
        asked.call.model = Some(model.into());
        gate.admit(&mut asked)
    };
    let slot = now(ask("a"));
    give_back(now(ask("b")));
    let Admission::Refused(refusal) = ask("a") else { panic!("its slot is taken") };
    assert_eq!((refusal.kind(), refusal.key().unwrap().as_str()), (RefusalKind::Full, "a"));
    assert_eq!(refusal.to_string(), "models of a is full");

    // The table is full: the newcomer takes the place of the state at rest, never that of the busy one.
    give_back(now(ask("c")));
    assert_eq!(refused(ask("a")), RefusalKind::Full);
    give_back(slot);
}

#[test]
fn a_state_is_at_rest_only_when_it_decides_as_a_fresh_one_and_nobody_holds_it() {
    let gate = bulkhead(1, 1).for_key(&"k".into());
    assert!(gate.at_rest());
    let handle = gate.clone();
    assert!(!gate.at_rest(), "somebody has a handle");
    drop(handle);
    let slot = now(admit(&gate));
    assert!(!gate.at_rest());
    drop(later(admit(&gate)));
    give_back(slot);
    assert!(gate.at_rest());
    gate.set_limit(2);
    assert!(!gate.at_rest(), "a fresh one would admit one");
    gate.set_limit(1);
    assert!(gate.at_rest());
}

#[test]
fn the_parts_can_cross_threads() {
    fn check<T: Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    check::<Bulkhead>();
    check::<BulkheadLayer>();
    check::<Slot>();
    sent::<Wait>();
    assert!(size_of::<Wait>() <= size_of::<usize>(), "a call that does not wait carries no timer");
    assert!(format!("{:?}", bulkhead(3, 1)).contains("in_flight: 0"));
}
