//! The gates of an upstream, from its sections.

use std::num::{NonZeroU32, NonZeroUsize};

use crate::bulkhead::{Bulkhead, BulkheadLayer};
use crate::call::Key;
use crate::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, OnThrottled, Settings, SettingsBuilder};
use crate::config_error::ConfigError;
use crate::fallback::Standing;
use crate::gate::{ByUpstream, Gate, PerKey};
use crate::token_bucket::{Quota, TokenBucket, TokenBucketLayer};

use super::sections::{
    BreakerPreset, BreakerSection, BulkheadSection, File, LimitsSection, ThrottledName, UpstreamSection,
};
use crate::monitor::{Gauge, Gauges, Monitor};

/// The same error under the name that the file has for the setting.
fn renamed(error: ConfigError, names: &[(&str, &'static str)]) -> ConfigError {
    match names.iter().find(|(field, _)| *field == error.field()) {
        Some((_, name)) => ConfigError::new(*name, error.problem().to_owned()),
        None => error,
    }
}

impl BreakerSection {
    fn settings(&self, own_credential: bool) -> SettingsBuilder {
        let mut settings = match self.preset.unwrap_or(BreakerPreset::Usual) {
            BreakerPreset::Usual => Settings::builder(),
            BreakerPreset::Fast => Settings::fast(),
            BreakerPreset::Tolerant => Settings::tolerant(),
        };
        settings = settings.own_credential(own_credential);
        if self.failures.is_some() || self.within.is_some() {
            let (failures, within) = settings.in_a_row().unwrap_or_default();
            let within = self.within.map_or(within, |time| time.0);
            settings = settings.consecutive_failures(self.failures.unwrap_or(failures), within);
        }
        if let (Some(after), share) = (self.slow_after, self.slow_rate.unwrap_or(0.5)) {
            settings = settings.slow_call_rate(after.0, share);
        }
        if let Some(on) = self.throttled {
            settings = settings.throttled(match on {
                ThrottledName::Neutral => OnThrottled::Neutral,
                ThrottledName::Failure => OnThrottled::Failure,
                ThrottledName::Opens => OnThrottled::Opens,
            });
        }
        macro_rules! set {
            ($($field:ident => $setter:ident,)*) => { $(
                if let Some(value) = self.$field {
                    settings = settings.$setter(value.into());
                }
            )* };
        }
        set! {
            failure_rate => failure_rate, minimum_calls => minimum_calls, window => window, open_for => open_for,
            open_at_most => open_at_most, probes => probes, probe_successes => probe_successes, ramp => ramp,
        }
        settings
    }

    fn gate(
        &self,
        name: &Key,
        own_credential: bool,
        monitor: &Monitor,
    ) -> Result<CircuitBreaker, ConfigError> {
        let names = [("consecutive_failures", "failures"), ("slow_call_rate", "slow_rate")];
        let layer = CircuitBreakerLayer::builder()
            .settings(self.settings(own_credential))
            .observe_only(self.observe_only.unwrap_or(false))
            .observer(monitor.clone())
            .keyed(ByUpstream)
            .key_class("upstream")
            .max_keys(NonZeroUsize::MIN)
            .build();
        Ok(layer.map_err(|error| renamed(error, &names))?.gate().get(name))
    }
}

impl BulkheadSection {
    fn gate(&self, limit: u32, name: &Key, monitor: &Monitor) -> Result<Bulkhead, ConfigError> {
        let mut builder = BulkheadLayer::builder(limit).observer(monitor.clone());
        if let Some(queue) = self.queue {
            builder = builder.queue(queue);
        }
        if let Some(wait) = self.max_wait {
            builder = builder.max_wait(wait.0);
        }
        Ok(builder.build()?.gate().for_key(name))
    }
}

impl Gauges for UpstreamGates {
    fn gauges(&self) -> Vec<Gauge> {
        let mut gauges = self.breaker.gauges();
        gauges.extend(self.bulkhead.iter().flat_map(Gauges::gauges));
        let of_bucket = self.bucket.iter().flat_map(Gauges::gauges);
        // One name shows one queue, which is the bulkhead's.
        gauges.extend(of_bucket.filter(|gauge| !matches!(gauge, Gauge::Queued(_))));
        gauges
    }
}

/// How many of what a minute.
#[derive(Clone, Debug, PartialEq)]
struct BucketPlan {
    requests: Option<Quota>,
    tokens: Option<Quota>,
    limits: LimitsSection,
}

impl BucketPlan {
    /// What an upstream's section says; `None` where it sets no limit.
    fn of(section: &UpstreamSection, all: &LimitsSection) -> Option<Self> {
        let requests = section.requests_per_minute.map(Quota::per_minute);
        let tokens = section.tokens_per_minute.map(Quota::per_minute);
        let plan = Self { requests, tokens, limits: section.limits.or(all) };
        (plan.requests.is_some() || plan.tokens.is_some()).then_some(plan)
    }

    /// Whether a bucket of the other plan becomes one of this by new quotas alone.
    fn differs_in_quotas_alone(&self, other: &Self) -> bool {
        self.limits == other.limits
            && self.requests.is_some() == other.requests.is_some()
            && self.tokens.is_some() == other.tokens.is_some()
    }

    /// Gives a bucket that stays the quotas of this plan.
    fn change(&self, bucket: TokenBucket) -> Box<dyn FnOnce() + Send> {
        let quotas = [("requests", self.requests), ("tokens", self.tokens)];
        Box::new(move || {
            for (dimension, quota) in quotas {
                if let Some(quota) = quota {
                    // A bucket of these quotas was built to see that they work.
                    let _ = bucket.set_quota(dimension, quota);
                }
            }
        })
    }

    fn gate(&self, name: &Key, monitor: &Monitor) -> Result<TokenBucket, ConfigError> {
        let mut builder = TokenBucketLayer::builder().observer(monitor.clone());
        if let Some(quota) = self.requests {
            builder = builder.requests(quota);
        }
        if let Some(quota) = self.tokens {
            builder = builder.tokens(quota);
        }
        if let Some(share) = self.limits.headroom {
            builder = builder.headroom(share);
        }
        if self.limits.strict == Some(true) {
            builder = builder.strict();
        }
        if let Some(wait) = self.limits.max_wait {
            builder = builder.max_wait(wait.0);
        }
        if let Some(waiters) = self.limits.max_waiters {
            let waiters = NonZeroU32::new(waiters).and_then(|waiters| NonZeroUsize::try_from(waiters).ok());
            builder = builder
                .max_waiters(waiters.ok_or_else(|| ConfigError::new("max_waiters", "must not be zero"))?);
        }
        if let Some(tokens) = self.limits.assumed_output {
            builder = builder.assumed_output(tokens);
        }
        let layer = builder.keyed(ByUpstream).key_class("upstream").max_keys(NonZeroUsize::MIN).build()?;
        Ok(layer.gate().get(name))
    }
}

/// What the gates of one upstream are to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    breaker: BreakerSection,
    own_credential: bool,
    bucket: Option<BucketPlan>,
    max_concurrent: Option<u32>,
    bulkhead: BulkheadSection,
}

/// The gates of one upstream.
#[derive(Clone)]
pub(super) struct UpstreamGates {
    pub(super) name: Key,
    plan: Plan,
    pub(super) breaker: CircuitBreaker,
    pub(super) bucket: Option<TokenBucket>,
    pub(super) bulkhead: Option<Bulkhead>,
}

/// What is to be done to gates that stay, once all of a new configuration is known to work.
pub(super) type Changes = Vec<Box<dyn FnOnce() + Send>>;

impl Plan {
    pub(super) fn of(section: &UpstreamSection, file: &File) -> Self {
        Self {
            breaker: section.breaker.or(&file.breaker),
            own_credential: section.has_own_credential(),
            bucket: BucketPlan::of(section, &file.limits),
            max_concurrent: section.max_concurrent,
            bulkhead: section.bulkhead.or(&file.bulkhead),
        }
    }

    /// The gates. Those of `old` whose settings are the same stay, with their state; those that differ in their size
    /// alone stay too, and get the new one by `changes`.
    pub(super) fn gates(
        self,
        name: &Key,
        monitor: &Monitor,
        old: Option<&UpstreamGates>,
        changes: &mut Changes,
    ) -> Result<UpstreamGates, ConfigError> {
        let breaker = self.breaker.gate(name, self.own_credential, monitor);
        let mut breaker = breaker.map_err(|error| error.under("breaker"))?;
        let bucket = self.bucket.as_ref().map(|plan| plan.gate(name, monitor)).transpose();
        let mut bucket = bucket.map_err(|error| match error.field().split_once('.') {
            Some(("requests", _)) => ConfigError::new("requests_per_minute", error.problem().to_owned()),
            Some(("tokens", _)) => ConfigError::new("tokens_per_minute", error.problem().to_owned()),
            _ => error.under("limits"),
        })?;
        let bulkhead = self.max_concurrent.map(|limit| self.bulkhead.gate(limit, name, monitor)).transpose();
        let mut bulkhead = bulkhead.map_err(|error| error.under("bulkhead"))?;
        if let Some(old) = old {
            if (&old.plan.breaker, old.plan.own_credential) == (&self.breaker, self.own_credential) {
                breaker = old.breaker.clone();
            }
            if let (Some(plan), Some(was), Some(kept)) = (&self.bucket, &old.plan.bucket, &old.bucket)
                && plan.differs_in_quotas_alone(was)
            {
                bucket = Some(kept.clone());
                changes.push(plan.change(kept.clone()));
            }
            if let (Some(limit), Some(kept)) = (self.max_concurrent, &old.bulkhead)
                && self.bulkhead == old.plan.bulkhead
            {
                bulkhead = Some(kept.clone());
                let kept = kept.clone();
                changes.push(Box::new(move || kept.set_limit(limit)));
            }
        }
        Ok(UpstreamGates { name: name.clone(), plan: self, breaker, bucket, bulkhead })
    }
}

impl UpstreamGates {
    /// How this upstream stands, as far as its gates know.
    pub(super) fn standing(&self) -> Standing {
        if Gate::<()>::shut(&self.breaker) {
            return Standing::Out(self.breaker.snapshot().open_left);
        }
        let waits = |bucket: &TokenBucket| bucket.waiters() > 0 || !bucket.paused_for().is_zero();
        let full = |bulkhead: &Bulkhead| bulkhead.in_flight() >= bulkhead.limit();
        let busy = self.bucket.as_ref().is_some_and(waits) || self.bulkhead.as_ref().is_some_and(full);
        if busy { Standing::Busy } else { Standing::Serves }
    }
}
