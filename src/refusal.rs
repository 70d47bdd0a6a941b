//! A "no" that one of our layers says; the upstream was not asked.
//!
//! A [`Refusal`] is the only error that this crate adds to a stack at run time. A layer keeps the inner service's error type and needs
//! two things of it: `From<Refusal>`, to say no in it, and [`Failure`], to find a refusal of a layer below in it. Both
//! hold for a boxed error and for [`Fault`], which wraps any other error:
//!
//! ```
//! use seawall::{BoxError, Fault, Refusal, RefusalKind};
//!
//! let boxed: BoxError = Refusal::new(RefusalKind::Full).into();
//! let refusal = seawall::refusal::find(&*boxed).expect("it was put in");
//! assert_eq!(refusal.kind(), RefusalKind::Full);
//!
//! let typed: Fault<std::io::Error> = Refusal::new(RefusalKind::Full).into();
//! assert!(matches!(typed, Fault::Refused(_)));
//! ```

mod code;
mod detail;
mod failure;
mod http;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use detail::{Label, Previous};
pub use failure::{Failure, Fault};

use crate::time;
use crate::verdict::{Class, Verdict};
use code::Code;

/// A boxed error, as tower's own layers use it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a layer said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The circuit breaker is open, or all its probes are out.
    Open,
    /// No slot is free, and the queue is full or there is none.
    Full,
    /// The wait in the queue took longer than allowed.
    QueueTimeout,
    /// The call could not have been done by its deadline.
    Deadline,
    /// A limit of requests, tokens or another unit is used up for now.
    RateLimited,
    /// The request alone costs more than the limit can ever give: waiting does not help.
    TooLarge,
    /// A budget is spent.
    BudgetExhausted,
    /// A budget is not spent, but calls under way hold what is left.
    BudgetContended,
    /// The price of the model is not known.
    Unpriced,
    /// What the call may cost has no bound: the size of its input is not known.
    Unbounded,
    /// The ledger could not be asked.
    LedgerUnavailable,
    /// The layer holds as many keys as it may, none of them at rest.
    TooManyKeys,
    /// A phase of a timeout ran out.
    TimedOut(Phase),
    /// No target was left to ask.
    NoTarget,
    /// A gate of the user's own.
    Custom,
}

/// A phase of an attempt that a timeout watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The whole call.
    Total,
    /// Until a connection was made.
    Connect,
    /// Until the head of the response.
    Head,
    /// Until the first bytes that carry an answer.
    FirstContent,
    /// Between two frames of the body.
    Idle,
}

/// A "no" of one of our layers.
///
/// Made without an allocation, cheap to clone, `Send + Sync`. [`Display`](fmt::Display) is one line; what the upstream
/// itself had said before is the end of the [`source`](Error::source) chain, and in [`previous`](Self::previous).
///
/// ```
/// use std::time::Duration;
/// use seawall::{BoxError, Failure, Refusal, RefusalKind};
///
/// // A gate of your own says no.
/// let refusal = Refusal::new(RefusalKind::Custom).with_retry_after(Duration::from_secs(5));
/// // A caller gets it as an error, and finds it again.
/// let error: BoxError = refusal.into();
/// let found = error.refusal().expect("a layer refused");
/// assert_eq!(found.kind(), RefusalKind::Custom);
/// assert_eq!(found.retry_after(), Some(Duration::from_secs(5)));
/// ```
#[derive(Clone, PartialEq)]
pub struct Refusal(Data);

/// All of a refusal. It is its own type because an error of *any* lifetime can be searched for it only through
/// `source()`, which is `'static`.
///
/// Two words, so that it passes from layer to layer in registers: moving more about costs more than all else of a refusal.
#[derive(Clone)]
struct Data {
    label: Option<Arc<Label>>,
    code: Code,
}

impl Refusal {
    /// A refusal of this kind.
    #[must_use]
    #[inline]
    pub const fn new(kind: RefusalKind) -> Self {
        Self(Data { label: None, code: Code::of(kind) })
    }

    /// With the time after which asking again makes sense.
    #[must_use]
    #[inline]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.code = self.0.code.with_wait(time::nanos(wait));
        self
    }

    /// With the name of who refused. A layer makes its label once and shares it.
    #[must_use]
    #[inline]
    pub fn with_label(mut self, label: Arc<Label>) -> Self {
        self.0.label = Some(match self.0.label {
            Some(before) => Label::instead_of(&before, label),
            None => label,
        });
        self
    }

    /// With the failure of the upstream that came before.
    #[must_use]
    pub fn with_previous(mut self, previous: Previous) -> Self {
        let label = self.0.label.take().map_or_else(|| Label::new(self.kind().layer()), Arc::unwrap_or_clone);
        self.0.label = Some(Arc::new(label.after(previous)));
        self
    }

    /// Why.
    #[must_use]
    pub const fn kind(&self) -> RefusalKind {
        self.0.code.kind()
    }

    /// The time after which asking again makes sense, where that is known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.0.code.wait() {
            None => None,
            Some(nanos) => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Who refused: the name given to the layer, or the usual name of such a layer.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0.label {
            Some(label) => label.name(),
            None => self.kind().layer(),
        }
    }

    /// What the layer's states are named after (`upstream`, `model`, `tenant` …), if it has one a key.
    #[must_use]
    pub fn key_class(&self) -> Option<&str> {
        self.0.label.as_ref().and_then(|label| label.key_class())
    }

    /// The key whose state refused.
    #[must_use]
    pub fn key(&self) -> Option<&crate::call::Key> {
        self.0.label.as_ref().and_then(|label| label.key())
    }

    /// What the limit that was hit counts (`requests`, `tokens` …), for a layer that has several.
    #[must_use]
    pub fn dimension(&self) -> Option<&str> {
        self.0.label.as_ref().and_then(|label| label.dimension())
    }

    /// The limit that was hit, as text: `60 per 60s`.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.0.label.as_ref().and_then(|label| label.limit())
    }

    /// What the upstream had answered before, if it had been asked: the failure that the caller should hear of.
    #[must_use]
    pub fn previous(&self) -> Option<&Previous> {
        self.0.label.as_ref().and_then(|label| label.previous())
    }

    /// What a refusal means to the layers above.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.kind() {
            // The attempt was sent, and the upstream was silent: that is the upstream's doing.
            RefusalKind::TimedOut(Phase::Connect) => {
                Verdict::new(Class::Stalled).with_reach(crate::verdict::Reach::Unsent)
            }
            RefusalKind::TimedOut(Phase::Head | Phase::FirstContent | Phase::Idle | Phase::Total) => {
                Verdict::new(Class::Stalled)
            }
            _ => Verdict::new(Class::Refused).with_hint(self.retry_after()),
        }
    }
}

impl RefusalKind {
    /// The usual name of a layer that refuses so.
    const fn layer(self) -> &'static str {
        match self {
            Self::Open => "circuit_breaker",
            Self::Full | Self::QueueTimeout => "bulkhead",
            Self::RateLimited | Self::TooLarge => "token_bucket",
            Self::BudgetExhausted
            | Self::BudgetContended
            | Self::Unpriced
            | Self::Unbounded
            | Self::LedgerUnavailable => "cost_guard",
            Self::TimedOut(_) => "timeout",
            Self::NoTarget => "fallback",
            Self::Deadline | Self::TooManyKeys | Self::Custom => "gate",
        }
    }

    /// What happened, as the end of a sentence that begins with the layer's name.
    const fn what(self) -> &'static str {
        match self {
            Self::Open => "is open",
            Self::Full => "is full",
            Self::QueueTimeout => "had no free slot within the longest wait",
            Self::Deadline => "cannot admit the call before its deadline",
            Self::RateLimited => "is at its limit",
            Self::TooLarge => "can never admit a request of this size",
            Self::BudgetExhausted => "has spent its budget",
            Self::BudgetContended => "has its budget held by calls under way",
            Self::Unpriced => "knows no price for this model",
            Self::Unbounded => "cannot tell what this call may cost at most",
            Self::LedgerUnavailable => "cannot reach its ledger",
            Self::TooManyKeys => "has no room for another key",
            Self::TimedOut(Phase::Total) => "ended the call: its total time is over",
            Self::TimedOut(Phase::Connect) => "ended the attempt: no connection in time",
            Self::TimedOut(Phase::Head) => "ended the attempt: no response in time",
            Self::TimedOut(Phase::FirstContent) => "ended the attempt: no content in time",
            Self::TimedOut(Phase::Idle) => "ended the attempt: the stream fell silent",
            Self::NoTarget => "has no target left",
            Self::Custom => "refused",
        }
    }
}

/// The refusal in an error's chain of sources, if there is one.
///
/// Works for an error of any lifetime: the chain below its head is `'static`.
#[must_use]
pub fn find(error: &(dyn Error + '_)) -> Option<Refusal> {
    let mut link = error.source();
    while let Some(error) = link {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(refusal.clone());
        }
        if let Some(data) = error.downcast_ref::<Data>() {
            return Some(Refusal(data.clone()));
        }
        link = error.source();
    }
    None
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && self.label == other.label
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("kind", &self.kind())
            .field("name", &self.name())
            .field("key", &self.key())
            .field("retry_after", &self.retry_after())
            .field("previous", &self.previous())
            .finish()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        if let Some(key) = self.key() {
            write!(f, " of {key}")?;
        }
        write!(f, " {}", self.kind().what())?;
        if let (Some(dimension), Some(limit)) = (self.dimension(), self.limit()) {
            write!(f, " ({dimension}: {limit})")?;
        }
        match self.retry_after() {
            Some(wait) => write!(f, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("kind", &self.code.kind()).finish_non_exhaustive()
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused before the upstream was asked")
    }
}

impl Error for Data {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.label.as_ref().and_then(|label| label.previous()?.source())
    }
}
