//! Simulated providers: the runs of the example, with figures that must hold.

#[path = "../../examples/burst.rs"]
#[allow(dead_code, reason = "an example has a `main`")]
mod burst;

use burst::{Scenario, run};

#[tokio::test(start_paused = true)]
async fn a_provider_that_refills_throttles_nobody_and_is_used_up() {
    for times in [17.0, 40.0] {
        let run = run(Scenario::Refill, times, true).await;
        assert!(run.throttled_share() < 0.001, "{run:?}");
        assert!(run.throughput >= 0.97, "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_with_a_sliding_window_never_throttles_a_strict_layer() {
    for times in [17.0, 40.0] {
        let run = run(Scenario::Sliding, times, true).await;
        assert_eq!(run.throttled, 0, "{run:?}");
        assert!(run.throughput >= 0.95, "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn half_the_limit_is_learned_within_a_minute() {
    for times in [17.0, 40.0] {
        let run = run(Scenario::Half, times, true).await;
        assert!(run.throttled_later() < 0.01, "{run:?}");
        assert!(run.throughput >= 0.95, "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_layer_most_attempts_are_throttled() {
    for scenario in [Scenario::Refill, Scenario::Sliding, Scenario::Half] {
        let run = run(scenario, 17.0, false).await;
        assert!(run.throttled_share() > 0.9, "{run:?}");
    }
}
