//! The error in a body, whatever shape it has.

use http::StatusCode;
use serde_json::Value;

use super::codes::{self, Meaning};

/// What an error body says: borrowed from the parsed JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    /// The object that holds the fields: the `error` of the body, or the body itself.
    object: &'a Value,
    /// A body whose `error` is a text beside a `code`.
    text: Option<&'a str>,
}

impl<'a> Said<'a> {
    /// Reads a body or an event: `{"error": {…}}`, the same inside an array or under `response` or `x_groq`, an
    /// error object itself, and `{"error": "text", "code": …}`.
    pub(crate) fn read(value: &'a Value) -> Self {
        let value = match value {
            Value::Array(all) => all.first().unwrap_or(value),
            _ => value,
        };
        let inside = |name| value.get(name).and_then(|inner| inner.get("error"));
        let wrapped = [value.get("error"), inside("response"), inside("x_groq")];
        match wrapped.into_iter().flatten().find(|error| !error.is_null()) {
            Some(error @ Value::Object(_)) => Self { object: error, text: None },
            Some(Value::String(text)) => Self { object: value, text: Some(text) },
            _ => Self { object: value, text: value.as_str() },
        }
    }

    /// The provider's sentence to the user. It can hold what the user wrote.
    pub(crate) fn message(&self) -> &'a str {
        self.text.or_else(|| self.string("message")).unwrap_or_default()
    }

    /// Whether the error is a text beside a code, both at the top level.
    pub(super) fn is_text_with_code(&self) -> bool {
        self.text.is_some() && self.object.get("code").is_some_and(Value::is_string)
    }

    /// The status that the error names, as a number or in digits.
    pub(super) fn status(&self) -> Option<StatusCode> {
        let number = |name| match self.object.get(name)? {
            Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
            Value::String(digits) if digits.len() == 3 => digits.parse().ok(),
            _ => None,
        };
        let named = |name| number(name).and_then(|number| StatusCode::from_u16(number).ok());
        ["code", "status", "statusCode", "status_code"]
            .into_iter()
            .filter_map(named)
            .find(|status| status.is_client_error() || status.is_server_error())
    }

    /// Google's list of details.
    pub(crate) fn details(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let all = self.object.get("details").and_then(Value::as_array);
        all.into_iter().flatten().filter_map(|detail| {
            let kind = detail.get("@type")?.as_str()?;
            Some((kind.rsplit(['/', '.']).next()?, detail))
        })
    }

    /// A router's facts beside the error.
    pub(crate) fn metadata(&self) -> Option<&'a Value> {
        self.object.get("metadata")
    }

    /// Whether the error has the shape that Google's services give it: a numeric code and a named status.
    pub(super) fn is_google(&self) -> bool {
        self.object.get("code").is_some_and(Value::is_number) && self.string("status").is_some()
    }

    /// Whether a router says what a moderation flagged.
    pub(super) fn is_moderated(&self) -> bool {
        let has = |field| {
            self.metadata().is_some_and(|metadata| metadata.get(field).is_some_and(|value| !value.is_null()))
        };
        has("reasons") || has("flagged_input")
    }

    /// Whether this field holds this code.
    pub(super) fn has(&self, field: &str, code: &str) -> bool {
        self.string(field) == Some(code)
    }

    /// What the first code that decides means, or else the first known one, the most specific one first.
    pub(super) fn meaning(&self, errortype: Option<&str>) -> Option<Meaning> {
        let reason = || {
            self.details().find_map(|(kind, detail)| {
                (kind == "ErrorInfo").then(|| detail.get("reason")?.as_str()).flatten()
            })
        };
        let metadata = self.metadata();
        let inside = |object: Option<&'a Value>, name| object?.get(name)?.as_str();
        let mut first = None;
        let mut consider = |code: Option<&str>| -> Option<Meaning> {
            let meaning = codes::meaning(code?)?;
            first = first.or(Some(meaning));
            meaning.decides.then_some(meaning)
        };
        consider(errortype)
            .or_else(|| consider(inside(self.object.get("details"), "error_code")))
            .or_else(|| consider(reason()))
            .or_else(|| consider(inside(self.object.get("innererror"), "code")))
            .or_else(|| consider(inside(metadata, "reason")))
            .or_else(|| consider(inside(metadata, "limit_source")))
            .or_else(|| consider(self.string("code")))
            .or_else(|| consider(self.string("type").map(last_segment)))
            .or_else(|| consider(self.string("__type").map(last_segment)))
            .or_else(|| consider(self.string("status")))
            .or_else(|| consider(inside(metadata, "error_type")))
            .or(first)
    }

    fn string(&self, field: &str) -> Option<&'a str> {
        self.object.get(field)?.as_str()
    }
}

/// A problem type and an AWS error type are addresses that end in `#name`.
fn last_segment(name: &str) -> &str {
    name.rsplit('#').next().unwrap_or(name)
}
