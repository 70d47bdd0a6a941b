//! The same request for another model, URL and credential.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::mem;
use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Uri};
use smallvec::SmallVec;

use crate::call::credential::{percent_decode, percent_encode};
use crate::call::upstream::{key_of, set};
use crate::call::{Call, CallBody, Describe, Key, SecretPlaces, Upstream, packed};

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

    /// Aims this request itself, and keeps what it was if another try may follow: what the first try asks for, which as a
    /// rule is the last one. A misfit leaves it as it is.
    #[doc(hidden)]
    #[inline]
    fn aim_away(&mut self, at: &Destination<'_>, keep: bool) -> Result<Option<Self>, Misfit> {
        let aimed = self.aim(at)?;
        let original = mem::replace(self, aimed);
        Ok(keep.then_some(original))
    }

    /// Makes what was kept the original again.
    #[doc(hidden)]
    #[inline]
    fn unpack(&mut self) {}
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
        let changes = Changes::of(self, at)?;
        let mut aimed = Self::default();
        *aimed.method_mut() = self.method().clone();
        *aimed.version_mut() = self.version();
        *aimed.headers_mut() = self.headers().clone();
        *aimed.extensions_mut() = self.extensions().clone();
        changes.make(&mut aimed, at);
        Ok(aimed)
    }

    fn aim_away(&mut self, at: &Destination<'_>, keep: bool) -> Result<Option<Self>, Misfit> {
        let changes = Changes::of(self, at)?;
        let body = mem::take(self.body_mut());
        let kept = keep.then(|| packed::pack(self, body));
        changes.make(self, at);
        Ok(kept)
    }

    fn unpack(&mut self) {
        packed::unpack_http(self);
    }
}

/// What is another thing at a destination. The length and the URL may be parts of one buffer with the body.
struct Changes {
    body: CallBody,
    uri: Uri,
    /// How long the body is, where it is another one.
    length: Option<HeaderValue>,
}

impl Changes {
    fn of(request: &Request<CallBody>, at: &Destination<'_>) -> Result<Self, Misfit> {
        let (body, uri) = (request.body(), request.uri());
        if !body.is_replayable() {
            return Err(Misfit::NotReplayable);
        }
        let (path, in_path) = aim_path(uri.path(), at.model);
        let query = uri.query().unwrap_or_default();
        let in_query = at.model.filter(|_| names_model(query));
        let query = in_query.map_or(query.into(), |model| aim_query(query, model, at.secrets));
        let keep = |key: &str| in_query.is_some() || !at.secrets.has_query(key);
        let own = at.upstream.own_credential().own_query();
        let write_uri =
            |write: &mut dyn FnMut(&str)| at.upstream.write_joined(&path, &query, keep, own, write);
        let mut room = 0;
        write_uri(&mut |part| room += part.len());
        let write_uri = |out: &mut Vec<u8>| write_uri(&mut |part| out.extend_from_slice(part.as_bytes()));

        let model = other_model(request, at.model);
        let rewritten = model.and_then(|model| {
            body.with_model_and(model.as_str(), DIGITS + room, |length, out| {
                out.extend_from_slice(decimal(length, &mut [0; DIGITS]));
                write_uri(out);
            })
        });
        let uri = |text: Bytes| at.upstream.uri_of(text).ok_or(Misfit::TooLong);
        if let Some((body, mut text)) = rewritten {
            let length = body.bytes().map_or(0, Bytes::len);
            let length = text.split_to(decimal(length, &mut [0; DIGITS]).len());
            let length = HeaderValue::from_maybe_shared(length).expect("digits are legal in a header");
            return Ok(Self { body, uri: uri(text)?, length: Some(length) });
        }
        // The URL alone names it, as at Gemini and Azure; or nothing does, where a list is asked for.
        let elsewhere = in_path || in_query.is_some() || body.bytes().is_some_and(Bytes::is_empty);
        if model.is_some() && !elsewhere {
            return Err(Misfit::NotRewritable);
        }
        let mut text = Vec::with_capacity(room);
        write_uri(&mut text);
        Ok(Self { body: body.clone(), uri: uri(Bytes::from(text))?, length: None })
    }

    fn make(self, request: &mut Request<CallBody>, at: &Destination<'_>) {
        let length = length_of(&self.body);
        *request.body_mut() = self.body;
        *request.uri_mut() = self.uri;
        let headers = request.headers_mut();
        remove_secrets(headers, at);
        at.upstream.dress(headers);
        match self.length {
            Some(value) => frame_by(headers, length, |_| value, true),
            None => frame(headers, length, false),
        }
        if let Some(call) = request.call_mut() {
            call.upstream = Some(at.upstream.name().clone());
            if let Some(model) = at.model {
                call.model = Some(model.clone());
            }
        }
    }
}

/// The model that a body is to name instead of its own.
fn other_model<'a>(request: &Request<CallBody>, model: Option<&'a Key>) -> Option<&'a Key> {
    let asked = request.extensions().get::<Call>().and_then(|call| call.model.as_ref());
    // A repeated name is made one even where the last of them fits.
    model.filter(|model| asked != Some(*model) || request.body().has_repeated_model())
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
    for end in memchr::memchr_iter(b'/', path.as_bytes()) {
        let is_before = matches!(path.get(at..end), Some("models" | "model" | "deployments"));
        if is_before && at > 0 {
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
pub(super) fn model_of_uri(uri: &Uri) -> Option<Key> {
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

/// The query with this model in the place of the one it names, and without secrets.
fn aim_query<'a>(query: &str, model: &Key, secrets: &SecretPlaces) -> Cow<'a, str> {
    let keep = |key: &str| !(secrets.has_query(key) || key == "model");
    let kept: Vec<&str> = query.split('&').filter(|pair| keep(key_of(pair))).collect();
    [&kept.join("&"), "&model=", &percent_encode(model.as_str(), b"")].concat().into()
}

/// Removes what proves callers' identity elsewhere, but for what this destination is to see of it.
fn remove_secrets(headers: &mut HeaderMap, at: &Destination<'_>) {
    let credential = at.upstream.own_credential();
    let keep = credential.kept_header();
    // The name of the own one is replaced.
    let own = credential.own_header().map(|(name, _)| name);
    let found: SmallVec<[&HeaderName; 4]> =
        headers.keys().filter_map(|name| at.secrets.find_header(name)).collect();
    for name in found.into_iter().filter(|name| Some(*name) != keep && Some(*name) != own) {
        headers.remove(name);
    }
    if let Some(name) = keep {
        mark_sensitive(headers, name);
    }
}

fn mark_sensitive(headers: &mut HeaderMap, name: &HeaderName) {
    if let http::header::Entry::Occupied(mut entry) = headers.entry(name) {
        entry.iter_mut().for_each(|value| value.set_sensitive(true));
    }
}

/// The length of a body that is all there and has no trailers.
fn length_of(body: &CallBody) -> Option<usize> {
    body.bytes().filter(|_| body.trailers().is_none()).map(Bytes::len)
}

/// Makes the headers that describe the body true again.
pub(super) fn frame(headers: &mut HeaderMap, length: Option<usize>, rewritten: bool) {
    let value = |length| HeaderValue::from_bytes(decimal(length, &mut [0; DIGITS]));
    let value = |length| value(length).expect("digits are legal in a header");
    frame_by(headers, length, value, rewritten);
}

fn frame_by(
    headers: &mut HeaderMap,
    length: Option<usize>,
    value: impl FnOnce(usize) -> HeaderValue,
    rewritten: bool,
) {
    if let Some(length) = length {
        let chunked = headers.remove(TRANSFER_ENCODING).is_some();
        if chunked || headers.contains_key(CONTENT_LENGTH) {
            set(headers, &CONTENT_LENGTH, value(length));
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
    // None has any of them, as a rule, nor a name of such a length.
    let may_be = |name: &&HeaderName| matches!(name.as_str().len(), 6 | 11 | 14);
    let digest = |name: &HeaderName| DIGESTS.iter().find(|digest| *digest == name);
    let found: SmallVec<[&HeaderName; 4]> = headers.keys().filter(may_be).filter_map(digest).collect();
    for name in found {
        headers.remove(name);
    }
}

/// The digits of the largest number.
const DIGITS: usize = 20;

/// A number in digits.
fn decimal(mut number: usize, digits: &mut [u8; DIGITS]) -> &[u8] {
    let mut start = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b"0123456789"[number % 10];
        number /= 10;
        start = at;
        if number == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
