//! A caller's request on its way to an upstream, and the answer on its way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::body::Body;
use axum::extract::State;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use seawall::BoxError;
use seawall::call::{Call, Overrides};
use seawall::config::Client;
use seawall::fallback::Served;
use tower::ServiceExt;
use tower_http::timeout::{TimeoutBody, TimeoutError};
use tracing::{Instrument, info_span};

use super::errors;
use super::paced::paced;
use super::state::{Current, Gateway, Limits};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The paths whose requests name a model. All others go to the default route's first target.
const BY_MODEL: [&str; 5] =
    ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages"];

/// Everything under `/v1/`.
pub(crate) async fn proxy(State(gateway): State<Gateway>, mut request: Request<Body>) -> Response<Body> {
    let began = seawall::time::now();
    let id = take_id(request.headers_mut());
    let line = (!gateway.options().quiet).then(|| format!("{} {}", request.method(), request.uri().path()));
    let current = gateway.current();
    let span = info_span!("request", request_id = id.to_str().unwrap_or("-"));
    let as_anthropic = request.uri().path().starts_with("/v1/messages");
    let by_streams = request.version() == Version::HTTP_2;
    let fault = Fault::default();
    let mut response = match prepare(&current, gateway.options().limits, request, &id, &fault) {
        Ok(request) => match current.client.clone().oneshot(request).instrument(span).await {
            Ok(response) if by_streams => {
                let unread = gateway.options().limits.unread;
                response.map(|body| paced(Body::new(body), unread))
            }
            Ok(response) => response.map(Body::new),
            // What the stack makes of half a request is no help to who sent it.
            Err(error) => fault.told().unwrap_or_else(|| errors::failed(&error)),
        },
        Err(response) => *response,
    };
    if as_anthropic {
        response = errors::for_anthropic(response, &id);
    }
    drop_hop_by_hop(response.headers_mut());
    if let Some(line) = line {
        let served = response.extensions().get::<Served>();
        let by = served.map_or_else(|| "-".to_owned(), |served| served.target().to_string());
        let asked = served.map_or(0, |served| served.attempts().asked());
        let (status, id) = (response.status().as_u16(), id.to_str().unwrap_or("-"));
        println!("{status} {line} by {by}, {asked} asked, head after {:.0?}, {id}", began.elapsed());
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The request as the stack takes it, or why it goes no further.
fn prepare(
    current: &Current,
    limits: Limits,
    mut request: Request<Body>,
    id: &HeaderValue,
    fault: &Fault,
) -> Result<Request<Body>, Box<Response<Body>>> {
    let no = |status, code, message| Err(Box::new(errors::error(status, code, message)));
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH) {
        let message = "A request has a length or is chunked, not both.";
        return no(StatusCode::BAD_REQUEST, "ambiguous_length", message);
    }
    let by_model = BY_MODEL.contains(&request.uri().path());
    let largest = if by_model { limits.largest.min(current.config.max_body()) } else { limits.largest };
    if length(headers).is_some_and(|length| length > largest as u64) {
        return Err(Box::new(errors::too_large()));
    }
    if climbs(request.uri().path()) {
        return no(StatusCode::BAD_REQUEST, "invalid_path", "A path must not climb.");
    }
    if let Some(client) = authenticate(current, request.headers())? {
        request.extensions_mut().insert(client);
    }
    if !by_model {
        request.extensions_mut().insert(Overrides::new().no_fallback());
        // Who only looks something up, or takes it away, is billed nothing.
        let mut call = Call::default();
        call.free = request.method().is_safe() || request.method() == Method::DELETE;
        request.extensions_mut().insert(call);
    }
    if !current.config.clients().is_empty() {
        // The gateway's own key is nobody else's business, whatever the upstream's credential is.
        request.headers_mut().remove(AUTHORIZATION);
        request.headers_mut().remove(API_KEY);
    }
    drop_hop_by_hop(request.headers_mut());
    // What is spoken on the next connection is its own: a client refuses HTTP/2 on one that speaks HTTP/1.
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let fault = fault.clone();
    let limited = |body| TimeoutBody::new(limits.silence, Limited::new(body, largest));
    Ok(request.map(|body| Body::new(limited(body).map_err(move |error| fault.note(error)))))
}

/// What was wrong with a request's body, once that is known.
#[derive(Clone, Default)]
struct Fault(Arc<AtomicU8>);

impl Fault {
    const TOO_LARGE: u8 = 1;
    const TOO_SLOW: u8 = 2;
    const BROKEN: u8 = 3;

    fn note(&self, error: BoxError) -> BoxError {
        let first: &(dyn std::error::Error + 'static) = &*error;
        let mut chain = std::iter::successors(Some(first), |link| link.source());
        let what = chain.find_map(|link| match link {
            link if link.is::<LengthLimitError>() => Some(Self::TOO_LARGE),
            link if link.is::<TimeoutError>() => Some(Self::TOO_SLOW),
            _ => None,
        });
        self.0.store(what.unwrap_or(Self::BROKEN), Ordering::Relaxed);
        error
    }

    fn told(&self) -> Option<Response<Body>> {
        match self.0.load(Ordering::Relaxed) {
            Self::TOO_LARGE => Some(errors::too_large()),
            Self::TOO_SLOW => {
                let message = "The request did not arrive in time.";
                Some(errors::error(StatusCode::REQUEST_TIMEOUT, "request_too_slow", message))
            }
            Self::BROKEN => {
                let message = "The request did not arrive whole.";
                Some(errors::error(StatusCode::BAD_REQUEST, "request_incomplete", message))
            }
            _ => None,
        }
    }
}

/// Who calls; nobody in particular, where no clients are configured.
pub(crate) fn authenticate(
    current: &Current,
    headers: &HeaderMap,
) -> Result<Option<Client>, Box<Response<Body>>> {
    let clients = current.config.clients();
    if clients.is_empty() {
        return Ok(None);
    }
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(b"Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(key)
    });
    let key = bearer.or_else(|| headers.get(API_KEY).map(HeaderValue::as_bytes));
    if let Some(client) = key.and_then(|key| clients.find(key)) {
        return Ok(Some(client.clone()));
    }
    let message = "Incorrect API key provided: this gateway does not know it.";
    Err(Box::new(errors::error(StatusCode::UNAUTHORIZED, "invalid_api_key", message)))
}

/// The caller's own id for this request, if it has a sound one, else a new one.
pub(crate) fn take_id(headers: &mut HeaderMap) -> HeaderValue {
    let sound = |value: &HeaderValue| {
        let text = value.as_bytes();
        (1..=128).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
    };
    headers.remove(REQUEST_ID).filter(sound).unwrap_or_else(|| {
        let id = format!("{:032x}", fastrand::u128(..));
        HeaderValue::from_str(&id).expect("hexadecimal digits can stand in a header")
    })
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether a path leaves the place that it seems to be in, for whoever resolves it.
fn climbs(path: &str) -> bool {
    let decoded = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
    let decoded = decoded.replace("%5c", "\\").replace("%5C", "\\");
    decoded.contains('\\') || decoded.split('/').any(|segment| segment == "." || segment == "..")
}

/// Removes what concerns one connection alone (RFC 9110, section 7.6.1).
fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let always = [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in always.into_iter().chain(named) {
        headers.remove(name);
    }
}
