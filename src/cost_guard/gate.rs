//! The gate: bound, reserve, hold to the end, settle.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::call::{Answer, Call, Described, Key, Outcome, Usage};
use crate::cost_guard::bound::{Sizing, Tokens};
use crate::cost_guard::budget::Spender;
use crate::cost_guard::calendar;
use crate::cost_guard::ledger::{
    Ask, Cause, Denied, Granted, HoldId, Ledger, Marks, MemoryLedger, Reservation,
};
use crate::cost_guard::price::{Circumstances, Tariff};
use crate::cost_guard::reader::Reads;
use crate::cost_guard::settle::{Charge, HeadSeen, PricedBy, Said, Settling, Unreported};
use crate::cost_guard::table::{Found, Prices};
use crate::cost_guard::terms::{By, Rare, Terms};
use crate::gate::{Admission, End, Follow, Gate, Heads, Permit};
use crate::money::Usd;
use crate::monitor::{Basis, Event, Observers};
use crate::refusal::{Failure, Label, Refusal, RefusalKind};
use crate::stripes::{Stripe, Stripes};
use crate::time::{self, Instant, Wall};
use crate::verdict::Reach;

/// Admits calls as long as a budget can bear the most that they may cost.
///
/// A handle: its clones share prices, ledger and state.
///
/// ```
/// use seawall::call::{Call, Usage};
/// use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
///
/// let prices = PriceTable::new().model("m", Price::per_million("1", "4")?);
/// let guard = CostGuardLayer::new(prices, Budget::new(Usd::dollars(1), Window::DAY)).gate().clone();
/// // What was used elsewhere counts too.
/// let (mut call, mut usage) = (Call::default(), Usage::default());
/// call.model = Some("m".into());
/// (usage.input, usage.output) = (Some(10_000), Some(10_000));
/// assert_eq!(guard.charge(&call, &usage), Some(Usd::cents(5)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CostGuard<R = Described, L = MemoryLedger> {
    pub(super) reader: R,
    pub(super) inner: Stripes<Inner<L>>,
}

pub(super) struct Inner<L> {
    pub(super) prices: Prices,
    pub(super) ledger: L,
    pub(super) sizing: Sizing,
    pub(super) rule: Unreported,
    pub(super) patience: Duration,
    /// What has no price passes, and is charged nothing.
    pub(super) unpriced_free: bool,
    /// The same for what has no bound.
    pub(super) unbounded_free: bool,
    pub(super) observe_only: bool,
    pub(super) without: Without,
    pub(super) wall: Arc<dyn Wall>,
    pub(super) label: Arc<Label>,
    pub(super) observers: Observers,
}

/// What becomes of a call when the ledger's store does not answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Without {
    Refuse,
    Pass,
}

impl<R, L: Ledger> CostGuard<R, L> {
    /// Where spending is written down: limits, accounts, sums.
    #[must_use]
    pub fn ledger(&self) -> &L {
        &self.inner.state().ledger
    }

    /// The prices in use, to be looked at and replaced.
    #[must_use]
    pub fn prices(&self) -> &Prices {
        &self.inner.state().prices
    }

    /// Writes down what a call used that this guard did not see itself: an attempt of a retry *inside* it, or a bill that
    /// says more. Gives what it cost; `None` where no price is known, and then nothing is written.
    pub fn charge(&self, call: &Call, usage: &Usage) -> Option<Usd> {
        let inner = self.inner.state();
        let table = inner.prices.load();
        let tariff = table.tariff(call.upstream.as_ref(), call.model.as_ref())?;
        let at = Circumstances { service_tier: call.service_tier.as_ref(), hour: inner.hour(tariff) };
        let cost = tariff.cost(usage, &at);
        inner.ledger.charge(&Spender::of(call), cost);
        Some(cost)
    }
}

impl<L: Ledger> Inner<L> {
    fn hour(&self, tariff: &Tariff) -> Option<(u8, u16)> {
        tariff.by_hour().then(|| calendar::weekday_and_minute(time::unix_millis(&*self.wall)))
    }

    /// The one place that refuses.
    fn refuse(&self, refusal: Refusal) -> Refusal {
        self.observers.raise(|| Event::Refused { label: &self.label, refusal: &refusal });
        refusal
    }

    fn would_refuse(&self, refusal: &Refusal) {
        self.observers.raise(|| Event::WouldRefuse { label: &self.label, refusal });
    }

    /// Before the ledger is asked: what has no price or no bound is refused, or passes unreserved.
    fn unknown(&self, kind: RefusalKind, free: bool) -> Result<(), Refusal> {
        let refusal = Refusal::new(kind).with_label(self.label.clone());
        if !free && !self.observe_only {
            return Err(self.refuse(refusal));
        }
        if !free {
            self.would_refuse(&refusal);
        }
        Ok(())
    }

    /// No price is known.
    #[cold]
    fn unpriced(&self, spender: Spender<'_>) -> Result<(), Refusal> {
        self.observers.raise(|| Event::Unpriced {
            label: &self.label,
            upstream: spender.upstream,
            model: spender.model,
        });
        self.unknown(RefusalKind::Unpriced, self.unpriced_free)
    }

    /// A ledger's "no": a refusal, unless it is about the ledger itself and may pass.
    fn denied(&self, denied: &Denied) -> Result<(), Refusal> {
        if denied.cause == Cause::Unavailable && (self.without == Without::Pass || self.observe_only) {
            self.observers.raise(|| Event::Unreserved { label: &self.label });
            return Ok(());
        }
        let refusal = denied.to_refusal();
        let refusal = if denied.label.is_none() { refusal.with_label(self.label.clone()) } else { refusal };
        Err(self.refuse(refusal))
    }
}

impl<R, L, Req> Gate<Req> for CostGuard<R, L>
where
    R: Reads<Req>,
    L: Ledger,
{
    type Permit = CostPermit<L>;
    type Wait = CostWait<L>;

    fn shut(&self) -> bool {
        let inner = self.inner.state();
        !inner.observe_only && inner.ledger.is_spent()
    }

    /// What few calls need is asked by value, and answered in few words: a value whose place is shown to somebody lies in
    /// memory for all, and the permit would be moved from there to where it is to lie.
    #[inline]
    fn admit(&self, request: &mut Req) -> Admission<CostPermit<L>, CostWait<L>> {
        let inner = self.inner.mine();
        let call = self.reader.call(request);
        if call.is_some_and(|call| call.free) {
            return Admission::Now(CostPermit::unpriced(inner.clone()));
        }
        let tenant = self.reader.tenant(request);
        let mut spender = call.map(Spender::of).unwrap_or_default();
        spender.tenant = tenant.as_ref().or(spender.tenant);

        let Some(Found { short, more }) = inner.prices.find(spender.upstream, spender.model) else {
            return match inner.unpriced(spender) {
                Ok(()) => Admission::Now(CostPermit::unpriced(inner.clone())),
                Err(refusal) => Admission::Refused(refusal),
            };
        };
        let tokens = inner.sizing.tokens(call, short.max_output);
        let service_tier = call.and_then(|call| call.service_tier.as_ref());
        let reserved = tokens.map(|tokens| {
            let dearest = more.as_deref().map(|tariff| tariff.dearest(tokens.input, service_tier));
            dearest.unwrap_or(short.dearest).cost(tokens.input, tokens.output)
        });
        let tokens = tokens.unwrap_or_default();
        let terms = Terms::of(&short.plain, more.is_none(), tokens);
        // Few permits need more than their terms, and so the rest is found elsewhere.
        let rare = (terms.by == By::Rare || inner.observers.any())
            .then(|| Box::new(inner.rare(more, tokens, spender, service_tier)));
        let reservation = match reserved {
            Some(amount) => {
                let patience = match self.reader.deadline(request) {
                    Some(at) if !inner.patience.is_zero() => inner.patience.min(at.remaining(time::now())),
                    _ => inner.patience,
                };
                let ask = Ask { id: HoldId::fresh(), spender, amount, patience, force: inner.observe_only };
                inner.reserve(&ask)
            }
            None => inner.unknown(RefusalKind::Unbounded, inner.unbounded_free).map(|()| (None, None)),
        };
        let (hold, wait) = match reservation {
            Ok(reservation) => reservation,
            Err(refusal) => return Admission::Refused(refusal),
        };
        let permit = CostPermit {
            inner: inner.clone(),
            hold,
            terms,
            reserved: reserved.unwrap_or_default(),
            told: None,
            head: HeadSeen::None,
            rare,
        };
        match wait {
            None => Admission::Now(permit),
            Some(wait) => Admission::Later(wait.with(permit)),
        }
    }
}

/// A reservation, held to the end of the response and settled there.
pub struct CostPermit<L: Ledger> {
    inner: Arc<Stripe<Inner<L>>>,
    /// `None`: nothing is reserved, because nothing could be or need be.
    hold: Option<L::Hold>,
    terms: Terms,
    reserved: Usd,
    /// What it costs by the usage that an own type said at its head, which has no outcome to look at later.
    told: Option<Charge>,
    head: HeadSeen,
    rare: Option<Box<Rare>>,
}

/// A hold, or what to wait for, which has no permit yet; neither where the call passes unreserved.
type Reserved<L> = (Option<<L as Ledger>::Hold>, Option<CostWait<L>>);

impl<L: Ledger> Inner<L> {
    #[inline]
    fn reserve(&self, ask: &Ask<'_>) -> Result<Reserved<L>, Refusal> {
        match self.ledger.reserve(ask) {
            Reservation::Now(Ok(Granted { hold, denied: None, .. })) => Ok((Some(hold), None)),
            Reservation::Now(Ok(Granted { hold, denied: Some(denied), .. })) => {
                self.would_refuse(&denied.to_refusal());
                Ok((Some(hold), None))
            }
            Reservation::Now(Err(denied)) => self.denied(&denied).map(|()| (None, None)),
            Reservation::Later(later) => Ok((None, Some(CostWait::new(later)))),
        }
    }

    #[cold]
    fn rare(
        &self,
        tariff: Option<Arc<Tariff>>,
        tokens: Tokens,
        spender: Spender<'_>,
        service_tier: Option<&Key>,
    ) -> Rare {
        Rare {
            service_tier: service_tier.cloned(),
            hour: tariff.as_deref().and_then(|tariff| self.hour(tariff)),
            tariff,
            tokens,
            upstream: spender.upstream.cloned(),
            model: spender.model.cloned(),
            extra: spender.extra,
        }
    }
}

impl<L: Ledger> CostPermit<L> {
    #[inline]
    fn unpriced(inner: Arc<Stripe<Inner<L>>>) -> Self {
        let (terms, head) = (Terms::NOTHING, HeadSeen::None);
        Self { inner, hold: None, terms, reserved: Usd::ZERO, told: None, head, rare: None }
    }

    /// What is reserved for this attempt.
    #[must_use]
    pub fn reserved(&self) -> Usd {
        self.reserved
    }

    /// A refusal, if what is reported so far costs more than was reserved.
    pub(super) fn used_up(&self, outcome: &Outcome) -> Option<Refusal> {
        self.hold.as_ref()?;
        let usage = outcome.usage();
        let more =
            !self.inner.observe_only && !usage.anomalous && self.settling()?.cost(&usage) > self.reserved;
        more.then(|| {
            let refusal = Refusal::new(RefusalKind::BudgetExhausted);
            self.inner.refuse(refusal.with_label(self.inner.label.clone()))
        })
    }

    /// A call: so what looks at a head is small enough to be taken in where the head is, and that need not be moved for it.
    #[inline(never)]
    fn charge(&self, end: End, usage: &Usage, said: &Said) -> Charge {
        let Terms { by, plain, .. } = &self.terms;
        let plainly =
            (*by == By::Class).then(|| Charge::plainly(plain, end, self.head, usage, said)).flatten();
        let by_rules = || {
            self.settling().map_or(Charge::RELEASE, |settling| settling.charge(end, self.head, usage, said))
        };
        plainly.unwrap_or_else(by_rules)
    }

    /// What was not told at the head.
    #[inline(never)]
    fn charge_at_end(&self, end: End, outcome: Option<&Outcome>) -> Charge {
        match outcome {
            Some(outcome) => self.charge(end, &outcome.usage(), &Said::by(outcome)),
            None => self.charge(end, &Usage::default(), &Said::default()),
        }
    }

    fn settling(&self) -> Option<Settling<'_>> {
        let Terms { by, plain, bounds: [input, output] } = &self.terms;
        let (price, tokens) = match by {
            By::Class => {
                (PricedBy::Class(plain), Tokens { input: (*input).into(), output: (*output).into() })
            }
            By::Rare => {
                let rare = self.rare.as_deref()?;
                let at = Circumstances { service_tier: rare.service_tier.as_ref(), hour: rare.hour };
                let more = rare.tariff.as_deref().map(|tariff| PricedBy::More(tariff, at));
                (more.unwrap_or(PricedBy::Class(plain)), rare.tokens)
            }
            By::Nothing => return None,
        };
        Some(Settling { price, tokens, reserved: self.reserved, rule: self.inner.rule })
    }

    #[cold]
    fn tell(&self, amount: Usd, basis: Basis, marks: &Marks) {
        let (inner, rare): (&Inner<L>, _) = (&self.inner, self.rare.as_deref());
        inner.observers.raise(|| Event::Spent {
            label: &inner.label,
            upstream: rare.and_then(|rare| rare.upstream.as_ref()),
            model: rare.and_then(|rare| rare.model.as_ref()),
            amount,
            reserved: self.reserved,
            basis,
            extra: rare.is_some_and(|rare| rare.extra),
        });
        for mark in marks.iter().flatten() {
            inner.observers.raise(|| Event::BudgetMark {
                label: &mark.label,
                percent: mark.percent,
                spent: mark.spent,
                limit: mark.limit,
            });
        }
    }
}

impl<L: Ledger> Permit for CostPermit<L> {
    #[inline]
    fn settle(&mut self, end: End, outcome: Option<&Outcome>) {
        let inner: &Inner<L> = &self.inner;
        let charge = self.told.unwrap_or_else(|| self.charge_at_end(end, outcome));
        let amount = charge.amount;
        match (charge.basis, &self.hold) {
            (None, Some(hold)) => inner.ledger.release(hold),
            (Some(basis), hold) if inner.observers.any() => {
                let mut marks: Marks = Default::default();
                if let Some(hold) = hold {
                    inner.ledger.settle(hold, amount, Some(&mut marks));
                }
                self.tell(amount, basis, &marks);
            }
            (Some(_), Some(hold)) => inner.ledger.settle(hold, amount, None),
            (_, None) => {}
        }
    }
}

impl<L, Res, E> Heads<Res, E> for CostPermit<L>
where
    L: Ledger,
    Res: Answer,
    E: Failure,
{
    #[inline]
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        match head {
            Ok(response) => {
                let verdict = response.verdict();
                self.head = HeadSeen::of(verdict);
                if response.outcome().is_none()
                    && let Some(usage) = &response.usage()
                {
                    let said = Said { verdict, ..Said::default() };
                    self.told = Some(self.charge(End::Complete, usage, &said));
                }
                // A failing head decides the outcome.
                if self.head == HeadSeen::Good { Follow::Body } else { Follow::Settle }
            }
            Err(error) => {
                if matches!(error.reach(), Reach::Unsent | Reach::Unprocessed) {
                    self.head = HeadSeen::Unsent;
                }
                Follow::Settle
            }
        }
    }
}

impl<L: Ledger> fmt::Debug for CostPermit<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostPermit").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

/// Waits for the ledger. Dropping it gives up what it may have reserved.
///
/// In a box, so that calls that need not wait do not carry the room for it about.
#[must_use = "futures do nothing unless polled"]
pub struct CostWait<L: Ledger>(Pin<Box<Waiting<L>>>);

pin_project! {
    struct Waiting<L: Ledger> {
        #[pin]
        later: L::Later,
        permit: Option<CostPermit<L>>,
        since: Instant,
    }
}

impl<L: Ledger> CostWait<L> {
    #[cold]
    fn new(later: L::Later) -> Self {
        Self(Box::pin(Waiting { later, permit: None, since: time::now() }))
    }

    /// For this permit.
    #[inline]
    fn with(mut self, permit: CostPermit<L>) -> Self {
        let _none = self.0.as_mut().project().permit.replace(permit);
        self
    }
}

impl<L: Ledger> Future for CostWait<L> {
    type Output = Result<CostPermit<L>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.0.as_mut().project();
        let answer = ready!(this.later.poll(cx));
        let mut permit = this.permit.take().expect("a wait answers once, and its permit is taken only then");
        let inner = permit.inner.clone();
        Poll::Ready(match answer {
            Ok(granted) => {
                let since = *this.since;
                let wait = || time::now().saturating_duration_since(since);
                if granted.waited {
                    inner.observers.raise(|| Event::Waited { label: &inner.label, wait: wait() });
                }
                if let Some(denied) = &granted.denied {
                    inner.would_refuse(&denied.to_refusal());
                }
                permit.hold = Some(granted.hold);
                Ok(permit)
            }
            Err(denied) => inner.denied(&denied).map(|()| permit),
        })
    }
}

impl<L: Ledger> fmt::Debug for CostWait<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostWait").finish_non_exhaustive()
    }
}

impl<R: Clone, L> Clone for CostGuard<R, L> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), inner: self.inner.clone() }
    }
}

impl<R, L> fmt::Debug for CostGuard<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostGuard").field("prices", &self.inner.state().prices).finish_non_exhaustive()
    }
}
