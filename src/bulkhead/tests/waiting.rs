//! The queue: who waits, who is served, who is refused and when.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_permit_that_is_given_back_goes_to_the_next_in_line_and_to_no_newcomer() {
    let gate = bulkhead(1, 8);
    let slot = now(admit(&gate));
    let mut first = later(admit(&gate));
    let mut second = later(admit(&gate));
    assert_pending!(first.poll());
    assert_pending!(second.poll());

    give_back(slot);
    assert_eq!((gate.in_flight(), gate.queued()), (1, 1), "handed over");
    assert!(first.is_woken() && !second.is_woken());
    let mut third = later(admit(&gate));
    let slot = assert_ready_ok!(first.poll());
    assert_pending!(third.poll());

    give_back(slot);
    assert_pending!(third.poll());
    give_back(assert_ready_ok!(second.poll()));
    give_back(assert_ready_ok!(third.poll()));
    assert_at_rest(&gate);
}

#[test]
fn the_more_urgent_are_served_first_and_equals_in_order() {
    let gate = bulkhead(1, 8);
    let mut slot = now(admit(&gate));
    let mut waits: Vec<_> = [0, 3, 7, 3].map(|level| later(gate.admit(&mut asking(level, None)))).into();
    for turn in [2, 1, 3, 0] {
        give_back(slot);
        slot = assert_ready_ok!(waits[turn].poll());
        let served = waits.iter_mut().filter(|wait| wait.is_woken()).count();
        assert_eq!(served, 0, "nobody else was woken");
    }
    give_back(slot);
    assert_at_rest(&gate);
}

#[test]
fn a_closure_over_the_request_can_find_the_priority() {
    let layer = BulkheadLayer::builder(1)
        .blind()
        .queue(8)
        .priority_by(|level: &u8| Priority::new(*level).unwrap_or(Priority::MAX))
        .build()
        .unwrap();
    let gate = layer.gate();
    let slot = now(gate.admit(&mut 0));
    let mut low = later(gate.admit(&mut 1));
    let mut high = later(gate.admit(&mut 200));
    give_back(slot);
    give_back(assert_ready_ok!(high.poll()));
    give_back(assert_ready_ok!(low.poll()));
}

#[test]
fn b188_a_closure_that_panics_harms_its_call_alone() {
    let layer = BulkheadLayer::builder(1)
        .priority_by(|call: &Asked| call.call.priority.expect("this caller gives one"))
        .build()
        .unwrap();
    let gate = layer.gate();
    let slot = now(gate.admit(&mut Tagged { request: (), call: Call::default() }));
    let bad = std::panic::AssertUnwindSafe(|| gate.admit(&mut Tagged { request: (), call: Call::default() }));
    assert!(std::panic::catch_unwind(bad).is_err());
    assert_eq!((gate.in_flight(), gate.queued()), (1, 0));
    let mut wait = later(gate.admit(&mut asking(1, None)));
    give_back(slot);
    give_back(assert_ready_ok!(wait.poll()));
    assert_eq!((gate.in_flight(), gate.queued()), (0, 0));
}

#[test]
fn b188_an_observer_that_panics_harms_nobody() {
    let observer = |_: &Event<'_>| panic!("a bad observer");
    let layer = BulkheadLayer::builder(1).queue(1).observer(Arc::new(observer)).build().unwrap();
    let gate = layer.gate();
    for _ in 0..10 {
        let slot = now(admit(gate));
        let mut wait = later(admit(gate));
        assert_eq!(refused(admit(gate)), RefusalKind::Full);
        give_back(slot);
        give_back(assert_ready_ok!(wait.poll()));
        assert_at_rest(gate);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_ten_seconds_is_refused_by_default_and_one_a_moment_shorter_is_not() {
    let gate = bulkhead(1, 2);
    let slot = now(admit(&gate));
    let mut wait = later(admit(&gate));
    assert_pending!(wait.poll());
    advance(Duration::from_millis(9_999)).await;
    assert_pending!(wait.poll());
    assert_eq!(gate.queued(), 1);
    advance(Duration::from_millis(1)).await;
    let refusal = assert_ready_err!(wait.poll());
    assert_eq!((refusal.kind(), refusal.name()), (RefusalKind::QueueTimeout, "bulkhead"));
    assert_eq!((gate.in_flight(), gate.queued()), (1, 0));
    give_back(slot);
    assert_at_rest(&gate);
}

#[tokio::test(start_paused = true)]
async fn b079_waiters_that_time_out_eat_no_capacity() {
    let layer = BulkheadLayer::builder(8).max_wait(Duration::from_millis(10)).build().unwrap();
    let gate = layer.gate();
    for _ in 0..100 {
        let slots: Vec<_> = (0..8).map(|_| now(admit(gate))).collect();
        let mut waits: Vec<_> = (0..8).map(|_| later(admit(gate))).collect();
        for wait in &mut waits {
            assert_pending!(wait.poll());
        }
        advance(Duration::from_millis(11)).await;
        // Half are told before the slots come back, half only after.
        for wait in waits.iter_mut().take(4) {
            assert_eq!(assert_ready_err!(wait.poll()).kind(), RefusalKind::QueueTimeout);
        }
        slots.into_iter().for_each(give_back);
        for wait in waits.iter_mut().skip(4) {
            assert_eq!(assert_ready_err!(wait.poll()).kind(), RefusalKind::QueueTimeout);
        }
        assert_at_rest(gate);
    }
    let all: Vec<_> = (0..8).map(|_| now(admit(gate))).collect();
    assert_eq!((all.len(), gate.in_flight()), (8, 8));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_dropped_after_it_was_granted_and_before_it_saw_that_hands_its_slot_on() {
    let gate = bulkhead(1, 8);
    let slot = now(admit(&gate));
    let first = later(admit(&gate));
    let mut second = later(admit(&gate));
    assert_pending!(second.poll());
    give_back(slot);
    assert!(!second.is_woken());
    drop(first);
    assert!(second.is_woken(), "the slot went on to it");
    assert_ready_ok!(second.poll()).settle(End::Abandoned, None);
    assert_at_rest(&gate);
}

#[test]
fn a_waiter_that_leaves_gives_up_its_place_and_takes_nobody_elses() {
    let gate = bulkhead(1, 2);
    let slot = now(admit(&gate));
    let first = later(admit(&gate));
    let mut second = later(admit(&gate));
    assert_eq!(refused(admit(&gate)), RefusalKind::Full);
    drop(first);
    let mut third = later(admit(&gate));
    give_back(slot);
    give_back(assert_ready_ok!(second.poll()));
    give_back(assert_ready_ok!(third.poll()));
    assert_at_rest(&gate);
}

#[tokio::test(start_paused = true)]
async fn b176_a_waiter_is_woken_by_its_slot_and_by_nothing_else() {
    let gate = bulkhead(1, 2);
    let slot = now(admit(&gate));
    let mut wait = later(admit(&gate));
    let leaver = later(admit(&gate));
    assert_pending!(wait.poll());
    for _ in 0..100 {
        advance(SECOND / 100).await;
        assert_eq!(refused(admit(&gate)), RefusalKind::Full);
        assert!(!wait.is_woken(), "no slot, no time out: no wake");
    }
    drop(leaver);
    gate.set_limit(1);
    assert!(!wait.is_woken());
    give_back(slot);
    assert!(wait.is_woken());
    give_back(assert_ready_ok!(wait.poll()));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_cannot_make_its_deadline_any_more_is_refused_at_that_instant() {
    let layer = BulkheadLayer::builder(1).expected_service(2 * SECOND).build().unwrap();
    let gate = layer.gate();
    let slot = now(admit(gate));
    let mut wait = later(gate.admit(&mut asking(0, Some(Deadline::within(5 * SECOND)))));
    assert_pending!(wait.poll());
    advance(Duration::from_millis(2_999)).await;
    assert_pending!(wait.poll());
    advance(Duration::from_millis(1)).await;
    assert!(wait.is_woken());
    assert_eq!(assert_ready_err!(wait.poll()).kind(), RefusalKind::Deadline);
    give_back(slot);
    assert_at_rest(gate);
}

#[tokio::test(start_paused = true)]
async fn a_slot_goes_past_those_who_are_late_to_one_who_is_in_time() {
    let gate = bulkhead(1, 8);
    let slot = now(admit(&gate));
    let mut late = later(gate.admit(&mut asking(7, Some(Deadline::within(SECOND)))));
    let mut fine = later(gate.admit(&mut asking(0, Some(Deadline::within(9 * SECOND)))));
    // Neither was polled: no timer of theirs can have done it.
    advance(SECOND).await;
    give_back(slot);
    assert_eq!((gate.in_flight(), gate.queued()), (1, 0));
    assert_eq!(assert_ready_err!(late.poll()).kind(), RefusalKind::Deadline);
    give_back(assert_ready_ok!(fine.poll()));
    assert_at_rest(&gate);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_leaves_no_time_is_not_queued_but_is_served_if_a_slot_is_free() {
    let gate = bulkhead(1, 8);
    let past = Deadline::at(crate::time::now());
    let slot = now(gate.admit(&mut asking(0, Some(past))));
    assert_eq!(refused(gate.admit(&mut asking(0, Some(past)))), RefusalKind::Deadline);
    assert_eq!(gate.queued(), 0);
    // A handle that reads nothing knows no deadline.
    let layer = BulkheadLayer::builder(1).blind().build().unwrap();
    let blind = now(layer.gate().admit(&mut asking(0, Some(past))));
    let mut wait = later(layer.gate().admit(&mut asking(0, Some(past))));
    assert_pending!(wait.poll());
    give_back(slot);
    give_back(blind);
}

#[tokio::test(start_paused = true)]
async fn b191_a_longest_wait_of_for_ever_never_fires() {
    let layer = BulkheadLayer::builder(1).max_wait(Duration::MAX).build().unwrap();
    let gate = layer.gate();
    let slot = now(admit(gate));
    let mut wait = later(gate.admit(&mut asking(0, Some(Deadline::within(Duration::MAX)))));
    assert_pending!(wait.poll());
    advance(365 * 24 * 3600 * SECOND).await;
    assert!(!wait.is_woken());
    assert_pending!(wait.poll());
    give_back(slot);
    give_back(assert_ready_ok!(wait.poll()));
}

#[tokio::test(start_paused = true)]
async fn each_decision_is_one_event() {
    let heard = Arc::new(Heard::default());
    let layer = BulkheadLayer::builder(1).queue(2).observer(heard.clone()).build().unwrap();
    let gate = layer.gate();
    let slot = now(admit(gate));
    let mut served = later(admit(gate));
    let mut late = later(gate.admit(&mut asking(0, Some(Deadline::within(2 * SECOND)))));
    assert_pending!(late.poll());
    assert_eq!(heard.take(), [""; 0], "nothing was decided yet");
    assert_eq!(refused(admit(gate)), RefusalKind::Full);
    assert_eq!(heard.take(), ["refused Full"]);
    advance(SECOND).await;
    give_back(slot);
    let slot = assert_ready_ok!(served.poll());
    assert_eq!(heard.take(), ["waited 1s"]);
    advance(SECOND).await;
    assert!(assert_ready!(late.poll()).is_err());
    drop(late);
    assert_eq!(heard.take(), ["refused Deadline"]);
    drop(later(admit(gate)));
    assert_eq!(heard.take(), ["abandoned"]);
    give_back(slot);
    assert_eq!(heard.take(), [""; 0]);
}
