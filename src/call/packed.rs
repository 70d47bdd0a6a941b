//! A request over HTTP that is kept for a later attempt.
//!
//! Later attempts are rare, and a clone of a request is an allocation for nearly each of its parts: two for its headers and
//! one for each name that `http` does not know, three for its extensions. So what is kept is packed in one allocation, and
//! made a request again only when there is a later attempt. Until then it is a request without anything but a body that is
//! all of it: whoever packs a request unpacks it before anybody else sees it.

use std::any::Any;
use std::fmt;

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use smallvec::SmallVec;

use crate::call::{Call, CallBody};

/// A copy that is kept while a request is sent, if it can be sent again: packed, where it is one over HTTP.
#[inline]
pub(crate) fn keep<Req: Clone + 'static>(request: &Req) -> Option<Req> {
    let any: &dyn Any = request;
    let Some(http) = any.downcast_ref::<Request<CallBody>>() else { return Some(request.clone()) };
    keep_http(http)
}

#[inline(never)]
fn keep_http<Req: 'static>(request: &Request<CallBody>) -> Option<Req> {
    // The one body that can be cloned and yet not be sent again; every other is asked by being cloned.
    let mut kept = request.body().is_replayable().then(|| pack(request, request.body().clone()));
    let kept: &mut dyn Any = &mut kept;
    kept.downcast_mut().and_then(Option::take)
}

/// What was kept, as it was before.
#[inline]
pub(crate) fn unpack<Req: 'static>(kept: &mut Req) {
    let any: &mut dyn Any = kept;
    if let Some(http) = any.downcast_mut() {
        unpack_http(http);
    }
}

/// All of a request, as a body. `body` is the one to keep.
pub(crate) fn pack(request: &Request<CallBody>, body: CallBody) -> Request<CallBody> {
    Request::new(CallBody::packed(Packed::of(request, body)))
}

/// The request that was packed; any other stays as it is.
#[cold]
pub(crate) fn unpack_http(request: &mut Request<CallBody>) {
    if let Some(packed) = request.body_mut().take_packed() {
        *request = packed.into_request();
    }
}

/// What a request is made of again.
#[derive(Clone)]
pub(super) struct Packed {
    method: Method,
    uri: Uri,
    version: Version,
    /// Most requests have no other extension.
    call: Option<Call>,
    extensions: Extensions,
    pub(super) body: CallBody,
    /// How many names there are.
    names: usize,
    headers: Text,
}

/// The headers, one behind the other: as a rule there is room for them here.
type Text = SmallVec<[u8; 1024]>;

/// In front of each header: the length of its name, that of its value, and whether that is sensitive.
const FRONT: usize = 2 + size_of::<usize>() + 1;

impl Packed {
    /// `body` is the one to keep.
    fn of(request: &Request<CallBody>, body: CallBody) -> Box<Self> {
        let call = request.extensions().get::<Call>().filter(|_| request.extensions().len() == 1).cloned();
        let extensions = if call.is_some() { Extensions::new() } else { request.extensions().clone() };
        let mut packed = Box::new(Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            call,
            extensions,
            body,
            names: request.headers().keys_len(),
            headers: Text::new(),
        });
        packed.write(request.headers());
        packed
    }

    fn write(&mut self, headers: &HeaderMap) {
        let length = |(name, value): (&HeaderName, &HeaderValue)| FRONT + name.as_str().len() + value.len();
        let length = headers.iter().map(length).sum();
        self.headers.reserve_exact(length);
        self.headers.resize(length, 0);
        let mut to = &mut self.headers[..];
        for (name, value) in headers {
            let (name, sensitive) = (name.as_str().as_bytes(), u8::from(value.is_sensitive()));
            let length = u16::try_from(name.len()).expect("a name has 65 535 bytes at most");
            to = put(to, &length.to_ne_bytes());
            to = put(to, &value.len().to_ne_bytes());
            to = put(to, &[sensitive]);
            to = put(to, name);
            to = put(to, value.as_bytes());
        }
    }

    fn into_request(self: Box<Self>) -> Request<CallBody> {
        let packed = *self;
        let mut headers = HeaderMap::with_capacity(packed.names);
        let mut rest = &packed.headers[..];
        while let Some((name, value, behind)) = first_header(rest) {
            headers.append(name, value);
            rest = behind;
        }
        let mut request = Request::new(packed.body);
        *request.method_mut() = packed.method;
        *request.uri_mut() = packed.uri;
        *request.version_mut() = packed.version;
        *request.headers_mut() = headers;
        *request.extensions_mut() = packed.extensions;
        if let Some(call) = packed.call {
            request.extensions_mut().insert(call);
        }
        request
    }
}

/// Writes to the start of this, and gives the rest of it.
#[inline]
fn put<'t>(to: &'t mut [u8], bytes: &[u8]) -> &'t mut [u8] {
    let (here, rest) = to.split_at_mut(bytes.len());
    here.copy_from_slice(bytes);
    rest
}

/// The first header of a text, and what is behind it.
fn first_header(text: &[u8]) -> Option<(HeaderName, HeaderValue, &[u8])> {
    let (length, rest) = text.split_first_chunk()?;
    let of_name = usize::from(u16::from_ne_bytes(*length));
    let (length, rest) = rest.split_first_chunk()?;
    let of_value = usize::from_ne_bytes(*length);
    let (&sensitive, rest) = rest.split_first()?;
    let (name, rest) = rest.split_at_checked(of_name)?;
    let (value, rest) = rest.split_at_checked(of_value)?;
    let name = HeaderName::from_bytes(name).expect("it was the name of a header");
    let mut value = HeaderValue::from_bytes(value).expect("it was the value of a header");
    value.set_sensitive(sensitive == 1);
    Some((name, value, rest))
}

/// Shows nothing of it: secrets are among its headers.
impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
