//! What it costs a body to be held and read while it passes, beside the same body bare: bodies of 1 to 1 000 KB, event
//! streams, and requests that are aimed at another model.
//!
//! `cargo bench --bench body`. Throughput is of the body's bytes; what the head of a response costs is in each figure, and
//! is most of it for bodies of 1 KB. `benches/peers` holds the same against the bars.
#![allow(missing_docs, reason = "a bench has no users")]
#![expect(clippy::print_stdout, reason = "what is counted is printed")]

mod support;

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use seawall::call::{Aim, Destination, Key, Upstream, rewrite_model};

use support::bodies::{self, Answering, request};
use support::{call, drain, streams};

/// Calls, and reads the answer to its end.
fn read_through<S: Answering>(service: &mut S) {
    let Ok(response) = call(service, request()) else { panic!("a healthy call") };
    drain(response.into_body());
}

fn each(c: &mut Criterion, group: &str, parameter: &str, upstream: &bodies::Upstream, bytes: u64) {
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Bytes(bytes));
    macro_rules! case {
        ($name:literal, $service:expr) => {
            let mut service = $service;
            group.bench_function(BenchmarkId::new($name, parameter), |b| {
                b.iter(|| read_through(&mut service))
            });
        };
    }
    case!("bare", upstream.clone());
    case!("a permit", bodies::one_gate(upstream.clone()));
    case!("five permits", bodies::five_gates(upstream.clone()));
    case!("outcome", bodies::outcome(upstream.clone()));
    group.finish();
}

fn length(frames: &[Bytes]) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}

fn answers(c: &mut Criterion) {
    for kilobytes in [1, 10, 100, 1_000] {
        let frames = streams::frames(streams::completion(kilobytes << 10));
        let parameter = format!("{kilobytes} KB");
        each(c, "json", &parameter, &bodies::Upstream::json(frames), length(frames));
        let frames = streams::events(streams::openai(kilobytes << 10));
        each(c, "events", &parameter, &bodies::Upstream::stream(frames), length(frames));
        let frames = streams::frames(streams::openai(kilobytes << 10));
        each(c, "events in 16 KiB", &parameter, &bodies::Upstream::stream(frames), length(frames));
    }
}

/// Whatever passes, the reader keeps the same.
fn memory() {
    for megabytes in [1, 8] {
        let frames = streams::events(streams::openai(megabytes << 20));
        let mut service = bodies::outcome(bodies::Upstream::stream(frames));
        read_through(&mut service);
        let counted = allocation_counter::measure(|| read_through(&mut service));
        println!(
            "outcome over a stream of {megabytes} MB: {} allocations, {} bytes at most",
            counted.count_total, counted.bytes_max
        );
    }
}

/// A chat that names its model at the end, where it is found last.
fn aims(c: &mut Criterion) {
    let body = streams::chat(100 << 10);
    let mut group = c.benchmark_group("another model, 100 KB");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("rewrite_model", |b| b.iter(|| rewrite_model(black_box(body.as_bytes()), "small")));
    group.bench_function("copy alone", |b| b.iter(|| black_box(body.as_bytes()).to_vec()));
    let upstream = Upstream::new("b", "https://b.example/v1").expect("a sound address");
    let model = Key::from("small");
    let at = Destination::new(&upstream).model(&model);
    let read = bodies::read(bodies::post(&Bytes::from(body)));
    group.bench_function("aim", |b| b.iter(|| black_box(&read).aim(&at).is_ok()));
    let counted = allocation_counter::measure(|| drop(black_box(read.aim(&at))));
    println!("aim: {} allocations, {} bytes at most", counted.count_total, counted.bytes_max);
    group.finish();
}

fn all(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let _inside = runtime.enter();
    memory();
    aims(c);
    answers(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
