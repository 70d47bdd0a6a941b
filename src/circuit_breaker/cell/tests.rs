//! The shared cell decides as the bare state machine does, and never waits for its lock where it need not.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::circuit_breaker::Settings;
use crate::circuit_breaker::state::model::{Step, settings, step};
use crate::circuit_breaker::state::tests::{BAD, GOOD, SECOND, simple, state};
use crate::monitor::{BreakerCause, BreakerState};

/// As a gate does.
fn admit(cell: &Cell, now: u64, marked: bool) -> (Admit, Option<Moved>) {
    let left = if marked { None } else { cell.refuses(|_| now) };
    match left {
        Some(left) => (Admit::Refuse { left: (left != NEVER).then_some(left) }, None),
        None => cell.admit(now, marked),
    }
}

fn compare(settings: &Arc<Settings>, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut state = State::new(settings.clone(), || 0);
    let cell = Cell::new(state.clone());
    let (mut out, mut now) = (Vec::new(), 0);
    for step in steps {
        match *step {
            Step::Admit { marked } => {
                let bare = state.admit(now, marked);
                let shared = match cell.pass() {
                    Some(ticket) => (Admit::Pass(ticket), None),
                    None => admit(&cell, now, marked),
                };
                prop_assert_eq!(bare, shared);
                if let Admit::Pass(ticket) = bare.0 {
                    out.push(ticket);
                }
            }
            Step::Answer { which, sample } if which < out.len() => {
                let ticket = out.remove(out.len() - 1 - which);
                let neutral = sample.vote == Vote::Neutral && ticket.probe == 0;
                let (bare, shared) = (state.record(now, ticket, sample), cell.settle(now, ticket, sample));
                // What is no vote and holds no slot is not looked at: it is never late.
                prop_assert!(bare == shared || neutral, "{:?} but {:?}", bare, shared);
            }
            Step::Answer { .. } => {}
            Step::Wait(time) => now += time,
            Step::Reset => prop_assert_eq!(state.reset(now), cell.with(|state| state.reset(now))),
            Step::ForceOpen => prop_assert_eq!(state.force_open(), cell.with(State::force_open)),
            Step::ForceClosed => {
                prop_assert_eq!(state.force_closed(now), cell.with(|state| state.force_closed(now)));
            }
            Step::ProbeNow => prop_assert_eq!(state.probe_now(), cell.with(State::probe_now)),
        }
        prop_assert_eq!(state.view(now, 0), cell.view(now), "after {:?}", step);
    }
    prop_assert_eq!(state.is_at_rest(now), cell.is_at_rest(now));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_decides_as_the_state_machine_alone(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        compare(&settings, &steps)?;
    }
}

#[test]
fn successes_and_refusals_need_no_lock() {
    let cell = Cell::new(state(simple()));
    {
        let _held = lock(&cell.state);
        for _ in 0..100 {
            let ticket = cell.pass().unwrap();
            assert_eq!(cell.settle(0, ticket, GOOD), Recorded::Kept);
        }
    }
    assert_eq!(cell.view(0).counts.calls, 100);
    for _ in 0..3 {
        let ticket = cell.pass().unwrap();
        cell.settle(0, ticket, BAD);
    }
    let _held = lock(&cell.state);
    assert_eq!(cell.refuses(|_| SECOND), Some(29 * SECOND));
}

#[test]
fn a_success_read_a_tick_late_is_counted_in_the_bucket_before() {
    let cell = Cell::new(state(simple()));
    let ticket = cell.pass().unwrap();
    let end = cell.bucket_end.load(Ordering::Acquire);
    assert!(cell.add_success(end - 1, ticket), "by a clock that lags, the bucket is not over yet");
    assert!(!cell.add_success(end, ticket), "a new bucket is the lock's business");
    assert_eq!(cell.settle(end + 1, ticket, GOOD), Recorded::Kept);
    assert_eq!(cell.view(end + 1).counts.calls, 2, "neither is lost");
}

#[test]
fn whoever_reads_the_clock_is_told_when_the_open_time_is_over() {
    let cell = Cell::new(state(simple()));
    for _ in 0..3 {
        cell.settle(0, cell.pass().unwrap(), BAD);
    }
    let mut told = 0;
    let left = cell.refuses(|until| {
        told = until;
        until - 7
    });
    assert_eq!((told, left), (30 * SECOND, Some(7)));
    assert_eq!(cell.refuses(|until| until), None, "from then on they are looked at one by one");
    cell.with(State::force_open);
    assert_eq!(cell.refuses(|_| panic!("no clock is needed")), Some(NEVER));
}

#[test]
fn a_success_of_an_earlier_generation_is_late_without_the_lock_too() {
    let cell = Cell::new(state(simple()));
    let old = cell.pass().unwrap();
    cell.with(|state| state.reset(0));
    assert_eq!(cell.settle(0, old, GOOD), Recorded::Late);
    assert_eq!(cell.view(0).counts.calls, 0);
}

#[test]
fn the_count_of_successes_does_not_run_into_the_generation() {
    let cell = Cell::new(state(simple()));
    let ticket = cell.pass().unwrap();
    cell.hot.fetch_or(MOST << 2, Ordering::AcqRel);
    assert_eq!(cell.settle(0, ticket, GOOD), Recorded::Kept);
    assert_eq!(cell.view(0).counts.calls, MOST + 1);
    assert_eq!(cell.pass(), Some(ticket));
}

#[test]
fn b046_two_threads_race_from_open_to_half_open() {
    let half_opened = AtomicU32::new(0);
    for _ in 0..1000 {
        let cell = Cell::new(state(simple().probes(1)));
        for _ in 0..3 {
            cell.settle(0, cell.pass().unwrap(), BAD);
        }
        let barrier = std::sync::Barrier::new(2);
        let admitted = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    barrier.wait();
                    let (admit, moved) = admit(&cell, 30 * SECOND, false);
                    if let Some(moved) = moved {
                        assert_eq!((moved.to, moved.cause), (BreakerState::HalfOpen, BreakerCause::TimeOver));
                        half_opened.fetch_add(1, Ordering::Relaxed);
                    }
                    if matches!(admit, Admit::Pass(_)) {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 1);
    }
    assert_eq!(half_opened.into_inner(), 1000, "one move a round");
}

#[test]
fn no_success_is_lost_between_threads() {
    const EACH: u64 = 20_000;
    let never =
        Settings::builder().without_consecutive_failures().without_failure_rate().window(Duration::MAX);
    let cell = Cell::new(state(never));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let cell = &cell;
            scope.spawn(move || {
                for round in 0..EACH {
                    let ticket = cell.pass().unwrap();
                    let sample = if thread == 0 && round % 7 == 0 { BAD } else { GOOD };
                    assert_eq!(cell.settle(round, ticket, sample), Recorded::Kept);
                }
            });
        }
    });
    let counts = cell.view(0).counts;
    assert_eq!((counts.calls, counts.failed), (3 * EACH, EACH.div_ceil(7)));
}
