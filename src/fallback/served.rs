//! Who served a call, and who was asked before.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use super::Target;
use super::mode::Fact;
use crate::call::Misfit;
use crate::refusal::RefusalKind;
use crate::verdict::{Class, Verdict};

/// The target that served a call, and what became of those before it.
///
/// Over HTTP an extension of the response: `response.extensions().get::<Served>()`.
///
/// ```
/// use seawall::fallback::Served;
///
/// fn tell<B>(response: &http::Response<B>) {
///     if let Some(served) = response.extensions().get::<Served>() {
///         let upstream = served.target().upstream().name();
///         println!("{upstream} served it; before that: {}", served.attempts());
///     }
/// }
/// # tell(&http::Response::new(()));
/// ```
#[derive(Clone, Debug)]
pub struct Served {
    pub(super) target: Arc<Target>,
    pub(super) attempts: Attempts,
    pub(super) early: bool,
}

impl Served {
    /// The target that served.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The targets before it, in their order: asked, or passed over.
    #[must_use]
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Whether it committed before it should: more came before its first content, or before its end, than may be held.
    #[must_use]
    pub fn committed_early(&self) -> bool {
        self.early
    }
}

/// What became of the targets of a call, in their order.
///
/// Over HTTP an extension of the response of a chain that is exhausted; otherwise the end of the refusal's
/// [`source`](Error::source) chain, where [`Attempts::find`] finds it.
///
/// ```
/// use seawall::BoxError;
/// use seawall::fallback::Attempts;
///
/// fn tell(error: &BoxError) {
///     for attempt in Attempts::find(&**error).into_iter().flat_map(Attempts::as_slice) {
///         println!("{}: {:?}", attempt.target().upstream().name(), attempt.verdict());
///     }
/// }
/// # tell(&"no refusal".into());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attempts(pub(super) Vec<Attempt>);

impl Attempts {
    /// Each target, asked or passed over.
    #[must_use]
    pub fn as_slice(&self) -> &[Attempt] {
        &self.0
    }

    /// How many targets were asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.0.iter().filter(|attempt| attempt.verdict().is_some()).count()
    }

    /// The last failure: one of an upstream's, which tells more than what one of our own layers said, if there is one.
    pub(super) fn telling(&self) -> Option<&Attempt> {
        let failures = || self.0.iter().rev().filter(|attempt| attempt.verdict().is_some());
        let real =
            |attempt: &&Attempt| attempt.verdict().is_some_and(|verdict| verdict.class() != Class::Refused);
        failures().find(real).or_else(|| failures().next())
    }

    /// The list in an error's chain of sources, if there is one.
    #[must_use]
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut link = Some(error);
        while let Some(error) = link {
            if let Some(attempts) = error.downcast_ref() {
                return Some(attempts);
            }
            link = error.source();
        }
        None
    }
}

/// How many targets were asked.
pub(super) fn asked(attempts: &[Attempt]) -> u32 {
    attempts.iter().map(|attempt| u32::from(attempt.verdict().is_some())).sum()
}

/// One target of a call: how asking it ended, or why it was passed over.
#[derive(Clone, Debug)]
pub struct Attempt {
    target: Arc<Target>,
    result: Tried,
}

#[derive(Clone, Copy, Debug)]
enum Tried {
    Failed(Fact),
    Skipped(Skip),
}

/// Why a target was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Skip {
    /// Its circuit breaker was open.
    Out,
    /// It had no room.
    Busy,
    /// Its context is smaller than the request, or not larger than that of a target which found it too long.
    Context,
    /// The account that it shares with a target before it is exhausted or denied.
    Account,
    /// The request could not be aimed at it.
    Misfit(Misfit),
}

impl Attempt {
    pub(super) fn failed(target: Arc<Target>, fact: Fact) -> Self {
        Self { target, result: Tried::Failed(fact) }
    }

    pub(super) fn skipped(target: Arc<Target>, why: Skip) -> Self {
        Self { target, result: Tried::Skipped(why) }
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What its answer meant, if it was asked.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match self.result {
            Tried::Failed(fact) => Some(fact.verdict),
            Tried::Skipped(_) => None,
        }
    }

    /// The status of its answer, if it was an HTTP response.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self.result {
            Tried::Failed(fact) => fact.status,
            Tried::Skipped(_) => None,
        }
    }

    /// Why one of our own layers below the fallback said no, if that is how asking it ended.
    #[must_use]
    pub fn refused(&self) -> Option<RefusalKind> {
        match self.result {
            Tried::Failed(fact) => fact.refused,
            Tried::Skipped(_) => None,
        }
    }

    /// Why it was passed over, if it was.
    #[must_use]
    pub fn skipped_for(&self) -> Option<Skip> {
        match self.result {
            Tried::Skipped(why) => Some(why),
            Tried::Failed(_) => None,
        }
    }
}

impl fmt::Display for Attempts {
    /// One line: `a: Transient (503), b: passed over (Out)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no target was asked");
        }
        for (at, attempt) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}: ", attempt.target.upstream().name())?;
            match attempt.result {
                Tried::Failed(Fact { verdict, status: Some(status), .. }) => {
                    write!(f, "{:?} ({})", verdict.class(), status.as_u16())?;
                }
                Tried::Failed(Fact { verdict, .. }) => write!(f, "{:?}", verdict.class())?,
                Tried::Skipped(why) => write!(f, "passed over ({why:?})")?,
            }
        }
        Ok(())
    }
}

impl Error for Attempts {}
