//! What tokens cost at one model of one upstream.

#[cfg(all(test, not(seawall_loom)))]
mod tests;

use crate::call::{Key, Usage};
use crate::money::{Rate, Usd};

/// The price of each class of tokens.
///
/// A class without a price of its own costs what the class costs that it is part of: a cached or cache-written token what
/// an input token costs, never nothing. Whoever knows better says so, with [`Rate::ZERO`] where it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// An input token that is in no other class.
    pub input: Rate,
    /// An output token that is in no other class.
    pub output: Rate,
    /// An input token read from a cache; `None` is the input price.
    pub cached: Option<Rate>,
    /// An input token written to a cache for minutes; `None` is the input price.
    pub cache_write: Option<Rate>,
    /// An input token written to a cache for an hour or more; `None` is the price of the shorter one.
    pub cache_write_1h: Option<Rate>,
    /// An output token spent on reasoning; `None` is the output price.
    pub reasoning: Option<Rate>,
    /// An input token of audio; `None` is the input price.
    pub audio_input: Option<Rate>,
    /// An output token of audio; `None` is the output price.
    pub audio_output: Option<Rate>,
}

impl Rates {
    /// Two prices, and no others: what most models have.
    #[must_use]
    pub const fn new(input: Rate, output: Rate) -> Self {
        Self {
            input,
            output,
            cached: None,
            cache_write: None,
            cache_write_1h: None,
            reasoning: None,
            audio_input: None,
            audio_output: None,
        }
    }

    /// These, and where they leave a class out, those of `base`.
    #[must_use]
    pub(crate) fn or(mut self, base: &Self) -> Self {
        self.cached = self.cached.or(base.cached);
        self.cache_write = self.cache_write.or(base.cache_write);
        self.cache_write_1h = self.cache_write_1h.or(base.cache_write_1h);
        self.reasoning = self.reasoning.or(base.reasoning);
        self.audio_input = self.audio_input.or(base.audio_input);
        self.audio_output = self.audio_output.or(base.audio_output);
        self
    }

    fn resolve(&self) -> Resolved {
        let cache_write = self.cache_write.unwrap_or(self.input);
        Resolved {
            input: self.input,
            output: self.output,
            cached: self.cached.unwrap_or(self.input),
            cache_write,
            cache_write_1h: self.cache_write_1h.unwrap_or(cache_write),
            reasoning: self.reasoning.unwrap_or(self.output),
            audio_input: self.audio_input.unwrap_or(self.input),
            audio_output: self.audio_output.unwrap_or(self.output),
        }
    }
}

/// Prices that hold for the *whole* request, output too, once its prompt is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptTier {
    /// The number of input tokens from which they hold.
    pub threshold: u64,
    /// Whether they hold at the threshold itself (≥), or only above it (>), which is usual.
    pub inclusive: bool,
    /// The prices. A class they leave out costs what it costs in the base prices.
    pub rates: Rates,
}

/// Prices by another service tier: `flex`, `priority`, `batch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTier {
    /// Its name, as a [`Call`](crate::call::Call) says it.
    pub name: Key,
    /// Its prices.
    pub rates: Rates,
    /// Its own tiers by prompt size.
    pub tiers: Vec<PromptTier>,
}

/// Cheaper hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffPeak {
    /// When they are.
    pub hours: Vec<Hours>,
    /// The prices in those hours.
    pub rates: Rates,
}

/// A span of the day in UTC, on some days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// First minute of the day, from 0.
    pub from: u16,
    /// First minute that is no longer in it. At or before `from` it ends on the next day.
    pub to: u16,
    /// Bit 0 is Monday. The day is that on which the span begins.
    pub weekdays: u8,
}

impl Hours {
    /// Every day of the week.
    pub const EVERY_DAY: u8 = 0b111_1111;
    const DAY: u16 = 24 * 60;

    /// Whether this minute of this weekday (Monday is 0) is in it.
    #[must_use]
    pub fn contain(&self, weekday: u8, minute: u16) -> bool {
        let on = |day: u8| self.weekdays & (1 << (day % 7)) != 0;
        if self.from < self.to {
            return on(weekday) && (self.from..self.to).contains(&minute);
        }
        (on(weekday) && (self.from..Self::DAY).contains(&minute)) || (on(weekday + 6) && minute < self.to)
    }
}

/// What one model costs at one upstream.
///
/// ```
/// use seawall::cost_guard::{Price, Rate};
///
/// let price = Price::per_million("2.50", "10").unwrap();
/// assert_eq!(price.rates.output, Rate::pico(10_000_000));
/// assert!(Price::per_million("-1", "10").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// The standard prices.
    pub rates: Rates,
    /// Charged once a request.
    pub request: Usd,
    /// Prices for long prompts.
    pub tiers: Vec<PromptTier>,
    /// Prices of other service tiers.
    pub service_tiers: Vec<ServiceTier>,
    /// Prices in cheaper hours.
    pub off_peak: Option<OffPeak>,
    /// The longest answer that the model gives, in tokens; `None` where that is not known.
    pub max_output: Option<u64>,
}

impl Price {
    /// These rates and nothing else.
    #[must_use]
    pub fn new(rates: Rates) -> Self {
        Self { rates, ..Self::default() }
    }

    /// So many dollars a million tokens of input and of output.
    ///
    /// # Errors
    ///
    /// Where a text is no number or is negative.
    pub fn per_million(input: &str, output: &str) -> Result<Self, crate::cost_guard::MoneyError> {
        Ok(Self::new(Rates::new(Rate::per_million(input)?, Rate::per_million(output)?)))
    }

    /// With the longest answer that the model gives.
    #[must_use]
    pub fn with_max_output(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// With a charge once a request.
    #[must_use]
    pub fn with_request(mut self, amount: Usd) -> Self {
        self.request = amount;
        self
    }

    /// With prices for long prompts.
    #[must_use]
    pub fn with_tier(mut self, threshold: u64, inclusive: bool, rates: Rates) -> Self {
        self.tiers.push(PromptTier { threshold, inclusive, rates });
        self
    }
}

/// All classes, each with its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) input: Rate,
    pub(crate) output: Rate,
    pub(crate) cached: Rate,
    pub(crate) cache_write: Rate,
    pub(crate) cache_write_1h: Rate,
    pub(crate) reasoning: Rate,
    pub(crate) audio_input: Rate,
    pub(crate) audio_output: Rate,
}

impl Resolved {
    /// The dearest class that an input token can be in.
    pub(crate) fn dearest_input(&self) -> Rate {
        let caches = self.cached.max(self.cache_write).max(self.cache_write_1h);
        self.input.max(self.audio_input).max(caches)
    }

    /// The dearest class that an output token can be in.
    pub(crate) fn dearest_output(&self) -> Rate {
        self.output.max(self.reasoning).max(self.audio_output)
    }

    /// The cost of this usage, each class rounded up by itself.
    ///
    /// No token is charged twice: parts are taken from their whole, the dearer first, and never exceed it. (Which part of
    /// the cached input was audio no provider says.)
    pub(crate) fn cost(&self, usage: &Usage) -> Usd {
        let (mut input, mut output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let mut cost = Usd::ZERO;
        let mut class = |whole: &mut u64, tokens: Option<u64>, rate: Rate| {
            if let Some(tokens) = tokens {
                let tokens = tokens.min(*whole);
                *whole -= tokens;
                cost = cost.saturating_add(rate.cost(tokens));
            }
        };
        class(&mut input, usage.audio_input, self.audio_input);
        class(&mut input, usage.cache_write_1h, self.cache_write_1h);
        class(&mut input, usage.cache_write, self.cache_write);
        class(&mut input, usage.cached, self.cached);
        class(&mut output, usage.audio_output, self.audio_output);
        class(&mut output, usage.reasoning, self.reasoning);
        cost.saturating_add(self.input.cost(input)).saturating_add(self.output.cost(output))
    }

    /// By how much rounding up each class can exceed rounding up the whole: nothing, where every rate is a whole number
    /// of nano-dollars a token.
    fn slack(&self) -> Usd {
        let inputs = [self.input, self.cached, self.cache_write, self.cache_write_1h, self.audio_input];
        let outputs = [self.output, self.reasoning, self.audio_output];
        let side = |rates: &[Rate]| {
            let whole = rates.iter().all(|rate| rate.as_pico() % 1_000 == 0);
            if whole { 0 } else { rates.len() as u64 - 1 }
        };
        Usd::nanos(side(&inputs) + side(&outputs))
    }
}

/// No request can be dearer than so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dearest {
    input: Rate,
    output: Rate,
    fixed: Usd,
}

impl Dearest {
    fn of(rates: &Resolved, request: Usd) -> Self {
        let (input, output) = (rates.dearest_input(), rates.dearest_output());
        Self { input, output, fixed: request.saturating_add(rates.slack()) }
    }

    fn or(self, rates: &Resolved, request: Usd) -> Self {
        let other = Self::of(rates, request);
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            fixed: self.fixed.max(other.fixed),
        }
    }

    /// What so many tokens cost at most.
    #[inline]
    pub(crate) fn cost(&self, input: u64, output: u64) -> Usd {
        let tokens = self.input.cost(input).saturating_add(self.output.cost(output));
        tokens.saturating_add(self.fixed)
    }
}

/// The prices of a model that has no others, in so few words that each call can carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain([u32; 8]);

impl Plain {
    pub(crate) const FREE: Self = Self([0; 8]);

    /// `None` where a price depends on more than the class, or is beyond $4 294 a million tokens.
    fn of(tariff: &Tariff) -> Option<Self> {
        if tariff.steps.is_some() || !tariff.request.is_zero() {
            return None;
        }
        let base = &tariff.base;
        let inputs = [base.cached, base.cache_write, base.cache_write_1h];
        let rates = [base.input, base.output].into_iter().chain(inputs);
        let rates = rates.chain([base.reasoning, base.audio_input, base.audio_output]);
        let mut plain = [0; 8];
        for (plain, rate) in plain.iter_mut().zip(rates) {
            *plain = u32::try_from(rate.as_pico()).ok()?;
        }
        Some(Self(plain))
    }

    /// What this usage costs.
    pub(crate) fn cost(&self, usage: &Usage) -> Usd {
        let [input, output, cached, cache_write, cache_write_1h, reasoning, audio_input, audio_output] =
            self.0.map(|rate| Rate::pico(rate.into()));
        let rates = Resolved {
            input,
            output,
            cached,
            cache_write,
            cache_write_1h,
            reasoning,
            audio_input,
            audio_output,
        };
        rates.cost(usage)
    }

    /// What so many tokens cost of which none is in a class of its own.
    #[inline]
    pub(crate) fn cost_of(&self, input: u64, output: u64) -> Usd {
        let [input_rate, output_rate, ..] = self.0.map(|rate| Rate::pico(rate.into()));
        input_rate.cost(input).saturating_add(output_rate.cost(output))
    }
}

/// A price made ready: every class resolved, nothing left to look up but tier and hour.
#[derive(Clone, Debug)]
pub(crate) struct Tariff {
    pub(crate) base: Resolved,
    pub(crate) request: Usd,
    pub(crate) max_output: Option<u64>,
    /// The same in short, where that can be.
    pub(crate) plain: Option<Plain>,
    /// Of the base prices.
    dearest: Dearest,
    /// Where the price depends on more than the class.
    pub(crate) steps: Option<Steps>,
}

/// All that is to be known of plain prices before a call.
///
/// In this order: it is copied sixteen bytes at a time, and so are the prices out of it right after. A processor waits where
/// the two do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Short {
    pub(crate) plain: Plain,
    pub(crate) dearest: Dearest,
    pub(crate) max_output: Option<u64>,
}

impl Short {
    pub(crate) const FREE: Self = Self {
        plain: Plain::FREE,
        max_output: None,
        dearest: Dearest { input: Rate::ZERO, output: Rate::ZERO, fixed: Usd::ZERO },
    };
}

/// What a price depends on beside the class. Dearest first is not assumed anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    tiers: Vec<Step>,
    services: Vec<(Key, Resolved, Vec<Step>)>,
    off_peak: Option<(Vec<Hours>, Resolved)>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// The least prompt for which it holds.
    from: u64,
    rates: Resolved,
}

/// What is known of a request when its price is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances<'a> {
    pub(crate) service_tier: Option<&'a Key>,
    /// Weekday (Monday is 0) and minute of the day, in UTC.
    pub(crate) hour: Option<(u8, u16)>,
}

impl Tariff {
    pub(crate) fn new(price: &Price) -> Self {
        let services = price.service_tiers.iter();
        let steps = Steps {
            tiers: steps(&price.tiers, &price.rates),
            services: services
                .map(|tier| (tier.name.clone(), tier.rates.resolve(), steps(&tier.tiers, &tier.rates)))
                .collect(),
            off_peak: price
                .off_peak
                .as_ref()
                .map(|off| (off.hours.clone(), off.rates.or(&price.rates).resolve())),
        };
        let plain = steps.tiers.is_empty() && steps.services.is_empty() && steps.off_peak.is_none();
        let base = price.rates.resolve();
        let mut tariff = Self {
            base,
            dearest: Dearest::of(&base, price.request),
            request: price.request,
            max_output: price.max_output,
            steps: (!plain).then_some(steps),
            plain: None,
        };
        tariff.plain = Plain::of(&tariff);
        tariff
    }

    /// In short, with the longest answer and the dearest price.
    #[inline]
    pub(crate) fn short(&self) -> Option<Short> {
        Some(Short { plain: self.plain?, max_output: self.max_output, dearest: self.dearest })
    }

    /// Whether the hour matters.
    pub(crate) fn by_hour(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.off_peak.is_some())
    }

    /// What this usage costs.
    pub(crate) fn cost(&self, usage: &Usage, at: &Circumstances<'_>) -> Usd {
        let rates = match &self.steps {
            None => self.base,
            Some(steps) => steps.rates(self.base, usage.input.unwrap_or(0), at),
        };
        rates.cost(usage).saturating_add(self.request)
    }

    /// No prompt up to this size is dearer than so, whatever classes its tokens are in and whenever it is.
    pub(crate) fn dearest(&self, prompt: u64, service_tier: Option<&Key>) -> Dearest {
        let mut dearest = self.dearest;
        let Some(steps) = &self.steps else { return dearest };
        let reached = |tiers: &[Step], mut dearest: Dearest| {
            for step in tiers.iter().filter(|step| step.from <= prompt) {
                dearest = dearest.or(&step.rates, self.request);
            }
            dearest
        };
        dearest = reached(&steps.tiers, dearest);
        if let Some((_, rates, tiers)) = steps.service(service_tier) {
            dearest = reached(tiers, dearest.or(rates, self.request));
        }
        if let Some((_, rates)) = &steps.off_peak {
            dearest = dearest.or(rates, self.request);
        }
        dearest
    }
}

impl Steps {
    fn service(&self, name: Option<&Key>) -> Option<&(Key, Resolved, Vec<Step>)> {
        let name = name?;
        self.services.iter().find(|(tier, ..)| tier == name)
    }

    fn rates(&self, base: Resolved, prompt: u64, at: &Circumstances<'_>) -> Resolved {
        let highest = |tiers: &[Step]| {
            tiers
                .iter()
                .filter(|step| step.from <= prompt)
                .max_by_key(|step| step.from)
                .map(|step| step.rates)
        };
        if let Some((_, rates, tiers)) = self.service(at.service_tier) {
            return highest(tiers).unwrap_or(*rates);
        }
        if let Some(rates) = highest(&self.tiers) {
            return rates;
        }
        match (&self.off_peak, at.hour) {
            (Some((hours, rates)), Some((day, minute)))
                if hours.iter().any(|span| span.contain(day, minute)) =>
            {
                *rates
            }
            _ => base,
        }
    }
}

fn steps(tiers: &[PromptTier], base: &Rates) -> Vec<Step> {
    let from = |tier: &PromptTier| tier.threshold.saturating_add(u64::from(!tier.inclusive));
    tiers.iter().map(|tier| Step { from: from(tier), rates: tier.rates.or(base).resolve() }).collect()
}
