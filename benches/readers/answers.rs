//! Answers as they pass: bytes a second of the caller's stream.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use seawall::provider::{BodyReader, StreamReader};

use crate::support::streams;

/// A stream of about this size, of small events, with its usage at the end.
const SIZE: usize = 1 << 20;

pub(crate) fn tap(c: &mut Criterion) {
    let mut group = c.benchmark_group("tap");
    for (name, stream) in [
        ("openai", streams::openai(SIZE)),
        ("anthropic", streams::anthropic(SIZE)),
        ("responses", streams::responses(SIZE)),
        ("gemini", streams::gemini(SIZE)),
    ] {
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function(BenchmarkId::new(name, "16 KiB frames"), |b| {
            b.iter(|| {
                let mut reader = StreamReader::new();
                for frame in black_box(stream.as_bytes()).chunks(16 * 1024) {
                    black_box(reader.feed(frame));
                }
                assert!(reader.finish().is_some_and(|verdict| verdict.is_success()));
                reader.usage()
            });
        });
        let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
        group.bench_function(BenchmarkId::new(name, "an event a frame"), |b| {
            b.iter(|| {
                let mut reader = StreamReader::new();
                for frame in black_box(&events) {
                    black_box(reader.feed(frame.as_bytes()));
                }
                reader.usage()
            });
        });
    }
    group.finish();
}

pub(crate) fn json(c: &mut Criterion) {
    let text = "It\\u2019s a \\\"long\\\" answer, with some lines.\\n".repeat(2000);
    let body = format!(
        r#"{{"id":"x","choices":[{{"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":12,"completion_tokens":3000}}}}"#
    );
    let mut group = c.benchmark_group("json");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("usage", |b| {
        b.iter(|| {
            let mut reader = BodyReader::new();
            for frame in black_box(body.as_bytes()).chunks(16 * 1024) {
                black_box(reader.feed(frame));
            }
            reader.usage()
        });
    });
    group.finish();
}
