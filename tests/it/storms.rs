//! What retries add to an outage, and whether it ends: the figures of `examples/storm_of_retries.rs`, asserted.

#[path = "../../examples/storm_of_retries.rs"]
#[allow(dead_code, reason = "an example, of which `main` is not run here")]
mod storm;

use seawall::retry::RetryPolicy;
use storm::{amplification, recovery, virtual_time, without_budget};

#[test]
fn retries_add_at_most_the_ratio_of_the_budget() {
    let attempts = virtual_time(amplification(RetryPolicy::llm(), 1, 1000, 60));
    // 60 000 calls deposit 12 000 tokens; 10 were there before.
    assert!((1.19..=1.0 + 0.2 + 10.0 / 60_000.0).contains(&attempts), "{attempts}");
    let unbounded = virtual_time(amplification(without_budget().unwrap(), 1, 100, 10));
    assert!((unbounded - 3.0).abs() < f64::EPSILON, "{unbounded}");
}

#[test]
fn three_layers_of_budgets_multiply_to_no_more_than_their_product() {
    let attempts = virtual_time(amplification(RetryPolicy::llm(), 3, 500, 20));
    // Each layer's reserve of 10 is repeated by the layers below it.
    let reserves = 10.0 * (1.0 + 1.2 + 1.44) / 10_000.0;
    assert!((1.70..=1.2_f64.powi(3) + reserves).contains(&attempts), "{attempts}");
}

#[test]
fn the_recommended_stack_recovers_within_ten_seconds_where_the_usual_one_never_does() {
    let ours = virtual_time(storm::storm(storm::ours, 45));
    assert!(ours[2..9].iter().all(|served| *served > 0.98), "well before the freeze: {ours:?}");
    let seconds = recovery(&ours).expect("it recovers");
    assert!(seconds <= 10, "{seconds} s: {ours:?}");
    let usual = virtual_time(storm::storm(storm::usual, 40));
    assert_eq!(recovery(&usual), None, "{usual:?}");
    assert!(usual[32..].iter().all(|served| *served < 0.5), "not even long after: {usual:?}");
}

#[test]
fn with_the_breakers_defaults_it_recovers_when_the_breaker_looks_again() {
    let ours = virtual_time(storm::storm(storm::ours_by_default, 55));
    let seconds = recovery(&ours).expect("it recovers");
    // It opened in the freeze's second second, for 30 s and up to a tenth more or less.
    assert!((11..=26).contains(&seconds), "{seconds} s: {ours:?}");
    assert!(ours[50..].iter().all(|served| *served > 0.98), "{ours:?}");
}
