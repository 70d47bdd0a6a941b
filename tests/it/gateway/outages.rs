//! Sixteen bad days of a provider, with a healthy second one, as a caller of the gateway sees them. At the level of the
//! stack they are in `crate::outages`.

use std::time::Duration;

use seawall::monitor::BreakerState;

use super::world::*;
use crate::provider::{Fault, How};

/// What the caller is to see.
enum See {
    /// A whole answer of this provider.
    Whole(&'static str),
    /// So many tokens of this provider's answer, and a break.
    Half(&'static str, usize),
    /// An error with this status and code.
    Error(u16, &'static str),
}
use See::{Error, Half, Whole};

struct Day {
    name: &'static str,
    /// What the first does, and whether for ever.
    fault: (Fault, bool),
    second: Fault,
    setup: Setup,
    see: See,
    asked: [usize; 2],
}

fn day(name: &'static str, fault: Fault, for_ever: bool, see: See, asked: [usize; 2]) -> Day {
    Day { name, fault: (fault, for_ever), second: Fault::None, setup: Setup::default(), see, asked }
}

impl Day {
    fn limit(mut self) -> Self {
        self.setup.limit = SHORT;
        self
    }

    fn whole(mut self) -> Self {
        self.setup.commit = "end";
        self
    }

    async fn live(self, stream: bool) {
        let name = self.name;
        let world = World::with(self.setup).await;
        match self.fault {
            (fault, true) => world.first.always(fault),
            (fault, false) => world.first.script([fault]),
        }
        world.second.always(self.second);
        let got = world.chat(stream).await;
        match self.see {
            Whole(by) => assert_served(&got, by),
            Half(by, tokens) => {
                assert_eq!(
                    (got.status, got.by(), got.broken, got.tokens()),
                    (200, by, true, tokens),
                    "{name}"
                );
            }
            Error(status, code) => {
                let error = &got.json()["error"];
                assert_eq!((got.status, error["code"].as_str().unwrap_or("-")), (status, code), "{name}");
            }
        }
        assert_eq!(world.asked(), self.asked, "{name}");
        world.settle().await;
    }
}

/// A few days at once: each has its own gateway.
async fn live(days: impl IntoIterator<Item = Day>) {
    for day in days {
        day.live(true).await;
    }
}

#[tokio::test]
async fn days_of_limits() {
    let (soon, late) = (Duration::from_millis(120), Duration::from_secs(3_600));
    let limited = || Fault::status(429);
    live([
        day("a short limit is waited out", limited().retry_after(soon), false, Whole("first"), [2, 0]),
        day("a limit without end moves the call", limited(), true, Whole("second"), [3, 1]),
        day("a long one stops the asking", limited().retry_after(late), true, Whole("second"), [1, 1]),
    ])
    .await;
}

#[tokio::test]
async fn days_of_failures_before_the_head() {
    live([
        day("one failure is repeated", Fault::status(500), false, Whole("first"), [2, 0]),
        day("an outage moves the call", Fault::status(503), true, Whole("second"), [3, 1]),
        day("one reset is repeated", Fault::Reset, false, Whole("first"), [2, 0]),
        day("reset after reset moves the call", Fault::Reset, true, Whole("second"), [3, 1]),
        day("silence is left in time", Fault::Hang, true, Whole("second"), [1, 1]).limit(),
        day("an unknown model is another's", Fault::ModelNotFound, true, Whole("second"), [1, 1]),
        day("too long a context is another's", Fault::ContextLength, true, Whole("second"), [1, 1]),
    ])
    .await;
    let policy = Error(400, "content_policy_violation");
    day("what a policy stops is told", Fault::ContentPolicy, true, policy, [1, 0]).live(false).await;
    let mut refuses = day("the second refuses", Fault::status(503), true, Error(400, "no_prefill"), [3, 1]);
    refuses.second = Fault::status(400).code("no_prefill");
    refuses.live(true).await;
}

#[tokio::test]
async fn a_day_on_which_all_are_silent_ends_in_time() {
    let mut all = day("all hang", Fault::Hang, true, Error(504, "timeout_total"), [1, 0]);
    (all.second, all.setup.total) = (Fault::Hang, SHORT);
    all.live(true).await;
}

#[tokio::test]
async fn days_of_broken_streams() {
    let (slow, cut) = (Fault::SlowFirstToken(LONG), Fault::Cut { after: 40 });
    let stall = Fault::Stall { after: 20, wait: None };
    live([
        day("a late first token is not waited for", slow, true, Whole("second"), [1, 1]).limit(),
        day("a cut answer is no success", cut.clone(), true, Half("first", 40), [1, 0]),
        day("a cut answer that was held", cut, true, Whole("second"), [1, 1]).whole(),
        day("a stall ends in an error", stall.clone(), true, Half("first", 20), [1, 0]).limit(),
        day("a stall that was held", stall, true, Whole("second"), [1, 1]).limit().whole(),
        day("a malformed chunk passes", Fault::Malformed { after: 30 }, true, Whole("first"), [1, 0]),
        day("no terminal event", Fault::NoDone, true, Whole("first"), [1, 0]),
    ])
    .await;
    let world = World::new().await;
    world.first.always(Fault::ErrorEvent { after: 7 });
    let got = world.chat(true).await;
    assert_eq!((got.status, got.by(), got.tokens()), (200, "first", 7));
    assert!(got.body.contains("\"error\""), "{}", got.body);
    world.first.always(Fault::ErrorEvent { after: 0 });
    assert_served(&world.chat(true).await, "second");
    world.settle().await;
}

#[tokio::test]
async fn a_provider_that_flaps_is_left_alone_and_back_after_it_recovers() {
    let world = World::with(Setup { open_for: SHORT, ..Setup::default() }).await;
    world.first.kill().await;
    while world.breaker("first") == BreakerState::Closed {
        assert_served(&world.chat(true).await, "second");
    }
    assert!(world.text("/stats").await.contains("\"breaker\":\"Open\""));
    world.first.revive().await.unwrap();
    while world.breaker("first") != BreakerState::Closed {
        let got = world.chat(true).await;
        assert_served(&got, got.by());
    }
    assert_served(&world.chat(false).await, "first");
    world.settle().await;
}

#[tokio::test]
async fn a_caller_who_leaves_in_the_midst_frees_the_provider() {
    let world = World::new().await;
    world.first.always(Fault::Stall { after: 20, wait: None });
    let mut response = world.send(post("/v1/chat/completions", chat(true).to_string())).await;
    world.first.when(|log| log[0].sent == 20).await;
    assert!(!next(&mut response).await.is_empty());
    drop(response);
    assert_eq!(world.first.ended(0).await.how, How::Disconnected);
    assert_eq!(world.asked(), [1, 0]);
    assert!(world.settle().await.0 > 0);
}

#[tokio::test]
async fn a_healthy_day_costs_one_request_a_call_and_what_the_bill_says() {
    for commit in ["head", "first_content", "end"] {
        let world = World::with(Setup { commit, ..Setup::default() }).await;
        for stream in [true, false] {
            assert_served(&world.chat(stream).await, "first");
        }
        assert_eq!(world.asked(), [2, 0]);
        world.settle_to_the_bill().await;
    }
}
