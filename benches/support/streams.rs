//! Answers to read while they pass: event streams of four APIs, and a body of such frames that never waits.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

pub fn openai(size: usize) -> String {
    stream(
        size,
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

pub fn anthropic(size: usize) -> String {
    stream(
        size,
        |out, word| {
            write!(
                out,
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}"
            )
        },
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3000}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    )
}

pub fn responses(size: usize) -> String {
    let mut number = 0;
    stream(
        size,
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

pub fn gemini(size: usize) -> String {
    let mut number = 0;
    stream(
        size,
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

fn stream(size: usize, mut event: impl FnMut(&mut String, &str) -> std::fmt::Result, end: &str) -> String {
    let words =
        [" the", " quick", "\\n", " brown", " fox", ",", " jumps \\\"over\\\"", " 12", " größer", "."];
    let mut out = String::with_capacity(size + 1024);
    for word in words.iter().cycle() {
        if out.len() >= size {
            break;
        }
        event(&mut out, word).expect("a string takes whatever is written");
        out.push_str("\n\n");
    }
    out.push_str(end);
    out
}

/// An answer that comes whole, as JSON.
pub fn completion(size: usize) -> String {
    let text = "It\\u2019s a \\\"long\\\" answer, with some lines.\\n".repeat(size / 48);
    format!(
        r#"{{"id":"x","choices":[{{"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":12,"completion_tokens":3000}}}}"#
    )
}

/// A chat of about this many bytes: messages of some 2 KB each, the model at the end, where it is found last.
pub fn chat(size: usize) -> String {
    const PROSE: &str = "It was a bright cold day, and the clocks were striking: thirteen, said 4 of them.\\nNobody asked why. ";
    let message = format!(r#"{{"role":"user","content":"{}"}},"#, PROSE.repeat(20));
    let messages = if size < message.len() {
        format!(r#"{{"role":"user","content":"{}"}},"#, PROSE.repeat(8))
    } else {
        message.repeat(size / message.len())
    };
    format!(r#"{{"messages":[{}],"stream":true,"model":"large-model"}}"#, messages.trim_end_matches(','))
}

/// The events of a stream, a frame each, as most providers send them.
pub fn events(stream: String) -> &'static [Bytes] {
    cut(stream.leak().split_inclusive("\n\n").map(str::as_bytes))
}

/// A text in frames of 16 KiB, as connections read them.
pub fn frames(text: String) -> &'static [Bytes] {
    cut(text.into_bytes().leak().chunks(16 << 10))
}

fn cut(parts: impl Iterator<Item = &'static [u8]>) -> &'static [Bytes] {
    // What is static is handed out without a count.
    parts.map(Bytes::from_static).collect::<Vec<_>>().leak()
}

/// A body that never waits.
#[derive(Clone, Copy)]
pub struct Frames {
    rest: &'static [Bytes],
    /// The bytes to come, unless nobody knows how many they are.
    left: Option<u64>,
}

impl Frames {
    /// A stream: it ends when it ends.
    pub fn endless(frames: &'static [Bytes]) -> Self {
        Self { rest: frames, left: None }
    }

    /// A body that says how long it is.
    pub fn sized(frames: &'static [Bytes]) -> Self {
        Self { rest: frames, left: Some(frames.iter().map(|frame| frame.len() as u64).sum()) }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((first, rest)) = self.rest.split_first() else { return Poll::Ready(None) };
        self.rest = rest;
        self.left = self.left.map(|left| left.saturating_sub(first.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(first.clone()))))
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
