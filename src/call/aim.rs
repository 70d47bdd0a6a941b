//! The same request for another model, URL and credential.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::LazyLock;

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Request};

use crate::call::credential::{percent_decode, percent_encode};
use crate::call::upstream::{key_of, set};
use crate::call::{Call, CallBody, Describe, Key, SecretPlaces, Upstream};

/// Where a request is aimed at.
#[derive(Clone, Copy, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Destination<'a> {
    /// The upstream to send it to.
    pub upstream: &'a Upstream,
    /// The name of the model there; `None` leaves the caller's.
    pub model: Option<&'a Key>,
    /// Where secrets stand that are not this upstream's.
    pub secrets: &'a SecretPlaces,
}

impl<'a> Destination<'a> {
    /// This upstream, with the caller's model and the usual places of secrets.
    pub fn new(upstream: &'a Upstream) -> Self {
        static USUAL: LazyLock<SecretPlaces> = LazyLock::new(SecretPlaces::default);
        Self { upstream, model: None, secrets: &USUAL }
    }

    /// With this model.
    pub fn model(mut self, model: &'a Key) -> Self {
        self.model = Some(model);
        self
    }

    /// With these places of secrets.
    pub fn secrets(mut self, secrets: &'a SecretPlaces) -> Self {
        self.secrets = secrets;
        self
    }
}

/// Why a request cannot be aimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misfit {
    /// It names its model where it cannot be replaced, and another one is asked for.
    NotRewritable,
    /// A part of its body was sent and not kept.
    NotReplayable,
    /// Its URL would be longer than a URL can be.
    TooLong,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRewritable => "the model cannot be replaced in this request",
            Self::NotReplayable => "the body of this request cannot be sent again",
            Self::TooLong => "the URL of this request would be too long",
        })
    }
}

impl Error for Misfit {}

/// A request that can be sent elsewhere.
///
/// Implemented for `http::Request<CallBody>`; for an own type copy it and set its model:
///
/// ```
/// use seawall::call::{Aim, Destination, Misfit};
///
/// #[derive(Clone)]
/// struct Chat { model: String, endpoint: String, prompt: String }
///
/// impl Aim for Chat {
///     fn aim(&self, at: &Destination<'_>) -> Result<Self, Misfit> {
///         let mut aimed = self.clone();
///         aimed.endpoint = at.upstream.name().to_string();
///         if let Some(model) = at.model {
///             aimed.model = model.to_string();
///         }
///         Ok(aimed)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to another target",
    label = "this request type cannot be aimed",
    note = "over HTTP put `seawall::call::IntakeLayer` above: it makes the body a `CallBody`, which can be rewritten and sent again",
    note = "for an own type, `impl seawall::call::Aim for {Self}`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Aim: Sized {
    /// A new request from this one, which stays the original for further tries.
    ///
    /// # Errors
    ///
    /// This request cannot be sent there; it may still fit another destination.
    fn aim(&self, at: &Destination<'_>) -> Result<Self, Misfit>;
}

/// Over HTTP:
///
/// - The URL is joined as [`Upstream::join`] says, and `Host` follows it where there is one.
/// - The model is replaced in the body ([`CallBody::with_model`]), and wherever the URL names one too: in the segment
///   behind `models`, `model` or `deployments`, and in the query's `model`. So no two parts of the request name two models.
/// - All headers and query keys of [`SecretPlaces`] are removed and the upstream's own credential is set, marked sensitive.
///   An upstream without a credential gets none.
/// - `Content-Length` and `Transfer-Encoding` follow the new body; digests of the old one are removed.
/// - The [`Call`] among the extensions names the model and the upstream.
impl Aim for Request<CallBody> {
    fn aim(&self, at: &Destination<'_>) -> Result<Self, Misfit> {
        if !self.body().is_replayable() {
            return Err(Misfit::NotReplayable);
        }
        let (path, in_path) = aim_path(self.uri().path(), at.model);
        let in_query = at.model.is_some() && self.uri().query().is_some_and(names_model);
        let (body, rewritten) = aim_body(self, at.model, in_path || in_query)?;

        let mut aimed = Request::new(body);
        *aimed.method_mut() = self.method().clone();
        *aimed.version_mut() = self.version();
        *aimed.headers_mut() = self.headers().clone();
        *aimed.extensions_mut() = self.extensions().clone();
        *aimed.uri_mut() = aim_uri(self, &path, in_query, at).ok_or(Misfit::TooLong)?;

        let keep = at.upstream.own_credential().kept_header();
        let length = length_of(aimed.body());
        let headers = aimed.headers_mut();
        for name in at.secrets.headers().iter().filter(|name| Some(*name) != keep) {
            headers.remove(name);
        }
        if let Some(name) = keep {
            mark_sensitive(headers, name);
        }
        at.upstream.dress(headers);
        frame(headers, length, rewritten);
        if let Some(call) = aimed.call_mut() {
            call.upstream = Some(at.upstream.name().clone());
            if let Some(model) = at.model {
                call.model = Some(model.clone());
            }
        }
        Ok(aimed)
    }
}

/// The body for this model, and whether it is another one.
fn aim_body(
    request: &Request<CallBody>,
    model: Option<&Key>,
    in_url: bool,
) -> Result<(CallBody, bool), Misfit> {
    let body = request.body();
    let Some(model) = model else { return Ok((body.clone(), false)) };
    let asked = request.extensions().get::<Call>().and_then(|call| call.model.as_ref());
    // A repeated name is made one even where the last of them fits.
    if asked == Some(model) && !body.has_repeated_model() {
        return Ok((body.clone(), false));
    }
    match body.with_model(model.as_str()) {
        Some(body) => Ok((body, true)),
        // The URL alone names it, as at Gemini and Azure; or nothing does, where a list is asked for.
        None if in_url || body.bytes().is_some_and(bytes::Bytes::is_empty) => Ok((body.clone(), false)),
        None => Err(Misfit::NotRewritable),
    }
}

/// The path with this model in the place of the one it names, and whether it names one.
fn aim_path<'a>(path: &'a str, model: Option<&Key>) -> (Cow<'a, str>, bool) {
    let (Some(model), Some((start, end))) = (model, model_in_path(path)) else { return (path.into(), false) };
    // A model's name may hold slashes; there it is one segment. Colons separate a version, which is part of the name.
    let name = percent_encode(model.as_str(), b":@");
    (
        [path.get(..start), Some(name.as_str()), path.get(end..)]
            .into_iter()
            .flatten()
            .collect::<String>()
            .into(),
        true,
    )
}

/// Where a path names a model: `/models/<model>:method`, `/model/<model>/method`, `/deployments/<model>/…`.
fn model_in_path(path: &str) -> Option<(usize, usize)> {
    let (mut start, mut at) = (None, 0);
    for segment in path.split('/') {
        let end = at + segment.len();
        let is_before = matches!(segment, "models" | "model" | "deployments");
        if is_before && at > 0 && end < path.len() {
            start = Some(end + 1);
        }
        at = end + 1;
    }
    let start = start?;
    let rest = path.get(start..)?;
    let segment = rest.split('/').next().unwrap_or(rest);
    // Gemini's method follows the last colon. Bedrock's names have colons before a version, and methods behind a slash.
    let name = match segment.rsplit_once(':') {
        Some((name, method)) if method.starts_with(|first: char| first.is_ascii_alphabetic()) => name,
        _ => segment,
    };
    (!name.is_empty()).then_some((start, start + name.len()))
}

/// The model that a URL names: in its path, else in its query.
pub(super) fn model_of_uri(uri: &http::Uri) -> Option<Key> {
    if let Some((start, end)) = model_in_path(uri.path()) {
        return uri.path().get(start..end).map(|name| Key::from(percent_decode(name)));
    }
    let pair = uri.query()?.split('&').find(|pair| key_of(pair) == "model")?;
    let (_, name) = pair.split_once('=')?;
    (!name.is_empty()).then(|| Key::from(percent_decode(name)))
}

fn names_model(query: &str) -> bool {
    query.split('&').any(|pair| key_of(pair) == "model")
}

fn aim_uri(
    request: &Request<CallBody>,
    path: &str,
    in_query: bool,
    at: &Destination<'_>,
) -> Option<http::Uri> {
    let query = request.uri().query().unwrap_or_default();
    let keep = |key: &str| !(at.secrets.has_query(key) || in_query && key == "model");
    let own = at.upstream.own_credential().own_query();
    match at.model.filter(|_| in_query) {
        None => at.upstream.join_parts(path, query, keep, own),
        Some(model) => {
            let kept: Vec<&str> = query.split('&').filter(|pair| keep(key_of(pair))).collect();
            let query = [&kept.join("&"), "&model=", &percent_encode(model.as_str(), b"")].concat();
            at.upstream.join_parts(path, &query, |_| true, own)
        }
    }
}

fn mark_sensitive(headers: &mut HeaderMap, name: &HeaderName) {
    if let http::header::Entry::Occupied(mut entry) = headers.entry(name) {
        entry.iter_mut().for_each(|value| value.set_sensitive(true));
    }
}

/// The length of a body that is all there and has no trailers.
fn length_of(body: &CallBody) -> Option<usize> {
    body.bytes().filter(|_| body.trailers().is_none()).map(bytes::Bytes::len)
}

/// Makes the headers that describe the body true again.
pub(super) fn frame(headers: &mut HeaderMap, length: Option<usize>, rewritten: bool) {
    if let Some(length) = length {
        let chunked = headers.remove(TRANSFER_ENCODING).is_some();
        if chunked || headers.contains_key(CONTENT_LENGTH) {
            set(headers, &CONTENT_LENGTH, decimal(length));
        }
    }
    if rewritten {
        remove_digests(headers);
    }
}

/// Removes what was true of other bytes.
pub(super) fn remove_digests(headers: &mut HeaderMap) {
    static DIGESTS: [HeaderName; 4] = [
        HeaderName::from_static("content-digest"),
        HeaderName::from_static("repr-digest"),
        HeaderName::from_static("digest"),
        HeaderName::from_static("content-md5"),
    ];
    for name in &DIGESTS {
        headers.remove(name);
    }
}

/// A number as a header, in one allocation.
fn decimal(mut number: usize) -> HeaderValue {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b"0123456789"[number % 10];
        number /= 10;
        start = at;
        if number == 0 {
            break;
        }
    }
    HeaderValue::from_bytes(digits.get(start..).unwrap_or_default()).expect("digits are legal in a header")
}

#[cfg(test)]
mod tests;
