//! What sixteen layers cost the compiler above what two cost it: a package with two programs, `cargo check` of each.

#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::report::Bar;

/// How often each program is checked: the least counts.
const ROUNDS: u32 = 3;
/// How long a check may take, and how long the dependencies, which the first one checks too.
const CHECK: Duration = Duration::from_secs(60);
const DEPENDENCIES: Duration = Duration::from_secs(600);

/// Two layers of the recommended stack, and sixteen: those that this crate has, in the order that it recommends, the
/// retry, the timeout and three of the gates twice.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("two", &["retry", "bulkhead"]),
    (
        "sixteen",
        &[
            "intake", "monitor", "timeout", "fallback", "retry", "retry", "attempts", "breaker", "breaker",
            "guard", "bucket", "bucket", "bulkhead", "bulkhead", "timeout", "outcome",
        ],
    ),
];

/// The line. Without cargo nothing is measured; what does not compile, or not in time, misses the bar.
pub fn bar() -> Bar {
    let name = "16-layers-above-2:seconds-of-cargo-check".into();
    let measured = match measured() {
        Ok(seconds) => seconds,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("compile time skipped: {error}");
            f64::NAN
        }
        Err(error) => {
            println!("compile time: {error}");
            f64::INFINITY
        }
    };
    Bar { name, measured, limit: 2.0, at_least: false }
}

/// Seconds that the larger program takes above the smaller one.
fn measured() -> io::Result<f64> {
    let package = package()?;
    let [two, sixteen] = PROGRAMS.map(|(name, _)| name);
    // The dependencies, once for all.
    for name in [two, sixteen] {
        check(&package, name, DEPENDENCIES)?;
    }
    let (mut least, mut least_of_two) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        least_of_two = least_of_two.min(anew(&package, two)?);
        least = least.min(anew(&package, sixteen)?);
    }
    println!("cargo check of 2 layers {least_of_two:.2} s, of 16 layers {least:.2} s");
    Ok(least - least_of_two)
}

/// Checks a program that has changed; the seconds.
fn anew(package: &Path, name: &str) -> io::Result<f64> {
    let source = package.join(format!("src/bin/{name}.rs"));
    let text = fs::read_to_string(&source)?;
    fs::write(&source, format!("{text}\n// Changed.\n"))?;
    check(package, name, CHECK).map(|took| took.as_secs_f64())
}

/// Runs `cargo check`, for so long at most.
fn check(package: &Path, name: &str, limit: Duration) -> io::Result<Duration> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(&cargo);
    command.args(["check", "--quiet", "--offline", "--bin", name]).current_dir(package);
    // Its own, whatever this run was told; and what a change costs, without what an earlier check may have left.
    command.env("CARGO_TARGET_DIR", package.join("target")).env("CARGO_INCREMENTAL", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let child = command.spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("{} cannot be run: {error}", Path::new(&cargo).display()))
    })?;
    let child = ended(child, start, limit)?;
    let took = start.elapsed();
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(took);
    }
    Err(io::Error::other(format!("cargo check failed:\n{}", String::from_utf8_lossy(&done.stderr))))
}

/// Waits until it ends. What takes too long is ended.
#[expect(clippy::disallowed_methods, reason = "no executor runs")]
fn ended(mut child: Child, start: Instant, limit: Duration) -> io::Result<Child> {
    while child.try_wait()?.is_none() {
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("cargo check took more than {limit:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(child)
}

/// The package under `target/`, written anew; what it depends on stays checked from run to run.
fn package() -> io::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = here.join("target/compile");
    fs::create_dir_all(package.join("src/bin"))?;
    fs::write(package.join("Cargo.toml"), manifest(&here.join("../..")))?;
    // The same versions, and nothing to look up.
    fs::copy(here.join("Cargo.lock"), package.join("Cargo.lock"))?;
    for (name, layers) in PROGRAMS {
        fs::write(package.join(format!("src/bin/{name}.rs")), program(layers))?;
    }
    Ok(package)
}

fn manifest(seawall: &Path) -> String {
    format!(
        r#"[workspace]

[package]
name = "layers"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
bytes = "1.10"
http = "1.3"
http-body-util = "0.1.3"
seawall = {{ path = '{}' }}
tower = {{ version = "0.5.2", features = ["util"] }}
"#,
        seawall.display()
    )
}

/// These layers around a client, and a call.
fn program(layers: &[&str]) -> String {
    let body = if layers.contains(&"intake") { "Full<Bytes>" } else { "CallBody" };
    let layers: Vec<String> = layers.iter().map(|name| format!("        .layer({})", layer(name))).collect();
    let layers = layers.join("\n");
    format!(
        r"#![allow(unused_imports)]
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use http::{{Request, Response}};
use http_body_util::Full;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{{CallBody, IntakeLayer, OutcomeLayer}};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{{CostGuardLayer, PriceTable}};
use seawall::fallback::{{FallbackLayer, Routes}};
use seawall::monitor::Monitor;
use seawall::retry::{{RetryLayer, RetryPolicy}};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{{Quota, TokenBucketLayer}};
use tower::{{ServiceBuilder, ServiceExt}};

const QUOTA: Quota = Quota::per_second(NonZeroU64::MAX);
const SECOND: Duration = Duration::from_secs(1);

fn some<T>() -> T {{
    unimplemented!()
}}

fn main() {{
    let client = async |_: Request<CallBody>| Ok::<_, BoxError>(Response::new(Full::<Bytes>::default()));
    let service = ServiceBuilder::new()
{layers}
        .service_fn(client);
    drop(service.oneshot(some::<Request<{body}>>()));
}}
"
    )
}

/// How a layer is made. No program is ever run, so what only a run needs is left out.
fn layer(name: &str) -> &'static str {
    match name {
        "intake" => "IntakeLayer::new()",
        "monitor" => "some::<Monitor>().layer()",
        "timeout" => "TimeoutLayer::new(SECOND)",
        "fallback" => "FallbackLayer::new(some::<Routes>())",
        "retry" => "RetryLayer::new(RetryPolicy::llm())",
        "attempts" => "some::<Monitor>().attempts()",
        "breaker" => "CircuitBreakerLayer::new()",
        "guard" => "CostGuardLayer::builder().prices(PriceTable::new()).build().unwrap()",
        "bucket" => "TokenBucketLayer::new(QUOTA)",
        "bulkhead" => "BulkheadLayer::new(1)",
        "outcome" => "OutcomeLayer::new()",
        _ => unreachable!("the layers of the programs are above"),
    }
}
