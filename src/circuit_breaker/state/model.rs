//! The state machine against a naive model that keeps lists and looks through them.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::tests::SECOND;
use super::*;
use crate::circuit_breaker::Settings;
use crate::circuit_breaker::settings::WindowKind;

/// What may happen to a breaker.
#[derive(Clone, Copy, Debug)]
pub(in crate::circuit_breaker) enum Step {
    Admit {
        marked: bool,
    },
    /// The attempt that was admitted so many before the last is over.
    Answer {
        which: usize,
        sample: Sample,
    },
    Wait(u64),
    Reset,
    ForceOpen,
    ForceClosed,
    ProbeNow,
}

pub(in crate::circuit_breaker) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => prop::bool::weighted(0.1).prop_map(|marked| Step::Admit { marked }),
        40 => (0..6_usize, sample()).prop_map(|(which, sample)| Step::Answer { which, sample }),
        15 => (0..3_000_u64).prop_map(|millis| Step::Wait(millis * SECOND / 1_000)),
        3 => (3..40_u64).prop_map(|seconds| Step::Wait(seconds * SECOND)),
        1 => Just(Step::Reset),
        1 => prop_oneof![Just(Step::ForceOpen), Just(Step::ForceClosed), Just(Step::ProbeNow)],
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    let vote = prop_oneof![
        5 => Just(Vote::Success),
        5 => Just(Vote::Failure),
        1 => Just(Vote::Neutral),
        1 => Just(Vote::Opens),
    ];
    let hint = prop_oneof![4 => Just(0), 1 => (1..9_u64).prop_map(|seconds| seconds * SECOND)];
    (vote, prop::bool::weighted(0.2), hint).prop_map(|(vote, slow, hint)| Sample { vote, slow, hint })
}

pub(in crate::circuit_breaker) fn settings() -> impl Strategy<Value = Arc<Settings>> {
    let seconds = |range: std::ops::Range<u64>| range.prop_map(Duration::from_secs);
    let rules = (
        prop::option::weighted(0.7, (1..5_u32, seconds(1..20))),
        prop::option::weighted(0.8, prop::sample::select(vec![0.2, 1.0 / 3.0, 0.5, 0.9, 1.0])),
        prop::option::weighted(0.3, prop::sample::select(vec![0.3, 0.5, 1.0])),
        1..8_u32,
        prop::option::weighted(0.4, 8..70_u32),
    );
    let recovery = (
        1..4_u32,
        seconds(1..40),
        1..4_u32,
        1..5_u32,
        prop::option::of(seconds(1..9)),
        prop::option::of(seconds(1..9)),
    );
    (rules, recovery).prop_map(
        |((row, rate, slow, minimum, calls), (growth, healthy, probes, successes, lease, ramp))| {
            let mut builder = Settings::builder()
                .minimum_calls(minimum)
                .window(Duration::from_secs(10))
                .open_for(Duration::from_secs(5))
                .open_at_most(Duration::from_secs(21))
                .open_growth(growth)
                .jitter(0.0)
                .healthy_after(healthy)
                .hint_at_most(Duration::from_secs(8))
                .probes(probes)
                .probe_successes(successes);
            builder = match row {
                Some((count, within)) => builder.consecutive_failures(count, within),
                None => builder.without_consecutive_failures(),
            };
            builder = rate.map_or(builder.clone().without_failure_rate(), |rate| builder.failure_rate(rate));
            builder =
                slow.map_or(builder.clone(), |rate| builder.slow_call_rate(Duration::from_secs(1), rate));
            builder = calls.map_or(builder.clone(), |calls| builder.count_window(calls));
            builder = lease.map_or(builder.clone(), |lease| builder.probe_lease(lease));
            builder = ramp.map_or(builder.clone(), |ramp| builder.ramp(ramp));
            Arc::new(builder.build().unwrap())
        },
    )
}

/// Keeps all that happened since it closed, and the probes since it moved.
struct Naive {
    settings: Arc<Settings>,
    moves: u32,
    forced: bool,
    kind: Kind,
    /// When, failed, slow.
    seen: Vec<(u64, bool, bool)>,
    row: Vec<u64>,
    closed_at: u64,
    /// Steps of the ramp that each call since closing fell into; `None` when it is over or there is none.
    ramp: Option<Vec<u64>>,
    openings: u32,
    lease: u64,
    probes: Vec<(u32, u64)>,
    serials: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Closed,
    Open(u64),
    HalfOpen(u32),
}

impl Naive {
    fn new(settings: Arc<Settings>) -> Self {
        let lease = settings.probe_lease.unwrap_or(settings.open_for);
        Self {
            settings,
            moves: 0,
            forced: false,
            kind: Kind::Closed,
            seen: Vec::new(),
            row: Vec::new(),
            closed_at: 0,
            ramp: None,
            openings: 0,
            lease,
            probes: Vec::new(),
            serials: 0,
        }
    }

    fn go(&mut self, kind: Kind) {
        self.kind = kind;
        self.forced = false;
        self.moves += 1;
        self.probes.clear();
    }

    fn close(&mut self, now: u64, recovered: bool) {
        self.seen.clear();
        self.row.clear();
        self.closed_at = now;
        self.ramp = (recovered && self.settings.ramp.is_some()).then(Vec::new);
        self.go(Kind::Closed);
    }

    fn open(&mut self, now: u64, by_verdict: bool, hint: u64) {
        if self.kind == Kind::Closed && now - self.closed_at >= self.settings.healthy_after {
            self.openings = 0;
        }
        let mut own = self.settings.open_for;
        for _ in 0..self.openings {
            own = (own * u64::from(self.settings.growth)).min(self.settings.open_at_most);
        }
        self.lease = self.settings.probe_lease.unwrap_or(own);
        let hint = hint.min(self.settings.hint_at_most);
        if by_verdict && hint > 0 {
            self.go(Kind::Open(now + hint));
        } else {
            self.openings += 1;
            self.go(Kind::Open(now + own.max(hint)));
        }
    }

    /// Refused, or the number of its probe (0 for none).
    fn admit(&mut self, now: u64, marked: bool) -> Option<u32> {
        match self.kind {
            Kind::Closed => self.ramp_admits(now).then_some(0),
            Kind::Open(until) if until <= now => {
                self.go(Kind::HalfOpen(0));
                self.probe(now)
            }
            Kind::Open(_) if marked && !self.forced => self.probe(now),
            Kind::Open(_) => None,
            Kind::HalfOpen(_) => self.probe(now),
        }
    }

    fn ramp_admits(&mut self, now: u64) -> bool {
        let time = self.settings.ramp.unwrap_or(0);
        if now - self.closed_at >= time {
            self.ramp = None;
        }
        let Some(steps) = &mut self.ramp else { return true };
        let whole = |steps: &[u64]| steps.iter().sum::<u64>().div_ceil(10);
        let before = whole(steps);
        steps.push(((now - self.closed_at) / (time / 10)).min(9) + 1);
        whole(steps) > before
    }

    fn probe(&mut self, now: u64) -> Option<u32> {
        let live = self.probes.iter().filter(|(_, until)| now < *until).count();
        (live < self.settings.probes as usize).then(|| {
            self.serials += 1;
            self.probes.push((self.serials, now + self.lease));
            self.serials
        })
    }

    fn answer(&mut self, now: u64, moves: u32, probe: u32, sample: Sample) {
        if moves != self.moves {
            return;
        }
        if self.kind == Kind::Closed {
            return self.answer_closed(now, sample);
        }
        let Some(place) = self.probes.iter().position(|(serial, _)| *serial == probe) else { return };
        if self.probes.remove(place).1 <= now {
            return;
        }
        let slow = sample.slow && self.settings.slow.is_some();
        match (self.kind, sample.vote) {
            (Kind::Closed, _) | (_, Vote::Neutral) => {}
            (kind, Vote::Success) if !slow => {
                let successes = if let Kind::HalfOpen(successes) = kind { successes + 1 } else { 1 };
                if matches!(kind, Kind::Open(_)) {
                    self.go(Kind::HalfOpen(0));
                }
                self.kind = Kind::HalfOpen(successes);
                if successes == self.settings.probe_successes {
                    self.close(now, true);
                }
            }
            (Kind::Open(_), _) => {}
            (Kind::HalfOpen(_), vote) => self.open(now, vote == Vote::Opens, sample.hint),
        }
    }

    fn answer_closed(&mut self, now: u64, sample: Sample) {
        if sample.vote == Vote::Neutral {
            return;
        }
        let failed = sample.vote != Vote::Success;
        self.seen.push((now, failed, sample.slow));
        if failed {
            self.row.push(now);
        } else {
            self.row.clear();
        }
        if !self.forced && (sample.vote == Vote::Opens || self.has_tripped(now)) {
            self.open(now, sample.vote == Vote::Opens, sample.hint);
        }
    }

    fn has_tripped(&self, now: u64) -> bool {
        let in_a_row = self.settings.consecutive.is_some_and(|rule| {
            let last: Vec<_> = self.row.iter().rev().take(rule.count as usize).collect();
            last.len() == rule.count as usize && now - *last[last.len() - 1] <= rule.within
        });
        let counts = self.counts(now);
        let reached = |part: u64, share: Share| {
            counts.calls >= self.settings.minimum && share.is_reached(part, counts.calls)
        };
        in_a_row
            || self.settings.failure_rate.is_some_and(|share| reached(counts.failed, share))
            || self.settings.slow.is_some_and(|slow| reached(counts.slow, slow.rate))
    }

    fn counts(&self, now: u64) -> Counts {
        let counted: Vec<_> = match self.settings.window {
            WindowKind::Calls(calls) => self.seen.iter().rev().take(calls as usize).collect(),
            WindowKind::Time { bucket } => {
                self.seen.iter().filter(|(at, ..)| now / bucket - at / bucket < 10).collect()
            }
        };
        Counts {
            calls: counted.len() as u64,
            failed: counted.iter().filter(|(_, failed, _)| *failed).count() as u64,
            slow: counted.iter().filter(|(.., slow)| *slow).count() as u64,
        }
    }

    fn view(&self, now: u64) -> View {
        let most = self.settings.consecutive.map_or(0, |rule| rule.count as usize);
        View {
            state: match self.kind {
                Kind::Closed => BreakerState::Closed,
                Kind::Open(_) => BreakerState::Open,
                Kind::HalfOpen(_) => BreakerState::HalfOpen,
            },
            forced: self.forced,
            generation: self.moves,
            counts: self.counts(now),
            row: self.row.len().min(most),
            open_left: match self.kind {
                Kind::Open(until) if until != NEVER => Some(until.saturating_sub(now)),
                _ => None,
            },
            probes: self.probes.iter().filter(|(_, until)| now < *until).count(),
            probe_successes: if let Kind::HalfOpen(successes) = self.kind { successes } else { 0 },
            openings: self.openings,
        }
    }
}

fn compare(settings: &Arc<Settings>, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut state = State::new(settings.clone(), || 0);
    let mut naive = Naive::new(settings.clone());
    let mut out: Vec<(Ticket, u32, u32)> = Vec::new();
    let mut now = 0;
    for step in steps {
        match *step {
            Step::Admit { marked } => {
                let moves = |naive: &Naive| naive.moves;
                match (state.admit(now, marked).0, naive.admit(now, marked)) {
                    (Admit::Pass(ticket), Some(probe)) => out.push((ticket, moves(&naive), probe)),
                    (Admit::Refuse { .. }, None) => {}
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            Step::Answer { which, sample } if which < out.len() => {
                let (ticket, moves, probe) = out.remove(out.len() - 1 - which);
                state.record(now, ticket, sample);
                naive.answer(now, moves, probe, sample);
            }
            Step::Answer { .. } => {}
            Step::Wait(time) => now += time,
            Step::Reset => {
                state.reset(now);
                naive.openings = 0;
                naive.lease = settings.probe_lease.unwrap_or(settings.open_for);
                naive.close(now, false);
            }
            Step::ForceOpen => {
                state.force_open();
                naive.go(Kind::Open(NEVER));
                naive.forced = true;
            }
            Step::ForceClosed => {
                state.force_closed(now);
                naive.close(now, false);
                naive.forced = true;
            }
            Step::ProbeNow => {
                state.probe_now();
                naive.go(Kind::HalfOpen(0));
            }
        }
        prop_assert_eq!(state.view(now, 0), naive.view(now), "after {:?}", step);
        prop_assert!(state.probes.live(now) <= settings.probes as usize);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_decides_as_a_model_that_looks_through_lists(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        compare(&settings, &steps)?;
    }
}
