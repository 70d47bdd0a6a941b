//! What happens while calls are under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{join, join_all};

use tracing_subscriber::fmt::format::FmtSpan;

use super::world::*;
use crate::provider::{Fault, How, Pace};

fn slowly() -> Pace {
    Pace { token: Duration::from_millis(2), ..Pace::default() }
}

#[tokio::test]
async fn a_reload_under_load_drops_nothing() {
    let world = World::new().await;
    world.first.set_pace(slowly());
    world.second.set_pace(slowly());
    let over = AtomicBool::new(false);
    let callers = async {
        let caller = async |caller: usize| {
            for call in 0..6 {
                let got = world.chat(!(caller + call).is_multiple_of(3)).await;
                assert_served(&got, got.by());
            }
        };
        join_all((0..16).map(caller)).await;
        over.store(true, Ordering::Relaxed);
    };
    let operator = async {
        let mut reloads = 0;
        while !over.load(Ordering::Relaxed) {
            reloads += 1;
            world.rewrite(|text| match reloads % 3 {
                0 => text,
                1 => text.replace(
                    r#"{ upstream = "first", model = "model-a" }, { upstream = "second", model = "model-b" }"#,
                    r#"{ upstream = "second", model = "model-b" }, { upstream = "first", model = "model-a" }"#,
                ),
                _ => text.replace("max_concurrent = 200", "max_concurrent = 100").replace("5ms", "6ms"),
            });
            world.gateway.reload().unwrap();
            // One call more has begun on it.
            assert_eq!(world.chat(true).await.status, 200);
        }
        reloads
    };
    let ((), reloads) = join(callers, operator).await;
    assert!(reloads > 3, "{reloads}");
    assert!(world.asked().iter().all(|asked| *asked > 0), "{:?}", world.asked());
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn a_file_that_is_wrong_changes_nothing_and_its_line_is_told() {
    let world = World::new().await;
    for (from, to, problem) in [
        ("base = \"5ms\"", "bse = \"5ms\"", "retry.bse: is not a setting"),
        ("base = \"5ms\"", "base = \"5 parsecs\"", "retry.base"),
        ("base = \"5ms\"", "base = \"5ms", ""),
        ("upstream = \"second\"", "upstream = \"third\"", "is not defined"),
    ] {
        world.rewrite(|text| text.replace(from, to));
        let line = std::fs::read_to_string(world.folder.file()).unwrap();
        let line = line.lines().position(|line| line.contains(to)).unwrap() + 1;
        let error = world.gateway.reload().unwrap_err().to_string();
        assert!(error.contains("gateway.toml: ") && error.contains(problem), "{error}");
        assert!(error.contains(&format!("line {line}")), "line {line}: {error}");
        assert!(!error.contains("secret-of-"), "{error}");
        assert_served(&world.chat(false).await, "first");
    }
    // Other budgets cannot follow what is spent.
    world.rewrite(|text| text.replace("window = \"total\"", "window = \"day\""));
    let error = world.gateway.reload().unwrap_err().to_string();
    assert!(error.contains("budgets"), "{error}");
    std::fs::remove_file(world.folder.file()).unwrap();
    assert!(world.gateway.reload().unwrap_err().to_string().contains("gateway.toml: "));
    assert_served(&world.chat(true).await, "first");
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn a_raised_budget_keeps_what_was_spent() {
    let world =
        World::with(Setup { budget: "limit = \"0.002\"\nwindow = \"total\"", ..Setup::default() }).await;
    while world.chat(false).await.status == 200 {}
    let (spent, _) = world.settle().await;
    world.rewrite(|text| text.replace("limit = \"0.002\"", "limit = \"0.004\""));
    world.gateway.reload().unwrap();
    assert_served(&world.chat(false).await, "first");
    assert!(world.settle().await.0 > spent);
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn a_call_ends_on_the_configuration_that_it_began_with() {
    let world = World::new().await;
    world.first.set_pace(slowly());
    let mut response = world.send(post("/v1/chat/completions", chat(true).to_string())).await;
    next(&mut response).await;
    // The upstream is gone from the configuration.
    world.rewrite(|text| {
        let (_, rest) = text.split_once("[upstreams.second]").unwrap();
        let routed = "{ upstream = \"first\", model = \"model-a\" }, ";
        format!("[upstreams.second]{}", rest.replace(routed, ""))
    });
    world.gateway.reload().unwrap();
    assert_served(&world.chat(true).await, "second");
    let got = read(response).await;
    assert!(!got.broken && got.body.ends_with("data: [DONE]\n\n"), "{}", got.body);
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn a_graceful_end_lets_a_stream_come_to_its_end() {
    let mut world = World::new().await;
    world.first.set_pace(slowly());
    let mut response = world.send(post("/v1/chat/completions", chat(true).to_string())).await;
    next(&mut response).await;
    world.stop();
    let gateway = world.gateway.clone();
    until("it drains", || gateway.is_draining()).await;
    // Nobody new gets in.
    assert!(tokio::net::TcpStream::connect(world.address).await.is_err());
    let got = read(response).await;
    assert!(!got.broken && got.body.ends_with("data: [DONE]\n\n"), "{}", got.body);
    assert!(world.stopped().await, "all ended in time");
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn a_graceful_end_does_not_wait_for_ever() {
    let mut world = World::with(Setup { drain: Duration::from_millis(20), ..Setup::default() }).await;
    world.first.always(Fault::Stall { after: 20, wait: None });
    let mut response = world.send(post("/v1/chat/completions", chat(true).to_string())).await;
    next(&mut response).await;
    world.stop();
    assert!(!world.stopped().await, "one did not end");
}

/// What is written through it, by all its clones.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn every_span_stands_in_that_of_its_request_with_its_id() {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .finish();
    // Not the only one: a call site that another test comes to while there is but one subscriber asks that thread's own,
    // which is none, and then is silent for all.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    // The gateway's tasks run on this thread.
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::new().await;
    let mut request = post("/v1/chat/completions", chat(false).to_string());
    request.headers_mut().insert("x-request-id", "the-caller-s-own".parse().unwrap());
    assert_eq!(world.ask(request).await.status, 200);
    world.settle_to_the_bill().await;
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let inside = "request{request_id=\"the-caller-s-own\"}:gen_ai.call{";
    assert!(text.lines().any(|line| line.contains(inside) && line.contains(":gen_ai.attempt{")), "{text}");
    assert!(!text.contains("secret-of-") && !text.contains("Say something"), "{text}");
}

#[tokio::test]
async fn the_first_token_is_there_while_the_second_is_not() {
    let world = World::new().await;
    world.first.always(Fault::Stall { after: 1, wait: None });
    let mut response = world.send(post("/v1/chat/completions", chat(true).to_string())).await;
    let mut seen = String::new();
    while !seen.contains("w0 ") {
        seen += std::str::from_utf8(&next(&mut response).await).unwrap();
    }
    assert!(!seen.contains("w1 "));
    drop(response);
    assert_eq!(world.first.ended(0).await.how, How::Disconnected);
}
