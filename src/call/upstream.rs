//! A named endpoint with its base URL and credential.

use std::fmt;

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Uri, uri};

use crate::call::{Credential, Key, SecretPlaces};
use crate::config_error::ConfigError;

/// A named endpoint with its base URL, its credential, and headers of its own.
///
/// ```
/// use seawall::call::{Credential, Upstream};
///
/// let upstream = Upstream::new("groq", "https://api.groq.com/openai/v1")?
///     .credential(Credential::bearer("secret")?)
///     .header("x-team", "search")?;
/// let uri = upstream.join(&"/v1/chat/completions?trace=1".parse()?);
/// assert_eq!(uri.unwrap(), "https://api.groq.com/openai/v1/chat/completions?trace=1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Upstream {
    name: Key,
    scheme: Scheme,
    authority: Authority,
    host: HeaderValue,
    /// Without a slash at its end.
    path: Box<str>,
    query: Box<str>,
    strip: Box<str>,
    credential: Credential,
    headers: HeaderMap,
}

impl Upstream {
    /// An upstream of this name at this URL, without a credential.
    ///
    /// # Errors
    ///
    /// `name` is empty. `base_url` is no absolute URL of `http` or `https`, or has a user or password in it.
    pub fn new(name: impl Into<Key>, base_url: &str) -> Result<Self, ConfigError> {
        let wrong = |problem: &'static str| ConfigError::new("base_url", problem);
        let name = name.into();
        if name.as_str().is_empty() {
            return Err(ConfigError::new("name", "must not be empty"));
        }
        let uri: Uri = base_url.parse().map_err(|_| wrong("is not an absolute URL of http or https"))?;
        let parts = uri.into_parts();
        let scheme = parts
            .scheme
            .filter(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS)
            .ok_or_else(|| wrong("is not an absolute URL of http or https"))?;
        let authority = parts.authority.ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("must not hold a user or password: they belong in the credential"));
        }
        let authority =
            without_default_port(&scheme, authority).ok_or_else(|| wrong("has no usable host"))?;
        let host = HeaderValue::from_str(authority.as_str())
            .map_err(|_| wrong("has a host that no header can hold"))?;
        let (path, query) = match &parts.path_and_query {
            Some(both) => (both.path().trim_end_matches('/'), both.query().unwrap_or_default()),
            None => ("", ""),
        };
        Ok(Self {
            name,
            scheme,
            authority,
            host,
            path: path.into(),
            query: query.into(),
            strip: Box::default(),
            credential: Credential::none(),
            headers: HeaderMap::new(),
        })
    }

    /// With this credential. By default none is sent.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// With this header on every request, in the place of the caller's.
    ///
    /// # Errors
    ///
    /// `headers.<name>`: no header has such a name or value, or it is `host`, `content-length` or `transfer-encoding`,
    /// which follow from the URL and the body.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        const FOLLOW: [&str; 3] = ["host", "content-length", "transfer-encoding"];
        let wrong = |problem: &'static str| ConfigError::new(format!("headers.{name}"), problem);
        if FOLLOW.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(wrong("follows from the URL and the body"));
        }
        let key =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("is not the name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| wrong("holds a line end or another character that no header may hold"))?;
        value.set_sensitive(SecretPlaces::default().headers().contains(&key));
        self.headers.insert(key, value);
        Ok(self)
    }

    /// Takes these segments off the front of a request's path before it is joined, `/v1` for example where callers
    /// write it and this upstream has no such segment.
    ///
    /// # Errors
    ///
    /// `strip_prefix`: does not start with a slash.
    pub fn strip_prefix(mut self, prefix: &str) -> Result<Self, ConfigError> {
        if !prefix.starts_with('/') {
            return Err(ConfigError::new("strip_prefix", "must start with a slash"));
        }
        self.strip = prefix.trim_end_matches('/').into();
        Ok(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// What it wants to see of a caller.
    #[must_use]
    pub fn own_credential(&self) -> &Credential {
        &self.credential
    }

    /// The headers it sets on every request.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The value of [`HOST`] for it: its host, and its port where that is not the scheme's default.
    #[must_use]
    pub fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// Where a request to `uri` goes at this upstream: the path of the base URL, then the request's, with the segments
    /// that end the one and start the other only once: `/v1` and `/v1/chat` make `/v1/chat`, `/openai/v1` and `/v1/chat`
    /// make `/openai/v1/chat`, and `/a` and `/b` make `/a/b`. A request without a path goes to the base URL itself. The
    /// query is the request's, and the base URL's keys, which win. Nothing is decoded, normalised or encoded.
    ///
    /// `None` where both together are longer than a URL can be, 65 534 bytes.
    #[must_use]
    pub fn join(&self, uri: &Uri) -> Option<Uri> {
        let each = |write: &mut dyn FnMut(&str)| {
            self.write_joined(uri.path(), uri.query().unwrap_or_default(), |_| true, None, write);
        };
        // Twice, so that the text has its exact size: then it is one allocation and becomes the URL as it is.
        let mut length = 0;
        each(&mut |part| length += part.len());
        let mut out = Vec::with_capacity(length);
        each(&mut |part| out.extend_from_slice(part.as_bytes()));
        self.uri_of(Bytes::from(out))
    }

    /// Writes the path and query that are joined of these, with only those keys of the query that are to be kept and one
    /// more behind.
    pub(super) fn write_joined(
        &self,
        path: &str,
        query: &str,
        keep: impl Fn(&str) -> bool,
        more: Option<(&str, &str)>,
        mut write: impl FnMut(&str),
    ) {
        let path = strip_segments(path, &self.strip);
        let path = if path == "/" { "" } else { path.get(overlap(&self.path, path)..).unwrap_or(path) };
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        let empty = self.path.is_empty() && path.is_empty();
        [&*self.path, if empty { "/" } else { slash }, path].into_iter().for_each(&mut write);
        let own = |key: &str| pairs(&self.query).any(|pair| key_of(pair) == key);
        let kept = pairs(query).filter(|pair| keep(key_of(pair)) && !own(key_of(pair)));
        let mut separator = "?";
        for pair in kept.chain(pairs(&self.query)) {
            write(separator);
            write(pair);
            separator = "&";
        }
        if let Some((key, value)) = more {
            [separator, key, "=", value].into_iter().for_each(&mut write);
        }
    }

    /// The URL here with this path and query; `None` where it is too long for one.
    pub(super) fn uri_of(&self, path_and_query: Bytes) -> Option<Uri> {
        let mut parts = uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path_and_query).ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Sets the host, the credential and the headers of this upstream.
    pub(super) fn dress(&self, headers: &mut HeaderMap) {
        // Where there is none the client derives it from the URL.
        if headers.contains_key(HOST) {
            set(headers, &HOST, self.host.clone());
        }
        for (name, value) in &self.headers {
            set(headers, name, value.clone());
        }
        if let Some((name, value)) = self.credential.own_header() {
            set(headers, name, value.clone());
        }
    }
}

impl fmt::Debug for Upstream {
    /// Shows no value of a header and no query: secrets hide there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("base_url", &format_args!("{}://{}{}", self.scheme, self.authority, self.path))
            .field("credential", &self.credential)
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Makes this the one value of a header. A map that is full grows at an `insert` that only replaces; this does not.
pub(super) fn set(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    let single = headers.len() == headers.keys_len() || headers.get_all(name).iter().nth(1).is_none();
    match headers.get_mut(name) {
        Some(old) if single => *old = value,
        _ => drop(headers.insert(name, value)),
    }
}

fn without_default_port(scheme: &Scheme, authority: Authority) -> Option<Authority> {
    let default = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    if authority.host().is_empty() {
        return None;
    }
    match authority.port_u16() {
        Some(port) if port == default => authority.host().parse().ok(),
        _ => Some(authority),
    }
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

pub(super) fn key_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

/// The path without these segments at its front.
fn strip_segments<'a>(path: &'a str, prefix: &str) -> &'a str {
    match path.strip_prefix(prefix) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => path,
    }
}

/// How much of the start of `path` the base already ends with, in whole segments.
fn overlap(base: &str, path: &str) -> usize {
    // Longest first, so that `/a/v1` and `/a/v1/x` meet as a whole.
    base.match_indices('/')
        .map(|(at, _)| &base[at..])
        .find(|tail| path.strip_prefix(tail).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        .map_or(0, str::len)
}
