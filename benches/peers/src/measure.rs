//! Paired timing: A B A B, many short turns. The minimum is what the code costs; the median says how noisy the run was.

#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use tower::Service;

use crate::drive::{Loop, call};

/// Nanoseconds a call.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub least: f64,
    pub median: f64,
}

impl Timing {
    /// Whichever was disturbed less.
    pub fn better(self, other: Self) -> Self {
        if other.least < self.least { other } else { self }
    }
}

/// How many turns each side has.
pub const TURNS: usize = 300;

/// How long one turn takes: long against the clock, short against what disturbs.
const TURN: Duration = Duration::from_micros(400);

/// Times two loops in turns.
pub fn paired(ours: &mut Loop, theirs: &mut Loop, turns: usize) -> (Timing, Timing) {
    let (our_count, their_count) = (calibrated(ours), calibrated(theirs));
    let (mut our_times, mut their_times) = (Vec::with_capacity(turns), Vec::with_capacity(turns));
    for _ in 0..turns {
        our_times.push(each(time(ours, our_count), our_count));
        their_times.push(each(time(theirs, their_count), their_count));
    }
    (timing(our_times), timing(their_times))
}

/// Times one loop.
pub fn alone(run: &mut Loop, turns: usize) -> Timing {
    let count = calibrated(run);
    timing((0..turns).map(|_| each(time(run, count), count)).collect())
}

fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
    Timing { least: at(0), median: at(times.len() / 2) }
}

#[expect(clippy::cast_precision_loss, reason = "nothing that is counted here comes near 2^52")]
pub fn precise(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a turn is far shorter than 2^52 ns")]
fn each(took: Duration, calls: u64) -> f64 {
    took.as_nanos() as f64 / calls as f64
}

fn time(run: &mut Loop, count: u64) -> Duration {
    let start = Instant::now();
    run(count);
    start.elapsed()
}

/// How many calls make a turn.
fn calibrated(run: &mut Loop) -> u64 {
    let mut count = 1;
    while time(run, count) < TURN {
        count *= 2;
    }
    count
}

/// Allocations a call.
pub fn allocations(run: &mut Loop) -> u64 {
    const CALLS: u64 = 64;
    // What is made once is made before.
    run(CALLS);
    allocation_counter::measure(|| run(CALLS)).count_total.div_ceil(CALLS)
}

/// The throughput of two threads on one service, each with a request of its own, as a part of what one thread reaches, in
/// turns: best and median of those turns in which both really ran at once. On a busy machine few are; `None` if none was.
pub fn two_threads<S, Req>(service: &S, requests: [Req; 2], turns: usize) -> Option<Timing>
where
    S: Service<Req> + Clone + Send + Sync,
    Req: Copy + Send + Sync,
{
    let (mut one, mut two) = (Vec::with_capacity(turns), Vec::with_capacity(turns));
    for _ in 0..10 * turns {
        one.extend(together(service, &requests[..1]));
        two.extend(together(service, &requests));
        if two.len() == turns {
            break;
        }
    }
    if two.is_empty() {
        return None;
    }
    let (one, two) = (timing(one), timing(two));
    Some(Timing { least: 2.0 * one.least / two.least, median: 2.0 * one.median / two.median })
}

/// Nanoseconds a call, if all threads ran for nine tenths of the time at least.
fn together<S, Req>(service: &S, requests: &[Req]) -> Option<f64>
where
    S: Service<Req> + Clone + Send + Sync,
    Req: Copy + Send + Sync,
{
    const CALLS: u64 = 20_000;
    let barrier = &Barrier::new(requests.len());
    let work = |mut service: S, request: Req| {
        barrier.wait();
        let start = Instant::now();
        for _ in 0..CALLS {
            let _ = black_box(call(&mut service, black_box(request)).is_ok());
        }
        (start, Instant::now())
    };
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let workers: Vec<_> = requests
            .iter()
            .map(|&request| (service.clone(), request))
            .map(|(s, r)| scope.spawn(move || work(s, r)))
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let begins = || spans.iter().map(|span| span.0);
    let ends = || spans.iter().map(|span| span.1);
    let whole = ends().max()?.saturating_duration_since(begins().min()?);
    let common = ends().min()?.saturating_duration_since(begins().max()?);
    (common.as_secs_f64() >= 0.9 * whole.as_secs_f64()).then(|| each(whole, CALLS))
}
