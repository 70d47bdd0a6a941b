//! Clients that compete, in virtual time: what each kind of backoff costs them.
//!
//! Each client reads a version and writes it back; the write fails if another came first, and the client waits and begins
//! again. Each hop takes 10 ms, ± 2 (normal). Ten clients need fifty writes even if nobody waits; what is compared is how many
//! writes and how much time it takes until all have succeeded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::rng::Rng;

/// Writes, and the time until the last client was done: means of some runs.
#[derive(Debug)]
struct Cost {
    writes: f64,
    millis: f64,
}

struct Client {
    version: u32,
    failures: u32,
    waited: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Reads,
    Writes,
    Hears(bool),
}

fn hop(random: &mut fastrand::Rng) -> Duration {
    let (u, v) = (1.0 - random.f64(), random.f64());
    let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
    Duration::from_secs_f64((0.010 + 0.002 * normal).max(0.0))
}

fn compete(clients: usize, jitter: Jitter, seed: u64) -> (u32, Duration) {
    // The known figures are of a base of 5 ms whose first wait is already doubled.
    let base = if jitter == Jitter::Decorrelated { ms(5) } else { ms(10) };
    let backoff = Backoff::exponential(base).cap(secs(2)).jitter(jitter);
    let (rng, mut random) = (Rng::seeded(seed), fastrand::Rng::with_seed(seed));
    let mut all: Vec<Client> =
        (0..clients).map(|_| Client { version: 0, failures: 0, waited: None }).collect();
    let mut due = BinaryHeap::new();
    for index in 0..clients {
        due.push(Reverse((hop(&mut random), index, Step::Reads)));
    }
    let (mut version, mut writes, mut now) = (0, 0, Duration::ZERO);
    while let Some(Reverse((at, index, step))) = due.pop() {
        now = at;
        let client = &mut all[index];
        let next = match step {
            Step::Reads => {
                client.version = version;
                // Back to the client, and on to the server with the write.
                (at + hop(&mut random) + hop(&mut random), Step::Writes)
            }
            Step::Writes => {
                writes += 1;
                let first = client.version == version;
                version += u32::from(first);
                (at + hop(&mut random), Step::Hears(first))
            }
            Step::Hears(true) => continue,
            Step::Hears(false) => {
                client.failures += 1;
                let wait = backoff.delay(client.failures, client.waited, &rng);
                client.waited = Some(wait);
                (at + wait + hop(&mut random), Step::Reads)
            }
        };
        due.push(Reverse((next.0, index, next.1)));
    }
    (writes, now)
}

fn cost(clients: usize, jitter: Jitter) -> Cost {
    const RUNS: u32 = 30;
    let runs: Vec<_> = (0..u64::from(RUNS)).map(|seed| compete(clients, jitter, 1 + seed * 7919)).collect();
    Cost {
        writes: runs.iter().map(|(writes, _)| f64::from(*writes)).sum::<f64>() / f64::from(RUNS),
        millis: runs.iter().map(|(_, took)| took.as_secs_f64() * 1e3).sum::<f64>() / f64::from(RUNS),
    }
}

#[test]
fn full_jitter_costs_less_than_half_of_what_lock_step_does() {
    // Writes of exponential and of full jitter, as they are known for this model.
    for (clients, exponential, full) in
        [(10, 51.0, 39.0), (50, 624.0, 332.0), (100, 1849.0, 794.0), (190, 5147.0, 1770.0)]
    {
        let (lockstep, spread) = (cost(clients, Jitter::None), cost(clients, Jitter::Full));
        let near = |found: f64, known: f64| (found / known - 1.0).abs() < 0.10;
        assert!(near(lockstep.writes, exponential), "{clients}: {lockstep:?}, known {exponential}");
        assert!(near(spread.writes, full), "{clients}: {spread:?}, known {full}");
        assert!(spread.millis < lockstep.millis / 5.0, "{clients}: {spread:?} of {lockstep:?}");
    }
}

#[test]
fn at_a_hundred_clients_the_kinds_of_jitter_compare_as_known() {
    let [lockstep, full, equal, decorrelated] =
        [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated].map(|jitter| cost(100, jitter));
    assert!(full.writes < 0.5 * lockstep.writes, "{full:?} of {lockstep:?}");
    assert!((equal.writes / full.writes - 1.0).abs() < 0.1, "{equal:?} against {full:?}");
    assert!(equal.millis > 1.25 * full.millis, "{equal:?} against {full:?}");
    assert!(decorrelated.writes > 1.2 * full.writes, "{decorrelated:?} against {full:?}");
}
