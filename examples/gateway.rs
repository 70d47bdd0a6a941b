//! An OpenAI-compatible gateway over the whole stack: routes, retries, limits, budgets, figures and a live page.
//!
//! Without `--config` it starts three simulated providers and a few simulated callers in the same process, offline, so
//! that there is life at once; with `--config FILE` it is a real gateway.
//!
//! ```sh
//! cargo run --release --example gateway
//! cargo run --release --example gateway -- --help
//! ```
//!
//! In front of it stands axum, behind it a pooled hyper client with TLS. Endpoints: `/v1/chat/completions`,
//! `/v1/completions`, `/v1/embeddings`, `/v1/responses` and `/v1/messages` by their model, `/v1/models` from the routes, all
//! other `/v1/` paths to the default route's first target; `/healthz`, `/readyz`; and for this machine alone the page at `/`,
//! `/stats` in JSON and `/metrics` for Prometheus.
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

#[path = "gateway/args.rs"]
mod args;
#[path = "gateway/errors.rs"]
mod errors;
#[path = "gateway/paced.rs"]
mod paced;
#[path = "gateway/proxy.rs"]
mod proxy;
#[path = "gateway/server.rs"]
mod server;
#[path = "gateway/simulation.rs"]
mod simulation;
#[path = "gateway/state.rs"]
mod state;
#[path = "gateway/stats.rs"]
mod stats;
mod support;
#[path = "gateway/upstream.rs"]
mod upstream;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use args::Args;
use seawall::BoxError;
use simulation::Simulation;
use state::{Gateway, Options};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::fmt::format::FmtSpan;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) if args.help => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(args) => args,
        Err(problem) => {
            eprintln!("gateway: {problem}; see --help");
            return ExitCode::from(2);
        }
    };
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    if args.spans {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(false)
            .init();
    }
    let mut simulation = None;
    let config = match &args.config {
        Some(file) => state::read(file)?,
        None => simulation.insert(Simulation::start().await?).config()?,
    };
    let address = args.listen.unwrap_or_else(|| config.listen());
    server::allow(&config, address)?;
    if args.check {
        println!("the configuration is sound");
        return Ok(());
    }
    let listener = server::listen(address, args.config.is_none() && args.listen.is_none()).await?;
    let address = listener.local_addr()?;
    let options = Options {
        file: args.config.clone(),
        open: args.open,
        quiet: args.quiet || simulation.is_some(),
        ..Options::default()
    };
    let gateway = Gateway::new(config, options)?;
    greet(&gateway, address, simulation.is_some());
    tokio::spawn(gateway.current().stack.monitor().clone().run(Duration::from_secs(5)));
    tokio::spawn(reload(gateway.clone()));
    if let Some(simulation) = simulation {
        tokio::spawn(async move { simulation.weather().await });
        tokio::spawn(simulation::callers(address));
    }
    let done = server::serve(listener, gateway.clone(), args.drain, stop(args.ends_after)).await;
    println!("\n{}", gateway.current().stack.monitor().snapshot());
    if !done {
        println!("some calls did not end in time and were cut");
    }
    Ok(())
}

fn greet(gateway: &Gateway, address: SocketAddr, simulated: bool) {
    let current = gateway.current();
    let model = current.config.models().find(|model| !model.contains('*')).unwrap_or("MODEL");
    let key = if current.config.clients().is_empty() { "" } else { " -H 'Authorization: Bearer YOUR_KEY'" };
    println!("page     http://{address}/");
    println!("stats    http://{address}/stats   metrics http://{address}/metrics");
    println!("clients  OPENAI_BASE_URL=http://{address}/v1");
    println!(
        "try      curl -sN http://{address}/v1/chat/completions{key} -H 'Content-Type: application/json' \\"
    );
    println!(
        r#"           -d '{{"model":"{model}","stream":true,"messages":[{{"role":"user","content":"Hello"}}]}}'"#
    );
    if simulated {
        println!(
            "Three simulated providers and six callers are at work; Ctrl-C ends it. Yours: --config FILE, see --help."
        );
    }
}

/// Reads the configuration again at each SIGHUP.
async fn reload(gateway: Gateway) {
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return };
    while hangups.recv().await.is_some() {
        match gateway.reload() {
            Ok(()) => println!("the configuration was read again"),
            Err(error) => eprintln!("the old configuration stays: {error}"),
        }
    }
}

/// Ctrl-C, SIGTERM, or the end of a trial.
async fn stop(ends_after: Option<Duration>) {
    let trial = async {
        match ends_after {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
        () = trial => {}
    }
}
