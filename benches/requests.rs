//! What it costs to read a request, to aim it at another target, and to estimate its tokens.
//!
//! `cargo bench --bench requests`. Throughput is of the body's bytes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run says so, and prints what it counts"
)]

mod support;

use std::convert::Infallible;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::FutureExt;
use http::{Request, Response};
use seawall::call::{
    Aim, CallBody, Credential, Destination, IntakeLayer, Key, Upstream, read_json, rewrite_model, tokens,
};
use tower::{Layer, Service, service_fn};

use support::bodies::post;
use support::streams::chat;

const PROSE: &str =
    "It was a bright cold day, and the clocks were striking: thirteen, said 4 of them.\\nNobody asked why. ";
const TOOL: &str = r#"{"type":"function","function":{"name":"get_weather","description":"The weather in a city.","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["city"]}}},"#;

/// The worst case: nothing but short strings and brackets.
fn tools(bytes: usize) -> String {
    let tools = TOOL.repeat((bytes / TOOL.len()).max(1));
    format!(r#"{{"tools":[{}],"model":"large-model"}}"#, tools.trim_end_matches(','))
}

fn rewrite(c: &mut Criterion) {
    let mut group = c.benchmark_group("rewrite");
    for kilobytes in [1, 10, 100, 1_000] {
        for (kind, body) in [("chat", chat(kilobytes << 10)), ("tools", tools(kilobytes << 10))] {
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_with_input(BenchmarkId::new(kind, kilobytes), &body, |b, body| {
                b.iter(|| rewrite_model(black_box(body.as_bytes()), "small"));
            });
        }
    }
    group.finish();
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    for (kind, body) in [("chat", chat(100 << 10)), ("tools", tools(100 << 10))] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(kind, |b| b.iter(|| read_json(black_box(body.as_bytes()))));
    }
    group.finish();
}

fn estimate(c: &mut Criterion) {
    let mut group = c.benchmark_group("estimate");
    for (kind, text) in [
        ("english", PROSE.repeat(1_000)),
        ("japanese", "今日は天気がいいですね。散歩に行きましょう。".repeat(1_500)),
        ("base64", "aGVsbG8gV29ybGQ5".repeat(6_000)),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(kind, |b| b.iter(|| tokens::estimate(black_box(&text))));
    }
    group.finish();
}

fn layers(c: &mut Criterion) {
    let mut group = c.benchmark_group("layers, 4 KB and 12 headers");
    let body = Bytes::from(chat(4 << 10));
    let mut intake = IntakeLayer::new()
        .layer(service_fn(async |request: Request<CallBody>| Ok::<_, Infallible>(Response::new(request))));
    let mut read = |body: &Bytes| intake.call(post(body)).now_or_never().unwrap().unwrap().into_body();
    group.bench_function("the request alone", |b| b.iter(|| post(black_box(&body))));
    group.bench_function("intake", |b| b.iter(|| read(black_box(&body))));
    let upstream =
        Upstream::new("b", "https://b.example/v1").unwrap().credential(Credential::bearer("secret").unwrap());
    let model = Key::from("small-model");
    let at = Destination::new(&upstream).model(&model);
    let original = read(&body);
    group.bench_function("aim", |b| b.iter(|| black_box(&original).aim(&at)));

    let (mut built, mut taken) = (None, None);
    let plain = allocation_counter::measure(|| built = Some(post(&body)));
    let intake = allocation_counter::measure(|| taken = Some(read(&body)));
    let aim = allocation_counter::measure(|| drop(original.aim(&at).unwrap()));
    println!("allocations: intake {}, aim {}", intake.count_total - plain.count_total, aim.count_total);
    group.finish();
}

criterion_group!(benches, rewrite, read, estimate, layers);
criterion_main!(benches);
