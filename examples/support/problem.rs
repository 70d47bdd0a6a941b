//! Error responses, in the shape of the interface that was asked.

use http::HeaderMap;
use serde_json::{Value, json};

use super::asked::Api;
use super::fault::Fault;
use super::headers::{put, seconds};

/// An error response.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) kind: String,
    pub(super) code: Option<String>,
    pub(super) message: String,
    /// In place of the usual shape.
    pub(super) body: Option<Value>,
}

impl Problem {
    pub(super) fn new(status: u16, kind: &str, code: Option<&str>, message: impl Into<String>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            kind: kind.to_owned(),
            code: code.map(str::to_owned),
            message: message.into(),
            body: None,
        }
    }

    fn invalid(status: u16, code: Option<&str>, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", code, message)
    }

    pub(super) fn key() -> Self {
        Self::invalid(401, Some("invalid_api_key"), "Incorrect API key provided.")
    }

    pub(super) fn path(path: &str) -> Self {
        Self::invalid(404, Some("unknown_url"), format!("Unknown request URL: {path}."))
    }

    pub(super) fn json() -> Self {
        Self::invalid(400, None, "We could not parse the JSON body of your request.")
    }

    pub(super) fn model(model: &str) -> Self {
        let text = format!("The model `{model}` does not exist or you do not have access to it.");
        Self::invalid(404, Some("model_not_found"), text)
    }

    pub(super) fn context(limit: u64, asked: u64) -> Self {
        // Anthropic has no code for it: these words are all that tells.
        let text = format!("prompt is too long: {asked} tokens > {limit} maximum");
        Self::invalid(400, Some("context_length_exceeded"), text)
    }

    fn policy() -> Self {
        let text = "Your request was rejected as a result of our safety system.";
        Self::invalid(400, Some("content_policy_violation"), text)
    }

    /// What a fault makes in place of an answer, if it is one of the errors.
    pub(super) fn of(fault: &Fault, model: &str, input: u64) -> Option<Self> {
        match fault {
            Fault::Status { status, retry_after, code, message } => {
                let (kind, usual, text) = usual(*status);
                let mut problem = Self::new(*status, kind, code.or(usual), message.unwrap_or(text));
                if let Some(wait) = retry_after {
                    if wait.subsec_nanos() > 0 {
                        put(&mut problem.headers, "retry-after-ms", wait.as_millis());
                    }
                    put(&mut problem.headers, "retry-after", seconds(*wait));
                }
                Some(problem)
            }
            Fault::ModelNotFound => Some(Self::model(model)),
            Fault::ContextLength => Some(Self::context(input.saturating_sub(1), input)),
            Fault::ContentPolicy => Some(Self::policy()),
            _ => None,
        }
    }

    pub(super) fn body(&self, api: Option<Api>) -> Value {
        if let Some(body) = &self.body {
            return body.clone();
        }
        if api != Some(Api::Messages) {
            return json!({"error": {
                "message": self.message, "type": self.kind, "param": null, "code": self.code
            }});
        }
        let kind = match self.status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            504 => "timeout_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({"type": "error", "request_id": "req_simulated", "error": {"type": kind, "message": self.message}})
    }
}

/// The type, the code and the words that belong to a status.
fn usual(status: u16) -> (&'static str, Option<&'static str>, &'static str) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided."),
        402 => ("insufficient_quota", Some("credit_balance_exhausted"), "Your credit balance is used up."),
        429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached."),
        503 => ("service_unavailable_error", Some("server_is_overloaded"), "The server is overloaded."),
        500.. => ("server_error", None, "The server had an error while processing your request."),
        _ => ("invalid_request_error", None, "The request is not valid."),
    }
}
