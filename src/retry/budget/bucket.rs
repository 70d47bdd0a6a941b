//! One upstream's tokens: one word, so that looking and taking are one step.
//!
//! The word holds the tokens in thousandths (low 24 bits) and the instant up to which time was paid out (high 40 bits,
//! milliseconds: 34 years). Invariants, whatever the threads do:
//!
//! 1. Tokens are from 0 to the cap.
//! 2. A take lowers them by exactly one token, or does nothing.
//! 3. Deposits are lost only at the cap.
//! 4. Each millisecond is paid out once: who moves the instant pays for it, in the same step.

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Thousandths in a token.
pub(super) const TOKEN: u32 = 1000;

const BITS: u32 = 24;
const MASK: u64 = (1 << BITS) - 1;
const LATEST: u64 = (1 << (64 - BITS)) - 1;

/// What a bucket deposits and holds, in thousandths of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) deposit: u32,
    pub(super) per_second: u32,
    pub(super) cap: u32,
}

/// The word alone guards nothing else, so that relaxed operations are enough.
pub(super) struct Bucket(AtomicU64);

#[derive(Clone, Copy)]
struct Content {
    tokens: u32,
    at: u64,
}

impl Content {
    fn of(word: u64) -> Self {
        Self { tokens: u32::try_from(word & MASK).unwrap_or(0), at: word >> BITS }
    }

    fn word(self) -> u64 {
        (self.at << BITS) | u64::from(self.tokens)
    }

    /// With what time has paid by `now`, however long that was.
    fn at(self, terms: &Terms, now: impl FnOnce() -> u64) -> Self {
        if terms.per_second == 0 {
            return self;
        }
        let now = now().min(LATEST);
        let per_second = u128::from(terms.per_second);
        let earned = u128::from(now.saturating_sub(self.at)) * per_second / 1000;
        let room = terms.cap - self.tokens;
        match u32::try_from(earned) {
            Ok(earned) if earned < room => {
                // Rounded up, so that no part of a millisecond is paid twice.
                let paid = (u128::from(earned) * 1000).div_ceil(per_second);
                let at = self.at.saturating_add(u64::try_from(paid).unwrap_or(LATEST)).min(LATEST);
                Self { tokens: self.tokens + earned, at }
            }
            _ => Self { tokens: terms.cap, at: now.max(self.at) },
        }
    }
}

/// What a step did to a bucket that was full, or is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was full, and is not now.
    Tapped,
    /// It was not, and is now.
    Filled,
    /// Neither.
    Neither,
}

impl Bucket {
    pub(super) fn full(terms: &Terms) -> Self {
        Self(AtomicU64::new(Content { tokens: terms.cap, at: 0 }.word()))
    }

    pub(super) fn is_full(&self, terms: &Terms) -> bool {
        Content::of(self.0.load(Relaxed)).tokens >= terms.cap
    }

    /// A call arrived. A full bucket is only read.
    pub(super) fn deposit(&self, terms: &Terms, now: impl Fn() -> u64) -> Step {
        if self.is_full(terms) {
            return Step::Neither;
        }
        let added = self.update(terms, |content| {
            let content = content.at(terms, &now);
            Some(Content { tokens: (content.tokens + terms.deposit).min(terms.cap), ..content })
        });
        added.unwrap_or(Step::Neither)
    }

    /// `None`: there is no token.
    pub(super) fn take(&self, terms: &Terms, now: impl Fn() -> u64) -> Option<Step> {
        self.update(terms, |content| {
            let mut content = content.at(terms, &now);
            content.tokens = content.tokens.checked_sub(TOKEN)?;
            Some(content)
        })
    }

    pub(super) fn left(&self, terms: &Terms, now: impl FnOnce() -> u64) -> u32 {
        Content::of(self.0.load(Relaxed)).at(terms, now).tokens
    }

    /// Check and change in one atomic step; whoever loses the race decides again.
    fn update(&self, terms: &Terms, change: impl Fn(Content) -> Option<Content>) -> Option<Step> {
        let mut after = 0;
        let before = self.0.fetch_update(Relaxed, Relaxed, |word| {
            let changed = change(Content::of(word))?;
            after = changed.tokens;
            Some(changed.word())
        });
        let before = Content::of(before.ok()?).tokens;
        Some(match (before >= terms.cap, after >= terms.cap) {
            (true, false) => Step::Tapped,
            (false, true) => Step::Filled,
            _ => Step::Neither,
        })
    }
}
