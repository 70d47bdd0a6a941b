//! How an attempt went: written once, by the innermost layer; read by all others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Response;

use crate::call::Usage;
use crate::time::{self, Instant};
use crate::verdict::Verdict;

/// How an attempt went, as far as it has gone.
///
/// The layer that reads the response shares one of these through the response's extensions (as an `Arc<Outcome>`) and
/// goes on writing to it while the body passes. Who holds a permit looks here when the head is there and again at the
/// end. A library with its own response type writes one itself and returns it from
/// [`Answer::outcome`](crate::call::Answer::outcome).
///
/// ```
/// use seawall::call::Outcome;
///
/// // Above the outcome layer, when the body has been read.
/// fn tell<B>(response: &http::Response<B>) {
///     if let Some(outcome) = Outcome::of(response) {
///         println!("{:?} to the head, {:?} tokens", outcome.to_head(), outcome.usage().total());
///     }
/// }
/// # tell(&http::Response::new(()));
/// ```
#[derive(Debug)]
pub struct Outcome {
    sent: Instant,
    /// Nanoseconds after `sent`; `u64::MAX` means not yet.
    head: AtomicU64,
    content: AtomicU64,
    end: AtomicU64,
    bytes: AtomicU64,
    finished: AtomicBool,
    facts: Mutex<Facts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    verdict: Option<Verdict>,
    usage: Usage,
}

const NOT_YET: u64 = u64::MAX;

impl Outcome {
    /// Of an attempt that was sent at this instant.
    #[must_use]
    pub fn new(sent: Instant) -> Self {
        Self {
            sent,
            head: AtomicU64::new(NOT_YET),
            content: AtomicU64::new(NOT_YET),
            end: AtomicU64::new(NOT_YET),
            bytes: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            facts: Mutex::new(Facts::default()),
        }
    }

    /// The outcome that was put into a response's extensions.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Arc<Self>> {
        response.extensions().get()
    }

    /// When the attempt was sent.
    #[must_use]
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// From sending to the head of the response.
    #[must_use]
    pub fn to_head(&self) -> Option<Duration> {
        read(&self.head)
    }

    /// From sending to the first bytes that carry an answer.
    #[must_use]
    pub fn to_content(&self) -> Option<Duration> {
        read(&self.content)
    }

    /// From sending to the end of the body.
    #[must_use]
    pub fn to_end(&self) -> Option<Duration> {
        read(&self.end)
    }

    /// Bytes of the body that were read so far, as they came over the wire.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether the answer is complete, though its body may not have ended: a terminal event of its stream has passed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// What the answer means, once that is known: for a failure at the head, for a stream at its end.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.facts().verdict
    }

    /// The tokens reported so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.facts().usage
    }

    /// The head is there. The first mark stays.
    pub fn mark_head(&self, now: Instant) {
        self.mark(&self.head, now);
    }

    /// The first bytes that carry an answer are there. The first mark stays.
    pub fn mark_content(&self, now: Instant) {
        self.mark(&self.content, now);
    }

    /// The body has ended. The first mark stays.
    pub fn mark_end(&self, now: Instant) {
        self.mark(&self.end, now);
    }

    /// So many more bytes of the body have passed.
    pub fn add_body_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The answer is complete: a terminal event has passed.
    pub fn mark_finished(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Says what the answer means. A later verdict replaces an earlier one.
    pub fn set_verdict(&self, verdict: Verdict) {
        self.with_facts(|facts| facts.verdict = Some(verdict));
    }

    /// Takes over a report of used tokens; see [`Usage::update`].
    pub fn update_usage(&self, usage: &Usage) {
        self.with_facts(|facts| facts.usage.update(usage));
    }

    fn mark(&self, slot: &AtomicU64, now: Instant) {
        let after = time::nanos(now.saturating_duration_since(self.sent)).min(NOT_YET - 1);
        let _ = slot.compare_exchange(NOT_YET, after, Ordering::AcqRel, Ordering::Acquire);
    }

    fn facts(&self) -> Facts {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_facts(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn read(slot: &AtomicU64) -> Option<Duration> {
    match slot.load(Ordering::Acquire) {
        NOT_YET => None,
        nanos => Some(Duration::from_nanos(nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Class;

    #[test]
    fn marks_are_taken_from_sending_and_the_first_one_stays() {
        let sent = time::now();
        let outcome = Outcome::new(sent);
        assert_eq!(outcome.to_head(), None);
        outcome.mark_head(sent + Duration::from_millis(5));
        outcome.mark_head(sent + Duration::from_millis(9));
        assert_eq!(outcome.to_head(), Some(Duration::from_millis(5)));
        assert_eq!(outcome.to_content(), None);
    }

    #[test]
    fn a_mark_before_sending_is_zero_not_a_panic() {
        let sent = time::now() + Duration::from_secs(5);
        let outcome = Outcome::new(sent);
        outcome.mark_end(time::now());
        assert_eq!(outcome.to_end(), Some(Duration::ZERO));
    }

    #[test]
    fn the_last_verdict_stands() {
        let outcome = Outcome::new(time::now());
        outcome.set_verdict(Verdict::SUCCESS);
        outcome.set_verdict(Verdict::new(Class::Transient));
        assert_eq!(outcome.verdict().map(|verdict| verdict.class()), Some(Class::Transient));
    }
}
