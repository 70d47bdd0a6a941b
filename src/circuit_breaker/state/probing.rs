//! The half-open state: probes, their slots, leases and votes.

use super::tests::{
    BAD, GOOD, NEUTRAL, SECOND, SLOW, call, calls, moved, opened, pass, refused, secs, simple, state,
};
use super::*;

#[test]
fn three_probes_at_once_and_three_successes_close() {
    let mut state = opened(simple(), 0);
    let now = 30 * SECOND;
    let probes: Vec<_> = (0..3).map(|_| pass(&mut state, now)).collect();
    assert_eq!(refused(&mut state, now), None, "when a slot will be free is not known");
    assert_eq!(state.record(now, probes[0], GOOD), Recorded::Kept);
    let fourth = pass(&mut state, now);
    assert_eq!(state.record(now, probes[1], GOOD), Recorded::Kept);
    assert_eq!(moved(state.record(now, fourth, GOOD)).to, BreakerState::Closed);
    assert_eq!(state.record(now, probes[2], BAD), Recorded::Late);
    assert_eq!(state.view(now, 0).counts, Counts::default(), "it begins anew");
}

#[test]
fn b044_the_first_failed_probe_opens_again_whatever_the_minimum() {
    let mut state = opened(simple().minimum_calls(10), 0);
    let now = 30 * SECOND;
    let (first, second) = (pass(&mut state, now), pass(&mut state, now));
    assert_eq!(moved(state.record(now, first, BAD)).open_for, Some(secs(60)), "a fresh wait");
    assert_eq!(state.record(now, second, GOOD), Recorded::Late);
    assert_eq!(refused(&mut state, now), Some(60 * SECOND));
}

#[test]
fn a_probe_without_a_vote_gives_its_slot_back() {
    let mut state = opened(simple().probes(1), 0);
    for _ in 0..100 {
        assert_eq!(call(&mut state, 30 * SECOND, NEUTRAL), Recorded::Kept);
    }
    assert_eq!(state.state(), BreakerState::HalfOpen);
    let _out = pass(&mut state, 30 * SECOND);
    assert_eq!(refused(&mut state, 30 * SECOND), None, "b052: given back is not one more");
}

#[test]
fn a_slow_probe_has_failed_where_slow_calls_matter() {
    let mut on = opened(simple().slow_call_rate(secs(1), 1.0).probe_successes(1), 0);
    assert_eq!(moved(call(&mut on, 30 * SECOND, SLOW)).cause, BreakerCause::ProbeFailed);
    let mut off = opened(simple().probe_successes(1), 0);
    assert_eq!(moved(call(&mut off, 30 * SECOND, SLOW)).to, BreakerState::Closed);
}

#[test]
fn after_its_lease_a_probes_slot_is_given_again_and_its_answer_is_fenced() {
    for late in [GOOD, BAD] {
        let mut state = opened(simple().probes(1).probe_successes(2), 0);
        let lost = pass(&mut state, 30 * SECOND);
        assert_eq!(refused(&mut state, 60 * SECOND - 1), None, "leased for the open time");
        let next = pass(&mut state, 60 * SECOND);
        assert_eq!(state.record(60 * SECOND, lost, late), Recorded::Late);
        assert_eq!(refused(&mut state, 60 * SECOND), None, "the late one frees no slot of another");
        assert_eq!(state.record(60 * SECOND, next, GOOD), Recorded::Kept);
        assert_eq!(state.view(60 * SECOND, 0).probe_successes, 1);
    }
}

#[test]
fn a_lease_that_is_over_ends_the_vote_also_if_nobody_took_the_slot() {
    let mut state = opened(simple().probe_lease(secs(5)).probe_successes(1), 0);
    let probe = pass(&mut state, 30 * SECOND);
    assert_eq!(state.record(35 * SECOND, probe, GOOD), Recorded::Late);
    assert_eq!(state.state(), BreakerState::HalfOpen);
}

#[test]
fn answers_of_an_earlier_generation_change_nothing() {
    let mut state = state(simple().probe_successes(1));
    let old: Vec<_> = (0..20).map(|_| pass(&mut state, 0)).collect();
    calls(&mut state, 0, &[BAD; 3]);
    let until = state.open_until();
    assert_eq!(state.record(SECOND, old[0], BAD), Recorded::Late);
    assert_eq!(state.open_until(), until, "b034: the open time stays");
    let probe = pass(&mut state, 30 * SECOND);
    assert_eq!(state.record(30 * SECOND, old[1], BAD), Recorded::Late);
    assert_eq!(state.record(30 * SECOND, old[2], GOOD), Recorded::Late);
    assert_eq!(state.state(), BreakerState::HalfOpen);
    assert_eq!(moved(state.record(30 * SECOND, probe, GOOD)).to, BreakerState::Closed);
    for ticket in &old[3..] {
        assert_eq!(state.record(30 * SECOND, *ticket, BAD), Recorded::Late);
    }
    assert_eq!(state.state(), BreakerState::Closed, "a whole cycle later too");
}

#[test]
fn a_probe_of_an_earlier_half_open_time_frees_no_slot_and_has_no_vote() {
    let mut state = opened(simple().probes(1), 0);
    let old = pass(&mut state, 30 * SECOND);
    state.probe_now();
    let _new = pass(&mut state, 31 * SECOND);
    assert_eq!(state.record(31 * SECOND, old, BAD), Recorded::Late);
    assert_eq!(refused(&mut state, 31 * SECOND), None);
}

pub(super) fn marked(state: &mut State, now: u64) -> Option<Ticket> {
    match state.admit(now, true).0 {
        Admit::Pass(ticket) => Some(ticket),
        Admit::Refuse { .. } => None,
    }
}

#[test]
fn a_marked_call_passes_an_open_breaker_as_a_probe() {
    let mut state = opened(simple(), 0);
    let until = state.open_until();
    let probes: Vec<_> = (0..4).filter_map(|_| marked(&mut state, SECOND)).collect();
    assert_eq!(probes.len(), 3, "no more than there are slots");
    assert_eq!(refused(&mut state, SECOND), Some(29 * SECOND), "unmarked ones do not");
    assert_eq!(state.record(SECOND, probes[0], BAD), Recorded::Kept);
    assert_eq!(state.open_until(), until, "it was not its turn: the time stays");
    let moved = moved(state.record(SECOND, probes[1], GOOD));
    assert_eq!((moved.from, moved.to), (BreakerState::Open, BreakerState::HalfOpen));
    assert_eq!(state.view(SECOND, 0).probe_successes, 1);
    assert_eq!(state.record(SECOND, probes[2], BAD), Recorded::Late);
}

#[test]
fn a_marked_success_closes_at_once_where_one_is_enough() {
    let mut state = opened(simple().probe_successes(1), 0);
    let probe = marked(&mut state, SECOND).unwrap();
    let moved = moved(state.record(SECOND, probe, GOOD));
    assert_eq!((moved.from, moved.to), (BreakerState::Open, BreakerState::Closed));
}
