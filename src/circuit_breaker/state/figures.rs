//! Figures that theory gives, reproduced by simulation with fixed seeds: within three standard errors, or 10 % where
//! that is more.

use std::time::Duration;

use fastrand::Rng;

use super::tests::{BAD, GOOD, SECOND, simple, state};
use super::*;
use crate::circuit_breaker::Settings;
use crate::circuit_breaker::settings::SettingsBuilder;

fn call(state: &mut State, now: u64, fails: bool) -> Recorded {
    let (Admit::Pass(ticket), _) = state.admit(now, false) else { panic!("refused") };
    state.record(now, ticket, if fails { BAD } else { GOOD })
}

fn assert_near(value: f64, expected: f64, standard_error: f64, what: &str) {
    let tolerance = (3.0 * standard_error).max(expected * 0.1);
    assert!((value - expected).abs() <= tolerance, "{what}: {value}, expected {expected} ± {tolerance}");
}

/// The share of windows, just filled, in which a service that fails so often trips the breaker.
fn false_trips(calls: u32, threshold: f64, rate: f64, windows: u32) -> f64 {
    let mut rng = Rng::with_seed(1);
    let settings = Settings::builder()
        .without_consecutive_failures()
        .failure_rate(threshold)
        .count_window(calls)
        .minimum_calls(calls);
    let fresh = state(settings);
    let mut trips = 0;
    for _ in 0..windows {
        let mut state = fresh.clone();
        for _ in 0..calls {
            call(&mut state, 0, rng.f64() < rate);
        }
        trips += u32::from(state.state() == BreakerState::Open);
    }
    f64::from(trips) / f64::from(windows)
}

#[test]
fn false_trips_a_full_window_are_the_binomial_tail() {
    let table = [
        (10, 0.5, 0.1, 0.001_635),
        (10, 0.5, 0.2, 0.0328),
        (10, 0.5, 0.3, 0.1503),
        (20, 0.5, 0.2, 0.0026),
        (20, 0.5, 0.3, 0.0480),
        (100, 0.5, 0.4, 0.0271),
        (100, 0.1, 0.05, 0.0282),
        (100, 0.1, 0.08, 0.2780),
    ];
    for (calls, threshold, rate, expected) in table {
        let windows = 2_000_000 / calls;
        let error = (expected * (1.0 - expected) / f64::from(windows)).sqrt();
        let measured = false_trips(calls, threshold, rate, windows);
        assert_near(measured, expected, error, &format!("{threshold} of {calls} at {rate}"));
    }
}

#[test]
fn a_good_service_does_not_trip_the_default_rate() {
    assert!(false_trips(20, 0.5, 0.1, 100_000) < 0.000_1);
}

#[test]
fn a_row_of_five_comes_after_as_many_calls_as_theory_says() {
    for (rate, expected, rounds) in [(0.3, 586.5, 2_000), (0.5, 62.0, 10_000), (0.7, 16.5, 10_000)] {
        let mut rng = Rng::with_seed(2);
        let fresh = state(simple().consecutive_failures(5, Duration::MAX));
        let mut calls = 0_u32;
        for _ in 0..rounds {
            let mut state = fresh.clone();
            while state.state() == BreakerState::Closed {
                call(&mut state, 0, rng.f64() < rate);
                calls += 1;
            }
        }
        let mean = f64::from(calls) / f64::from(rounds);
        // The time to a row is nearly exponential: its deviation is its mean.
        assert_near(mean, expected, expected / f64::from(rounds).sqrt(), &format!("at {rate}"));
    }
}

/// How many calls a second reach an upstream that is down, over an hour of 50 calls a second.
fn forwarded(settings: SettingsBuilder, probe_time: u64) -> f64 {
    const HOUR: u64 = 3600 * SECOND;
    let mut state = state(settings);
    let mut out: VecDeque<(u64, Ticket)> = VecDeque::new();
    let mut forwarded = 0_u32;
    let mut now = 0;
    while now < HOUR {
        while out.front().is_some_and(|(end, _)| *end <= now) {
            let (end, ticket) = out.pop_front().unwrap();
            state.record(end, ticket, BAD);
        }
        if let (Admit::Pass(ticket), _) = state.admit(now, false) {
            if ticket.generation > 0 {
                forwarded += 1;
            }
            out.push_back((now + probe_time, ticket));
        }
        now += SECOND / 50;
    }
    f64::from(forwarded) / 3600.0
}

#[test]
fn in_an_outage_the_probes_of_each_open_time_get_through_and_no_more() {
    for (probes, open, probe_time) in [(1, 30, 1), (3, 30, 1), (3, 10, 5), (10, 5, 2)] {
        let settings = simple().probes(probes).open_for(Duration::from_secs(open)).open_growth(1);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let expected = f64::from(probes) / (open + probe_time) as f64;
        let measured = forwarded(settings, probe_time * SECOND);
        assert_near(measured, expected, 0.0, &format!("{probes} probes, {open} s, {probe_time} s"));
    }
}

#[test]
fn with_growth_an_hour_of_outage_costs_a_handful_of_probes() {
    let measured = forwarded(simple(), SECOND) * 3600.0;
    // 30, 60, 120 and 240 s, then 300 s each: four openings in 7.5 minutes, ten more in the rest.
    assert_near(measured, 3.0 * 14.0, 3.0, "probes in an hour");
}

thread_local! {
    static DICE: std::cell::RefCell<Rng> = const { std::cell::RefCell::new(Rng::with_seed(3)) };
}

/// The most first probes within a tenth of a second, of 1000 breakers that opened together, each called 4.3 times a
/// second at random.
fn herd(jitter: f64) -> f64 {
    let fresh = State::new(Arc::new(simple().jitter(jitter).build().unwrap()), || {
        DICE.with_borrow_mut(|dice| dice.u32(..))
    });
    let mut rng = Rng::with_seed(4);
    let rounds = 20;
    let mut sum = 0_u32;
    for _ in 0..rounds {
        let mut slots = std::collections::HashMap::new();
        for _ in 0..1000 {
            let mut state = fresh.clone();
            for _ in 0..3 {
                call(&mut state, 0, true);
            }
            let mut now = 0.0;
            let probe = loop {
                now -= (1.0 - rng.f64()).ln() / 4.3;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "under a minute")]
                let tick = (now * 1e9) as u64;
                if let (Admit::Pass(_), _) = state.admit(tick, false) {
                    break tick;
                }
            };
            *slots.entry(probe / (SECOND / 10)).or_insert(0_u32) += 1;
        }
        sum += slots.values().copied().max().unwrap();
    }
    f64::from(sum) / f64::from(rounds)
}

#[test]
fn jitter_breaks_up_the_herd() {
    assert_near(herd(0.0), 350.0, 0.0, "no jitter");
    assert_near(herd(0.1), 27.0, 1.0, "a tenth");
    assert_near(herd(0.5), 10.0, 0.7, "a half");
}
