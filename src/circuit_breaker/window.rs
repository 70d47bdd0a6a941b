//! The calls that a rate looks at. Pure: times are arguments, in nanoseconds since the breaker was made.
//!
//! Both windows really slide, in constant time a call. A moving average would not do: it never forgets an outage
//! entirely, and nobody can say which calls it is made of.

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;

use super::settings::WindowKind;

/// Into how many parts a time window is cut: it holds between nine tenths and the whole of its time.
pub(super) const BUCKETS: usize = 10;

/// What a window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) slow: u64,
}

impl Counts {
    fn one(failed: bool, slow: bool) -> Self {
        Self { calls: 1, failed: u64::from(failed), slow: u64::from(slow) }
    }

    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.slow += other.slow;
    }

    fn take(&mut self, other: Self) {
        self.calls -= other.calls;
        self.failed -= other.failed;
        self.slow -= other.slow;
    }
}

/// The calls of the last time, or the last so many calls.
#[derive(Clone, Debug)]
pub(super) enum Window {
    Time(TimeWindow),
    Calls(CallWindow),
}

impl Window {
    pub(super) fn new(kind: WindowKind) -> Self {
        match kind {
            WindowKind::Time { bucket } => Self::Time(TimeWindow::new(bucket)),
            WindowKind::Calls(calls) => Self::Calls(CallWindow::new(calls)),
        }
    }

    /// Counts a call that ended now, and says what the window holds then.
    pub(super) fn record(&mut self, now: u64, failed: bool, slow: bool) -> Counts {
        match self {
            Self::Time(window) => {
                window.slide(now);
                window.add(Counts::one(failed, slow));
                window.sum
            }
            Self::Calls(window) => {
                window.push(failed, slow);
                window.sum
            }
        }
    }

    /// Counts successes that came before the present bucket's end.
    pub(super) fn absorb(&mut self, successes: u64) {
        if let Self::Time(window) = self {
            window.add(Counts { calls: successes, ..Counts::default() });
        }
    }

    /// What it holds, had nothing come since it last slid.
    pub(super) fn counts(&self) -> Counts {
        match self {
            Self::Time(window) => window.sum,
            Self::Calls(window) => window.sum,
        }
    }

    /// What it holds at `now`.
    pub(super) fn counts_at(&self, now: u64) -> Counts {
        match self {
            Self::Time(window) => window.counts_at(now),
            Self::Calls(window) => window.sum,
        }
    }

    /// Up to when successes may be counted elsewhere and [absorbed](Self::absorb) later; 0 for never.
    pub(super) fn bucket_end(&self) -> u64 {
        match self {
            Self::Time(window) => window.current.saturating_add(1).saturating_mul(window.width),
            Self::Calls(_) => 0,
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Time(window) => window.clear(),
            Self::Calls(window) => *window = CallWindow::new(window.capacity),
        }
    }
}

/// Ten buckets and their running sum.
#[derive(Clone, Debug)]
pub(super) struct TimeWindow {
    width: u64,
    /// The number of the present bucket: its begin is that many widths after zero.
    current: u64,
    buckets: [Counts; BUCKETS],
    sum: Counts,
}

impl TimeWindow {
    fn new(width: u64) -> Self {
        Self { width, current: 0, buckets: [Counts::default(); BUCKETS], sum: Counts::default() }
    }

    /// Drops what is older than the window. Time that steps back stays in the present bucket.
    fn slide(&mut self, now: u64) {
        let target = now / self.width;
        let steps = target.saturating_sub(self.current);
        if steps == 0 {
            return;
        }
        if steps >= BUCKETS as u64 {
            self.clear();
        } else {
            for number in self.current + 1..=target {
                let bucket = std::mem::take(&mut self.buckets[place(number)]);
                self.sum.take(bucket);
            }
        }
        self.current = target;
    }

    fn add(&mut self, counts: Counts) {
        self.buckets[place(self.current)].add(counts);
        self.sum.add(counts);
    }

    fn counts_at(&self, now: u64) -> Counts {
        let mut later = self.clone();
        later.slide(now);
        later.sum
    }

    fn clear(&mut self) {
        self.buckets = [Counts::default(); BUCKETS];
        self.sum = Counts::default();
    }
}

/// Where a bucket is kept.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below ten")]
fn place(number: u64) -> usize {
    (number % BUCKETS as u64) as usize
}

/// A ring of two bits a call.
#[derive(Clone, Debug)]
pub(super) struct CallWindow {
    capacity: u32,
    next: u32,
    failed: Vec<u64>,
    slow: Vec<u64>,
    sum: Counts,
}

impl CallWindow {
    /// Takes its memory with the first call, so that a key that is never called costs little.
    fn new(capacity: u32) -> Self {
        Self { capacity, next: 0, failed: Vec::new(), slow: Vec::new(), sum: Counts::default() }
    }

    fn push(&mut self, failed: bool, slow: bool) {
        if self.failed.is_empty() {
            let words = self.capacity.div_ceil(64) as usize;
            self.failed.resize(words, 0);
            self.slow.resize(words, 0);
        }
        let was = Counts::one(
            swap_bit(&mut self.failed, self.next, failed),
            swap_bit(&mut self.slow, self.next, slow),
        );
        if self.sum.calls == u64::from(self.capacity) {
            self.sum.take(was);
        }
        self.sum.add(Counts::one(failed, slow));
        self.next = if self.next + 1 == self.capacity { 0 } else { self.next + 1 };
    }
}

/// Sets a bit, and says what it was.
fn swap_bit(words: &mut [u64], bit: u32, set: bool) -> bool {
    let (word, mask) = (&mut words[bit as usize / 64], 1 << (bit % 64));
    let was = *word & mask != 0;
    if set {
        *word |= mask;
    } else {
        *word &= !mask;
    }
    was
}
