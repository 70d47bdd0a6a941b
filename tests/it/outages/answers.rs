//! Days on which the answer as a whole goes wrong.

use std::time::Duration;

use seawall::monitor::BreakerState;
use seawall::{Phase, RefusalKind};
use serde_json::json;

use super::world::*;
use crate::provider::{Fault, How};

const SECOND: Duration = Duration::from_secs(1);

/// What was told of the targets before the one that served.
fn told(got: &crate::fallback::provider::Got) -> String {
    got.served.as_ref().unwrap().attempts().to_string()
}

#[tokio::test]
async fn a_short_limit_is_waited_out_at_the_same_target() {
    let world = World::new().await;
    world.first.script([Fault::status(429).retry_after(2 * SECOND)]);
    assert_served(&world.chat(true).await, "first");
    assert_eq!(world.asked(), [2, 0]);
    let seen = world.first.seen();
    assert!(seen[1].at - seen[0].at >= 2 * SECOND, "not before the provider said");
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn a_limit_for_ever_moves_all_calls_and_a_long_one_stops_the_asking() {
    // Without a hint each call tries again for a while.
    let world = World::new().await;
    world.first.always(Fault::status(429));
    for (call, stream) in [(1, true), (2, false)] {
        assert_served(&world.chat(stream).await, "second");
        assert_eq!(world.asked(), [3 * call, call]);
    }
    assert_eq!(world.breaker("first"), BreakerState::Closed, "a limit is no outage");
    world.settle().await.assert_equal();
    // With a long one the first call is the last that asks.
    let world = World::new().await;
    world.first.always(Fault::status(429).retry_after(3_600 * SECOND));
    for call in 1..=5 {
        assert_served(&world.chat(call % 2 == 0).await, "second");
        assert_eq!(world.asked(), [1, call]);
    }
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn one_failure_is_repeated_and_nobody_else_asked() {
    for stream in [true, false] {
        let world = World::new().await;
        world.first.script([Fault::status(500)]);
        assert_served(&world.chat(stream).await, "first");
        assert_eq!(world.asked(), [2, 0]);
        let seen = world.first.seen();
        assert_eq!((seen[1].attempt, &seen[1].body), (2, &seen[0].body), "the same bytes");
        world.settle().await.assert_equal();
    }
}

#[tokio::test]
async fn an_outage_moves_all_calls_and_after_five_failures_nobody_asks() {
    let world = World::new().await;
    world.first.always(Fault::status(503));
    let mut asked = Vec::new();
    for call in 1..=5 {
        let got = world.chat(call % 2 == 0).await;
        assert_served(&got, "second");
        asked.push(world.asked());
    }
    assert_eq!(asked, [[3, 1], [5, 2], [5, 3], [5, 4], [5, 5]]);
    assert_eq!(world.breaker("first"), BreakerState::Open);
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn a_reset_before_the_head_is_repeated_and_one_after_the_other_moves_the_call() {
    let world = World::new().await;
    world.first.script([Fault::Reset]);
    assert_served(&world.chat(true).await, "first");
    assert_eq!(world.asked(), [2, 0]);
    world.first.always(Fault::Reset);
    assert_served(&world.chat(false).await, "second");
    assert_eq!(world.asked(), [5, 1]);
    world.settle().await;
}

#[tokio::test]
async fn a_silent_target_is_left_in_time_and_not_asked_twice() {
    let world = World::with(Setup { limit: SHORT, ..Setup::default() }).await;
    world.first.always(Fault::Hang);
    let got = world.chat(true).await;
    assert_served(&got, "second");
    assert_eq!((world.asked(), told(&got).as_str()), ([1, 1], "first: Stalled"));
    assert_eq!(world.first.ended(0).await.how, How::Disconnected, "the silent call is gone");
    world.settle().await;
}

#[tokio::test]
async fn where_all_are_silent_the_total_bounds_the_call() {
    let over = Some(RefusalKind::TimedOut(Phase::Total));
    for (limit, total, asked, told) in
        [(LONG, SHORT, 0, ""), (SHORT, SHORT + SHORT / 2, 1, "first: Stalled, second: Stalled")]
    {
        let world = World::with(Setup { total, limit, ..Setup::default() }).await;
        world.first.always(Fault::Hang);
        world.second.always(Fault::Hang);
        let error = world.ask(&chat(true)).await.err().unwrap();
        assert_eq!(refused(&error), (over, told.to_owned()), "{error}");
        assert_eq!(world.asked(), [1, asked]);
        for (provider, asked) in [(&world.first, 1), (&world.second, asked)] {
            for number in 0..asked {
                assert_eq!(provider.ended(number).await.how, How::Disconnected);
            }
        }
        world.settle().await;
    }
}

#[tokio::test]
async fn too_long_a_context_is_told_once_and_served_by_the_larger_one() {
    let world = World::with(Setup { context: Some(8_000), ..Setup::default() }).await;
    world.first.always(Fault::ContextLength);
    for (call, stream) in [(1, true), (2, false)] {
        let got = world.chat(stream).await;
        assert_served(&got, "second");
        assert_eq!((world.asked(), told(&got).as_str()), ([call, call], "first: Unfit (400)"));
    }
    // What is known to be too long is not even asked.
    let mut long = chat(true);
    long["messages"][0]["content"] = "word ".repeat(20_000).into();
    let got = world.ask(&long).await.unwrap();
    assert_served(&got, "second");
    assert_eq!((world.asked(), told(&got).as_str()), ([2, 3], "first: passed over (Context)"));
    assert_eq!(world.breaker("first"), BreakerState::Closed);
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn what_a_policy_stops_is_asked_once_and_its_reason_passed_on() {
    let world = World::new().await;
    world.first.always(Fault::ContentPolicy);
    for call in 1..=2 {
        let got = world.chat(call == 1).await;
        assert_eq!((got.status, world.asked()), (400, [call, 0]));
        let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
        assert_eq!(body["error"]["code"], "content_policy_violation");
        assert_eq!(got.headers["x-request-id"], format!("req_first_{}", call - 1));
    }
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn a_second_target_that_refuses_hides_nothing_of_the_first_failure() {
    let prefilled = Fault::status(400).message("This model does not support assistant message prefill.");
    // An answer that was begun is not continued elsewhere: the caller sees that it was cut.
    let world = World::new().await;
    world.first.always(Fault::Cut { after: 40 });
    world.second.always(prefilled.clone());
    let got = world.chat(true).await;
    assert_eq!((got.by(), got.broken, tokens(&got), world.asked()), ("first", true, 40, [1, 0]));
    world.settle().await;
    // Where it was not begun, the second gets what the caller asked, and its no comes with the first one's failure.
    let world = World::new().await;
    world.first.always(Fault::status(503));
    world.second.always(prefilled);
    let got = world.chat(true).await;
    assert_eq!((got.status, world.asked()), (400, [3, 1]));
    assert_eq!(got.attempts.unwrap().to_string(), "first: Transient (503), second: Invalid (400)");
    let sent: serde_json::Value = serde_json::from_slice(&world.second.seen()[0].body).unwrap();
    assert_eq!(sent["messages"], json!([{"role": "user", "content": "Say something."}]));
    world.settle().await.assert_equal();
}

#[tokio::test]
async fn a_flapping_target_is_left_alone_and_back_soon_after_it_recovers() {
    let world = World::with(Setup { open_for: SHORT, ..Setup::default() }).await;
    for outage in 1..=2 {
        world.first.kill().await;
        let asked = world.first.requests();
        while world.breaker("first") == BreakerState::Closed {
            assert_served(&world.chat(true).await, "second");
        }
        assert_eq!(world.first.requests(), asked, "the dead saw nothing");
        world.first.revive().await.unwrap();
        // The open time, which grows with each outage, is all that it stays away.
        while world.breaker("first") == BreakerState::Open {
            let got = world.chat(outage == 1).await;
            assert_served(&got, got.by());
        }
        // Three probes close it, and each serves a caller.
        while world.breaker("first") != BreakerState::Closed {
            assert_served(&world.chat(false).await, "first");
        }
        assert_served(&world.chat(true).await, "first");
        assert_eq!(world.first.requests() - asked, 4);
    }
    world.settle().await;
}

#[tokio::test]
async fn the_answer_names_who_served_it_and_every_bill_is_in_the_account() {
    for stream in [true, false] {
        let world = World::new().await;
        world.first.script([Fault::status(500), Fault::status(502), Fault::status(503)]);
        let got = world.chat(stream).await;
        assert_served(&got, "second");
        assert_eq!(told(&got), "first: Transient (503)");
        assert_eq!(got.headers["x-targets-asked"], "2");
        let served = got.served.unwrap();
        assert_eq!(served.target().model().unwrap().as_str(), "model-b");
        let usage = got.outcome.unwrap().usage();
        assert_eq!((usage.input, usage.output), (Some(5), Some(60)));
        let bills = world.settle().await;
        bills.assert_equal();
        assert_eq!(bills.billed, 5 * 2_000 + 60 * 10_000, "what failed is not to be paid");
    }
}
