//! What a request asks for.

use http::request::Parts;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::fault::Fault;
use super::shape::Content;

/// An interface of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Messages,
    Models,
}

impl Api {
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/v1/")?;
        if method == Method::GET {
            return (rest == "models" || rest.starts_with("models/")).then_some(Self::Models);
        }
        if method != Method::POST {
            return None;
        }
        match rest {
            "chat/completions" => Some(Self::Chat),
            "completions" => Some(Self::Completions),
            "responses" => Some(Self::Responses),
            "embeddings" => Some(Self::Embeddings),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }
}

/// What is read of a request's body.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    pub(super) usage: bool,
    pub(super) most: Option<u64>,
    pub(super) input: u64,
    /// How many inputs there are to embed.
    pub(super) items: usize,
    /// Embeddings are to be numbers in base64, as the official clients ask for them.
    pub(super) base64: bool,
    pub(super) content: Content,
}

impl Asked {
    /// `None` where the body is no JSON object.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let object = body.as_object()?;
        let number = |names: &[&str]| names.iter().find_map(|name| object.get(*name)?.as_u64());
        let text = ["messages", "prompt", "input", "system", "instructions"];
        let bytes: u64 = text.iter().filter_map(|name| object.get(*name)).map(bytes_of).sum();
        Some(Self {
            model: object.get("model").and_then(Value::as_str).map(str::to_owned),
            stream: object.get("stream").and_then(Value::as_bool).unwrap_or(false),
            usage: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false),
            most: number(&["max_completion_tokens", "max_output_tokens", "max_tokens"]),
            input: bytes.div_ceil(4).max(1),
            items: object.get("input").and_then(Value::as_array).map_or(1, Vec::len),
            base64: object.get("encoding_format").is_some_and(|format| format == "base64"),
            content: Content::of(&body),
        })
    }
}

/// The bytes of all text in a value, names aside.
fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(members) => members.values().map(bytes_of).sum(),
        _ => 0,
    }
}

/// The key that a request carries, in one of the usual ways.
pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    let bearer = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ");
    bearer().or_else(|| headers.get("x-api-key").or_else(|| headers.get("api-key"))?.to_str().ok())
}

/// What is to happen to a request, as it says itself.
pub(super) fn fault(headers: &HeaderMap, model: Option<&str>) -> Option<Result<Fault, String>> {
    let header = headers.get("x-fault").map(|value| value.to_str().unwrap_or("x-fault").parse());
    header.or_else(|| Some(model?.strip_prefix("fault:")?.parse()))
}

pub(super) fn path(parts: &Parts) -> &str {
    parts.uri.path_and_query().map_or("/", |path| path.as_str())
}
