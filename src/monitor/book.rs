//! All that is counted. Pure: time is an argument, and nobody is asked for anything.

use std::time::Duration;

use super::counts::{Charge, Counts};
use super::histogram::Of;
use super::sketch::Sum;
use super::snapshot::{Figures, Latency, LayerEvents, Money, Outcomes, Refusals, Series, Tokens};
use super::spans::{Part, SPANS, Scratch, Spans, TICK, TIMES, begins};
use super::stripes::{Record, What};
use super::{Breaker, BreakerState, Budget, words};
use crate::money::Usd;

/// The figures of a monitor.
#[derive(Debug, Default)]
pub(super) struct Book {
    calls: Spans,
    /// By their numbers in the directory; all attempts are their sum.
    targets: Vec<Spans>,
    layers: Vec<LayerCounts>,
    pub(super) breakers: Vec<Breaker>,
    pub(super) budgets: Vec<Budget>,
    scratch: Scratch,
    sum: Sum,
}

/// What one layer told.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerCounts {
    pub(super) refusals: [u64; words::KINDS],
    pub(super) would_refuse: u64,
    pub(super) waits: u64,
    pub(super) waited: Duration,
    pub(super) abandoned: u64,
    pub(super) gave_up: u64,
    pub(super) no_target_left: u64,
    pub(super) unpriced: u64,
    pub(super) unreserved: u64,
}

/// No more breakers, and no more budgets, than this are told apart.
const MOST_NAMED: usize = 256;

impl Book {
    pub(super) fn take(&mut self, record: &Record) {
        let tick = record.at / TICK;
        let scratch = &mut self.scratch;
        match &record.what {
            What::Call(done) => self.calls.done(tick, done, scratch),
            What::Attempt(target, done) => target_of(&mut self.targets, *target).done(tick, done, scratch),
            What::Charged(target, charge) => self.charge(tick, *target, *charge),
            What::Refused(layer, kind) => self.layer(*layer).refusals[kind.number()] += 1,
        }
    }

    fn charge(&mut self, tick: u64, target: u16, charge: Charge) {
        let scratch = &mut self.scratch;
        self.calls.charge(tick, charge, scratch);
        target_of(&mut self.targets, target).charge(tick, charge, scratch);
    }

    pub(super) fn layer(&mut self, number: u16) -> &mut LayerCounts {
        let number = usize::from(number);
        if self.layers.len() <= number {
            self.layers.resize_with(number + 1, LayerCounts::default);
        }
        &mut self.layers[number]
    }

    /// Counts something among the calls, that ended or happened at this instant.
    pub(super) fn among_calls(&mut self, at: u64, count: impl FnOnce(&mut Counts)) {
        self.calls.count(at / TICK, &mut self.scratch, count);
    }

    /// A breaker went to another state. Says whether it is told apart from others: those beyond the bound are not.
    pub(super) fn moved(&mut self, at: u64, name: &str, key: &str, to: BreakerState) -> bool {
        let trip = to == BreakerState::Open;
        if trip {
            self.among_calls(at, |counts| counts.trips += 1);
        }
        let known = self.breakers.iter().position(|breaker| breaker.name == name && breaker.key == key);
        let at = match known {
            Some(at) => at,
            None if self.breakers.len() >= MOST_NAMED => return false,
            None => {
                self.breakers.push(Breaker { name: name.into(), key: key.into(), state: to, trips: 0 });
                self.breakers.len() - 1
            }
        };
        let breaker = &mut self.breakers[at];
        breaker.state = to;
        breaker.trips += u64::from(trip);
        true
    }

    /// Spending passed a mark.
    pub(super) fn mark(&mut self, name: &str, percent: u8, spent: Usd, limit: Usd) {
        let known = self.budgets.iter_mut().find(|budget| budget.name == name);
        if let Some(budget) = known {
            (budget.percent, budget.spent, budget.limit) = (percent, spent, limit);
            budget.marks += 1;
        } else if self.budgets.len() < MOST_NAMED {
            self.budgets.push(Budget { name: name.into(), percent, spent, limit, marks: 1 });
        }
    }

    /// The parts of all series that a histogram is of.
    pub(super) fn parts(&mut self, of: Of<'_>, target: Option<u16>, now: u64) -> Vec<[Part<'_>; SPANS]> {
        let Self { calls, targets, scratch, .. } = self;
        let which = match (of, target) {
            (Of::Calls, _) => std::slice::from_mut(calls),
            (_, None) => &mut targets[..],
            (_, Some(number)) => {
                targets.get_mut(usize::from(number)).map(std::slice::from_mut).unwrap_or_default()
            }
        };
        for spans in &mut *which {
            spans.advance(now / TICK, scratch);
        }
        which.iter().map(Spans::parts).collect()
    }

    /// The figures of calls, attempts and each target.
    pub(super) fn series(&mut self, now: u64) -> (Series, Series, Vec<Series>) {
        let Self { calls, targets, scratch, sum, .. } = self;
        calls.advance(now / TICK, scratch);
        for target in &mut *targets {
            target.advance(now / TICK, scratch);
        }
        let by_target = targets.iter().map(|target| series(&[target.parts()], now, sum)).collect();
        let parts: Vec<_> = targets.iter().map(Spans::parts).collect();
        (series(&[calls.parts()], now, sum), series(&parts, now, sum), by_target)
    }

    pub(super) fn layer_events(&self, names: &[Box<str>]) -> Vec<LayerEvents> {
        let told = self.layers.iter().zip(names);
        told.map(|(counts, name)| LayerEvents {
            name: (**name).into(),
            refusals: Refusals(counts.refusals),
            would_refuse: counts.would_refuse,
            waits: counts.waits,
            waited: counts.waited,
            abandoned: counts.abandoned,
            gave_up: counts.gave_up,
            no_target_left: counts.no_target_left,
            unpriced: counts.unpriced,
            unreserved: counts.unreserved,
        })
        .filter(|layer| *layer != LayerEvents::named(&layer.name))
        .collect()
    }
}

/// The series of a target, which is made if there is none.
fn target_of(targets: &mut Vec<Spans>, number: u16) -> &mut Spans {
    let number = usize::from(number);
    if targets.len() <= number {
        targets.resize_with(number + 1, Spans::default);
    }
    &mut targets[number]
}

/// The series of all these together.
fn series(parts: &[[Part<'_>; SPANS]], now: u64, sum: &mut Sum) -> Series {
    let mut all: [Figures; SPANS] = Default::default();
    let [minute, five, hour] = begins(now / TICK).map(|tick| tick * TICK);
    let mut counts = Counts::default();
    for (span, begin) in [minute, five, hour, 0].into_iter().enumerate() {
        for parts in parts {
            parts[span].add_counts(&mut counts);
        }
        all[span] = Figures { over: Duration::from_nanos(now - begin), ..figures(&counts) };
    }
    for which in 0..TIMES {
        sum.clear();
        for (span, figures) in all.iter_mut().enumerate() {
            for parts in parts {
                parts[span].add_times(which, sum);
            }
            *[&mut figures.to_head, &mut figures.to_content, &mut figures.to_end][which] = latency(sum);
        }
    }
    let [minute, five_minutes, hour, since_start] = all;
    Series { minute, five_minutes, hour, since_start }
}

fn figures(counts: &Counts) -> Figures {
    Figures {
        outcomes: Outcomes(counts.outcomes),
        refusals: Refusals(counts.refusals),
        tokens: Tokens { input: counts.input, output: counts.output, cached: counts.cached },
        retries: counts.retries,
        fallbacks: counts.fallbacks,
        trips: counts.trips,
        money: Money {
            charged: counts.charged,
            spent: Usd::nanos(counts.spent),
            reserved: Usd::nanos(counts.reserved),
            extra: Usd::nanos(counts.extra),
        },
        ..Figures::default()
    }
}

fn latency(sum: &Sum) -> Latency {
    let (count, micros) = sum.totals();
    let ([p50, p90, p95, p99], max) = sum.percentiles([500, 900, 950, 990]);
    let [p50, p90, p95, p99, max] = [p50, p90, p95, p99, max].map(Duration::from_micros);
    Latency { count, sum: Duration::from_micros(micros), p50, p90, p95, p99, max }
}
