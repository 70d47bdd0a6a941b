//! The bucket and its line: what is shared, and in which order it is touched.
//!
//! 1. While nobody waits and nothing pauses, a request passes by compare-and-swap alone.
//! 2. A newcomer that finds somebody waiting takes its place under the lock: nobody is overtaken.
//! 3. No wake-up is lost. Who joins counts itself as waiting *and then* looks at the bucket; who gives back changes the
//!    bucket *and then* reads the count. Both touch the count by read-modify-write, so one of the two sees the other.
//! 4. Wakers run after the lock is released.
//! 5. While the bucket is neither nearly full nor short, a coarse clock decides as the exact one would: the TAT moves on
//!    from where it is, not from now.

use std::task::Waker;

use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::time::Origin;
use crate::token_bucket::bucket::{Bucket, Costs, Rate, Rough, Short, TICKS};
use crate::token_bucket::queue::{Joined, Polled, Queue, Waiter, Wakers};

/// By how much the clock that may lag behind does so at most.
pub(super) const LAG: u64 = Origin::MOST_LAG * TICKS;

#[derive(Debug)]
#[repr(C)]
pub(super) struct Core {
    pub(super) bucket: Bucket,
    /// Those in line, and who is about to be.
    waiting: AtomicUsize,
    /// Until when nobody passes; 0 when nothing was paused since the last one was over.
    paused: AtomicU64,
    queue: Mutex<Queue>,
    bound: usize,
    /// Whether a coarse clock can decide, as far as was seen when the exact one was last read: the bucket was neither nearly
    /// full nor short. It lies apart from the words that change with each call.
    coarsely: AtomicBool,
}

impl Core {
    pub(super) fn new(bucket: Bucket, bound: usize) -> Self {
        Self {
            bucket,
            waiting: AtomicUsize::new(0),
            paused: AtomicU64::new(0),
            queue: Mutex::new(Queue::default()),
            bound,
            coarsely: AtomicBool::new(false),
        }
    }

    /// Whether nobody waits and nothing pauses.
    #[inline]
    pub(super) fn is_open(&self, now: u64) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && self.paused.load(Ordering::Relaxed) <= now
    }

    /// Takes the costs if nobody is before and nothing pauses. `None`: somebody is, or something does.
    #[expect(clippy::inline_always, reason = "so that the costs of usual requests stay in registers")]
    #[inline(always)]
    pub(super) fn take(&self, now: u64, costs: &Costs) -> Option<Result<(), Short>> {
        if !self.is_open(now) {
            return None;
        }
        // Looked at before it is taken from: a number just written by a compare-and-swap is waited for.
        let in_use = self.bucket.is_not_full_before(now.saturating_add(LAG));
        let taken = self.bucket.take(now, costs);
        let coarsely = in_use && taken.is_ok();
        if self.coarsely.load(Ordering::Relaxed) != coarsely {
            self.coarsely.store(coarsely, Ordering::Relaxed);
        }
        Some(taken)
    }

    /// Takes the costs by a clock that lags behind by up to [`LAG`], where the exact one would decide no differently, and
    /// says what it read. `None`: nothing is taken, and the exact one has to tell.
    #[expect(clippy::inline_always, reason = "so that the costs of usual requests stay in registers")]
    #[inline(always)]
    pub(super) fn take_coarsely(&self, costs: &Costs, coarse: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if !self.coarsely.load(Ordering::Relaxed) {
            return None;
        }
        let earliest = coarse()?;
        let rough = Rough { earliest, latest: earliest.saturating_add(LAG) };
        (self.is_open(earliest) && self.bucket.take_roughly(rough, costs)).then_some(earliest)
    }

    /// Takes the costs without ever waiting.
    pub(super) fn take_or_refuse(&self, now: u64, costs: &Costs) -> Result<(), Short> {
        let paused = self.paused_for(now);
        if paused == 0 {
            return self.bucket.take(now, costs);
        }
        // Whichever is over later: the pause, or what the bucket lacks.
        let short = self.bucket.short(now, costs).filter(|short| short.wait > paused);
        Err(short.unwrap_or(Short { dimension: Short::NO_DIMENSION, wait: paused }))
    }

    pub(super) fn join(&self, now: u64, waiter: Waiter) -> Result<Joined, Short> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let joined =
            self.with_queue(|queue, wakers| queue.join(&self.bucket, now, waiter, self.bound, wakers));
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        joined
    }

    pub(super) fn poll(&self, now: u64, ticket: u64, waker: Waker) -> Polled {
        self.with_queue(|queue, wakers| queue.poll(&self.bucket, now, ticket, waker, wakers))
    }

    /// Gives a place up; what was granted meanwhile comes back in full.
    pub(super) fn leave(&self, now: u64, ticket: u64, undrained: bool) {
        let granted = self.with_queue(|queue, wakers| queue.leave(&self.bucket, now, ticket, wakers));
        if let Some((since, costs)) = granted {
            self.give_back_all(now, since, &costs, undrained);
        }
    }

    /// Gives everything back that was taken at the instant `since`.
    pub(super) fn give_back_all(&self, now: u64, since: u64, costs: &Costs, undrained: bool) {
        for (meter, &cost) in self.bucket.meters().zip(&**costs) {
            meter.give_back(now, since, cost, cost, undrained);
        }
        self.moved_up(now);
    }

    /// Settles the `cost` that was taken of one dimension at the instant `since` to what it really was.
    pub(super) fn settle(
        &self,
        now: u64,
        dimension: usize,
        (since, cost): (u64, u64),
        actual: u64,
        undrained: bool,
    ) {
        let Some(meter) = self.bucket.meter(dimension) else { return };
        if actual < cost {
            meter.give_back(now, since, cost, cost - actual, undrained);
            self.moved_up(now);
        } else if actual > cost {
            meter.charge(now, actual - cost);
            self.moved_back(now);
        }
    }

    pub(super) fn pause(&self, now: u64, until: u64, spread: u64) {
        self.paused.fetch_max(until, Ordering::AcqRel);
        self.with_queue(|queue, wakers| queue.pause(&self.bucket, now, until, spread, wakers));
    }

    pub(super) fn resume(&self, now: u64) {
        self.paused.store(0, Ordering::Release);
        self.with_queue(|queue, wakers| queue.resume(&self.bucket, now, wakers));
    }

    /// Ticks until the pause is over.
    pub(super) fn paused_for(&self, now: u64) -> u64 {
        let until = self.paused.load(Ordering::Acquire);
        let left = until.saturating_sub(now);
        if left == 0 && until > 0 {
            // Over: whoever asks next need not look at the clock.
            let _ = self.paused.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        left
    }

    /// Whether something is or was paused since anybody last looked.
    #[inline]
    pub(super) fn may_be_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed) > 0
    }

    /// Fills a dimension at another rate from now on, if it does not already.
    pub(super) fn set_rate(&self, now: u64, dimension: usize, to: Rate) {
        let Some(meter) = self.bucket.meter(dimension) else { return };
        if meter.rate() == to {
            return;
        }
        self.with_queue(|queue, wakers| {
            meter.set_rate(now, to);
            queue.moved_back(&self.bucket, now, wakers);
            queue.moved_up(&self.bucket, now, wakers);
        });
    }

    /// At the instant `at` no more than `units` of a dimension were left.
    pub(super) fn cap(&self, now: u64, dimension: usize, at: u64, units: u64) {
        let Some(meter) = self.bucket.meter(dimension) else { return };
        let before = meter.tat();
        meter.cap(at, units);
        if meter.tat() != before {
            self.moved_back(now);
        }
    }

    pub(super) fn waiters(&self) -> usize {
        lock(&self.queue).len()
    }

    /// Whether it decides as a fresh one would, and nobody waits.
    pub(super) fn is_at_rest(&self, now: u64) -> bool {
        self.paused_for(now) == 0 && self.bucket.is_full(now) && lock(&self.queue).is_idle()
    }

    fn moved_up(&self, now: u64) {
        if self.waiting.fetch_add(0, Ordering::AcqRel) > 0 {
            self.with_queue(|queue, wakers| queue.moved_up(&self.bucket, now, wakers));
        }
    }

    fn moved_back(&self, now: u64) {
        if self.waiting.fetch_add(0, Ordering::AcqRel) > 0 {
            self.with_queue(|queue, wakers| queue.moved_back(&self.bucket, now, wakers));
        }
    }

    fn with_queue<T>(&self, run: impl FnOnce(&mut Queue, &mut Wakers) -> T) -> T {
        let mut wakers = Wakers::default();
        let result = {
            let mut queue = lock(&self.queue);
            let before = queue.len();
            let result = run(&mut queue, &mut wakers);
            let after = queue.len();
            if after > before {
                self.waiting.fetch_add(after - before, Ordering::AcqRel);
            } else if after < before {
                self.waiting.fetch_sub(before - after, Ordering::AcqRel);
            }
            result
        };
        for waker in wakers.wake {
            waker.wake();
        }
        drop(wakers.discard);
        result
    }
}
