//! Answers as they pass: bytes a second of the caller's stream.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use seawall::provider::{BodyReader, StreamReader};

/// A stream of about this size, of small events, with its usage at the end.
const SIZE: usize = 1 << 20;

fn openai() -> String {
    stream(
        |out, word| {
            write!(
                out,
                r#"data: {{"id":"chatcmpl-AbCdEf0123456789","object":"chat.completion.chunk","created":1795953600,"model":"gpt-sample","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{{"index":0,"delta":{{"content":"{word}"}},"logprobs":null,"finish_reason":null}}],"usage":null,"obfuscation":"aB3dE"}}"#
            )
        },
        r#"data: {"id":"chatcmpl-AbCdEf0123456789","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3000,"total_tokens":3012}}

data: [DONE]

"#,
    )
}

fn anthropic() -> String {
    stream(
        |out, word| {
            write!(
                out,
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}"
            )
        },
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3000}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    )
}

fn responses() -> String {
    let mut number = 0;
    stream(
        |out, word| {
            number += 1;
            write!(
                out,
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{number},\"item_id\":\"msg_0123456789abcdef0123456789abcdef\",\"output_index\":0,\"content_index\":0,\"delta\":\"{word}\",\"logprobs\":[],\"obfuscation\":\"x1Y2\"}}"
            )
        },
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":12,\"output_tokens\":3000}}}\n\n",
    )
}

fn gemini() -> String {
    let mut number = 0;
    stream(
        |out, word| {
            number += 1;
            write!(
                out,
                r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{word}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":12,"candidatesTokenCount":{number},"totalTokenCount":{}}},"modelVersion":"gemini-sample","responseId":"0123456789"}}"#,
                12 + number
            )
        },
        "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":12,\"candidatesTokenCount\":3000}}\n\n",
    )
}

fn stream(mut event: impl FnMut(&mut String, &str) -> std::fmt::Result, end: &str) -> String {
    let words =
        [" the", " quick", "\\n", " brown", " fox", ",", " jumps \\\"over\\\"", " 12", " größer", "."];
    let mut out = String::with_capacity(SIZE + 1024);
    for word in words.iter().cycle() {
        if out.len() >= SIZE {
            break;
        }
        event(&mut out, word).expect("a string takes whatever is written");
        out.push_str("\n\n");
    }
    out.push_str(end);
    out
}

pub(crate) fn tap(c: &mut Criterion) {
    let mut group = c.benchmark_group("tap");
    for (name, stream) in
        [("openai", openai()), ("anthropic", anthropic()), ("responses", responses()), ("gemini", gemini())]
    {
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
