//! What the provider does, and what is asked of it.

use std::time::Duration;

use http::StatusCode;
use seawall::fault::Inject;

/// One of the six.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) key: char,
    pub(crate) name: &'static str,
    /// What it is, for the legend.
    pub(crate) about: &'static str,
    pub(crate) load: Load,
    /// How long a caller waits for its answer before it goes away.
    pub(crate) patience: Duration,
    /// How long one attempt waits for its head, in all set-ups that retry.
    pub(crate) head: Duration,
    /// So many requests in such a time, as a bucket that fills all the time.
    pub(crate) limit: Option<(u32, Duration)>,
    /// What happens to this share of the attempts.
    pub(crate) faults: Vec<(f64, Inject)>,
    /// Down for so long, then up for as long.
    pub(crate) flaps: Option<Duration>,
    /// A server of so many workers, each busy so long with a call, which freezes.
    pub(crate) workers: Option<Workers>,
    /// Whether a second, healthy provider is there for those that can fall over to it.
    pub(crate) second: bool,
    /// How many calls at once the bulkheads allow.
    pub(crate) slots: u32,
    /// How much faster than life it runs over real sockets.
    pub(crate) faster: u32,
}

/// When calls come in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// By chance, so many a second.
    Steady { per_second: f64, lasts: Duration },
    /// So many at once, as fast as this, time and again.
    Bursts { per_second: f64, calls: u32, every: Duration, times: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    pub(crate) count: usize,
    pub(crate) busy: Duration,
    pub(crate) frozen: (Duration, Duration),
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An ordinary day of a provider that serves 60 requests a minute, ten of them at once.
const ORDINARY: Scenario = Scenario {
    key: 'a',
    name: "steady",
    about: "60 requests a minute allowed, 39 asked, 23 % of the attempts fail",
    load: Load::Steady { per_second: 0.65, lasts: seconds(1_200) },
    patience: seconds(300),
    head: seconds(30),
    limit: Some((10, seconds(10))),
    faults: Vec::new(),
    flaps: None,
    workers: None,
    second: false,
    slots: 3,
    faster: 10,
};

/// All of them; shorter ones for runs over sockets.
pub(crate) fn all(real: bool) -> Vec<Scenario> {
    let either = |simulated: u32, over_sockets: u32| if real { over_sockets } else { simulated };
    let bursts = |per_second| Load::Bursts {
        per_second,
        calls: either(150, 60),
        every: seconds(either(200, 80).into()),
        times: either(4, 2),
    };
    let steady = |per_second, lasts| Load::Steady { per_second, lasts: seconds(lasts) };
    let status = |status| Inject::status(status);
    let now_and_then = vec![(0.02, status(StatusCode::INTERNAL_SERVER_ERROR))];
    vec![
        Scenario {
            load: steady(0.65, either(3_600, 200).into()),
            faults: vec![
                (0.10, status(StatusCode::INTERNAL_SERVER_ERROR)),
                (0.05, status(StatusCode::SERVICE_UNAVAILABLE)),
                (0.03, Inject::reset()),
                (0.03, Inject::error_event(0)),
                (0.02, Inject::cut(150)),
            ],
            ..ORDINARY
        },
        Scenario {
            key: 'b',
            name: "burst 17x",
            about: "the same limit, bursts at 17 times its rate; 2 % fail",
            load: bursts(17.0),
            faults: now_and_then.clone(),
            ..ORDINARY
        },
        Scenario {
            key: 'c',
            name: "burst 40x",
            about: "the same limit, bursts at 40 times its rate; 2 % fail",
            load: bursts(40.0),
            faults: now_and_then,
            ..ORDINARY
        },
        Scenario {
            key: 'd',
            name: "flapping",
            about: "20 s down, 20 s up; a second, dearer provider is healthy",
            load: steady(4.0, either(240, 120).into()),
            patience: seconds(30),
            limit: None,
            flaps: Some(seconds(20)),
            second: true,
            slots: 16,
            faster: 12,
            ..ORDINARY
        },
        Scenario {
            key: 'e',
            name: "slow",
            about: "one head in ten takes a minute; callers wait 30 s, attempts 5 s",
            load: steady(4.0, either(240, 120).into()),
            patience: seconds(30),
            head: seconds(5),
            limit: None,
            faults: vec![(0.1, Inject::delay(seconds(60) / either(1, 12)))],
            slots: 24,
            faster: 12,
            ..ORDINARY
        },
        Scenario {
            key: 'f',
            name: "frozen",
            about: "5 workers, 84 % busy, stand still for 10 s; callers wait 5 s, attempts 1 s",
            load: steady(42.0, either(80, 36).into()),
            patience: seconds(5),
            head: seconds(1),
            limit: None,
            workers: Some(Workers {
                count: 5,
                busy: Duration::from_millis(100),
                frozen: (seconds(10), seconds(20)),
            }),
            slots: 8,
            faster: 2,
            ..ORDINARY
        },
    ]
}

impl Load {
    /// When each call comes in, from the start.
    pub(crate) fn arrivals(&self, seed: u64) -> Vec<Duration> {
        let mut random = fastrand::Rng::with_seed(seed);
        match *self {
            Self::Steady { per_second, lasts } => {
                let mut due = Duration::ZERO;
                let mut next = || {
                    due += exponential(&mut random, Duration::from_secs_f64(1.0 / per_second));
                    (due < lasts).then_some(due)
                };
                std::iter::from_fn(&mut next).collect()
            }
            Self::Bursts { per_second, calls, every, times } => {
                let apart = Duration::from_secs_f64(1.0 / per_second);
                let burst = |time| (0..calls).map(move |call| every * time + apart * call);
                (0..times).flat_map(burst).collect()
            }
        }
    }
}

pub(crate) fn exponential(random: &mut fastrand::Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - random.f64()).ln())
}

impl Scenario {
    /// The same, so many times faster; but for its faults, which are as they were made.
    pub(crate) fn faster_than_life(mut self) -> Self {
        let faster = self.faster;
        let rate = f64::from(faster);
        self.load = match self.load {
            Load::Steady { per_second, lasts } => {
                Load::Steady { per_second: per_second * rate, lasts: lasts / faster }
            }
            Load::Bursts { per_second, calls, every, times } => {
                Load::Bursts { per_second: per_second * rate, calls, every: every / faster, times }
            }
        };
        self.patience /= faster;
        self.limit = self.limit.map(|(requests, per)| (requests, per / faster));
        self.flaps = self.flaps.map(|time| time / faster);
        self.head /= faster;
        if let Some(workers) = &mut self.workers {
            workers.busy /= faster;
            workers.frozen = (workers.frozen.0 / faster, workers.frozen.1 / faster);
        }
        self
    }
}
