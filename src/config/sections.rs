//! What the file may say. Every setting of these sections is optional, and a section of an upstream wins over the one of
//! the same name for all. What can hold a secret has no `Debug`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU64;

use serde::Deserialize;

use crate::fallback::config::{CommitConfig, CredentialConfig, OrderConfig, TargetConfig, TriggerConfig};
use crate::reading::Time;

/// A section whose settings are all optional.
macro_rules! sections {
    ($($(#[$meta:meta])* $section:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $section { $($(#[$of])* pub(super) $field: Option<$type>,)* }

        impl $section {
            /// These settings, and for those that are missing the others.
            #[allow(dead_code, reason = "some sections stand at the top alone")]
            pub(super) fn or(&self, others: &Self) -> Self {
                Self { $($field: self.$field.clone().or_else(|| others.$field.clone()),)* }
            }
        }
    )* };
}

sections! {
    /// `[retry]`, and `[upstreams.NAME.retry]`.
    RetrySection {
        preset: RetryPreset,
        attempts: u32,
        base: Time,
        cap: Time,
        factor: f64,
        jitter: JitterName,
        floor: Time,
        patience: Time,
        patience_with_another_target: Time,
        max_time: Time,
        slow_recovery: bool,
        idempotency_key: String,
        attempt_header: String,
    }
    /// `[retry_budget]`.
    RetryBudgetSection { ratio: f64, reserve: u32, }
    /// `[breaker]`, and `[upstreams.NAME.breaker]`.
    BreakerSection {
        preset: BreakerPreset,
        failures: u32,
        within: Time,
        failure_rate: f64,
        minimum_calls: u32,
        window: Time,
        open_for: Time,
        open_at_most: Time,
        probes: u32,
        probe_successes: u32,
        ramp: Time,
        throttled: ThrottledName,
        slow_after: Time,
        slow_rate: f64,
        observe_only: bool,
    }
    /// `[bulkhead]`, and `[upstreams.NAME.bulkhead]`.
    BulkheadSection { queue: u32, max_wait: Time, }
    /// `[limits]`, and `[upstreams.NAME.limits]`: how the requests and tokens a minute are kept.
    LimitsSection {
        headroom: f64,
        strict: bool,
        max_wait: Time,
        max_waiters: u32,
        assumed_output: u64,
    }
    /// `[timeout]`.
    TimeoutSection { total: Time, head: Time, first_content: Time, idle: Time, }
    /// `[fallback]`.
    FallbackSection {
        max_attempts: u32,
        on: Vec<TriggerConfig>,
        hold_bytes: usize,
        answer_bytes: usize,
        tell_headers: bool,
    }
    /// `[alerts]`.
    AlertsSection {
        enabled: bool,
        success_warning: f64,
        success_critical: f64,
        p99: Time,
        fallbacks_an_hour: u64,
        trips_an_hour: u64,
        cost_growth: f64,
        cost_baseline: String,
        dearer: f64,
        minimum: u64,
        hold: Time,
    }
    /// `[cost]`: how the budgets are kept.
    CostSection {
        estimate_margin: u16,
        framing: u64,
        reference_allowance: u64,
        unknown_input: u64,
        unknown_output: u64,
        output_cap: u64,
        unreported: UnreportedName,
        unpriced: UnpricedName,
        patience: Time,
        observe_only: bool,
    }
}

/// `retry.preset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RetryPreset {
    Llm,
    Http,
}

/// `retry.jitter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JitterName {
    None,
    Full,
    Equal,
    Decorrelated,
}

/// `breaker.preset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BreakerPreset {
    Usual,
    Fast,
    Tolerant,
}

/// `breaker.throttled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThrottledName {
    Neutral,
    Failure,
    Opens,
}

/// `cost.unreported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UnreportedName {
    Bound,
    Seen,
}

/// `cost.unpriced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UnpricedName {
    Refuse,
    Free,
}

/// The whole file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "`price_file` is the name of the setting")]
pub(super) struct File {
    pub(super) listen: Option<SocketAddr>,
    pub(super) upstreams: BTreeMap<String, UpstreamSection>,
    pub(super) routes: Vec<RouteSection>,
    #[serde(default)]
    pub(super) aliases: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) secret_headers: Vec<String>,
    #[serde(default)]
    pub(super) secret_query: Vec<String>,
    #[serde(default)]
    pub(super) max_body: Option<usize>,
    #[serde(default)]
    pub(super) fallback: FallbackSection,
    #[serde(default)]
    pub(super) retry: RetrySection,
    #[serde(default)]
    pub(super) retry_budget: RetryBudgetSection,
    #[serde(default)]
    pub(super) breaker: BreakerSection,
    #[serde(default)]
    pub(super) bulkhead: BulkheadSection,
    #[serde(default)]
    pub(super) limits: LimitsSection,
    #[serde(default)]
    pub(super) timeout: TimeoutSection,
    #[serde(default)]
    pub(super) budgets: Vec<BudgetSection>,
    #[serde(default)]
    pub(super) cost: CostSection,
    #[serde(default)]
    pub(super) prices: BTreeMap<String, PriceSection>,
    pub(super) price_file: Option<PriceFile>,
    #[serde(default)]
    pub(super) alerts: AlertsSection,
    #[serde(default)]
    pub(super) clients: Vec<ClientSection>,
}

/// `[upstreams.NAME]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamSection {
    pub(super) base_url: String,
    pub(super) api_key: Option<String>,
    pub(super) credential: Option<CredentialConfig>,
    pub(super) strip_prefix: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) requests_per_minute: Option<NonZeroU64>,
    pub(super) tokens_per_minute: Option<NonZeroU64>,
    pub(super) max_concurrent: Option<u32>,
    #[serde(default)]
    pub(super) limits: LimitsSection,
    #[serde(default)]
    pub(super) breaker: BreakerSection,
    #[serde(default)]
    pub(super) retry: RetrySection,
    #[serde(default)]
    pub(super) bulkhead: BulkheadSection,
    #[serde(default)]
    pub(super) prices: BTreeMap<String, PriceSection>,
}

/// `[[routes]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteSection {
    pub(super) model: String,
    pub(super) targets: Vec<TargetConfig>,
    #[serde(default)]
    pub(super) order: OrderConfig,
    #[serde(default)]
    pub(super) commit: CommitConfig,
}

/// `[[budgets]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetSection {
    pub(super) name: Option<String>,
    pub(super) limit: Option<String>,
    pub(super) window: WindowName,
    /// Minutes east of UTC.
    pub(super) utc_offset: Option<i16>,
    #[serde(default = "all")]
    pub(super) key: String,
    #[serde(default)]
    pub(super) only_retries: bool,
    pub(super) marks: Option<Vec<u8>>,
}

fn all() -> String {
    "all".to_owned()
}

/// `budgets[].window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WindowName {
    Call,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Total,
}

/// `[prices.MODEL]`, in dollars a million tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceSection {
    pub(super) input_per_million: String,
    pub(super) output_per_million: String,
    pub(super) cached_per_million: Option<String>,
    pub(super) cache_write_per_million: Option<String>,
    pub(super) per_request: Option<String>,
    pub(super) max_output: Option<u64>,
}

/// `[price_file]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceFile {
    pub(super) path: String,
    pub(super) format: PriceFormat,
}

/// `price_file.format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PriceFormat {
    Litellm,
    ModelsDev,
}

/// `[[clients]]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientSection {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) models: Option<Vec<String>>,
}
