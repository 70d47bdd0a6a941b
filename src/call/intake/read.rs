//! What a request says before its body is there, and what it says then.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, request::Parts};
use http_body::Body;

use super::layer::Settings;
use crate::call::aim::model_of_uri;
use crate::call::asked::Asked;
use crate::call::{Call, CallBody, media, multipart};

/// How a body is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Multipart,
    /// Not at all.
    Opaque,
}

/// How this request's body is to be read: its content type decides. One that is compressed, or larger than allowed by
/// its own word, is not.
pub(super) fn form_of<B: Body>(parts: &Parts, body: &B, limit: usize) -> Form {
    let encoded = parts.headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
        let coding = coding.as_bytes().trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    });
    if encoded || says_more_than(parts, body, limit) {
        return Form::Opaque;
    }
    match content_type(&parts.headers) {
        Some(kind) if media::is_json(media::essence(kind.as_bytes())) => Form::Json,
        Some(kind) if multipart::boundary(kind).is_some() => Form::Multipart,
        _ => Form::Opaque,
    }
}

/// Whether a body is over the limit by its own word.
pub(super) fn says_more_than<B: Body>(parts: &Parts, body: &B, limit: usize) -> bool {
    let limit = limit as u64;
    let stated =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    stated.is_some_and(|length| length > limit) || body.size_hint().lower() > limit
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

/// The request with its body as a [`CallBody`] and its [`Call`] among the extensions.
pub(super) fn describe(
    mut parts: Parts,
    body: CallBody,
    form: Form,
    settings: &Settings,
) -> Request<CallBody> {
    let mut call = parts.extensions.remove::<Call>().unwrap_or_default();
    call.rewritable = false;
    call.replayable = body.fits();
    let asked = match (body.bytes(), form) {
        (Some(data), Form::Json) => Asked::read(data),
        (Some(data), Form::Multipart) => content_type(&parts.headers)
            .and_then(multipart::boundary)
            .and_then(|boundary| multipart::read(data, boundary)),
        _ => None,
    };
    let place = asked.as_ref().and_then(|asked| asked.place);
    let estimated = call.estimate.is_none();
    if let Some(asked) = asked {
        asked.write(&mut call);
    }
    read_uri(&parts, &mut call);
    if let (Some(ratios), Some(model), Some(estimate), true) =
        (&settings.ratios, &call.model, &mut call.estimate, estimated)
    {
        estimate.input_tokens = ratios.scale(model, estimate.unscaled_tokens);
    }
    parts.extensions.insert(call);
    Request::from_parts(parts, body.with_place(place))
}

/// What a URL says where the body is silent: Gemini, Azure and Bedrock name the model there.
fn read_uri(parts: &Parts, call: &mut Call) {
    if let Some(model) = model_of_uri(&parts.uri) {
        call.rewritable |= call.replayable;
        call.model.get_or_insert(model);
    }
    let path = parts.uri.path();
    call.stream |= path.ends_with(":streamGenerateContent")
        || path.ends_with("/converse-stream")
        || path.ends_with("/invoke-with-response-stream");
}
