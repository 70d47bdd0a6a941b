//! A simulated LLM provider as a server, to try a client or a gateway on, offline: it speaks as OpenAI and Anthropic do, calls
//! the tools and fills in the schemas that a request brings, and does what a bad day brings when it is told to.
//!
//! ```sh
//! cargo run --example simulated_provider -- --listen 127.0.0.1:8090
//! curl -N http://127.0.0.1:8090/v1/chat/completions -H 'x-fault: cut:3' -d '{"model":"m","stream":true,"messages":[]}'
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use seawall::BoxError;
use serde_json::json;
use support::{Pace, Provider, Seen};

const HELP: &str = "\
A simulated LLM provider: OpenAI's chat, completions, responses, embeddings and models, and Anthropic's messages.

Usage: simulated_provider [OPTIONS]

      --listen ADDR   Where to listen (default 127.0.0.1:0, a free port).
      --tokens N      How long its answers are (default 12).
      --pace MILLIS   From one token to the next (default 20).
      --key KEY       The key that it asks for (default none).
      --for SECONDS   End after so long.
  -h, --help          This text.

It prints its URL, then for each request that is over a line of JSON. A request says what is to happen to it, in its header
`x-fault` or by a model behind `fault:`, such as `fault:429:2s`:

  503, 429:2s         An error response; one that says when to come back.
  reset, hang         The connection is reset; no head, ever.
  slow-head:2s, slow-first-token:2s
  cut:3, stall:3      After so many tokens the connection ends; nothing more comes.
  malformed:3, error-event:3
                      After so many tokens comes an event that is no JSON; one that tells of an error.
  no-done, no-usage   A stream without its last event; an answer without its usage.
  model-not-found, context-length, content-policy
";

struct Args {
    listen: SocketAddr,
    tokens: u64,
    pace: Duration,
    key: Option<String>,
    ends_after: Option<Duration>,
}

/// `None` where the help is asked for.
fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Args>, BoxError> {
    let mut args = Args {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tokens: 12,
        pace: Duration::from_millis(20),
        key: None,
        ends_after: None,
    };
    while let Some(name) = words.next() {
        if name == "--help" || name == "-h" {
            return Ok(None);
        }
        let value = words.next().ok_or_else(|| format!("{name} is no option, or needs a value"))?;
        let wrong = |error: &dyn std::fmt::Display| format!("{name}: `{value}`: {error}");
        match name.as_str() {
            "--listen" => args.listen = value.parse().map_err(|error| wrong(&error))?,
            "--tokens" => args.tokens = value.parse().map_err(|error| wrong(&error))?,
            "--pace" => args.pace = Duration::from_millis(value.parse().map_err(|error| wrong(&error))?),
            "--for" => {
                let seconds = value.trim_end_matches('s').parse().map_err(|error| wrong(&error))?;
                args.ends_after = Some(Duration::from_secs(seconds));
            }
            "--key" => args.key = Some(value),
            _ => return Err(format!("`{name}` is no option").into()),
        }
    }
    Ok(Some(args))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("simulated_provider: {problem}; see --help");
            return ExitCode::from(2);
        }
    };
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulated_provider: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    let pace = Pace { token: args.pace, ..Pace::default() };
    let builder = Provider::builder("simulated").at(args.listen).tokens(args.tokens).pace(pace);
    let builder = builder.faults_by_request().log(1_024);
    let provider = match &args.key {
        Some(key) => builder.key(key).start().await?,
        None => builder.start().await?,
    };
    println!("url {}", provider.url());
    let trial = async {
        match args.ends_after {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = tell(&provider) => {}
        () = trial => println!("{} requests in all", provider.requests()),
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    Ok(())
}

/// Tells of each request when it is over, for ever.
async fn tell(provider: &Provider) {
    let mut told = BTreeSet::new();
    loop {
        let mut over = Vec::new();
        provider
            .when(|log| {
                let news = log.iter().filter(|seen| seen.ended.is_some() && !told.contains(&seen.number));
                over.extend(news.map(|seen| (seen.number, line(seen))));
                // What the log has forgotten is not asked for again.
                let first = log.first().map_or(0, |seen| seen.number);
                told = told.split_off(&first);
                !over.is_empty()
            })
            .await;
        for (number, line) in over {
            told.insert(number);
            println!("{line}");
        }
    }
}

fn line(seen: &Seen) -> String {
    let ended = seen.ended.map(|ended| format!("{:?}", ended.how).to_lowercase());
    json!({
        "number": seen.number, "path": seen.path, "model": seen.model, "stream": seen.stream, "status": seen.status,
        "tokens": seen.sent, "ended": ended
    })
    .to_string()
}
