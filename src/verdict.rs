//! What an answer means: the one vocabulary that every layer decides from.
//!
//! A provider can say "no" in many ways: a status, a code in a JSON body, an error event inside a stream that began
//! with 200, a trailer. A [`Verdict`] is what all of these come down to: a [`Class`] (what happened), a [`Scope`]
//! (what it happened to), and the wait that the upstream asked for.
//!
//! Verdicts are made by a [`Classify`]. Over HTTP the default is [`StatusClassifier`], which takes the verdict of the
//! [`Outcome`](crate::call::Outcome) where one was read, and decides by status alone where none was. For own types
//! give a closure to [`from_fn`] or implement the trait.
//!
//! ```
//! use seawall::{Class, Classify, Verdict, classify};
//!
//! struct Answer { text: String, overloaded: bool }
//!
//! let classifier = classify::from_fn(|result: Result<&Answer, &std::io::Error>| match result {
//!     Ok(answer) if answer.overloaded => Verdict::new(Class::Throttled),
//!     Ok(_) => Verdict::SUCCESS,
//!     Err(_) => Verdict::new(Class::Transient),
//! });
//! let busy = Answer { text: String::new(), overloaded: true };
//! assert_eq!(classifier.classify(Ok(&busy)).class(), Class::Throttled);
//! ```

use std::num::NonZeroU64;
use std::time::Duration;

use http::{Response, StatusCode};

use crate::call::Outcome;
use crate::refusal::Failure;

/// What happened to an attempt.
///
/// The comment of each variant says what the layers make of it: whether a retry at the same target helps, whether
/// another target may, and what a circuit breaker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A good answer. The breaker counts a success.
    Success,
    /// A limit by the minute (429, `RESOURCE_EXHAUSTED`). Retried after the hint; other targets may serve; neutral for
    /// the breaker, since a limit is no outage.
    Throttled,
    /// A failure that may pass: 408, 409, 500, 502–504, 524, 529, a reset, a truncated stream. Retried; other targets
    /// may serve; the breaker counts a failure.
    Transient,
    /// A phase of a timeout ran out: no head, no content, or silence. Repeated at the same target only where no other
    /// is left; the breaker counts a failure.
    Stalled,
    /// A quota, a credit or a budget at the provider is used up. Never retried; another credential or model may serve;
    /// the breaker opens at once.
    Exhausted,
    /// The credential is not accepted (401, a key or account code with 403). Never retried; the breaker opens at once
    /// where the credential is the upstream's own.
    Denied,
    /// This target cannot serve this request: the context is too long, the model unknown. Another target may; neutral
    /// for the breaker.
    Unfit,
    /// The request itself is at fault (400, 413, 422, a policy). Nothing helps; neutral for the breaker: the server
    /// answered.
    Invalid,
    /// One of our own layers refused; the upstream was not asked. Never retried at the same target; another may serve;
    /// neutral for every breaker.
    Refused,
    /// The caller went away before the answer was complete.
    Abandoned,
}

/// What a failure concerns: how far one must go to get away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// This request alone.
    Request,
    /// The model, or the model's limit, at this upstream.
    Model,
    /// The account or credential.
    Account,
    /// The upstream as a whole.
    Upstream,
}

/// A detail some layers look at beyond the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing beyond the class.
    Unspecified,
    /// The context is longer than the model takes: only a larger one helps.
    Context,
    /// The model is not known or not open to this account.
    Model,
    /// The request alone asks for more than the limit allows at all.
    Limit,
    /// A content policy or safety filter.
    Policy,
    /// The provider is short of capacity, whatever the own quota says.
    Capacity,
}

/// How far the attempt got before it failed, where that can be proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reach {
    /// Nothing was sent: the connection was never made, or one of our layers refused.
    Unsent,
    /// It was sent, and the upstream proved that it did not process it.
    Unprocessed,
    /// It may have been processed, and billed.
    Unknown,
}

/// What an attempt's outcome means, for every layer alike.
///
/// ```
/// use std::time::Duration;
/// use seawall::{Class, Scope, Verdict};
///
/// let limited = Verdict::new(Class::Throttled).with_scope(Scope::Model).with_hint(Some(Duration::from_secs(2)));
/// assert!(!limited.is_success());
/// assert_eq!(limited.hint(), Some(Duration::from_secs(2)));
/// // What a status says by itself.
/// assert_eq!(Verdict::of_status(http::StatusCode::BAD_GATEWAY).class(), Class::Transient);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    class: Class,
    scope: Scope,
    reason: Reason,
    reach: Reach,
    /// Whole nanoseconds, so that a verdict is small: permits carry one.
    hint: Option<NonZeroU64>,
}

impl Verdict {
    /// A good answer.
    pub const SUCCESS: Self = Self::new(Class::Success);

    /// A verdict of this class, with the scope that is usual for it and no hint.
    #[must_use]
    pub const fn new(class: Class) -> Self {
        let scope = match class {
            Class::Success | Class::Invalid | Class::Refused | Class::Abandoned => Scope::Request,
            Class::Throttled | Class::Unfit => Scope::Model,
            Class::Exhausted | Class::Denied => Scope::Account,
            Class::Transient | Class::Stalled => Scope::Upstream,
        };
        let reach = match class {
            Class::Refused => Reach::Unsent,
            _ => Reach::Unknown,
        };
        Self { class, scope, reason: Reason::Unspecified, reach, hint: None }
    }

    /// The verdict that a status alone allows. Codes in a body say more: see
    /// [`provider`](crate::provider).
    #[must_use]
    pub fn of_status(status: StatusCode) -> Self {
        let class = match status.as_u16() {
            402 => Class::Exhausted,
            401 => Class::Denied,
            // 498 is a provider's word for "flex capacity is used up"; 524 and 529 are a proxy's and a provider's
            // words for "too slow" and "overloaded". None is in the register of status codes.
            408 | 409 | 498 | 500..=599 => Class::Transient,
            404 => return Self::new(Class::Unfit),
            429 => Class::Throttled,
            400..=499 => Class::Invalid,
            _ => Class::Success,
        };
        Self::new(class)
    }

    /// With another scope.
    #[must_use]
    pub const fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// With a reason.
    #[must_use]
    pub const fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = reason;
        self
    }

    /// With a proof of how far the attempt got.
    #[must_use]
    pub const fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// With the wait that the upstream asked for. Zero is no hint.
    #[must_use]
    pub const fn with_hint(mut self, hint: Option<Duration>) -> Self {
        self.hint = match hint {
            // Beyond 584 years a wait is as long as it gets.
            Some(wait) if wait.as_nanos() > u64::MAX as u128 => Some(NonZeroU64::MAX),
            Some(wait) => NonZeroU64::new(wait.as_secs() * 1_000_000_000 + wait.subsec_nanos() as u64),
            None => None,
        };
        self
    }

    /// What happened.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// What it concerns.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// A detail beyond the class.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// How far the attempt got.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The wait that the upstream asked for, if it asked for one; never zero.
    #[must_use]
    pub const fn hint(&self) -> Option<Duration> {
        match self.hint {
            Some(nanos) => Some(Duration::from_nanos(nanos.get())),
            None => None,
        }
    }

    /// Whether this is a good answer.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.class, Class::Success)
    }
}

/// Tells what a response or an error means.
///
/// The error type is the inner service's, and need not be `Sync`. A classifier is called with a reference, and never
/// under a lock; if it panics, that call alone is harmed.
///
/// ```
/// use seawall::{BoxError, Class, Classify, Failure, Verdict};
///
/// struct Reply { text: String }
///
/// /// An empty reply is a failure that may pass.
/// struct ByText;
///
/// impl Classify<Reply, BoxError> for ByText {
///     fn classify(&self, result: Result<&Reply, &BoxError>) -> Verdict {
///         match result {
///             Ok(reply) if reply.text.is_empty() => Verdict::new(Class::Transient),
///             Ok(_) => Verdict::SUCCESS,
///             // A refusal of a layer below keeps its meaning.
///             Err(error) => error.refusal().map_or(Verdict::new(Class::Transient), |refusal| refusal.verdict()),
///         }
///     }
/// }
///
/// assert_eq!(ByText.classify(Ok(&Reply { text: String::new() })).class(), Class::Transient);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell what `{Res}` means",
    label = "no classifier for this response type",
    note = "the default reads the status of an `http::Response`; for your own type give the layer a classifier: \
            `.classify(seawall::classify::responses(|response: &MyResponse| Verdict::SUCCESS))`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Classify<Res, E> {
    /// The verdict on a result, from what is known when the head is there.
    fn classify(&self, result: Result<&Res, &E>) -> Verdict;

    /// The HTTP status of a response, where it has one: for rules by status, and for what is told of a failure later.
    fn status(&self, response: &Res) -> Option<StatusCode> {
        let _ = response;
        None
    }
}

/// Over HTTP: the verdict of the [`Outcome`] if one was read, else by status; an error is one of our own refusals, the
/// caller's own ([`Class::Invalid`]: the body of its request failed), or else [`Class::Transient`].
///
/// ```
/// use seawall::{BoxError, Class, Classify, StatusClassifier};
///
/// let response = http::Response::builder().status(429).body(()).unwrap();
/// let verdict = StatusClassifier.classify(Ok::<_, &BoxError>(&response));
/// assert_eq!(verdict.class(), Class::Throttled);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusClassifier;

impl<B, E: Failure> Classify<Response<B>, E> for StatusClassifier {
    fn classify(&self, result: Result<&Response<B>, &E>) -> Verdict {
        match result {
            Ok(response) => Outcome::of(response)
                .and_then(|outcome| outcome.verdict())
                .unwrap_or_else(|| Verdict::of_status(response.status())),
            Err(error) => of_error(error),
        }
    }

    fn status(&self, response: &Response<B>) -> Option<StatusCode> {
        Some(response.status())
    }
}

/// The verdict on an error: that of a refusal, the caller's own fault, or else a failure that may pass.
pub(crate) fn of_error<E: Failure>(error: &E) -> Verdict {
    match error.refusal() {
        Some(refusal) => refusal.verdict(),
        None if error.is_of_the_request() => Verdict::new(Class::Invalid),
        None => Verdict::new(Class::Transient).with_reach(error.reach()),
    }
}

/// Classifiers from closures, and combinators.
pub mod classify {
    use http::StatusCode;

    use super::{Classify, Failure, Verdict, of_error};

    /// A classifier from a closure over the whole result.
    ///
    /// ```
    /// use seawall::circuit_breaker::CircuitBreakerLayer;
    /// use seawall::{BoxError, Class, Failure, Verdict, classify};
    ///
    /// let judge = classify::from_fn(|result: Result<&String, &BoxError>| match result {
    ///     Ok(_) => Verdict::SUCCESS,
    ///     Err(error) if error.is::<std::io::Error>() => Verdict::new(Class::Transient),
    ///     Err(error) => error.refusal().map_or(Verdict::new(Class::Invalid), |refusal| refusal.verdict()),
    /// });
    /// let layer = CircuitBreakerLayer::builder().classify(judge).build()?.at_head();
    /// # let _ = layer;
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn from_fn<F>(f: F) -> FromFn<F> {
        FromFn(f)
    }

    /// A classifier from a closure over the response alone; an error is one of our own refusals or else
    /// [`Class::Transient`](super::Class::Transient).
    ///
    /// ```
    /// use seawall::retry::{RetryLayer, RetryPolicy};
    /// use seawall::{Class, Verdict, classify};
    ///
    /// let judge = classify::responses(|reply: &String| match reply.as_str() {
    ///     "busy" => Verdict::new(Class::Throttled),
    ///     _ => Verdict::SUCCESS,
    /// });
    /// let layer = RetryLayer::new(RetryPolicy::builder().classify(judge).build()?);
    /// # let _ = layer;
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn responses<F>(f: F) -> Responses<F> {
        Responses(f)
    }

    /// `first` decides where it answers, `then` everything else: to change a single case of a ready-made classifier.
    ///
    /// ```
    /// use http::Response;
    /// use seawall::{Class, Classify, StatusClassifier, Verdict, classify};
    ///
    /// // This upstream answers 404 while it starts.
    /// let classifier = classify::or_else(
    ///     |result: Result<&Response<()>, &seawall::BoxError>| match result {
    ///         Ok(response) if response.status() == 404 => Some(Verdict::new(Class::Transient)),
    ///         _ => None,
    ///     },
    ///     StatusClassifier,
    /// );
    /// let starting = Response::builder().status(404).body(()).unwrap();
    /// assert_eq!(classifier.classify(Ok(&starting)).class(), Class::Transient);
    /// ```
    pub fn or_else<F, C>(first: F, then: C) -> OrElse<F, C> {
        OrElse { first, then }
    }

    /// See [`from_fn`].
    #[derive(Clone, Copy)]
    pub struct FromFn<F>(F);

    /// See [`responses`].
    #[derive(Clone, Copy)]
    pub struct Responses<F>(F);

    /// See [`or_else`].
    #[derive(Clone, Copy)]
    pub struct OrElse<F, C> {
        first: F,
        then: C,
    }

    impl<Res, E, F> Classify<Res, E> for FromFn<F>
    where
        F: Fn(Result<&Res, &E>) -> Verdict,
    {
        fn classify(&self, result: Result<&Res, &E>) -> Verdict {
            (self.0)(result)
        }
    }

    impl<Res, E, F> Classify<Res, E> for Responses<F>
    where
        F: Fn(&Res) -> Verdict,
        E: Failure,
    {
        fn classify(&self, result: Result<&Res, &E>) -> Verdict {
            match result {
                Ok(response) => (self.0)(response),
                Err(error) => of_error(error),
            }
        }
    }

    impl<Res, E, F, C> Classify<Res, E> for OrElse<F, C>
    where
        F: Fn(Result<&Res, &E>) -> Option<Verdict>,
        C: Classify<Res, E>,
    {
        fn classify(&self, result: Result<&Res, &E>) -> Verdict {
            (self.first)(result).unwrap_or_else(|| self.then.classify(result))
        }

        fn status(&self, response: &Res) -> Option<StatusCode> {
            self.then.status(response)
        }
    }

    macro_rules! opaque_debug {
        ($($name:ident<$($p:ident),+>),+) => {$(
            impl<$($p),+> std::fmt::Debug for $name<$($p),+> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($name)).finish_non_exhaustive()
                }
            }
        )+};
    }
    opaque_debug!(FromFn<F>, Responses<F>, OrElse<F, C>);
}
