//! What a request proves itself with, and how it is kept from others.

use std::fmt;

use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue, PROXY_AUTHORIZATION};

use crate::config_error::ConfigError;

/// What an upstream wants to see of a caller: a secret, and where it stands in a request.
///
/// Nothing shows the secret: neither [`Debug`] nor an error. In a request its header is marked sensitive.
///
/// ```
/// use seawall::call::Credential;
///
/// let most = Credential::bearer("sk-secret")?;
/// let some = Credential::header("x-api-key", "sk-secret")?;
/// assert!(!format!("{most:?} {some:?}").contains("secret"));
/// assert!(Credential::bearer("two\nlines").is_err());
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Credential(Kind);

#[derive(Clone)]
enum Kind {
    None,
    Header { name: HeaderName, value: HeaderValue },
    Query { name: Box<str>, value: Box<str> },
    FromCaller(HeaderName),
}

impl Credential {
    /// None: the request goes out without any.
    #[must_use]
    pub const fn none() -> Self {
        Self(Kind::None)
    }

    /// `Authorization: Bearer <token>`.
    ///
    /// # Errors
    ///
    /// `credential`: the token is empty or holds what no header may hold, a line end for example.
    pub fn bearer(token: &str) -> Result<Self, ConfigError> {
        let value = secret_value("credential", token, &["Bearer ", token].concat())?;
        Ok(Self(Kind::Header { name: AUTHORIZATION, value }))
    }

    /// A header of this name, such as `x-api-key`, with the secret as its whole value.
    ///
    /// # Errors
    ///
    /// `credential.header`: this is no name of a header. `credential`: as for [`bearer`](Self::bearer).
    pub fn header(name: &str, secret: &str) -> Result<Self, ConfigError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ConfigError::new("credential.header", "is not the name of a header"))?;
        Ok(Self(Kind::Header { name, value: secret_value("credential", secret, secret)? }))
    }

    /// A key of the query, such as `key`. What the query may not hold is percent-encoded.
    ///
    /// # Errors
    ///
    /// `credential.query`: the name is empty. `credential`: the secret is empty or holds a control character.
    pub fn query(name: &str, secret: &str) -> Result<Self, ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::new("credential.query", "must not be empty"));
        }
        secret_value("credential", secret, secret)?;
        let encode = |text: &str| percent_encode(text, b"").into_boxed_str();
        Ok(Self(Kind::Query { name: encode(name), value: encode(secret) }))
    }

    /// What the caller itself sent in this header, and in no other: for the one upstream that it was meant for.
    #[must_use]
    pub const fn from_caller(header: HeaderName) -> Self {
        Self(Kind::FromCaller(header))
    }

    /// The header it stands in.
    pub(super) fn header_name(&self) -> Option<&HeaderName> {
        match &self.0 {
            Kind::Header { name, .. } | Kind::FromCaller(name) => Some(name),
            Kind::None | Kind::Query { .. } => None,
        }
    }

    /// The header to set.
    pub(super) fn own_header(&self) -> Option<(&HeaderName, &HeaderValue)> {
        match &self.0 {
            Kind::Header { name, value } => Some((name, value)),
            _ => None,
        }
    }

    /// The header of the caller's that stays.
    pub(super) fn kept_header(&self) -> Option<&HeaderName> {
        match &self.0 {
            Kind::FromCaller(name) => Some(name),
            _ => None,
        }
    }

    /// The key and value to put into the query, percent-encoded.
    pub(super) fn own_query(&self) -> Option<(&str, &str)> {
        match &self.0 {
            Kind::Query { name, value } => Some((name, value)),
            _ => None,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::None => f.write_str("None"),
            Kind::Header { name, .. } => f.debug_tuple("Header").field(name).finish_non_exhaustive(),
            Kind::Query { name, .. } => f.debug_tuple("Query").field(name).finish_non_exhaustive(),
            Kind::FromCaller(name) => f.debug_tuple("FromCaller").field(name).finish(),
        }
    }
}

fn secret_value(field: &'static str, secret: &str, text: &str) -> Result<HeaderValue, ConfigError> {
    if secret.trim().is_empty() {
        return Err(ConfigError::new(field, "must not be empty"));
    }
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        ConfigError::new(field, "holds a line end or another character that no header may hold")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Where callers' and upstreams' secrets stand: what is removed from a request before it goes to another upstream.
///
/// By default the headers `authorization`, `proxy-authorization`, `cookie`, `x-api-key`, `api-key`, `x-goog-api-key`,
/// `x-goog-user-project`, `x-auth-token`, `x-amz-security-token`, `ocp-apim-subscription-key`, `openai-organization` and
/// `openai-project`, and the query keys `key`, `api_key`, `api-key`, `apikey`, `access_token`, `token` and
/// `subscription-key`. Add the places of every upstream's [`Credential`], and your own.
#[derive(Clone, Debug)]
#[must_use]
pub struct SecretPlaces {
    headers: Vec<HeaderName>,
    /// One bit for each of their names, by its length and its end.
    marks: u64,
    query: Vec<Box<str>>,
}

#[inline]
fn mark(name: &HeaderName) -> u64 {
    let name = name.as_str();
    let last = name.as_bytes().last().copied().unwrap_or_default();
    1 << ((name.len() + 3 * usize::from(last)) & 63)
}

impl SecretPlaces {
    /// With this header too.
    pub fn and_header(mut self, name: HeaderName) -> Self {
        if !self.headers.contains(&name) {
            self.marks |= mark(&name);
            self.headers.push(name);
        }
        self
    }

    /// With this key of the query too.
    pub fn and_query(mut self, name: &str) -> Self {
        if !self.has_query(name) {
            self.query.push(name.into());
        }
        self
    }

    /// With the place of this credential too.
    pub fn and_of(mut self, credential: &Credential) -> Self {
        if let Some(name) = credential.header_name() {
            self = self.and_header(name.clone());
        }
        if let Some((name, _)) = credential.own_query() {
            self = self.and_query(name);
        }
        self
    }

    pub(super) fn headers(&self) -> &[HeaderName] {
        &self.headers
    }

    /// This header's name, where secrets stand in it.
    #[inline]
    pub(super) fn find_header(&self, name: &HeaderName) -> Option<&HeaderName> {
        // Most names have another length and end than any of these.
        let may_be = self.marks & mark(name) != 0;
        if may_be { self.headers.iter().find(|secret| *secret == name) } else { None }
    }

    /// Whether this key of a query, as it stands there, names a secret. Case does not matter.
    pub(super) fn has_query(&self, key: &str) -> bool {
        let decoded;
        let key = if key.contains(['%', '+']) {
            decoded = percent_decode(key);
            decoded.as_str()
        } else {
            key
        };
        self.query.iter().any(|name| {
            name.eq_ignore_ascii_case(key)
                || (name.contains('%') && percent_decode(name).eq_ignore_ascii_case(key))
        })
    }
}

impl Default for SecretPlaces {
    fn default() -> Self {
        const HEADERS: [&str; 9] = [
            "x-api-key",
            "api-key",
            "x-goog-api-key",
            "x-goog-user-project",
            "x-auth-token",
            "x-amz-security-token",
            "ocp-apim-subscription-key",
            "openai-organization",
            "openai-project",
        ];
        const QUERY: [&str; 7] =
            ["key", "api_key", "api-key", "apikey", "access_token", "token", "subscription-key"];
        let mut headers = vec![AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE];
        headers.extend(HEADERS.map(HeaderName::from_static));
        let marks = headers.iter().fold(0, |marks, name| marks | mark(name));
        Self { headers, marks, query: QUERY.map(Box::from).into() }
    }
}

/// Percent-encodes what may not stand in one segment of a path or one part of a query; `also` stays as well.
pub(super) fn percent_encode(text: &str, also: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

/// Undoes percent-encoding; what is badly encoded stays as it is, and bad UTF-8 becomes U+FFFD.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|digit| char::from(*digit).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (byte, hex(1), hex(2)) {
            out.push(u8::try_from(high << 4 | low).unwrap_or(b'?'));
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
