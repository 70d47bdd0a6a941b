//! The rules, one by one, without a clock.

use std::sync::Arc;
use std::time::Duration;

use super::probing::marked;
use super::*;
use crate::circuit_breaker::settings::SettingsBuilder;
use crate::circuit_breaker::{OnThrottled, Settings};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const GOOD: Sample = Sample { vote: Vote::Success, slow: false, hint: 0 };
pub(crate) const BAD: Sample = Sample { vote: Vote::Failure, slow: false, hint: 0 };
pub(super) const NEUTRAL: Sample = Sample { vote: Vote::Neutral, slow: false, hint: 0 };
const OPENS: Sample = Sample { vote: Vote::Opens, slow: false, hint: 0 };
pub(super) const SLOW: Sample = Sample { vote: Vote::Success, slow: true, hint: 0 };

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn state(settings: SettingsBuilder) -> State {
    State::new(Arc::new(settings.build().unwrap()), || u32::MAX / 2)
}

/// Three failures in a row open it for exactly 30 s; nothing else does.
pub(crate) fn simple() -> SettingsBuilder {
    Settings::builder().consecutive_failures(3, secs(60)).without_failure_rate().jitter(0.0)
}

pub(super) fn pass(state: &mut State, now: u64) -> Ticket {
    match state.admit(now, false).0 {
        Admit::Pass(ticket) => ticket,
        refused @ Admit::Refuse { .. } => panic!("{refused:?} in {:?}", state.state()),
    }
}

pub(super) fn refused(state: &mut State, now: u64) -> Option<u64> {
    match state.admit(now, false).0 {
        Admit::Refuse { left, .. } => left,
        Admit::Pass(_) => panic!("passed in {:?}", state.state()),
    }
}

/// One call from beginning to end.
pub(super) fn call(state: &mut State, now: u64, sample: Sample) -> Recorded {
    let ticket = pass(state, now);
    state.record(now, ticket, sample)
}

pub(super) fn calls(state: &mut State, now: u64, samples: &[Sample]) {
    for sample in samples {
        call(state, now, *sample);
    }
}

/// Opened at `now` by three failures.
pub(super) fn opened(settings: SettingsBuilder, now: u64) -> State {
    let mut state = state(settings);
    calls(&mut state, now, &[BAD; 3]);
    assert_eq!(state.state(), BreakerState::Open);
    state
}

pub(super) fn moved(recorded: Recorded) -> Moved {
    match recorded {
        Recorded::Moved(moved) => moved,
        other => panic!("no move but {other:?}"),
    }
}

#[test]
fn the_last_failure_of_the_row_opens_and_none_before() {
    let mut state = state(simple());
    assert_eq!(call(&mut state, 0, BAD), Recorded::Kept);
    assert_eq!(call(&mut state, 0, BAD), Recorded::Kept);
    let moved = moved(call(&mut state, 0, BAD));
    assert_eq!((moved.from, moved.to), (BreakerState::Closed, BreakerState::Open));
    assert_eq!((moved.cause, moved.open_for), (BreakerCause::Consecutive, Some(secs(30))));
}

#[test]
fn a_success_ends_the_row_and_no_vote_does_not() {
    let mut ended = state(simple());
    calls(&mut ended, 0, &[BAD, BAD, GOOD, BAD, BAD]);
    assert_eq!(ended.state(), BreakerState::Closed);
    let mut goes_on = state(simple());
    calls(&mut goes_on, 0, &[BAD, BAD, NEUTRAL, BAD]);
    assert_eq!(goes_on.state(), BreakerState::Open);
}

#[test]
fn b041_sparse_failures_do_not_add_up() {
    let mut state = state(simple().consecutive_failures(3, secs(5)));
    for tenths in [0, 49, 98, 147] {
        call(&mut state, tenths * SECOND / 10, BAD);
    }
    assert_eq!(state.state(), BreakerState::Closed, "no span of 5 s holds three");
    call(&mut state, 30 * SECOND, BAD);
    call(&mut state, 30 * SECOND + SECOND / 2, BAD);
    call(&mut state, 31 * SECOND, BAD);
    assert_eq!(state.state(), BreakerState::Open, "three within 1 s");
}

#[test]
fn a_row_may_last_exactly_its_time_and_no_longer() {
    let mut exact = state(simple().consecutive_failures(2, secs(5)));
    call(&mut exact, 0, BAD);
    call(&mut exact, 5 * SECOND, BAD);
    assert_eq!(exact.state(), BreakerState::Open);
    let mut longer = state(simple().consecutive_failures(2, secs(5)));
    call(&mut longer, 0, BAD);
    call(&mut longer, 5 * SECOND + 1, BAD);
    assert_eq!(longer.state(), BreakerState::Closed);
}

#[test]
fn the_rate_decides_from_the_minimum_on() {
    let rate = || Settings::builder().without_consecutive_failures().failure_rate(0.5).minimum_calls(4);
    let mut below = state(rate());
    calls(&mut below, 0, &[BAD; 3]);
    assert_eq!(below.state(), BreakerState::Closed, "three of three, but four are asked for");
    assert_eq!(moved(call(&mut below, 0, GOOD)).cause, BreakerCause::FailureRate, "three of four");
    let mut under = state(rate());
    calls(&mut under, 0, &[GOOD, GOOD, GOOD, BAD, BAD]);
    assert_eq!(under.state(), BreakerState::Closed, "two of five");
    call(&mut under, 0, BAD);
    assert_eq!(under.state(), BreakerState::Open, "three of six");
}

#[test]
fn what_is_older_than_the_window_no_longer_counts() {
    let mut state =
        state(Settings::builder().without_consecutive_failures().minimum_calls(4).window(secs(10)));
    calls(&mut state, 0, &[BAD; 3]);
    calls(&mut state, 10 * SECOND, &[BAD; 3]);
    assert_eq!(state.state(), BreakerState::Closed, "three in each window");
    call(&mut state, 10 * SECOND, BAD);
    assert_eq!(state.state(), BreakerState::Open);
}

#[test]
fn a_count_window_slides_over_a_long_good_time() {
    let mut state =
        state(Settings::builder().without_consecutive_failures().minimum_calls(10).count_window(10));
    calls(&mut state, 0, &[GOOD; 1000]);
    calls(&mut state, 0, &[BAD; 4]);
    assert_eq!(state.state(), BreakerState::Closed);
    call(&mut state, 0, BAD);
    assert_eq!(state.state(), BreakerState::Open, "five of the last ten, whatever came before");
}

#[test]
fn slow_calls_open_where_the_rule_is_on_and_only_there() {
    let slow = || Settings::builder().without_consecutive_failures().without_failure_rate().minimum_calls(4);
    let mut on = state(slow().slow_call_rate(secs(1), 0.5));
    calls(&mut on, 0, &[SLOW, GOOD, GOOD]);
    assert_eq!(moved(call(&mut on, 0, SLOW)).cause, BreakerCause::SlowRate);
    let mut off = state(slow());
    calls(&mut off, 0, &[SLOW; 100]);
    assert_eq!(off.state(), BreakerState::Closed);
}

#[test]
fn the_time_left_is_exact() {
    let mut state = opened(simple(), 5 * SECOND);
    let left = refused(&mut state, 12 * SECOND).unwrap();
    assert_eq!(left, 23 * SECOND);
    assert_eq!(refused(&mut state, 12 * SECOND + left - 1), Some(1), "not a nanosecond earlier");
    let (admit, moved) = state.admit(12 * SECOND + left, false);
    assert!(matches!(admit, Admit::Pass(ticket) if ticket.probe != 0));
    assert_eq!(
        moved.map(|moved| (moved.to, moved.cause)),
        Some((BreakerState::HalfOpen, BreakerCause::TimeOver))
    );
}

/// Fails one probe at the first possible moment, and says for how long it opened then.
fn fail_probe(state: &mut State, now: &mut u64) -> u64 {
    *now += refused(state, *now).unwrap();
    let moved = moved(call(state, *now, BAD));
    assert_eq!(moved.cause, BreakerCause::ProbeFailed);
    u64::try_from(moved.open_for.unwrap().as_nanos()).unwrap() / SECOND
}

#[test]
fn each_opening_is_twice_as_long_up_to_five_minutes() {
    let mut now = 0;
    let mut state = opened(simple(), now);
    let times: Vec<_> = (0..5).map(|_| fail_probe(&mut state, &mut now)).collect();
    assert_eq!(times, [60, 120, 240, 300, 300]);
}

#[test]
fn a_healthy_time_brings_the_open_time_back_and_a_shorter_one_does_not() {
    for (healthy, expected) in [(300, 30), (299, 120)] {
        let mut now = 0;
        let mut state = opened(simple().probe_successes(1), now);
        fail_probe(&mut state, &mut now);
        now += 60 * SECOND;
        call(&mut state, now, GOOD);
        assert_eq!(state.state(), BreakerState::Closed);
        now += healthy * SECOND;
        calls(&mut state, now, &[BAD; 2]);
        assert_eq!(moved(call(&mut state, now, BAD)).open_for, Some(secs(expected)), "after {healthy} s");
    }
}

fn open_time(settings: SettingsBuilder, dice: fn() -> u32, sample: Sample) -> Duration {
    let mut state = State::new(Arc::new(settings.build().unwrap()), dice);
    calls(&mut state, 0, &[BAD; 2]);
    moved(call(&mut state, 0, sample)).open_for.unwrap()
}

#[test]
fn jitter_spreads_in_both_directions_and_not_beyond_its_share() {
    let settings = || simple().jitter(0.1);
    assert_eq!(open_time(settings(), || 0, BAD), secs(27));
    let longest = open_time(settings(), || u32::MAX, BAD);
    assert!(longest > Duration::from_millis(32_999) && longest <= secs(33), "{longest:?}");
}

#[test]
fn a_hint_lengthens_and_never_shortens() {
    let hinted = |seconds: u64| Sample { hint: seconds * SECOND, ..BAD };
    assert_eq!(open_time(simple(), || 0, hinted(90)), secs(90));
    assert_eq!(open_time(simple(), || 0, hinted(2)), secs(30));
    assert_eq!(open_time(simple().jitter(0.1), || 0, hinted(90)), secs(90), "jitter only lengthens it");
    assert_eq!(open_time(simple().hint_at_most(secs(100)), || 0, hinted(9_000)), secs(100));
    assert_eq!(open_time(simple(), || 0, Sample { hint: u64::MAX, ..BAD }), secs(24 * 3600));
}

#[test]
fn one_verdict_opens_until_its_hint_or_by_the_own_growth() {
    let mut without = state(simple());
    let first = moved(call(&mut without, 0, OPENS));
    assert_eq!((first.cause, first.open_for), (BreakerCause::Verdict, Some(secs(30))));
    assert_eq!(moved(call(&mut without, 30 * SECOND, OPENS)).open_for, Some(secs(60)), "it grows");

    let hinted = Sample { hint: 7 * SECOND, ..OPENS };
    let mut with = state(simple());
    assert_eq!(moved(call(&mut with, 0, hinted)).open_for, Some(secs(7)), "the upstream knows better");
    assert_eq!(moved(call(&mut with, 7 * SECOND, hinted)).open_for, Some(secs(7)), "and that is no growth");
}

#[test]
fn what_is_forced_open_lets_nothing_through() {
    let mut state = state(simple());
    state.force_open();
    assert_eq!(refused(&mut state, 1 << 62), None, "no time is known");
    assert!(marked(&mut state, 0).is_none());
    state.reset(0);
    pass(&mut state, 0);
}

#[test]
fn what_is_forced_closed_counts_and_stays() {
    let mut state = opened(simple(), 0);
    state.force_closed(SECOND);
    calls(&mut state, SECOND, &[BAD; 100]);
    calls(&mut state, SECOND, &[OPENS; 2]);
    assert_eq!(state.state(), BreakerState::Closed);
    assert_eq!(state.view(SECOND, 0).counts.failed, 102);
    state.reset(SECOND);
    calls(&mut state, SECOND, &[BAD; 3]);
    assert_eq!(state.state(), BreakerState::Open, "reset ends it");
}

#[test]
fn a_reset_forgets_counts_growth_and_calls_under_way() {
    let mut now = 0;
    let mut state = opened(simple(), now);
    fail_probe(&mut state, &mut now);
    let probe = {
        now += 60 * SECOND;
        pass(&mut state, now)
    };
    state.reset(now);
    assert_eq!(state.record(now, probe, BAD), Recorded::Late);
    calls(&mut state, now, &[BAD; 2]);
    assert_eq!(moved(call(&mut state, now, BAD)).open_for, Some(secs(30)));
}

#[test]
fn after_closing_the_share_of_admitted_calls_grows_by_tenths() {
    let mut state = opened(simple().ramp(secs(100)).probe_successes(1), 0);
    let closed = 30 * SECOND;
    call(&mut state, closed, GOOD);
    for step in 0..10 {
        let now = closed + step * 10 * SECOND;
        let admitted =
            (0..100).filter(|_| matches!(state.admit(now, false).0, Admit::Pass(_))).count() as u64;
        assert_eq!(admitted, (step + 1) * 10, "step {step}");
    }
    let now = closed + 100 * SECOND;
    assert_eq!(state.mode(), Mode::Shut);
    assert!((0..100).all(|_| matches!(state.admit(now, false).0, Admit::Pass(_))));
    assert_eq!(state.mode(), Mode::Plain, "calls need no look any more");
}

#[test]
fn a_call_refused_by_the_ramp_hears_of_the_next_step() {
    let mut state = opened(simple().ramp(secs(100)).probe_successes(1), 0);
    call(&mut state, 30 * SECOND, GOOD);
    pass(&mut state, 30 * SECOND);
    assert_eq!(refused(&mut state, 33 * SECOND), Some(7 * SECOND));
}

#[test]
fn at_rest_means_that_a_fresh_one_would_decide_the_same() {
    let settings = || Settings::builder().jitter(0.0);
    let at_rest = |state: &State, seconds: u64| state.is_at_rest(seconds * SECOND);
    let mut used = state(settings());
    assert!(at_rest(&used, 0));
    call(&mut used, 0, GOOD);
    assert!(!at_rest(&used, 29), "a success is in the window yet");
    assert!(at_rest(&used, 30));
    call(&mut used, 30 * SECOND, BAD);
    assert!(!at_rest(&used, 90), "a failure that a row of five could begin with");
    assert!(at_rest(&used, 91));
    calls(&mut used, 91 * SECOND, &[BAD; 5]);
    assert!(!at_rest(&used, 1000), "open");
    calls(&mut used, 1000 * SECOND, &[GOOD; 3]);
    assert!(!at_rest(&used, 1299), "a fresh one would open for a shorter time");
    assert!(at_rest(&used, 1300));
    used.force_closed(1300 * SECOND);
    assert!(!at_rest(&used, 9000));
}

#[test]
fn looking_changes_nothing() {
    let mut state = opened(simple(), 0);
    for now in [0, 29 * SECOND, 31 * SECOND, 1 << 60] {
        let before = format!("{state:?}");
        state.view(now, 0);
        state.is_at_rest(now);
        assert_eq!(format!("{state:?}"), before);
    }
    assert_eq!(state.view(31 * SECOND, 0).open_left, Some(0), "open until somebody asks");
    pass(&mut state, 31 * SECOND);
}

#[test]
fn b191_the_longest_duration_means_never() {
    let forever = Settings::builder()
        .consecutive_failures(3, Duration::MAX)
        .window(Duration::MAX)
        .open_for(Duration::MAX)
        .healthy_after(Duration::MAX)
        .hint_at_most(Duration::MAX)
        .probe_lease(Duration::MAX)
        .ramp(Duration::MAX)
        .abandoned_counts_after(Duration::MAX)
        .slow_call_rate(Duration::MAX, 0.5);
    let mut state = opened(forever, 0);
    let year = 365 * 24 * 3600 * SECOND;
    assert_eq!(refused(&mut state, year), None);
    state.probe_now();
    calls(&mut state, year, &[GOOD; 3]);
    assert_eq!(state.state(), BreakerState::Closed);
    pass(&mut state, 2 * year);
    assert!(refused(&mut state, 2 * year).is_some(), "a ramp that never ends stays at its first step");
}

#[test]
fn b190_time_that_steps_back_is_no_time() {
    let mut state = opened(simple(), 10 * SECOND);
    assert_eq!(refused(&mut state, 5 * SECOND), Some(35 * SECOND));
    pass(&mut state, 40 * SECOND);
    let back = pass(&mut state, 35 * SECOND);
    state.record(34 * SECOND, back, GOOD);
    state.reset(20 * SECOND);
    calls(&mut state, 10 * SECOND, &[GOOD, BAD, BAD]);
    assert_eq!(state.state(), BreakerState::Closed);
    call(&mut state, 5 * SECOND, BAD);
    assert_eq!(state.state(), BreakerState::Open);
}

#[test]
fn throttling_that_opens_is_told_by_the_settings() {
    let settings = Settings::builder().throttled(OnThrottled::Opens).build().unwrap();
    assert_eq!(settings.vote(&crate::Verdict::new(crate::Class::Throttled)), Vote::Opens);
}
