//! What was taken, and what is paid in the end.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::call::{Outcome, Usage};
use crate::gate::{End, Follow, Heads, Permit};
use crate::monitor::Event;
use crate::token_bucket::bucket::Costs;
use crate::token_bucket::gate::{Abandoned, Actual, Counts};
use crate::token_bucket::learn::{Feedback, Said};
use crate::token_bucket::lease::Owner;
use crate::verdict::{Class, Reach, Verdict};

/// What a request has taken of a bucket, until it is settled to what it used.
pub struct BucketPermit<U, R> {
    owner: Owner<U, R>,
    /// What was taken, when it was admitted.
    costs: Costs,
    admitted: u64,
    /// Tokens that go in, by estimate.
    input: u32,
    head: Head,
    /// Whether the response has said what it used, and was settled to that.
    paid: bool,
}

/// What the head has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// There was none, or it was a failure like any other.
    Unknown,
    Good,
    /// The upstream throttled it, or proved that it did not process it.
    Unprocessed,
    Unsent,
}

impl From<Verdict> for Head {
    fn from(verdict: Verdict) -> Self {
        match (verdict.reach(), verdict.class()) {
            (Reach::Unsent, _) => Self::Unsent,
            (Reach::Unprocessed, _) | (_, Class::Throttled) => Self::Unprocessed,
            (_, Class::Success) => Self::Good,
            _ => Self::Unknown,
        }
    }
}

impl<U, R> BucketPermit<U, R> {
    pub(super) fn new(owner: Owner<U, R>, costs: Costs, input: u64, admitted: u64) -> Self {
        let input = u32::try_from(input).unwrap_or(u32::MAX);
        Self { owner, costs, admitted, input, head: Head::Unknown, paid: false }
    }
}

impl<Res, E, U, R> Heads<Res, E> for BucketPermit<U, R>
where
    U: Feedback<Res, E>,
{
    #[inline]
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        let state = self.owner.state();
        let admitted = self.admitted;
        let mut used = None;
        let verdict = state.config.upstream.feedback(head, &mut |said| match said {
            Said::Used(usage) => used = Some(*usage),
            // The clock is read only for what has something to say.
            said => state.learn(said, state.now(), admitted),
        });
        if let (Class::Throttled, Some(hint)) = (verdict.class(), verdict.hint()) {
            state.throttled(state.now(), hint);
        }
        self.head = verdict.into();
        if let Some(usage) = used.filter(|_| state.config.settles && self.head != Head::Unsent) {
            self.pay(End::Complete, &usage, 0);
            self.paid = true;
        }
        if verdict.is_success() { Follow::Body } else { Follow::Settle }
    }
}

impl<U, R> Permit for BucketPermit<U, R> {
    #[inline]
    fn settle(&mut self, end: End, outcome: Option<&Outcome>) {
        let state = self.owner.state();
        if end == End::Unsent || self.head == Head::Unsent {
            state.core.give_back_all(state.now(), self.admitted, &self.costs, state.config.undrained);
            return;
        }
        let late = outcome.filter(|_| self.head == Head::Good).and_then(Outcome::verdict);
        if let Some((Class::Throttled, Some(hint))) = late.map(|verdict| (verdict.class(), verdict.hint())) {
            // A stream that began well can end with a word of the provider's.
            state.throttled(state.now(), hint);
        }
        if state.config.settles && !self.paid {
            let passed = outcome.map_or(0, Outcome::body_bytes) / BYTES_A_TOKEN;
            self.pay(end, &outcome.map(Outcome::usage).unwrap_or_default(), passed);
        }
        if end == End::Abandoned {
            state.config.observers.raise(|| Event::Abandoned { label: &state.label });
        }
    }
}

/// Text in most languages has four bytes a token, or fewer tokens.
const BYTES_A_TOKEN: u64 = 4;
/// A single response that claims to have used more than this is not believed.
const MOST_USED: u64 = 1_000_000_000;

impl<U, R> BucketPermit<U, R> {
    /// Settles each dimension to what it was really used for. `passed` is how many tokens of output have passed, by their
    /// bytes.
    fn pay(&self, end: End, usage: &Usage, passed: u64) {
        let state = self.owner.state();
        for (index, dimension) in state.config.dimensions.iter().enumerate() {
            let Some(&cost) = self.costs.get(index) else { continue };
            let Some(actual) = &dimension.actual else { continue };
            let used = self.used(end, cost, (usage, passed), actual, &dimension.counts);
            if used != cost {
                let taken = (self.admitted, cost);
                state.core.settle(state.now(), index, taken, used, state.config.undrained);
            }
        }
    }

    /// What a dimension was really used for, as far as anybody knows.
    fn used(
        &self,
        end: End,
        cost: u64,
        (usage, passed): (&Usage, u64),
        actual: &Actual,
        counts: &Counts,
    ) -> u64 {
        // The user's closure may be called from a drop: its panic must not end the process.
        let said = catch_unwind(AssertUnwindSafe(|| actual(usage))).unwrap_or_default();
        let said = said.filter(|&units| !usage.anomalous && units <= MOST_USED);
        match (end, self.owner.state().config.abandoned) {
            _ if self.head == Head::Unprocessed && said.is_none() => 0,
            (End::Abandoned, Abandoned::Keep) => cost,
            (End::Abandoned, Abandoned::Refund) => 0,
            (End::Abandoned, Abandoned::Known) => {
                let complete = said.filter(|_| usage.input.is_some() && usage.output.is_some());
                match counts {
                    Counts::Tokens if self.input > 0 => complete.unwrap_or_else(|| {
                        let input = u64::from(self.input);
                        let passed = passed.min(cost.saturating_sub(input));
                        let output = usage.output.unwrap_or(passed).min(MOST_USED);
                        usage.input.unwrap_or(input).min(MOST_USED).saturating_add(output)
                    }),
                    _ => said.unwrap_or(cost),
                }
            }
            _ => said.unwrap_or(cost),
        }
    }
}

impl<U, R> fmt::Debug for BucketPermit<U, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketPermit").field("costs", &self.costs).finish_non_exhaustive()
    }
}
