//! How many retries an upstream may be asked to bear.

mod bucket;
#[cfg(test)]
#[cfg(seawall_loom)]
mod models;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;

use crate::call::Key;
use crate::config_error::ConfigError;
use crate::gate::{Keyed, PerKey};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::time::Origin;
use bucket::{Bucket, Step, Terms};

/// A share of the calls to an upstream that may be retries.
///
/// Every call that arrives at the upstream deposits [`ratio`](BudgetBuilder::ratio) of a token, every retry there takes a
/// whole one; what is saved up is at most the [`reserve`](BudgetBuilder::reserve), which is also what it starts with. So in
/// any span of time
///
/// > retries ≤ ratio × calls that arrived + reserve
///
/// whatever fails, and for every upstream by itself: one that is down does not use up the retries of another.
///
/// A token is taken before the wait and never given back, also not when the caller leaves; nobody waits for one. A hop to
/// another target takes none: it is an arrival there. Clones are handles on the same budget: give one to every layer and
/// service that shall share it. Everything is integers of a thousandth of a token, exact under any number of threads; an
/// idle time of any length is caught up with in one step.
///
/// ```
/// use seawall::retry::Budget;
///
/// let budget = Budget::builder().ratio(0.1).reserve(1).build()?;
/// assert!(budget.try_take(None), "the reserve");
/// assert!(!budget.try_take(None));
/// for _ in 0..10 {
///     budget.arrive(None);
/// }
/// assert!(budget.try_take(None), "ten calls have paid for one retry");
/// # Ok::<_, seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Books>);

struct Books {
    /// For calls whose upstream is not known.
    unnamed: State,
    upstreams: Keyed<State, ()>,
    /// At least as many as there are buckets that are not full: while it is zero, a deposit changes nothing anywhere.
    tapped: AtomicUsize,
    terms: Terms,
    /// What time is counted from.
    origin: Origin,
}

/// One upstream's bucket.
#[derive(Clone)]
struct State {
    bucket: Arc<Bucket>,
    terms: Terms,
}

impl PerKey for State {
    fn for_key(&self, _key: &Key) -> Self {
        Self::new(self.terms)
    }

    fn at_rest(&self) -> bool {
        Arc::strong_count(&self.bucket) == 1 && self.bucket.is_full(&self.terms)
    }
}

impl State {
    fn new(terms: Terms) -> Self {
        Self { bucket: Arc::new(Bucket::full(&terms)), terms }
    }
}

impl Budget {
    /// With other terms than the default of 0.2, a reserve of 10, and nothing by the clock.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder {
            ratio: 0.2,
            reserve: 10,
            per_second: 0.0,
            max_upstreams: Keyed::<State, ()>::DEFAULT_BOUND,
        }
    }

    /// A call arrives at the upstream: what it deposits. Once a call and target, not once an attempt.
    #[inline]
    pub fn arrive(&self, upstream: Option<&Key>) {
        if self.0.tapped.load(Ordering::Relaxed) > 0 {
            self.deposit(upstream);
        }
    }

    #[cold]
    fn deposit(&self, upstream: Option<&Key>) {
        let step = self.with(upstream, |bucket, terms| bucket.deposit(terms, || self.now()));
        if step == Step::Filled {
            self.0.tapped.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes a token for one more attempt, if there is one. It never comes back.
    #[must_use = "without a token no further attempt may be made"]
    pub fn try_take(&self, upstream: Option<&Key>) -> bool {
        // Counted before it is tapped, so that no deposit overlooks it.
        self.0.tapped.fetch_add(1, Ordering::Relaxed);
        let step = self.with(upstream, |bucket, terms| bucket.take(terms, || self.now()));
        if step != Some(Step::Tapped) {
            self.0.tapped.fetch_sub(1, Ordering::Relaxed);
        }
        step.is_some()
    }

    /// How many tokens are left, in thousandths.
    #[must_use]
    pub fn left_in_thousandths(&self, upstream: Option<&Key>) -> u32 {
        let known = upstream.map(|upstream| self.0.upstreams.find(upstream));
        match known {
            None => self.0.unnamed.bucket.left(&self.0.terms, || self.now()),
            Some(Some(state)) => state.bucket.left(&self.0.terms, || self.now()),
            // Reading makes no state: an upstream that was never called has its whole reserve.
            Some(None) => self.0.terms.cap,
        }
    }

    fn with<T>(&self, upstream: Option<&Key>, act: impl FnOnce(&Bucket, &Terms) -> T) -> T {
        match upstream {
            None => act(&self.0.unnamed.bucket, &self.0.terms),
            Some(upstream) => act(&self.0.upstreams.get(upstream).bucket, &self.0.terms),
        }
    }

    /// Milliseconds since the budget was made.
    fn now(&self) -> u64 {
        self.0.origin.elapsed() / 1_000_000
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::builder().build().expect("the default terms are within their bounds")
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("left_in_thousandths", &self.left_in_thousandths(None))
            .field("upstreams", &self.0.upstreams.len())
            .finish_non_exhaustive()
    }
}

/// The terms of a [`Budget`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct BudgetBuilder {
    ratio: f64,
    reserve: u32,
    per_second: f64,
    max_upstreams: NonZeroUsize,
}

impl BudgetBuilder {
    /// The most tokens that a reserve can hold.
    pub const MAX_RESERVE: u32 = 10_000;

    /// What a call deposits, in tokens: from 0 to 1, in steps of a thousandth. The default is 0.2: one retry for five calls.
    pub fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = ratio;
        self
    }

    /// How many tokens it starts with, and the most that it saves up: 0 allows no retry at all, the default is 10, at most
    /// [`MAX_RESERVE`](Self::MAX_RESERVE). A client with many calls at once, which may fail together, needs about as many
    /// as `ratio` × calls at once.
    pub fn reserve(mut self, reserve: u32) -> Self {
        self.reserve = reserve;
        self
    }

    /// What time alone deposits, in tokens a second, in steps of a thousandth; the default is 0. For clients that call so
    /// seldom that a spent reserve would not come back. Mind that every process has as much: ten a second in 5 000 processes
    /// are 50 000 retries a second that no call has paid for.
    pub fn per_second(mut self, tokens: f64) -> Self {
        self.per_second = tokens;
        self
    }

    /// How many upstreams have a bucket of their own, 10 000 by default. Beyond that, one with a full bucket is forgotten;
    /// where none is, newcomers share a bucket.
    pub fn max_upstreams(mut self, bound: NonZeroUsize) -> Self {
        self.max_upstreams = bound;
        self
    }

    /// The budget.
    ///
    /// # Errors
    ///
    /// `ratio` is not from 0 to 1, `per_second` is negative or over [`MAX_RESERVE`](Self::MAX_RESERVE), one of them is not a
    /// whole number of thousandths, or `reserve` is over its bound.
    pub fn build(self) -> Result<Budget, ConfigError> {
        if self.reserve > Self::MAX_RESERVE {
            return Err(ConfigError::new("reserve", "must be at most 10000"));
        }
        let terms = Terms {
            deposit: thousandths("ratio", self.ratio, 1.0)?,
            per_second: thousandths("per_second", self.per_second, f64::from(Self::MAX_RESERVE))?,
            cap: self.reserve * bucket::TOKEN,
        };
        let state = State::new(terms);
        let upstreams = Keyed::new(state.clone(), (), self.max_upstreams);
        let (tapped, origin) = (AtomicUsize::new(0), Origin::new());
        Ok(Budget(Arc::new(Books { unnamed: state, upstreams, tapped, terms, origin })))
    }
}

fn thousandths(field: &'static str, tokens: f64, most: f64) -> Result<u32, ConfigError> {
    if !(0.0..=most).contains(&tokens) {
        return Err(ConfigError::new(field, format!("must be a number from 0 to {most}")));
    }
    let exact = tokens * f64::from(bucket::TOKEN);
    let whole = exact.round();
    if (exact - whole).abs() > 1e-6 {
        return Err(ConfigError::new(field, "must be a whole number of thousandths"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by `most` just above"
    )]
    Ok(whole as u32)
}
