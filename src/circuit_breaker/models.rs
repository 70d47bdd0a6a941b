//! Every interleaving of a few calls, by the model checker.
//!
//! Promised: never more live probes than allowed; no vote of another generation; one move for one reason; no success
//! lost; and always a way on.

use std::sync::Arc as StdArc;
use std::time::Duration;

use super::cell::Cell;
use super::settings::{Settings, SettingsBuilder, Vote};
use super::state::{Admit, Moved, Recorded, Sample, State, Ticket};
use crate::monitor::BreakerState;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, Ordering};

const SECOND: u64 = 1_000_000_000;
const GOOD: Sample = Sample { vote: Vote::Success, slow: false, hint: 0 };
const BAD: Sample = Sample { vote: Vote::Failure, slow: false, hint: 0 };

fn settings() -> SettingsBuilder {
    let second = Duration::from_secs(1);
    Settings::builder()
        .consecutive_failures(1, second)
        .without_failure_rate()
        .open_for(second)
        .jitter(0.0)
        .probes(1)
        .probe_successes(1)
}

fn cell(settings: SettingsBuilder) -> Arc<Cell> {
    Arc::new(Cell::new(State::new(StdArc::new(settings.build().unwrap()), || 0)))
}

fn admit(cell: &Cell, now: u64) -> (Option<Ticket>, Option<Moved>) {
    if let Some(ticket) = cell.pass() {
        return (Some(ticket), None);
    }
    if cell.refuses(|_| now).is_some() {
        return (None, None);
    }
    match cell.admit(now, false) {
        (Admit::Pass(ticket), moved) => (Some(ticket), moved),
        (Admit::Refuse { .. }, moved) => (None, moved),
    }
}

fn opened(settings: SettingsBuilder) -> Arc<Cell> {
    let cell = cell(settings);
    let ticket = cell.pass().unwrap();
    assert!(matches!(cell.settle(0, ticket, BAD), Recorded::Moved(_)));
    cell
}

fn state(cell: &Cell, now: u64) -> BreakerState {
    cell.view(now).state
}

/// Two callers race from open to half-open for one slot: one move, one probe.
#[test]
fn loom_two_callers_race_to_half_open() {
    loom::model(|| {
        let cell = opened(settings());
        let other = cell.clone();
        let thread = loom::thread::spawn(move || admit(&other, SECOND));
        let (mine, my_move) = admit(&cell, SECOND);
        let (theirs, their_move) = thread.join().unwrap();
        assert!(mine.is_some() != theirs.is_some(), "one slot");
        assert!(my_move.is_some() != their_move.is_some(), "one move");
        let probe = mine.or(theirs).unwrap();
        assert!(matches!(cell.settle(SECOND, probe, GOOD), Recorded::Moved(_)), "and a way out");
        assert_eq!(state(&cell, SECOND), BreakerState::Closed);
    });
}

/// Probes start, end, and give way to others: never more are live than there are slots.
#[test]
fn loom_live_probes_never_exceed_the_slots() {
    loom::model(|| {
        let cell = opened(settings().probe_successes(9));
        let live = Arc::new(AtomicU32::new(0));
        let run = |cell: Arc<Cell>, live: Arc<AtomicU32>| {
            let (ticket, _) = admit(&cell, SECOND);
            if let Some(ticket) = ticket {
                assert_eq!(live.fetch_add(1, Ordering::SeqCst), 0, "the only one");
                live.fetch_sub(1, Ordering::SeqCst);
                cell.settle(SECOND, ticket, GOOD);
            }
        };
        let (other, other_live) = (cell.clone(), live.clone());
        let thread = loom::thread::spawn(move || run(other, other_live));
        run(cell.clone(), live);
        thread.join().unwrap();
        assert_eq!(cell.view(SECOND).probes, 0, "all slots are back");
    });
}

/// A call admitted while closed ends, for better or worse, while a probe is judged: only the probe decides.
#[test]
fn loom_a_late_answer_decides_nothing() {
    for late in [GOOD, BAD] {
        loom::model(move || {
            let cell = cell(settings());
            let old = cell.pass().unwrap();
            let trip = cell.pass().unwrap();
            cell.settle(0, trip, BAD);
            let other = cell.clone();
            let thread = loom::thread::spawn(move || other.settle(SECOND, old, late));
            let (probe, _) = admit(&cell, SECOND);
            let recorded = cell.settle(SECOND, probe.unwrap(), GOOD);
            assert!(matches!(recorded, Recorded::Moved(moved) if moved.to == BreakerState::Closed));
            assert_eq!(thread.join().unwrap(), Recorded::Late);
            assert_eq!(state(&cell, SECOND), BreakerState::Closed);
            assert_eq!(cell.view(SECOND).counts.calls, 0, "nor does it count for the new time");
        });
    }
}

/// A probe whose lease is over and the one that took its slot end together: the first has no vote.
#[test]
fn loom_a_probe_after_its_lease_has_no_vote() {
    loom::model(|| {
        let cell = opened(settings());
        let (lost, _) = admit(&cell, SECOND);
        let (next, _) = admit(&cell, 2 * SECOND);
        let (lost, next) = (lost.unwrap(), next.unwrap());
        let other = cell.clone();
        let thread = loom::thread::spawn(move || other.settle(2 * SECOND, lost, BAD));
        assert!(matches!(cell.settle(2 * SECOND, next, GOOD), Recorded::Moved(_)));
        assert_eq!(thread.join().unwrap(), Recorded::Late);
        assert_eq!(state(&cell, 2 * SECOND), BreakerState::Closed);
    });
}

/// Successes that only count, beside a failure that takes the lock: none is lost or counted twice.
#[test]
fn loom_no_success_is_lost_beside_a_failure() {
    loom::model(|| {
        let cell = cell(settings().consecutive_failures(2, Duration::from_secs(1)));
        let other = cell.clone();
        let thread = loom::thread::spawn(move || {
            for _ in 0..2 {
                let ticket = other.pass().unwrap();
                assert_eq!(other.settle(0, ticket, GOOD), Recorded::Kept);
            }
        });
        let ticket = cell.pass().unwrap();
        assert_eq!(cell.settle(0, ticket, BAD), Recorded::Kept);
        let during = cell.view(0).counts;
        assert!(during.calls <= 3 && during.failed == 1);
        thread.join().unwrap();
        let counts = cell.view(0).counts;
        assert_eq!((counts.calls, counts.failed), (3, 1));
    });
}

/// A success without the lock while the window turns to its next bucket.
#[test]
fn loom_no_success_is_lost_while_the_window_turns() {
    loom::model(|| {
        let cell = cell(settings().window(Duration::from_secs(10)));
        let other = cell.clone();
        let thread = loom::thread::spawn(move || {
            let ticket = other.pass().unwrap();
            other.settle(SECOND - 1, ticket, GOOD)
        });
        let ticket = cell.pass().unwrap();
        assert_eq!(cell.settle(SECOND, ticket, GOOD), Recorded::Kept);
        assert_eq!(thread.join().unwrap(), Recorded::Kept);
        assert_eq!(cell.view(SECOND).counts.calls, 2);
    });
}

/// A reset beside a trip: whichever comes last stands, and the breaker is not left in between.
#[test]
fn loom_a_reset_beside_a_trip_leaves_one_of_the_two() {
    loom::model(|| {
        let cell = cell(settings());
        let ticket = cell.pass().unwrap();
        let other = cell.clone();
        let thread = loom::thread::spawn(move || other.settle(0, ticket, BAD));
        cell.with(|state| state.reset(0));
        thread.join().unwrap();
        assert_eq!(state(&cell, 0), BreakerState::Closed, "the trip came first, or too late");
        assert!(cell.pass().is_some());
    });
}
