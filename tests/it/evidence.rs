//! What `examples/storm.rs` shows, asserted: on its own files, where that takes a moment alone.
#![allow(dead_code, reason = "the example uses the rest")]

#[path = "../../examples/storm/provider.rs"]
mod provider;
#[path = "../../examples/storm/report.rs"]
mod report;
#[path = "../../examples/storm/run.rs"]
mod run;
#[path = "../../examples/storm/scenario.rs"]
mod scenario;
#[path = "../../examples/storm/setups.rs"]
mod setups;

use crate::provider as support;
use report::Figures;
use setups::SetUp;

fn figures(key: char, set_up: SetUp) -> Figures {
    let scenarios = scenario::all(false);
    let scenario = scenarios.iter().find(|scenario| scenario.key == key).unwrap();
    Figures::of(&run::simulated(scenario, set_up, 7).unwrap())
}

#[test]
fn on_a_day_when_one_attempt_in_four_fails_each_layer_is_worth_it() {
    let success = |set_up| figures('a', set_up).success;
    assert!(success(SetUp::Bare) < 78.0, "without help one call in four is lost");
    assert!(success(SetUp::Retry) > 99.2);
    assert!(success(SetUp::Breaker) > 99.8);
    assert!(success(SetUp::Queue) > 99.9);
    let all = figures('a', SetUp::All);
    assert!(all.success > 99.9 && all.throttled == 0, "{} %", all.success);
}

#[test]
fn a_burst_is_served_whole_and_without_one_429() {
    let retry = figures('c', SetUp::Retry);
    assert!(retry.success < 50.0 && retry.throttled > 500, "retries alone do not make room");
    let all = figures('c', SetUp::All);
    assert_eq!((all.calls, all.throttled), (600, 0));
    assert!(all.success > 99.9, "{} %", all.success);
}

#[test]
fn a_second_provider_takes_over_from_one_that_flaps() {
    assert!(figures('d', SetUp::Retry).success < 50.0);
    let all = figures('d', SetUp::All);
    assert!(all.success > 99.9 && all.attempts < 1.15, "{} %, {}", all.success, all.attempts);
}
