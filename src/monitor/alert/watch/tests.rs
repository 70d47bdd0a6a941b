use super::*;
use crate::money::Usd;
use crate::monitor::snapshot::{Figures, Latency, Target};
use crate::monitor::words::class_index;
use crate::monitor::{Breaker, Timing};
use crate::verdict::Class;

fn figures(outcomes: &[(Class, u64)]) -> Figures {
    let mut figures = Figures::default();
    for (class, count) in outcomes {
        figures.outcomes.0[class_index(*class)] = *count;
    }
    figures
}

fn at(seconds: u64, five: Figures) -> Snapshot {
    let mut snapshot = Snapshot { uptime: Duration::from_secs(seconds), ..Snapshot::default() };
    snapshot.calls.since_start = five.clone();
    snapshot.calls.hour = five.clone();
    snapshot.calls.five_minutes = five;
    snapshot
}

fn told(alerts: &[Alert]) -> Vec<String> {
    alerts.iter().map(ToString::to_string).collect()
}

fn good_and_bad(good: u64, bad: u64) -> Figures {
    figures(&[(Class::Success, good), (Class::Transient, bad)])
}

#[test]
fn a_low_success_rate_is_told_once_at_each_edge() {
    let mut alerts = Alerts::new(Rules::default());
    assert!(alerts.evaluate(&at(0, good_and_bad(1000, 4))).is_empty(), "99.6 %");
    let edge = alerts.evaluate(&at(10, good_and_bad(990, 10)));
    assert_eq!(told(&edge), ["warning: success_rate of calls is 0.99 (limit 0.995)"]);
    assert!(alerts.evaluate(&at(20, good_and_bad(990, 10))).is_empty(), "it is on already");
    let edge = alerts.evaluate(&at(30, good_and_bad(90, 10)));
    assert_eq!(told(&edge), ["critical: success_rate of calls is 0.9 (limit 0.95)"]);
    assert_eq!(alerts.firing().len(), 2);
    assert!(alerts.evaluate(&at(40, good_and_bad(1000, 0))).is_empty(), "not well for long enough");
    assert!(alerts.evaluate(&at(99, good_and_bad(1000, 0))).is_empty());
    let edge = alerts.evaluate(&at(100, good_and_bad(1000, 0)));
    assert_eq!(edge.iter().map(|alert| alert.on).collect::<Vec<_>>(), [false, false]);
    assert!(alerts.firing().is_empty());
}

#[test]
fn what_is_barely_within_the_limit_keeps_an_alert_on() {
    let mut alerts = Alerts::new(Rules::default().success_critical(None).hold(Duration::ZERO));
    assert_eq!(alerts.evaluate(&at(0, good_and_bad(990, 10))).len(), 1);
    assert!(alerts.evaluate(&at(10, good_and_bad(9_951, 49))).is_empty(), "99.51 % would not turn it on");
    assert_eq!(alerts.firing().len(), 1, "nor does it turn it off");
    assert_eq!(alerts.evaluate(&at(20, good_and_bad(9_960, 40))).len(), 1, "99.6 % does");
}

#[test]
fn few_samples_alert_nobody() {
    let mut alerts = Alerts::new(Rules::default());
    assert!(alerts.evaluate(&at(0, good_and_bad(0, 19))).is_empty());
    assert_eq!(alerts.evaluate(&at(1, good_and_bad(0, 20))).len(), 2);
}

#[test]
fn what_callers_do_is_no_failure() {
    let mut alerts = Alerts::new(Rules::default());
    let callers = figures(&[(Class::Success, 30), (Class::Invalid, 50), (Class::Abandoned, 50)]);
    assert!(alerts.evaluate(&at(0, callers)).is_empty());
}

#[test]
fn a_slow_99th_percentile_is_told_and_a_faster_one_ends_it() {
    let mut alerts = Alerts::new(Rules::default().hold(Duration::ZERO));
    let slow = |millis| {
        let mut figures = good_and_bad(100, 0);
        figures.to_head = Latency { count: 100, p99: Duration::from_millis(millis), ..Latency::default() };
        figures
    };
    assert!(alerts.evaluate(&at(0, slow(1200))).is_empty());
    assert_eq!(told(&alerts.evaluate(&at(1, slow(1201)))), ["warning: slow of calls is 1.201 (limit 1.2)"]);
    assert!(alerts.evaluate(&at(2, slow(1100))).is_empty(), "between the two");
    assert_eq!(told(&alerts.evaluate(&at(3, slow(1080)))), ["over: slow of calls (warning)"]);
    let mut other = Alerts::new(Rules::default().slow((Timing::End, Duration::from_secs(1))));
    assert!(other.evaluate(&at(0, slow(9000))).is_empty(), "it watches another time");
}

#[test]
fn five_fallbacks_and_four_trips_an_hour_are_too_many() {
    let mut alerts = Alerts::new(Rules::default());
    let with = |fallbacks, trips| Figures { fallbacks, trips, ..good_and_bad(100, 0) };
    assert!(alerts.evaluate(&at(0, with(4, 3))).is_empty());
    let edge = alerts.evaluate(&at(1, with(5, 4)));
    assert_eq!(
        told(&edge),
        ["warning: fallbacks of calls is 5 (limit 5)", "warning: trips of circuit breakers is 4 (limit 3)"]
    );
}

#[test]
fn a_call_that_costs_two_and_a_half_times_as_much_is_told() {
    let money = |figures: Figures, cents| {
        let mut figures = figures;
        figures.money.spent = Usd::cents(cents);
        figures
    };
    let snapshot = |cents| {
        let mut snapshot = at(600, money(good_and_bad(100, 0), cents));
        snapshot.calls.since_start = money(good_and_bad(1100, 0), 1000 + cents);
        snapshot
    };
    let mut alerts = Alerts::new(Rules::default());
    assert!(alerts.evaluate(&snapshot(250)).is_empty(), "150 % more is the limit");
    assert_eq!(told(&alerts.evaluate(&snapshot(300))), ["warning: cost_a_call of calls is 3 (limit 2.5)"]);
    let mut fixed = Alerts::new(Rules::default().cost_baseline(Usd::cents(3)));
    assert!(fixed.evaluate(&snapshot(300)).is_empty(), "that is usual here");
    let mut young = Alerts::new(Rules::default());
    assert!(young.evaluate(&at(10, money(good_and_bad(100, 0), 900))).is_empty(), "nothing to compare with");
}

#[test]
fn a_fallback_to_a_dearer_target_is_told() {
    let target = |model: &str, fallbacks, cents| {
        let mut target =
            Target { upstream: "up".into(), model: model.into(), series: crate::monitor::Series::default() };
        target.series.hour.fallbacks = fallbacks;
        target.series.hour.money.charged = 10;
        target.series.hour.money.spent = Usd::cents(cents);
        target
    };
    let mut snapshot = at(0, Figures::default());
    snapshot.targets = vec![target("first", 0, 10), target("fair", 3, 19), target("dear", 1, 50)];
    let mut alerts = Alerts::new(Rules::default());
    assert_eq!(told(&alerts.evaluate(&snapshot)), ["warning: dearer_target of up/dear is 5 (limit 2)"]);
}

#[test]
fn a_denied_credential_is_told_at_once_and_once() {
    let mut alerts = Alerts::new(Rules::default());
    let edge = alerts.denied(Duration::from_secs(1), "up", "m").unwrap();
    assert_eq!((edge.severity, &*edge.subject, edge.on), (Severity::Critical, "up/m", true));
    assert_eq!(alerts.denied(Duration::from_secs(2), "up", "m"), None);
    assert!(alerts.denied(Duration::from_secs(2), "other", "m").is_some(), "another one is another matter");
    let mut series = crate::monitor::Series::default();
    let snapshot = |seconds, series: &crate::monitor::Series| {
        let mut snapshot = at(seconds, Figures::default());
        snapshot.targets = vec![Target { upstream: "up".into(), model: "m".into(), series: series.clone() }];
        snapshot
    };
    series.minute = figures(&[(Class::Denied, 3)]);
    assert!(alerts.evaluate(&snapshot(3, &series)).is_empty());
    series.minute = Figures::default();
    assert!(alerts.evaluate(&snapshot(70, &series)).is_empty());
    let edge = alerts.evaluate(&snapshot(130, &series));
    assert_eq!(told(&edge), ["over: denied of up/m (critical)"]);
    assert_eq!(Alerts::new(Rules::none()).denied(Duration::ZERO, "up", "m"), None);
}

#[test]
fn an_open_breaker_puts_its_target_out_until_it_has_closed() {
    let mut alerts = Alerts::new(Rules::default());
    let moved = |alerts: &mut Alerts, seconds, to| alerts.moved(Duration::from_secs(seconds), "b", "up", to);
    assert!(moved(&mut alerts, 0, BreakerState::Open).is_some_and(|alert| alert.subject == "b of up"));
    assert_eq!(moved(&mut alerts, 30, BreakerState::HalfOpen), None);
    assert_eq!(moved(&mut alerts, 31, BreakerState::Open), None, "it is out already");
    assert_eq!(moved(&mut alerts, 90, BreakerState::Closed), None);
    let mut snapshot = at(120, Figures::default());
    let breaker = |state| Breaker { name: "b".into(), key: "up".into(), state, trips: 2 };
    snapshot.breakers = vec![breaker(BreakerState::Closed)];
    assert!(alerts.evaluate(&snapshot).is_empty(), "not well for a minute yet");
    snapshot.uptime = Duration::from_secs(150);
    assert_eq!(told(&alerts.evaluate(&snapshot)), ["over: target_out of b of up (critical)"]);
}

#[test]
fn each_mark_of_a_budget_is_told() {
    let alerts = Alerts::new(Rules::default());
    let severity = |percent| alerts.mark("team", percent, f64::from(percent)).unwrap().severity;
    assert_eq!((severity(80), severity(100)), (Severity::Warning, Severity::Critical));
    assert_eq!(Alerts::new(Rules::none()).mark("team", 100, 100.0), None);
}

#[test]
fn without_rules_nothing_is_told() {
    let mut alerts = Alerts::new(Rules::none());
    assert!(alerts.evaluate(&at(0, good_and_bad(0, 1000))).is_empty());
}
