//! What a request asks for.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, Request};

use crate::call::{Key, Overrides, noted, time_left};
use crate::deadline::Deadline;

/// How urgent a call is: 0 is the least urgent, [`Priority::MAX`] the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The most urgent.
    pub const MAX: Self = Self(Self::LEVELS - 1);
    /// How many priorities there are.
    pub const LEVELS: u8 = 8;

    /// The priority of this level, or `None` for one of [`Priority::LEVELS`] or more.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if level < Self::LEVELS { Some(Self(level)) } else { None }
    }

    /// Its level.
    #[must_use]
    pub const fn level(self) -> u8 {
        self.0
    }
}

/// How much a request carries in and may bring out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// Input tokens, estimated; never meant as a bound.
    pub input_tokens: u64,
    /// The same before it was scaled by what is learned of the model: what
    /// [`Ratios::learn`](crate::call::tokens::Ratios::learn) compares with.
    pub unscaled_tokens: u64,
    /// Bytes of everything that becomes input: no byte-level tokenizer makes more tokens of it.
    pub input_bytes: u64,
    /// Whether parts of the input are only referred to (URLs, file ids), so that their size is not known.
    pub by_reference: bool,
}

impl Estimate {
    /// An estimate of these tokens, made from these bytes.
    #[must_use]
    pub const fn new(input_tokens: u64, input_bytes: u64) -> Self {
        Self { input_tokens, unscaled_tokens: input_tokens, input_bytes, by_reference: false }
    }
}

/// What a request asks for, written down once by the outermost layer and read by all others.
///
/// Over HTTP the intake layer fills it in and puts it into the request's extensions. Own types return theirs from
/// [`Describe::call`]. Everything is optional: a layer that misses a fact does without it.
///
/// ```
/// use http::Request;
/// use seawall::call::{Call, Describe, Key, Priority};
///
/// // What only the caller knows; the intake layer adds what the body says.
/// let mut call = Call::default();
/// (call.tenant, call.priority) = (Some("alice".into()), Some(Priority::MAX));
/// let mut request = Request::new(());
/// request.extensions_mut().insert(call);
/// assert_eq!(request.call().and_then(|call| call.tenant.as_ref()), Some(&Key::from("alice")));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each of its own meaning; no state machine"
)]
pub struct Call {
    /// The model asked for, as the caller named it.
    pub model: Option<Key>,
    /// The target's upstream, once a fallback has chosen one.
    pub upstream: Option<Key>,
    /// Whom the call belongs to: a verified identity.
    pub tenant: Option<Key>,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// The most output tokens that the caller allows.
    pub output_bound: Option<u64>,
    /// How many answers are asked for at once; `None` is one.
    pub choices: Option<u32>,
    /// What the input amounts to.
    pub estimate: Option<Estimate>,
    /// By when the whole call must be over.
    pub deadline: Option<Deadline>,
    /// How urgent it is; `None` is the least urgent.
    pub priority: Option<Priority>,
    /// Which attempt at this target this is, from 1; `None` where nobody counts.
    pub attempt: Option<u32>,
    /// The how-manieth target of its chain is asked, from 1; `None` where there is no chain. Targets that are passed over
    /// do not count.
    pub hop: Option<u32>,
    /// The service tier asked for, where the upstream has prices by tier: `flex`, `priority`.
    pub service_tier: Option<Key>,
    /// Whether it is known to cost nothing at its upstream, a list of files say: no budget is asked for it.
    pub free: bool,
    /// Whether another target is left if this one fails: layers below are then less patient.
    pub another_target: bool,
    /// Marks the one attempt that may pass an open circuit breaker, because all targets are out.
    pub probe: bool,
    /// Whether another target has failed this very request with an answer that may be the request's fault (a 500, say):
    /// a breaker can be told not to count the same failure again.
    pub failed_elsewhere: bool,
    /// The most attempts that may be made at this target, the first one included: its share of what the whole chain may
    /// make. `None` is no bound.
    pub most_attempts: Option<NonZeroU32>,
    /// Whether the body can be sent again.
    pub replayable: bool,
    /// Whether the model can be rewritten in the body.
    pub rewritable: bool,
}

/// A request that can say what it asks for.
///
/// Implemented for [`http::Request`], whose [`Call`] and [`Deadline`] are extensions. For an own type the empty
/// implementation is enough to use every layer; return a [`Call`] where deadline, priority, key or cost matter.
///
/// ```
/// use seawall::call::{Call, Describe};
///
/// struct ChatRequest { prompt: String, call: Call }
///
/// impl Describe for ChatRequest {
///     fn call(&self) -> Option<&Call> { Some(&self.call) }
///     fn call_mut(&mut self) -> Option<&mut Call> { Some(&mut self.call) }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it asks for",
    label = "this request type is not described",
    note = "`impl seawall::call::Describe for {Self} {{}}` is enough; all its methods have defaults",
    note = "or build the layer with `.blind()`, which reads nothing from a request; \
            or wrap a foreign type in `seawall::call::Tagged`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Describe {
    /// The facts of this request, if they were written down.
    fn call(&self) -> Option<&Call> {
        None
    }

    /// The same, to be changed by a layer.
    fn call_mut(&mut self) -> Option<&mut Call> {
        None
    }

    /// By when the whole call must be over.
    fn deadline(&self) -> Option<Deadline> {
        self.call().and_then(|call| call.deadline)
    }

    /// Sets by when the whole call must be over, for all layers below.
    fn set_deadline(&mut self, deadline: Deadline) {
        if let Some(call) = self.call_mut() {
            call.deadline = Some(deadline);
        }
    }

    /// Tells the time left to the upstream, in a header of this name where the request has headers.
    fn tell_time_left(&mut self, header: &HeaderName, left: Duration) {
        let _ = (header, left);
    }

    /// The time that the caller gives, as a header of this name says where the request has headers.
    fn time_left(&self, header: &HeaderName) -> Option<Duration> {
        let _ = header;
        None
    }

    /// Whether its response has a head only: HTTP's `HEAD`.
    fn expects_no_body(&self) -> bool {
        false
    }

    /// Whether doing it twice is the same as doing it once. Over HTTP: an idempotent method (RFC 9110), or an
    /// `Idempotency-Key`.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Whether this call may be sent again at the same target. Over HTTP: unless [`Once`] is among the extensions.
    fn may_repeat(&self) -> bool {
        true
    }

    /// Writes down which attempt at this target this is, from 1: into the [`Call`] where there is one. Over HTTP without
    /// a call an [`AttemptNumber`] is put into the extensions from the second attempt on.
    fn set_attempt(&mut self, number: u32) {
        if let Some(call) = self.call_mut() {
            call.attempt = Some(number);
        }
    }

    /// The headers, where the request has some.
    fn headers_mut(&mut self) -> Option<&mut HeaderMap> {
        None
    }

    /// What the call says about its targets itself. Over HTTP: the [`Overrides`] among the extensions.
    fn overrides(&self) -> Option<&Overrides> {
        None
    }
}

/// An extension of an `http::Request` that shall not be retried: one call opts out.
///
/// ```
/// use seawall::call::{Describe, Once};
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Once);
/// assert!(!request.may_repeat());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Once;

/// An extension of an `http::Request` without a [`Call`]: which attempt at this target this is. Where it is missing, it
/// is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptNumber(pub u32);

impl<B> Describe for Request<B> {
    fn call(&self) -> Option<&Call> {
        self.extensions().get()
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        self.extensions_mut().get_mut()
    }

    fn deadline(&self) -> Option<Deadline> {
        noted::deadline(self.extensions())
    }

    fn set_deadline(&mut self, deadline: Deadline) {
        noted::set_deadline(self.extensions_mut(), deadline);
    }

    fn tell_time_left(&mut self, header: &HeaderName, left: Duration) {
        self.headers_mut().insert(header.clone(), time_left::write(header, left));
    }

    fn time_left(&self, header: &HeaderName) -> Option<Duration> {
        time_left::read(header, self.headers().get(header)?)
    }

    fn expects_no_body(&self) -> bool {
        *self.method() == Method::HEAD
    }

    fn is_idempotent(&self) -> bool {
        self.method().is_idempotent() || self.headers().contains_key("idempotency-key")
    }

    fn may_repeat(&self) -> bool {
        self.extensions().get::<Once>().is_none()
    }

    fn set_attempt(&mut self, number: u32) {
        noted::set_attempt(self.extensions_mut(), number);
    }

    fn headers_mut(&mut self) -> Option<&mut HeaderMap> {
        Some(self.headers_mut())
    }

    fn overrides(&self) -> Option<&Overrides> {
        self.extensions().get()
    }
}

impl<R: Describe> Describe for Box<R> {
    fn call(&self) -> Option<&Call> {
        (**self).call()
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        (**self).call_mut()
    }

    fn deadline(&self) -> Option<Deadline> {
        (**self).deadline()
    }

    fn set_deadline(&mut self, deadline: Deadline) {
        (**self).set_deadline(deadline);
    }

    fn tell_time_left(&mut self, header: &HeaderName, left: Duration) {
        (**self).tell_time_left(header, left);
    }

    fn time_left(&self, header: &HeaderName) -> Option<Duration> {
        (**self).time_left(header)
    }

    fn expects_no_body(&self) -> bool {
        (**self).expects_no_body()
    }

    fn is_idempotent(&self) -> bool {
        (**self).is_idempotent()
    }

    fn may_repeat(&self) -> bool {
        (**self).may_repeat()
    }

    fn set_attempt(&mut self, number: u32) {
        (**self).set_attempt(number);
    }

    fn headers_mut(&mut self) -> Option<&mut HeaderMap> {
        (**self).headers_mut()
    }

    fn overrides(&self) -> Option<&Overrides> {
        (**self).overrides()
    }
}

// A request of `()` or of a primitive has nothing to say; tests and examples use them.
macro_rules! silent {
    ($($type:ty),+) => {$(impl Describe for $type {})+};
}
silent!((), bool, u8, u16, u32, u64, usize, i32, i64, String, &'static str, Infallible);

/// A foreign request type together with its [`Call`].
///
/// ```
/// use seawall::{BoxError, bulkhead::BulkheadLayer, call::{Call, Tagged}};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # let _ = async {
/// let service = ServiceBuilder::new()
///     .layer(BulkheadLayer::new(8).at_head())
///     .service_fn(|prompt: Tagged<Vec<u8>>| async move { Ok::<_, BoxError>(prompt.request.len()) });
/// service.oneshot(Tagged { request: vec![1, 2], call: Call::default() }).await
/// # };
/// ```
#[derive(Clone, Debug)]
pub struct Tagged<R> {
    /// The request itself.
    pub request: R,
    /// What it asks for.
    pub call: Call,
}

impl<R> Describe for Tagged<R> {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        Some(&mut self.call)
    }
}

/// How a layer reads a request: the one type parameter for all that it wants to know.
///
/// [`Described`] asks the request's own [`Describe`]; [`Blind`] reads nothing and so takes any request. Sealed: layers
/// have closures to read a single fact in another way.
pub trait Read<Req>: sealed::Sealed {
    /// The facts of the request.
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call>;
    /// The same, to be changed.
    fn call_mut<'r>(&self, request: &'r mut Req) -> Option<&'r mut Call>;
    /// By when the whole call must be over.
    fn deadline(&self, request: &Req) -> Option<Deadline>;
    /// Sets by when the whole call must be over, for all layers below.
    fn set_deadline(&self, request: &mut Req, deadline: Deadline);
    /// Tells the time left to the upstream.
    fn tell_time_left(&self, request: &mut Req, header: &HeaderName, left: Duration);
    /// The time that the caller gives.
    fn time_left(&self, request: &Req, header: &HeaderName) -> Option<Duration>;
    /// See [`Describe::is_idempotent`].
    fn is_idempotent(&self, request: &Req) -> bool;
    /// See [`Describe::may_repeat`].
    fn may_repeat(&self, request: &Req) -> bool;
    /// See [`Describe::set_attempt`].
    fn set_attempt(&self, request: &mut Req, number: u32);
    /// See [`Describe::headers_mut`].
    fn headers_mut<'r>(&self, request: &'r mut Req) -> Option<&'r mut HeaderMap>;
}

/// Reads what the request says of itself: the default of every layer.
#[derive(Clone, Copy, Default)]
pub struct Described;

/// Reads nothing, and so serves any request type.
#[derive(Clone, Copy, Default)]
pub struct Blind;

impl<Req: Describe> Read<Req> for Described {
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        request.call()
    }

    fn call_mut<'r>(&self, request: &'r mut Req) -> Option<&'r mut Call> {
        request.call_mut()
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        request.deadline()
    }

    fn set_deadline(&self, request: &mut Req, deadline: Deadline) {
        request.set_deadline(deadline);
    }

    fn tell_time_left(&self, request: &mut Req, header: &HeaderName, left: Duration) {
        request.tell_time_left(header, left);
    }

    fn time_left(&self, request: &Req, header: &HeaderName) -> Option<Duration> {
        request.time_left(header)
    }

    fn is_idempotent(&self, request: &Req) -> bool {
        request.is_idempotent()
    }

    fn may_repeat(&self, request: &Req) -> bool {
        request.may_repeat()
    }

    fn set_attempt(&self, request: &mut Req, number: u32) {
        request.set_attempt(number);
    }

    fn headers_mut<'r>(&self, request: &'r mut Req) -> Option<&'r mut HeaderMap> {
        request.headers_mut()
    }
}

impl<Req> Read<Req> for Blind {
    fn call<'r>(&self, _request: &'r Req) -> Option<&'r Call> {
        None
    }

    fn call_mut<'r>(&self, _request: &'r mut Req) -> Option<&'r mut Call> {
        None
    }

    fn deadline(&self, _request: &Req) -> Option<Deadline> {
        None
    }

    fn set_deadline(&self, _request: &mut Req, _deadline: Deadline) {}

    fn tell_time_left(&self, _request: &mut Req, _header: &HeaderName, _left: Duration) {}

    fn time_left(&self, _request: &Req, _header: &HeaderName) -> Option<Duration> {
        None
    }

    fn is_idempotent(&self, _request: &Req) -> bool {
        false
    }

    fn may_repeat(&self, _request: &Req) -> bool {
        true
    }

    fn set_attempt(&self, _request: &mut Req, _number: u32) {}

    fn headers_mut<'r>(&self, _request: &'r mut Req) -> Option<&'r mut HeaderMap> {
        None
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Described")
    }
}

impl fmt::Debug for Blind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blind")
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Described {}
    impl Sealed for super::Blind {}
}
