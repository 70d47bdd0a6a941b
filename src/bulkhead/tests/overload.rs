//! How long a queue may be: an overloaded server in virtual time, over the queue itself.
//!
//! 30 workers, 100 ms a call (exponential), so 300 calls a second; 280 come. A caller gives up after 1 s, which the
//! server does not notice, and tries up to 3 times. The workers stand still for 10 s. What then decides whether the
//! server comes back is the queue: if it is as long as *timeout × rate*, whoever is served has given up already.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::*;
use crate::bulkhead::queue::{Next, Queue};
use crate::time::{self, Instant};

const WORKERS: usize = 30;
const ARRIVALS: f64 = 280.0;
const SERVICE: f64 = 0.1;
const TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPTS: u8 = 3;
const FREEZE: u64 = 5;
const UNFREEZE: u64 = 15;
const END: u64 = 75;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrival,
    /// Of a call, and the number of the attempt that goes out.
    Attempt(usize, u8),
    GaveUp(usize, u8),
    Served(Job),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    call: usize,
    sent: Instant,
}

struct Server {
    start: Instant,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, What)>>,
    queue: Queue<Job>,
    queued: usize,
    bound: usize,
    /// How long a job may wait to be worth serving, if the queue is told.
    worth: Option<Duration>,
    busy: usize,
    answered: Vec<bool>,
    /// Answers in time, by the second.
    good: BTreeMap<u64, u32>,
    rng: fastrand::Rng,
}

impl Server {
    fn new(bound: usize, worth: Option<Duration>, seed: u64) -> Self {
        let start = time::now();
        Self {
            start,
            now: start,
            events: BinaryHeap::from([Reverse((start, What::Arrival))]),
            queue: Queue::new(),
            queued: 0,
            bound,
            worth,
            busy: 0,
            answered: Vec::new(),
            good: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    fn exponential(&mut self, mean: f64) -> Duration {
        Duration::from_secs_f64(-mean * (1.0 - self.rng.f64()).ln())
    }

    fn at(&mut self, wait: Duration, what: What) {
        self.events.push(Reverse((self.now + wait, what)));
    }

    fn run(mut self) -> BTreeMap<u64, u32> {
        while let Some(Reverse((now, what))) = self.events.pop() {
            self.now = now;
            if now >= self.start + Duration::from_secs(END) {
                break;
            }
            match what {
                What::Arrival => {
                    let next = self.exponential(1.0 / ARRIVALS);
                    self.at(next, What::Arrival);
                    self.answered.push(false);
                    self.at(Duration::ZERO, What::Attempt(self.answered.len() - 1, 1));
                }
                What::Attempt(call, attempt) => self.attempt(call, attempt),
                What::GaveUp(call, attempt) if !self.answered[call] => self.again(call, attempt),
                What::GaveUp(..) => {}
                What::Served(job) => self.served(job),
            }
        }
        self.good
    }

    fn attempt(&mut self, call: usize, attempt: u8) {
        let job = Job { call, sent: self.now };
        if self.busy < WORKERS {
            self.serve(job);
        } else if self.queued < self.bound {
            self.queued += 1;
            self.queue.push(Priority::default(), self.worth.map(|worth| self.now + worth), job);
        } else {
            self.again(call, attempt);
            return;
        }
        self.at(TIMEOUT, What::GaveUp(call, attempt));
    }

    fn again(&mut self, call: usize, attempt: u8) {
        if attempt < ATTEMPTS {
            let pause = self.exponential(0.1);
            self.at(pause, What::Attempt(call, attempt + 1));
        }
    }

    fn serve(&mut self, job: Job) {
        self.busy += 1;
        let time = self.exponential(SERVICE);
        self.at(time, What::Served(job));
    }

    fn served(&mut self, job: Job) {
        let second = (self.now - self.start).as_secs();
        if (FREEZE..UNFREEZE).contains(&second) {
            self.at(Duration::from_secs(UNFREEZE - FREEZE), What::Served(job));
            return;
        }
        if self.now <= job.sent + TIMEOUT && !std::mem::replace(&mut self.answered[job.call], true) {
            *self.good.entry(second).or_default() += 1;
        }
        self.busy -= 1;
        while self.busy < WORKERS {
            let Some(next) = self.queue.pop(self.now) else { return };
            self.queued -= 1;
            if let Next::Turn(job) = next {
                self.serve(job);
            }
        }
    }
}

/// The share of calls answered in time in these seconds after the workers move again.
fn goodput(bound: usize, worth: Option<Duration>, seed: u64, seconds: Range<u32>) -> f64 {
    let after = |second: u32| UNFREEZE + u64::from(second);
    let good = Server::new(bound, worth, seed).run();
    let good: u32 = good.range(after(seconds.start)..after(seconds.end)).map(|(_, good)| good).sum();
    f64::from(good) / (ARRIVALS * f64::from(seconds.end - seconds.start))
}

#[test]
fn a_queue_of_one_service_time_or_half_the_timeout_recovers_at_once() {
    for (bound, seed) in [(30, 1), (30, 2), (150, 3), (150, 4)] {
        let share = goodput(bound, None, seed, 1..6);
        assert!(share > 0.95, "queue of {bound}: {share}");
    }
}

#[test]
fn a_queue_as_long_as_the_timeout_never_recovers() {
    for seed in [5, 6] {
        let share = goodput(300, None, seed, 50..60);
        assert!(share < 0.5, "queue of 300: {share}");
    }
}

#[test]
fn a_long_queue_that_knows_the_deadlines_recovers_too() {
    for seed in [7, 8] {
        let share = goodput(300, Some(Duration::from_millis(700)), seed, 5..15);
        assert!(share > 0.95, "queue of 300, refusing what would be late: {share}");
    }
}
