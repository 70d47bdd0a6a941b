//! Days on which a stream goes wrong after its head.

use std::time::Duration;

use seawall::Class;
use seawall::fallback::Commit;

use super::world::*;
use crate::fallback::provider::Got;
use crate::provider::{Fault, How};

fn class(got: &Got) -> Class {
    got.outcome.as_ref().unwrap().verdict().unwrap().class()
}

fn whole() -> Setup {
    Setup { commit: Commit::End, ..Setup::default() }
}

#[tokio::test]
async fn a_first_token_that_is_late_is_not_waited_for() {
    let world = World::with(Setup { limit: SHORT, ..Setup::default() }).await;
    world.first.always(Fault::SlowFirstToken(LONG));
    let got = world.chat(true).await;
    assert_served(&got, "second");
    assert!(!got.body.contains("model-a"), "nothing of the first is seen");
    assert_eq!(world.asked(), [1, 1]);
    assert_eq!(world.first.ended(0).await.how, How::Disconnected);
    world.settle().await;
}

#[tokio::test]
async fn a_cut_answer_is_never_a_success() {
    let world = World::new().await;
    world.first.always(Fault::Cut { after: 40 });
    let got = world.chat(true).await;
    assert_eq!((got.status, got.by(), got.broken, tokens(&got)), (200, "first", true, 40));
    assert_eq!((class(&got), world.asked()), (Class::Transient, [1, 0]));
    // Not streamed, the same: the half that was there is content.
    let got = world.chat(false).await;
    assert_eq!((got.by(), got.broken, class(&got)), ("first", true, Class::Transient));
    world.settle().await;
}

#[tokio::test]
async fn a_cut_answer_that_was_held_comes_whole_from_the_second() {
    let world = World::with(whole()).await;
    world.first.always(Fault::Cut { after: 40 });
    for stream in [true, false] {
        let got = world.chat(stream).await;
        assert_served(&got, "second");
        assert!(!got.body.contains("model-a"), "nothing of the first is seen");
    }
    world.settle().await;
}

#[tokio::test]
async fn a_stall_in_the_middle_ends_in_an_error_or_at_the_second_target() {
    for commit in [Commit::FirstContent, Commit::End] {
        let world = World::with(Setup { limit: SHORT, commit, ..Setup::default() }).await;
        world.first.always(Fault::Stall { after: 20, wait: Some(LONG) });
        let got = world.chat(true).await;
        if commit == Commit::End {
            assert_served(&got, "second");
        } else {
            assert_eq!((got.by(), got.broken, tokens(&got)), ("first", true, 20));
            assert_eq!(class(&got), Class::Stalled);
        }
        assert_eq!(world.first.ended(0).await.how, How::Disconnected);
        world.settle().await;
    }
}

#[tokio::test]
async fn a_malformed_chunk_passes_as_it_is_and_harms_nothing() {
    for setup in [Setup::default(), whole()] {
        let world = World::with(setup).await;
        world.first.always(Fault::Malformed { after: 30 });
        let got = world.chat(true).await;
        assert_served(&got, "first");
        let bad = "data: {\"choices\":[{\"delta\":{\"cont\n\n";
        assert!(got.body.contains(bad), "byte for byte");
        assert_eq!(world.asked(), [1, 0]);
        world.settle().await.assert_equal();
    }
}

#[tokio::test]
async fn a_stream_without_done_ends_with_its_body_and_keeps_its_usage() {
    for setup in [Setup::default(), whole()] {
        let world = World::with(setup).await;
        world.first.always(Fault::NoDone);
        let got = world.chat(true).await;
        assert_served(&got, "first");
        assert!(!got.body.contains("[DONE]"));
        world.settle().await.assert_equal();
    }
}

#[tokio::test]
async fn an_error_event_before_content_moves_the_call_and_a_later_one_is_an_error() {
    let world = World::new().await;
    world.first.always(Fault::ErrorEvent { after: 0 });
    assert_served(&world.chat(true).await, "second");
    world.settle().await.assert_equal();
    let world = World::new().await;
    world.first.always(Fault::ErrorEvent { after: 7 });
    let got = world.chat(true).await;
    assert_eq!((got.by(), tokens(&got), class(&got)), ("first", 7, Class::Transient));
    world.settle().await;
}

#[tokio::test]
async fn a_caller_who_leaves_in_the_midst_frees_the_provider() {
    let world = World::new().await;
    world.first.always(Fault::Stall { after: 20, wait: None });
    let response = world.call(&chat(true)).await.unwrap();
    world.first.when(|log| log[0].sent == 20).await;
    drop(response);
    assert_eq!(world.first.ended(0).await.how, How::Disconnected);
    assert_eq!(world.asked(), [1, 0]);
    let bills = world.settle().await;
    assert!(bills.spent > 0);
}

#[tokio::test]
async fn a_healthy_day_costs_one_request_a_call() {
    for setup in [Setup::default(), whole(), Setup { limit: Duration::from_secs(5), ..Setup::default() }] {
        let world = World::with(setup).await;
        for stream in [true, false] {
            assert_served(&world.chat(stream).await, "first");
        }
        assert_eq!(world.asked(), [2, 0]);
        world.settle().await.assert_equal();
    }
}
