//! What a response says of itself.

use std::sync::Arc;

use http::Response;

use crate::call::{Outcome, Usage};
use crate::refusal::Refusal;
use crate::verdict::Verdict;

/// A response that can hand out the [`Outcome`] which somebody writes while it arrives.
///
/// Implemented for [`http::Response`], whose outcome is an extension. For an own type the empty implementation is enough.
///
/// ```
/// use seawall::call::{Answer, Usage};
///
/// struct Reply { text: String, tokens: u64 }
///
/// impl Answer for Reply {
///     fn usage(&self) -> Option<Usage> {
///         let mut usage = Usage::default();
///         usage.output = Some(self.tokens);
///         Some(usage)
///     }
/// }
/// # assert_eq!(Reply { text: String::new(), tokens: 3 }.usage().unwrap().total(), Some(3));
/// # let _ = |reply: Reply| reply.text;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what became of the call",
    label = "this layer asks the response for its verdict and usage",
    note = "`impl seawall::call::Answer for {Self} {{}}` is enough; all its methods have defaults",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Answer {
    /// The facts of this attempt, filled in until the response ends.
    fn outcome(&self) -> Option<&Arc<Outcome>> {
        None
    }

    /// The tokens that this response says it used, where it says so itself and has no [`Outcome`]: what a cost guard
    /// charges an own type by.
    fn usage(&self) -> Option<Usage> {
        self.outcome().map(|outcome| outcome.usage())
    }

    /// What the response means, where that is known from its head. `None` is a good answer.
    fn verdict(&self) -> Option<Verdict> {
        self.outcome().and_then(|outcome| outcome.verdict())
    }

    /// The refusal of ours that this response tells, where a layer below told one as a response.
    fn refusal(&self) -> Option<Refusal> {
        None
    }
}

impl<B> Answer for Response<B> {
    fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.extensions().get()
    }

    fn verdict(&self) -> Option<Verdict> {
        let read = Answer::outcome(self).and_then(|outcome| outcome.verdict());
        Some(read.unwrap_or_else(|| Verdict::of_status(self.status())))
    }

    fn refusal(&self) -> Option<Refusal> {
        self.extensions().get().cloned()
    }
}
