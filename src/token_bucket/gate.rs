//! The gate: takes, waits or refuses; and learns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::call::{Call, Described, Key, Usage};
use crate::gate::{Admission, Gate, PerKey};
use crate::monitor::{Event, Observers};
use crate::refusal::{Label, Refusal, RefusalKind};
use crate::sync::{Mutex, lock};
use crate::time::{self, Instant, Origin};
use crate::token_bucket::bucket::{Bucket, Costs, NEVER, Rate, Short, TICKS, nanos_up};
use crate::token_bucket::core::Core;
use crate::token_bucket::cost::{Need, ReadCosts};
use crate::token_bucket::few::Few;
use crate::token_bucket::learn::{Said, Stated, Upstream, sound_wait};
use crate::token_bucket::lease::{Owner, Stripes};
use crate::token_bucket::permit::BucketPermit;
use crate::token_bucket::queue::{Joined, Waiter};
use crate::token_bucket::quota::Quota;
use crate::token_bucket::wait::Wait;

/// What became of a call that its caller left before the answer was complete, after it had been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Abandoned {
    /// Pays what is known: the usage that was reported, or else the estimated input and the output that was reported or has
    /// passed. What has passed is counted as a token for each four bytes, never more than was reserved; the frame around each
    /// piece of a stream counts too, so that it is rather too much. Where nothing was described, what was reserved.
    #[default]
    Known,
    /// Pays what was reserved.
    Keep,
    /// Pays nothing but its unit of requests.
    Refund,
}

/// What a closure makes of the reported usage: what a request really cost.
pub(super) type Actual = Arc<dyn Fn(&Usage) -> Option<u64> + Send + Sync>;

/// What a dimension counts.
pub(super) enum Counts {
    /// One a request.
    Requests,
    /// The tokens of the request's description.
    Tokens,
    /// What a closure says.
    Own,
}

/// One dimension as it was configured.
pub(super) struct Dimension {
    pub(super) name: Box<str>,
    pub(super) counts: Counts,
    /// What is used in the end, if that is not what was reserved.
    pub(super) actual: Option<Actual>,
    pub(super) quota: Quota,
    pub(super) rate: Rate,
    /// The time whose inflow is the default burst.
    pub(super) worth: Duration,
}

/// What all keys' buckets have in common.
pub(super) struct Config<U, R> {
    pub(super) dimensions: Box<[Dimension]>,
    pub(super) label: Label,
    pub(super) observers: Observers,
    /// Millionths.
    pub(super) headroom: u32,
    /// `None`: never waits.
    pub(super) max_wait: Option<Duration>,
    pub(super) max_waiters: usize,
    pub(super) max_pause: Duration,
    pub(super) abandoned: Abandoned,
    /// Whether there is one dimension, and each request costs 1.
    pub(super) only_requests: bool,
    /// Whether any dimension pays something else in the end than was reserved.
    pub(super) settles: bool,
    /// Only what has not flowed in again comes back.
    pub(super) undrained: bool,
    pub(super) assumed_output: u64,
    pub(super) lease: u64,
    pub(super) upstream: U,
    pub(super) costs: R,
}

impl<U, R> Config<U, R> {
    /// Whether each request needs the exact time: what comes back counts from then, or a lease is looked for first.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.undrained || self.lease > 0
    }
}

/// A dimension's quota, which can change, and the label of its refusals under a changed one.
pub(super) struct Current {
    pub(super) quota: Quota,
    pub(super) rate: Rate,
    /// Made for the first refusal.
    pub(super) label: Option<Arc<Label>>,
}

/// The label of a dimension's refusals as long as its quota is the configured one: found without a lock.
#[derive(Default)]
pub(super) struct FirstLabel {
    /// Made for the first refusal.
    label: OnceLock<Arc<Label>>,
    /// The quota was changed, once and for all time.
    pub(super) outdated: AtomicBool,
}

#[repr(C)]
pub(super) struct State<U, R> {
    // Beside the reference count.
    pub(super) core: Core,
    base: Origin,
    pub(super) config: Arc<Config<U, R>>,
    pub(super) label: Arc<Label>,
    pub(super) current: Box<[Mutex<Current>]>,
    pub(super) first_labels: Box<[FirstLabel]>,
}

/// A token bucket: a handle, whose clones share one state.
///
/// See the [module](crate::token_bucket).
///
/// ```
/// use std::num::NonZeroU64;
/// use std::time::Duration;
/// use seawall::token_bucket::{Quota, TokenBucketLayer};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), seawall::ConfigError> {
/// let per_minute = |n| Quota::per_minute(NonZeroU64::new(n).expect("not zero"));
/// let bucket = TokenBucketLayer::new(per_minute(60)).gate().clone();
/// assert_eq!(bucket.level("requests").map(|level| level.available), Some(10));
/// // A new contract with the provider, while calls run.
/// bucket.set_quota("requests", per_minute(600))?;
/// // Nobody calls for a minute.
/// bucket.pause(Duration::from_secs(60));
/// assert_eq!(bucket.paused_for(), Duration::from_secs(60));
/// # Ok(())
/// # }
/// ```
pub struct TokenBucket<U = Upstream, R = Described> {
    pub(super) state: Arc<State<U, R>>,
    pub(super) stripes: Option<Stripes<U, R>>,
}

impl<U, R> TokenBucket<U, R> {
    pub(super) fn new(config: Arc<Config<U, R>>, key: Option<&Key>) -> Self {
        let mut label = config.label.clone();
        if let Some(key) = key {
            label = label.with_key(key.clone());
        }
        let current = config.dimensions.iter().map(|dimension| {
            Mutex::new(Current { quota: dimension.quota, rate: dimension.rate, label: None })
        });
        let mut rates = config.dimensions.iter().map(|dimension| dimension.rate);
        let first = rates.next().expect("a builder demands a dimension");
        let state = Arc::new(State {
            core: Core::new(Bucket::new(first, &rates.collect::<Vec<_>>()), config.max_waiters),
            base: Origin::new(),
            current: current.collect(),
            first_labels: config.dimensions.iter().map(|_| FirstLabel::default()).collect(),
            label: Arc::new(label),
            config,
        });
        // One of many keys' buckets is seldom used by two threads at once, and stripes cost memory.
        let stripes = (key.is_none() || state.config.lease > 0).then(|| Stripes::new(&state));
        Self { state, stripes }
    }
}

impl<U, R> State<U, R> {
    /// Ticks since the bucket was made.
    pub(super) fn ticks(&self, at: Instant) -> u64 {
        self.base.to(at).saturating_mul(TICKS)
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.base.elapsed().saturating_mul(TICKS)
    }

    /// The same by a clock that may lag behind, where there is one.
    #[inline]
    fn now_coarse(&self) -> Option<u64> {
        self.base.coarse().map(|nanos| nanos.saturating_mul(TICKS))
    }

    /// Takes the costs without the exact clock, where that decides nothing; says the latest that it can be.
    #[inline]
    fn take_coarsely(&self, costs: &Costs) -> Option<u64> {
        if self.config.is_exact() {
            return None;
        }
        let earliest = self.core.take_coarsely(costs, || self.now_coarse())?;
        // What the upstream says is left was left at this time or later: at an earlier one it would count as more.
        Some(earliest.saturating_add(Origin::LAG * TICKS))
    }

    pub(super) fn instant(&self, ticks: u64) -> Option<Instant> {
        if ticks == NEVER {
            return None;
        }
        self.base.after(nanos_up(ticks))
    }

    /// Ticks from `now` on, saturating.
    pub(super) fn after(now: u64, wait: Duration) -> u64 {
        now.saturating_add(time::nanos(wait).saturating_mul(TICKS))
    }

    /// The one place that says no.
    #[inline]
    pub(super) fn refuse(&self, kind: RefusalKind, short: Short) -> Refusal {
        if self.config.observers.any() {
            self.tell_refusal(kind, short);
        }
        self.refusal(kind, short)
    }

    #[inline]
    fn refusal(&self, kind: RefusalKind, short: Short) -> Refusal {
        let refusal = Refusal::new(kind).with_label(self.label_of(short.dimension));
        if short.wait == NEVER {
            return refusal;
        }
        refusal.with_retry_after(Duration::from_nanos(nanos_up(short.wait)))
    }

    #[cold]
    #[inline(never)]
    fn tell_refusal(&self, kind: RefusalKind, short: Short) {
        let refusal = &self.refusal(kind, short);
        self.config.observers.raise(|| Event::Refused { label: &self.label, refusal });
    }

    #[inline]
    fn label_of(&self, dimension: usize) -> Arc<Label> {
        match self.first_labels.get(dimension) {
            Some(first) if !first.outdated.load(Ordering::Acquire) => match first.label.get() {
                Some(label) => label.clone(),
                None => self.make_label(dimension),
            },
            _ => self.make_label(dimension),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_label(&self, dimension: usize) -> Arc<Label> {
        let names = self.config.dimensions.get(dimension).map(|dimension| &*dimension.name);
        let Some((name, current)) = names.zip(self.current.get(dimension)) else { return self.label.clone() };
        let mut current = lock(current);
        let quota = current.quota;
        let limited = || Arc::new((*self.label).clone().with_limit(name, quota.to_string()));
        let label = current.label.get_or_insert_with(limited).clone();
        // Under the lock: a change of the quota comes before, and then this label is not the first, or after.
        if let Some(first) = self.first_labels.get(dimension) {
            let _ = first.label.set(label.clone());
        }
        label
    }

    /// What the request costs, and the part of its tokens that goes in.
    #[inline]
    fn read<Req>(&self, request: &Req) -> (Costs, u64)
    where
        R: ReadCosts<Req>,
    {
        let mut input = 0;
        if self.config.only_requests {
            return (Few::One([1]), input);
        }
        let dimensions = &*self.config.dimensions;
        let mut costs = Costs::from_fn(dimensions.len(), |index| {
            match dimensions.get(index).map(|dimension| &dimension.counts) {
                Some(Counts::Requests) => 1,
                Some(Counts::Own) | None => 0,
                Some(Counts::Tokens) => {
                    let need = self.need(self.config.costs.call(request), index);
                    input = need.input;
                    need.total()
                }
            }
        });
        self.config.costs.fill(request, &mut costs);
        (costs, input)
    }

    fn need(&self, call: Option<&Call>, dimension: usize) -> Need {
        let mut need = Need::of(call, self.config.assumed_output);
        if call.is_none_or(|call| call.output_bound.is_none()) {
            // What is only assumed makes no request too large.
            let burst = self.core.bucket.meter(dimension).map_or(u64::MAX, |meter| meter.rate().burst);
            need.output = need.output.min(burst.saturating_sub(need.input));
        }
        need
    }

    /// Takes over what a response says.
    pub(super) fn learn(&self, said: Said<'_>, now: u64, admitted: u64) {
        match said {
            Said::Wait(wait) => self.throttled(now, wait),
            Said::Limit(stated) => self.stated(&stated, now, admitted),
            // That is between the upstream and the permit of this call.
            Said::Used(_) => {}
        }
    }

    /// Everybody waits until a hint is over. Other processes heard the same hint, so it ends a little later, at random.
    pub(super) fn throttled(&self, now: u64, hint: Duration) {
        let Some(hint) = sound_wait(hint) else { return };
        let hint = hint.min(self.config.max_pause);
        let spread = (hint / 4).clamp(Duration::from_millis(100), Duration::from_secs(5));
        let late = (spread / 4).mul_f64(fastrand::f64());
        self.core.pause(now, Self::after(now, hint + late), Self::after(0, spread));
    }

    fn stated(&self, stated: &Stated<'_>, now: u64, admitted: u64) {
        let names = self.config.dimensions.iter().map(|dimension| &*dimension.name);
        let Some(dimension) = names.into_iter().position(|name| name == stated.dimension) else { return };
        let Some(current) = self.current.get(dimension) else { return };
        if !stated.is_sound() {
            return;
        }
        let (quota, configured) = {
            let current = lock(current);
            (current.quota, current.rate)
        };
        let limit = stated.limit.zip(stated.window);
        let learned = limit.and_then(|(limit, window)| {
            quota.learned(limit, window, self.config.headroom, self.worth(dimension))
        });
        if let Some(rate) = learned {
            // Never above the configuration, and back up to it when the upstream says so.
            let interval = rate.interval.max(configured.interval);
            self.core.set_rate(now, dimension, Rate { interval, burst: rate.burst.min(configured.burst) });
        }
        let bounds = stated.window.is_none_or(|window| window >= quota.period() / 10 * 9);
        if let Some(remaining) = stated.remaining.filter(|_| bounds) {
            // What was left when this request had been counted. What came after it is counted here already.
            self.core.cap(now, dimension, admitted, remaining);
        }
    }

    pub(super) fn worth(&self, dimension: usize) -> Duration {
        self.config.dimensions.get(dimension).map_or(Duration::ZERO, |dimension| dimension.worth)
    }
}

impl<Req, U, R> Gate<Req> for TokenBucket<U, R>
where
    R: ReadCosts<Req>,
{
    type Permit = BucketPermit<U, R>;
    type Wait = Wait<U, R>;

    #[inline]
    fn shut(&self) -> bool {
        self.is_shut()
    }

    #[inline]
    fn admit(&self, request: &mut Req) -> Admission<Self::Permit, Self::Wait> {
        let state = &*self.state;
        let (costs, input) = state.read(request);
        let coarse = state.take_coarsely(&costs);
        let now = coarse.unwrap_or_else(|| state.now());
        let taken = if coarse.is_some() { Ok(self.owner()) } else { self.take(now, &costs) };
        // Permit and refusal are made here alone, and so where they are to lie.
        let (owner, costs) = match taken {
            Ok(owner) => (owner, costs),
            Err(short) => match self.not_now(request, costs.elsewhere(), input, now, short) {
                NotNow::Taken(costs) => (Owner::State(self.state.clone()), costs),
                NotNow::Later(wait) => return Admission::Later(wait),
                NotNow::Refused(kind, short) => return Admission::Refused(state.refuse(kind, short)),
            },
        };
        Admission::Now(BucketPermit::new(owner, costs, input, now))
    }
}

/// What becomes of a request that is not admitted at once.
enum NotNow<U, R> {
    /// It is, at a second look.
    Taken(Costs),
    Later(Wait<U, R>),
    Refused(RefusalKind, Short),
}

impl<U, R> TokenBucket<U, R> {
    /// Takes the costs if nobody waits and all is there, and says who will settle them.
    #[inline]
    fn take(&self, now: u64, costs: &Costs) -> Result<Owner<U, R>, Option<Short>> {
        let stripes = self.stripes.as_ref().filter(|_| self.state.config.lease > 0);
        if let Some(stripe) = stripes.and_then(|stripes| stripes.take(now, costs)) {
            return Ok(Owner::Stripe(stripe));
        }
        match self.state.core.take(now, costs) {
            Some(Ok(())) => Ok(self.owner()),
            not_now => Err(not_now.and_then(Result::err)),
        }
    }

    /// Who settles what this thread takes.
    #[inline]
    fn owner(&self) -> Owner<U, R> {
        match &self.stripes {
            Some(stripes) => Owner::Stripe(stripes.mine().clone()),
            None => Owner::State(self.state.clone()),
        }
    }

    /// Waits, or refuses.
    #[cold]
    #[inline(never)]
    fn not_now<Req>(
        &self,
        request: &Req,
        costs: Costs,
        input: u64,
        now: u64,
        short: Option<Short>,
    ) -> NotNow<U, R>
    where
        R: ReadCosts<Req>,
    {
        let state = &self.state;
        // What costs more than the bucket holds never passes, so this is the only place to look.
        if let Some(dimension) = state.core.bucket.too_large(&costs) {
            return NotNow::Refused(RefusalKind::TooLarge, Short { dimension, wait: NEVER });
        }
        let Some(max_wait) = state.config.max_wait else {
            let taken = short.map_or_else(|| state.core.take_or_refuse(now, &costs), Err);
            return match taken {
                Ok(()) => NotNow::Taken(costs),
                Err(short) => NotNow::Refused(RefusalKind::RateLimited, short),
            };
        };
        let deadline = state.config.costs.deadline(request).and_then(crate::Deadline::instant);
        let deadline = deadline.map_or(NEVER, |at| state.ticks(at));
        let patience = State::<U, R>::after(now, max_wait);
        let waiter = Waiter::new(costs, patience.min(deadline), fastrand::u32(..));
        // Whichever comes first is the reason that is told.
        let deadline = if deadline < patience { deadline } else { NEVER };
        match state.core.join(now, waiter) {
            Ok(Joined::Granted(costs)) => NotNow::Taken(costs),
            Ok(Joined::Waits { ticket, at }) => {
                NotNow::Later(Wait::new(state.clone(), ticket, at, input, now, deadline))
            }
            Ok(Joined::Refused(short)) => NotNow::Refused(too_late(now, short, deadline), short),
            Err(full) => NotNow::Refused(RefusalKind::RateLimited, full),
        }
    }
}

/// Why a wait that does not fit is refused.
pub(super) fn too_late(now: u64, short: Short, deadline: u64) -> RefusalKind {
    if now.saturating_add(short.wait) > deadline { RefusalKind::Deadline } else { RefusalKind::RateLimited }
}

impl<U: Clone, R: Clone> PerKey for TokenBucket<U, R> {
    fn for_key(&self, key: &Key) -> Self {
        Self::new(self.state.config.clone(), Some(key))
    }

    fn at_rest(&self) -> bool {
        let state = &self.state;
        let stripes = self.stripes.as_ref().map_or(Some(0), Stripes::unused);
        let meters = state.core.bucket.meters();
        stripes.is_some_and(|stripes| Arc::strong_count(state) == 1 + stripes)
            && meters.zip(&state.config.dimensions).all(|(meter, dimension)| meter.rate() == dimension.rate)
            && state.core.is_at_rest(state.now())
    }
}

impl<U, R> Clone for TokenBucket<U, R> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), stripes: self.stripes.clone() }
    }
}
