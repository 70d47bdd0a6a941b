//! What callers are told when there is no answer: the reason and `Retry-After`, in OpenAI's shape of an error, or in
//! Anthropic's to those who speak so.

use axum::body::Body;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use seawall::fallback::{Attempt, Attempts};
use seawall::{BoxError, Refusal, RefusalKind, refusal};
use serde_json::json;

/// A reason of the gateway's own.
pub(crate) fn error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "authentication_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::PAYMENT_REQUIRED => "insufficient_quota",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    };
    let body = json!({ "error": { "message": message, "type": kind, "param": null, "code": code } });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let (code, message) = (code.to_owned(), message.to_owned());
    response.extensions_mut().insert(Reason { code, message });
    response
}

/// What an error of the gateway's own says.
#[derive(Clone)]
struct Reason {
    code: String,
    message: String,
}

/// An error of the gateway's own as Anthropic's clients read it. An upstream's answer stays as it is.
pub(crate) fn for_anthropic(mut response: Response<Body>, id: &HeaderValue) -> Response<Body> {
    let Some(Reason { code, message }) = response.extensions_mut().remove() else { return response };
    let kind = match response.status().as_u16() {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let error = json!({ "type": kind, "message": message, "details": { "error_code": code } });
    let body = json!({ "type": "error", "error": error, "request_id": id.to_str().unwrap_or_default() });
    *response.body_mut() = Body::from(body.to_string());
    response.headers_mut().insert("request-id", id.clone());
    response
}

/// What became of a call that the stack has no response for.
pub(crate) fn failed(failure: &BoxError) -> Response<Body> {
    if let Some(refusal) = refusal::find(&**failure) {
        return refused(&refusal, Attempts::find(&**failure));
    }
    error(StatusCode::BAD_GATEWAY, "upstream_unreachable", "No upstream could be reached.")
}

pub(crate) fn too_large() -> Response<Body> {
    error(
        StatusCode::PAYLOAD_TOO_LARGE,
        "request_too_large",
        "The request is larger than this gateway takes.",
    )
}

fn refused(refusal: &Refusal, attempts: Option<&Attempts>) -> Response<Body> {
    let nowhere = attempts.is_none_or(|attempts| attempts.as_slice().is_empty());
    if refusal.kind() == RefusalKind::NoTarget && nowhere {
        let message = "The model does not exist, or you do not have access to it.";
        return error(StatusCode::NOT_FOUND, "model_not_found", message);
    }
    let told = refusal.to_response();
    let why = attempts.and_then(common).filter(|_| refusal.kind() == RefusalKind::NoTarget);
    let mut response = match why {
        // The reason that all targets have in common says more than that none is left.
        Some(kind) => error(kind.status(), kind.as_str(), &format!("{}.", Refusal::new(kind))),
        None => error(refusal.kind().status(), refusal.kind().as_str(), &format!("{refusal}.")),
    };
    if let Some(wait) = told.headers().get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, wait.clone());
    }
    response
}

/// Why no target was asked, where our own layers refused each for the same kind of reason.
fn common(attempts: &Attempts) -> Option<RefusalKind> {
    let mut kinds = attempts.as_slice().iter().map(Attempt::refused);
    let first = kinds.next()??;
    kinds.all(|kind| kind.is_some_and(|kind| kind.status() == first.status())).then_some(first)
}
