//! What was taken, and what is paid in the end.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::call::{Outcome, Usage};
use crate::gate::{End, Follow, Heads, Permit};
use crate::monitor::Event;
use crate::token_bucket::bucket::{Charge, Charges};
use crate::token_bucket::gate::{Abandoned, Actual, Counts};
use crate::token_bucket::learn::Feedback;
use crate::token_bucket::lease::Owner;
use crate::verdict::{Class, Reach, Verdict};

/// What a request has taken of a bucket, until it is settled to what it used.
pub struct BucketPermit<U, R> {
    owner: Owner<U, R>,
    charges: Charges,
    /// Tokens that go in, by estimate.
    input: u64,
    admitted: u64,
    head: Option<Verdict>,
}

impl<U, R> BucketPermit<U, R> {
    pub(super) fn new(owner: Owner<U, R>, charges: Charges, input: u64, admitted: u64) -> Self {
        Self { owner, charges, input, admitted, head: None }
    }
}

impl<Res, E, U, R> Heads<Res, E> for BucketPermit<U, R>
where
    U: Feedback<Res, E>,
{
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        let state = self.owner.state();
        let admitted = self.admitted;
        // The clock is read only for what has something to say.
        let verdict =
            state.config.upstream.feedback(head, &mut |said| state.learn(said, state.now(), admitted));
        if let (Class::Throttled, Some(hint)) = (verdict.class(), verdict.hint()) {
            state.throttled(state.now(), hint);
        }
        self.head = Some(verdict);
        if verdict.is_success() { Follow::Body } else { Follow::Settle }
    }
}

impl<U, R> Permit for BucketPermit<U, R> {
    fn settle(self, end: End, outcome: Option<&Outcome>) {
        let state = self.owner.state();
        let undrained = state.config.undrained;
        if let (Some(Class::Success), Some(verdict)) =
            (self.head.map(|head| head.class()), outcome.and_then(Outcome::verdict))
        {
            // A stream that began well can end with a word of the provider's.
            if let (Class::Throttled, Some(hint)) = (verdict.class(), verdict.hint()) {
                state.throttled(state.now(), hint);
            }
        }
        let unsent = end == End::Unsent || self.head.is_some_and(|head| head.reach() == Reach::Unsent);
        if unsent {
            state.core.give_back_all(state.now(), &self.charges, undrained);
            return;
        }
        let usage = outcome.map(Outcome::usage).unwrap_or_default();
        for (index, dimension) in state.config.dimensions.iter().enumerate() {
            let Some(&charge) = self.charges.get(index) else { continue };
            let Some(actual) = &dimension.actual else { continue };
            let used = self.used(end, charge, &usage, actual, &dimension.counts);
            if used != charge.cost {
                state.core.settle(state.now(), index, charge, used, undrained);
            }
        }
        if end == End::Abandoned {
            state.config.observers.raise(|| Event::Abandoned { label: &state.label });
        }
    }
}

/// A single response that claims to have used more than this is not believed.
const MOST_USED: u64 = 1_000_000_000;

impl<U, R> BucketPermit<U, R> {
    /// What a dimension was really used for, as far as anybody knows.
    fn used(&self, end: End, charge: Charge, usage: &Usage, actual: &Actual, counts: &Counts) -> u64 {
        // The user's closure may be called from a drop: its panic must not end the process.
        let said = catch_unwind(AssertUnwindSafe(|| actual(usage))).unwrap_or_default();
        let said = said.filter(|&units| !usage.anomalous && units <= MOST_USED);
        let unprocessed = self
            .head
            .is_some_and(|head| head.class() == Class::Throttled || head.reach() == Reach::Unprocessed);
        match (end, self.owner.state().config.abandoned) {
            _ if unprocessed && said.is_none() => 0,
            (End::Abandoned, Abandoned::Keep) => charge.cost,
            (End::Abandoned, Abandoned::Refund) => 0,
            (End::Abandoned, Abandoned::Known) => {
                let complete = said.filter(|_| usage.input.is_some());
                match counts {
                    Counts::Tokens if self.input > 0 => complete.unwrap_or_else(|| {
                        self.input.saturating_add(usage.output.unwrap_or(0).min(MOST_USED))
                    }),
                    _ => said.unwrap_or(charge.cost),
                }
            }
            _ => said.unwrap_or(charge.cost),
        }
    }
}

impl<U, R> fmt::Debug for BucketPermit<U, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketPermit").field("charges", &self.charges).finish_non_exhaustive()
    }
}
