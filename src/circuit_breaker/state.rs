//! The state machine. Pure: no clock, no lock, no wait; times are nanoseconds since the breaker was made.
//!
//! 1. Every admission is stamped with the generation, and every move begins a new one: an answer of another generation
//!    changes nothing.
//! 2. While half-open, at most `probes` are live, and only a live probe has a vote.
//! 3. An open time is fixed when the breaker opens; nothing that comes later moves it.
//! 4. No state is without a way out: an open time ends, a probe's lease ends, and what is forced is for the handle to
//!    undo.

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod edges;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod figures;
#[cfg(test)]
#[cfg(not(seawall_loom))]
pub(super) mod model;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod probing;
#[cfg(test)]
#[cfg(not(seawall_loom))]
pub(super) mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::probes::Probes;
use super::ramp::Ramp;
use super::settings::{Settings, Share, Vote};
use super::window::{Counts, Window};
use crate::monitor::{BreakerCause, BreakerState};

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) vote: Vote,
    pub(super) slow: bool,
    /// Nanoseconds that the upstream asked to wait; 0 for none.
    pub(super) hint: u64,
}

/// What an admitted attempt has to show when it votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) generation: u32,
    /// The probe it is, 0 for none.
    pub(super) probe: u32,
}

/// Whether an attempt may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admit {
    Pass(Ticket),
    /// With the time after which asking again makes sense, where that is known.
    Refuse {
        left: Option<u64>,
    },
}

/// A move from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) from: BreakerState,
    pub(super) to: BreakerState,
    pub(super) cause: BreakerCause,
    pub(super) open_for: Option<Duration>,
}

/// What became of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// Counted, or no vote.
    Kept,
    /// It came too late to count.
    Late,
    /// It moved the breaker.
    Moved(Moved),
}

/// How calls may pass without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// All are admitted, and a success only counts.
    Plain,
    /// All are admitted; each answer is looked at.
    Careful,
    /// Each call is looked at.
    Shut,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed { since: u64, ramp: Option<Ramp> },
    Open { until: u64 },
    HalfOpen { successes: u32 },
}

/// All of a breaker's state.
#[derive(Clone, Debug)]
pub(super) struct State {
    settings: Arc<Settings>,
    dice: fn() -> u32,
    generation: u32,
    phase: Phase,
    /// Whether the handle holds it in its phase.
    forced: bool,
    window: Window,
    /// When the last failures of the present row came, as many as the rule asks for.
    row: VecDeque<u64>,
    /// How often it opened, each time before it was healthy again.
    openings: u32,
    probes: Probes,
    lease: u64,
}

impl State {
    /// Closed, with nothing counted. `dice` gives evenly spread numbers, for jitter.
    pub(super) fn new(settings: Arc<Settings>, dice: fn() -> u32) -> Self {
        Self {
            window: Window::new(settings.window),
            lease: settings.probe_lease.unwrap_or(settings.open_for),
            settings,
            dice,
            generation: 0,
            phase: Phase::Closed { since: 0, ramp: None },
            forced: false,
            row: VecDeque::new(),
            openings: 0,
            probes: Probes::default(),
        }
    }

    /// Whether an attempt may pass. A marked one may also pass an open breaker, as a probe.
    pub(super) fn admit(&mut self, now: u64, marked: bool) -> (Admit, Option<Moved>) {
        match &mut self.phase {
            // ## Closed => Closed
            Phase::Closed { ramp, .. } => {
                let left = match ramp {
                    Some(steps) if steps.is_over(now) => {
                        *ramp = None;
                        None
                    }
                    Some(steps) => steps.refuses(now),
                    None => None,
                };
                (self.pass_or_refuse(left), None)
            }
            // ## Open => (Open | HalfOpen): its time is over, or this one may try before that.
            Phase::Open { until } if *until <= now => {
                let moved = self.half_open(BreakerCause::TimeOver);
                (self.admit_probe(now, None), Some(moved))
            }
            &mut Phase::Open { until } => {
                let left = (until != NEVER).then(|| until - now);
                if marked && !self.forced {
                    (self.admit_probe(now, left), None)
                } else {
                    (Admit::Refuse { left }, None)
                }
            }
            // ## HalfOpen => HalfOpen
            Phase::HalfOpen { .. } => (self.admit_probe(now, None), None),
        }
    }

    fn pass_or_refuse(&self, left: Option<u64>) -> Admit {
        match left {
            None => Admit::Pass(Ticket { generation: self.generation, probe: 0 }),
            left => Admit::Refuse { left },
        }
    }

    fn admit_probe(&mut self, now: u64, left: Option<u64>) -> Admit {
        let generation = self.generation;
        match self.probes.take(now, self.settings.probes, self.lease) {
            Some(probe) => Admit::Pass(Ticket { generation, probe }),
            None => Admit::Refuse { left },
        }
    }

    /// Counts an answer, and moves if it decides.
    pub(super) fn record(&mut self, now: u64, ticket: Ticket, sample: Sample) -> Recorded {
        if ticket.generation != self.generation {
            return Recorded::Late;
        }
        let moved = match self.phase {
            // ## Closed => (Closed | Open)
            Phase::Closed { .. } => self.trip(now, sample),
            // Admitted although refused, because the breaker only observes: it has no vote.
            Phase::Open { .. } | Phase::HalfOpen { .. } if ticket.probe == 0 => None,
            _ if !self.probes.give_back(now, ticket.probe) => return Recorded::Late,
            // ## Open => (Open | HalfOpen | Closed): a probe sent before its time. A failure only confirms the state;
            // it must not push the time back.
            Phase::Open { .. } => match self.judge(sample) {
                Vote::Success => {
                    let early = self.half_open(BreakerCause::ProbesSucceeded);
                    let moved = self.probe_succeeded(now, 1);
                    Some(moved.map_or(early, |moved| Moved { from: early.from, ..moved }))
                }
                Vote::Failure | Vote::Opens | Vote::Neutral => None,
            },
            // ## HalfOpen => (HalfOpen | Closed | Open)
            Phase::HalfOpen { successes } => match self.judge(sample) {
                Vote::Success => self.probe_succeeded(now, successes + 1),
                Vote::Failure => Some(self.open(now, BreakerCause::ProbeFailed, sample.hint)),
                Vote::Opens => Some(self.open(now, BreakerCause::Verdict, sample.hint)),
                Vote::Neutral => None,
            },
        };
        moved.map_or(Recorded::Kept, Recorded::Moved)
    }

    /// A probe that is slow has failed, where slow calls matter.
    fn judge(&self, sample: Sample) -> Vote {
        match sample.vote {
            Vote::Success if sample.slow && self.settings.slow.is_some() => Vote::Failure,
            vote => vote,
        }
    }

    fn probe_succeeded(&mut self, now: u64, successes: u32) -> Option<Moved> {
        if successes >= self.settings.probe_successes {
            return Some(self.close(now, BreakerCause::ProbesSucceeded));
        }
        self.phase = Phase::HalfOpen { successes };
        None
    }

    /// Counts an answer while closed, and opens if a rule says so.
    fn trip(&mut self, now: u64, sample: Sample) -> Option<Moved> {
        let failed = match sample.vote {
            Vote::Neutral => return None,
            Vote::Success => false,
            Vote::Failure | Vote::Opens => true,
        };
        let counts = self.window.record(now, failed, sample.slow);
        let in_a_row = self.is_row_full(now, failed);
        if self.forced {
            return None;
        }
        let reached = |share: Share, part| {
            counts.calls >= self.settings.minimum && share.is_reached(part, counts.calls)
        };
        let cause = if sample.vote == Vote::Opens {
            BreakerCause::Verdict
        } else if in_a_row {
            BreakerCause::Consecutive
        } else if self.settings.failure_rate.is_some_and(|share| reached(share, counts.failed)) {
            BreakerCause::FailureRate
        } else if self.settings.slow.is_some_and(|slow| reached(slow.rate, counts.slow)) {
            BreakerCause::SlowRate
        } else {
            return None;
        };
        Some(self.open(now, cause, sample.hint))
    }

    /// Continues or ends the row of failures; whether it is as long as the rule asks, within its time.
    fn is_row_full(&mut self, now: u64, failed: bool) -> bool {
        let Some(rule) = self.settings.consecutive else { return false };
        if !failed {
            self.row.clear();
            return false;
        }
        if self.row.len() == rule.count as usize {
            self.row.pop_front();
        }
        self.row.push_back(now);
        self.row.len() == rule.count as usize
            && self.row.front().is_some_and(|first| now.saturating_sub(*first) <= rule.within)
    }

    fn open(&mut self, now: u64, cause: BreakerCause, hint: u64) -> Moved {
        if let Phase::Closed { since, .. } = self.phase
            && now.saturating_sub(since) >= self.settings.healthy_after
        {
            self.openings = 0;
        }
        let own = self.own_open_time();
        self.lease = self.settings.probe_lease.unwrap_or(own);
        let hint = self.lengthened(hint.min(self.settings.hint_at_most));
        let time = if cause == BreakerCause::Verdict && hint > 0 {
            // The upstream has said when it will be back: no reason to grow.
            hint
        } else {
            self.openings = self.openings.saturating_add(1);
            self.spread(own).max(hint)
        };
        let open_for = (time != NEVER).then(|| Duration::from_nanos(time));
        self.go(Phase::Open { until: now.saturating_add(time) }, cause, open_for)
    }

    fn half_open(&mut self, cause: BreakerCause) -> Moved {
        self.go(Phase::HalfOpen { successes: 0 }, cause, None)
    }

    fn close(&mut self, now: u64, cause: BreakerCause) -> Moved {
        let ramp = match (self.settings.ramp, cause) {
            (Some(time), BreakerCause::ProbesSucceeded) => Some(Ramp::new(now, time)),
            _ => None,
        };
        self.window.clear();
        self.row.clear();
        self.go(Phase::Closed { since: now, ramp }, cause, None)
    }

    /// Every move goes through here.
    fn go(&mut self, phase: Phase, cause: BreakerCause, open_for: Option<Duration>) -> Moved {
        let from = self.state();
        self.phase = phase;
        self.forced = false;
        self.probes.clear();
        self.generation = self.generation.wrapping_add(1);
        Moved { from, to: self.state(), cause, open_for }
    }

    fn own_open_time(&self) -> u64 {
        let settings = &self.settings;
        let factor = u64::from(settings.growth).checked_pow(self.openings).unwrap_or(u64::MAX);
        settings.open_for.saturating_mul(factor).min(settings.open_at_most)
    }

    /// The time, spread evenly in both directions.
    fn spread(&self, time: u64) -> u64 {
        if time == NEVER {
            return NEVER;
        }
        let share = self.settings.jitter.of(time);
        (time - share).saturating_add(self.throw(share.saturating_mul(2)))
    }

    /// The hint, spread upwards.
    fn lengthened(&self, hint: u64) -> u64 {
        hint.saturating_add(self.throw(self.settings.jitter.of(hint)))
    }

    /// An evenly spread number from 0 to below `most`.
    fn throw(&self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let scaled = (u128::from(most) * u128::from((self.dice)())) >> 32;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Open until somebody says otherwise.
    pub(super) fn force_open(&mut self) -> Moved {
        let moved = self.go(Phase::Open { until: NEVER }, BreakerCause::Handle, None);
        self.forced = true;
        moved
    }

    /// Closed until somebody says otherwise, whatever the answers.
    pub(super) fn force_closed(&mut self, now: u64) -> Moved {
        let moved = self.close(now, BreakerCause::Handle);
        self.forced = true;
        moved
    }

    /// Closed, with all counts gone.
    pub(super) fn reset(&mut self, now: u64) -> Moved {
        self.openings = 0;
        self.lease = self.settings.probe_lease.unwrap_or(self.settings.open_for);
        self.close(now, BreakerCause::Handle)
    }

    /// Half-open, whatever time is left.
    pub(super) fn probe_now(&mut self) -> Moved {
        self.half_open(BreakerCause::Handle)
    }

    /// Counts successes that were kept elsewhere while the mode was [`Mode::Plain`].
    pub(super) fn absorb(&mut self, successes: u64) {
        if successes > 0 {
            self.window.absorb(successes);
        }
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// How calls may pass without asking this state, as long as only successes come and the bucket is not over.
    pub(super) fn mode(&self) -> Mode {
        match self.phase {
            Phase::Open { .. } | Phase::HalfOpen { .. } | Phase::Closed { ramp: Some(_), .. } => Mode::Shut,
            Phase::Closed { .. } if self.is_indifferent_to_successes() => Mode::Plain,
            Phase::Closed { .. } => Mode::Careful,
        }
    }

    /// Whether no number of quick successes can change a decision: none ends a row, and none can be the call that fills
    /// the minimum while enough have failed. (Above the minimum a success only lowers the share.)
    fn is_indifferent_to_successes(&self) -> bool {
        let settings = &self.settings;
        let Counts { calls, failed, .. } = self.window.counts();
        let share_holds = self.forced
            || calls >= settings.minimum
            || settings.failure_rate.is_none_or(|share| !share.is_reached(failed, settings.minimum));
        self.window.bucket_end() > 0 && settings.slow.is_none() && self.row.is_empty() && share_holds
    }

    /// When the present bucket of the window is over; 0 where there are none.
    pub(super) fn bucket_end(&self) -> u64 {
        self.window.bucket_end()
    }

    /// Before this time all unmarked calls are refused; 0 where they are not.
    pub(super) fn open_until(&self) -> u64 {
        match self.phase {
            Phase::Open { until } => until,
            Phase::Closed { .. } | Phase::HalfOpen { .. } => 0,
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// What can be seen of it at `now`, with successes that were not absorbed yet.
    pub(super) fn view(&self, now: u64, pending: u64) -> View {
        let mut window = self.window.clone();
        window.absorb(pending);
        let (open_left, probe_successes) = match self.phase {
            Phase::Closed { .. } | Phase::Open { until: NEVER } => (None, 0),
            Phase::Open { until } => (Some(until.saturating_sub(now)), 0),
            Phase::HalfOpen { successes } => (None, successes),
        };
        View {
            state: self.state(),
            forced: self.forced,
            generation: self.generation,
            counts: window.counts_at(now),
            row: self.row.len(),
            open_left,
            probes: self.probes.live(now),
            probe_successes,
            openings: self.openings,
        }
    }

    /// Whether it decides as a fresh one would.
    pub(super) fn is_at_rest(&self, now: u64) -> bool {
        let Phase::Closed { since, ramp } = self.phase else { return false };
        let row_is_over = match (self.settings.consecutive, self.row.back()) {
            (Some(rule), Some(last)) => now.saturating_sub(*last) > rule.within,
            _ => true,
        };
        !self.forced
            && ramp.is_none_or(|ramp| ramp.is_over(now))
            && row_is_over
            && self.window.counts_at(now) == Counts::default()
            && (self.openings == 0 || now.saturating_sub(since) >= self.settings.healthy_after)
    }
}

/// What can be seen of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) state: BreakerState,
    pub(super) forced: bool,
    pub(super) generation: u32,
    pub(super) counts: Counts,
    pub(super) row: usize,
    pub(super) open_left: Option<u64>,
    pub(super) probes: usize,
    pub(super) probe_successes: u32,
    pub(super) openings: u32,
}
