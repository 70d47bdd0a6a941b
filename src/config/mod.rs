//! One configuration, one constructor: the recommended stack of a client from a file.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use seawall::call::CallBody;
//! use seawall::{BoxError, Config};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let config = Config::from_json(
//!     r#"{
//!         "upstreams": {
//!             "first": { "base_url": "https://api.first.test/v1", "api_key": "env:FIRST_KEY", "max_concurrent": 15 },
//!             "second": { "base_url": "https://api.second.test/v1", "requests_per_minute": 60 }
//!         },
//!         "routes": [
//!             { "model": "chat", "targets": [
//!                 { "upstream": "first", "model": "model-a" },
//!                 { "upstream": "second", "model": "model-b" }
//!             ] }
//!         ]
//!     }"#,
//!     |name| (name == "FIRST_KEY").then(|| "secret".to_owned()),
//! )?;
//! // In place of this: a client of hyper or reqwest, with `.map_err(BoxError::from)`.
//! let client = tower::service_fn(|request: Request<CallBody>| async move {
//!     assert_eq!(request.uri(), "https://api.first.test/v1/chat/completions");
//!     Ok::<_, BoxError>(Response::new(Full::new(Bytes::from("{}"))))
//! });
//! let (client, stack) = config.client(client)?;
//! let request = Request::post("/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(Full::new(Bytes::from(r#"{"model":"chat","messages":[]}"#)))?;
//! assert_eq!(client.oneshot(request).await?.status(), 200);
//! assert_eq!(stack.bulkheads().iter().count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What it builds
//!
//! The client's stack of [`docs::ordering`](crate::docs::ordering), with one breaker an upstream, a bucket and a bulkhead for each
//! upstream that has limits, one ledger in memory, one retry budget, and a [`Monitor`] that observes all of it. [`Stack`] has the
//! handles; the fallback asks them: a target whose breaker is open is passed over, one whose slots are all taken, or at
//! whose bucket somebody waits, is asked last. [`Stack::renew`] takes another configuration while calls run, and either all of it holds or nothing has changed. The
//! example `gateway` puts a server around it.
//!
//! Nothing of it can be left out here, and no gate can be added: for another stack put the layers together by hand.
//!
//! # Settings
//!
//! Everything but `upstreams` and `routes` has a default. Times are texts with a unit (`250ms`, `30s`, `2m`, `1h`), amounts
//! of money texts in US dollars (`"10.00"`). A secret is written as it is, or better as `env:NAME`. The sections `limits`,
//! `breaker`, `retry` and `bulkhead` may also stand under an upstream; what is set there wins.
//!
//! | setting | meaning | default |
//! |---|---|---|
//! | `listen` | where a gateway listens | `127.0.0.1:8080` |
//! | `max_body` | bytes of a request that are read to be understood and replayed | [`IntakeLayer`](crate::call::IntakeLayer)'s |
//! | `upstreams.NAME.base_url` | where it is | needed |
//! | `….api_key` | sent as `Authorization: Bearer` | none |
//! | `….credential` | any other: `{ bearer }`, `{ header, secret }`, `{ query, secret }`, `{ from_caller }` | none |
//! | `….headers`, `….strip_prefix` | headers it always gets; what is cut off a caller's path | none |
//! | `….requests_per_minute`, `….tokens_per_minute` | its limits, kept by a [token bucket](crate::token_bucket) | none |
//! | `….max_concurrent` | calls at once, kept by a [bulkhead](crate::bulkhead) | none |
//! | `….prices.MODEL` | as `prices.MODEL`, at this upstream alone | – |
//! | `routes[].model` | what callers ask for; one `*` stands for any text, alone for all | needed |
//! | `routes[].targets[]` | `{ upstream, model, timeout, attempts, context, weight, fallback_on }`, see [`Target`](crate::fallback::Target) | needed |
//! | `routes[].order` | `listed`, `weighted`, `cheapest`, `fastest` | `listed` |
//! | `routes[].commit` | `head`, `first_content`, `end` | `first_content` |
//! | `aliases.NAME` | another name of a route | none |
//! | `secret_headers`, `secret_query` | more places where callers send secrets, which go to no upstream | the usual ones |
//! | `limits` | `headroom`, `strict`, `max_wait`, `max_waiters`, `assumed_output` of the token buckets | [`TokenBucketBuilder`](crate::token_bucket::TokenBucketBuilder)'s |
//! | `bulkhead` | `queue`, `max_wait` | [`BulkheadBuilder`](crate::bulkhead::BulkheadBuilder)'s |
//! | `breaker` | `preset` (`usual`, `fast`, `tolerant`), `failures`, `within`, `failure_rate`, `minimum_calls`, `window`, `open_for`, `open_at_most`, `probes`, `probe_successes`, `ramp`, `throttled` (`neutral`, `failure`, `opens`), `slow_after`, `slow_rate` (0.5), `observe_only` | [`Settings`](crate::circuit_breaker::Settings)' |
//! | `retry` | `preset` (`llm`, `http`), `attempts`, `base`, `cap`, `factor`, `jitter` (`full`, `equal`, `decorrelated`, `none`), `floor`, `patience`, `patience_with_another_target`, `max_time`, `slow_recovery`, `idempotency_key` and `attempt_header` (names of headers) | `llm` of [`RetryPolicy`](crate::retry::RetryPolicy) |
//! | `retry_budget` | `ratio`, `reserve`, one account an upstream | 0.2 and 10 |
//! | `timeout.total` | the whole call | 10 min, as the official clients have it |
//! | `timeout.head`, `timeout.first_content` | of one attempt | 30 s and 500 ms a 1 000 tokens, at most 120 s |
//! | `timeout.idle` | silence within a response | 30 s |
//! | `fallback` | `max_attempts`, `on` (names of classes), `hold_bytes`, `answer_bytes`, `tell_headers` | [`FallbackBuilder`](crate::fallback::FallbackBuilder)'s |
//! | `budgets[]` | `limit` (none: it only counts), `window` (`call`, `minute`, `hour`, `day`, `week`, `month`, `total`), `key` (`all`, `client`, `upstream`, `model`, `header:NAME`), `name`, `utc_offset` in minutes, `only_retries`, `marks` in percent | none |
//! | `cost` | `estimate_margin` in percent (in place of the bound by bytes), `framing`, `reference_allowance`, `unknown_input`, `unknown_output`, `output_cap`, `unreported` (`bound`, `seen`), `unpriced` (`refuse`, `free`), `patience`, `observe_only` | [`CostGuardBuilder`](crate::cost_guard::CostGuardBuilder)'s |
//! | `prices.MODEL` | `input_per_million`, `output_per_million`, `cached_per_million`, `cache_write_per_million`, `per_request` in dollars, `max_output` in tokens | none |
//! | `price_file` | `path` and `format` (`litellm`, `models_dev`) of a list behind `prices` | none |
//! | `alerts` | `enabled`, `success_warning`, `success_critical` (rates), `p99`, `fallbacks_an_hour`, `trips_an_hour`, `cost_growth` (a share), `cost_baseline` in dollars a call, `dearer` (a factor), `minimum` of samples, `hold` | [`Rules`](crate::monitor::Rules)' |
//! | `clients[]` | `name`, `key`, `models` of those who may call a gateway | none: no key is asked for |

mod alerts;
mod clients;
mod gates;
mod money;
mod retries;
mod sections;
mod stack;
mod tenants;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tower_layer::Layer;

pub use clients::{Client, Clients};
pub use retries::UpstreamPolicies;
pub use stack::{Stack, Stacked};
pub use tenants::Tenants;

use crate::config_error::ConfigError;
use crate::fallback::Routes;
use crate::fallback::config::{CredentialConfig, RouteConfig, UpstreamConfig};
use crate::monitor::{Monitor, MonitorBuilder};
use crate::reading::{self, Env};
use sections::{File, UpstreamSection};

/// A configuration that was read and checked. See the [module](crate::config).
///
/// ```
/// use seawall::Config;
///
/// let wrong = r#"{ "upstreams": {}, "routes": [], "timeout": { "idle": "soon" } }"#;
/// assert_eq!(Config::from_json(wrong, |_| None).unwrap_err().field(), "timeout.idle");
/// ```
#[derive(Clone)]
pub struct Config {
    file: Arc<File>,
    routes: Routes,
    clients: Clients,
}

impl Config {
    /// Reads JSON. `env` looks up what secrets refer to; give `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    ///
    /// Whatever is unknown, missing, of the wrong type or cannot work, by the path of the setting and the line where one is
    /// known. No error holds the value of a secret.
    pub fn from_json(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::check(reading::from_json(text)?, &env)
    }

    /// Reads TOML.
    ///
    /// # Errors
    ///
    /// As for [`from_json`](Self::from_json).
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::check(reading::from_toml(text)?, &env).map_err(|error| reading::in_toml(error, text))
    }

    fn check(file: File, env: Env<'_>) -> Result<Self, ConfigError> {
        let routes = routes(&file, env)?;
        let clients = Clients::of(&file.clients, env)?;
        let config = Self { file: Arc::new(file), routes, clients };
        // Built once for its errors alone.
        config.stack()?;
        Ok(config)
    }

    /// The recommended stack around an HTTP client, and its handles.
    ///
    /// The client's requests have a [`CallBody`](crate::call::CallBody), and its error must carry a refusal: put
    /// `.map_err(BoxError::from)` on it.
    ///
    /// # Errors
    ///
    /// A price file that can no longer be read.
    pub fn client<S: Clone>(&self, client: S) -> Result<(Stacked<S>, Stack), ConfigError> {
        let stack = self.stack()?;
        Ok((stack.layer(client), stack))
    }

    /// The recommended stack, with fresh state.
    ///
    /// # Errors
    ///
    /// A price file that can no longer be read.
    pub fn stack(&self) -> Result<Stack, ConfigError> {
        self.stack_with(self.monitor()?.build().map_err(|error| error.under("alerts"))?)
    }

    /// The same, with a monitor of your own: one of [`monitor`](Self::monitor) that tells somebody of its alerts, say.
    ///
    /// # Errors
    ///
    /// A price file that can no longer be read.
    pub fn stack_with(&self, monitor: Monitor) -> Result<Stack, ConfigError> {
        Stack::new(self, monitor, None)
    }

    /// A monitor that knows all targets and the alert rules of this configuration, to be built.
    ///
    /// # Errors
    ///
    /// `alerts.cost_baseline` is no amount.
    pub fn monitor(&self) -> Result<MonitorBuilder, ConfigError> {
        let rules = self.file.alerts.rules().map_err(|error| error.under("alerts"))?;
        let targets = self.file.routes.iter().flat_map(|route| {
            route.targets.iter().filter_map(move |target| {
                let own = (!route.model.contains('*')).then_some(route.model.as_str());
                Some((target.upstream(), target.model().or(own)?))
            })
        });
        Ok(Monitor::builder().targets(targets).rules(rules))
    }

    /// Where a gateway listens.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        self.file.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
    }

    /// How many bytes of a request are read to be understood and replayed: a larger one has no model that is known.
    #[must_use]
    pub fn max_body(&self) -> usize {
        self.file.max_body.unwrap_or(crate::call::intake::LIMIT)
    }

    /// Who may call a gateway.
    #[must_use]
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The routes.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The models that callers may ask for by name, in the order of the file.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.file.routes.iter().map(|route| route.model.as_str())
    }
}

/// Shows no secret.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("listen", &self.listen())
            .field("routes", &self.routes)
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

fn routes(file: &File, env: Env<'_>) -> Result<Routes, ConfigError> {
    let mut routes = Routes::builder();
    for (name, section) in &file.upstreams {
        let upstream = section.aimed()?.build(name, env).map_err(|error| section.renamed(error));
        routes = routes.upstream(upstream.map_err(|error| error.under(&format!("upstreams.{name}")))?);
    }
    for section in &file.routes {
        let route =
            RouteConfig { targets: section.targets.clone(), order: section.order, commit: section.commit };
        routes = routes.route(route.build(section.model.clone()));
    }
    for (name, model) in &file.aliases {
        routes = routes.alias(name.as_str(), model.as_str());
    }
    for name in &file.secret_query {
        routes = routes.secret_query(name);
    }
    for (at, name) in file.secret_headers.iter().enumerate() {
        let wrong = |_| ConfigError::new(format!("secret_headers[{at}]"), "is not the name of a header");
        routes = routes.secret_header(name.parse().map_err(wrong)?);
    }
    routes.build().map_err(|error| by_index(error, file))
}

/// Routes are known by their model; in the file they stand in a list.
fn by_index(error: ConfigError, file: &File) -> ConfigError {
    for (at, route) in file.routes.iter().enumerate().rev() {
        let rest = error.field().strip_prefix("routes.").and_then(|rest| rest.strip_prefix(&*route.model));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])) {
            return ConfigError::new(format!("routes[{at}]{rest}"), error.problem().to_owned());
        }
    }
    error
}

impl UpstreamSection {
    /// What is needed to send a request there.
    fn aimed(&self) -> Result<UpstreamConfig, ConfigError> {
        let credential = match (&self.api_key, &self.credential) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::new("credential", "must not stand beside an `api_key`"));
            }
            (Some(key), None) => {
                Some(CredentialConfig { bearer: Some(key.clone()), ..CredentialConfig::default() })
            }
            (None, credential) => credential.clone(),
        };
        Ok(UpstreamConfig {
            base_url: self.base_url.clone(),
            credential,
            strip_prefix: self.strip_prefix.clone(),
            headers: self.headers.clone(),
        })
    }

    /// An `api_key` is a credential, which the file does not say.
    fn renamed(&self, error: ConfigError) -> ConfigError {
        if self.api_key.is_some() && error.field().starts_with("credential") {
            return ConfigError::new("api_key", error.problem().to_owned());
        }
        error
    }

    /// Whether an upstream that denies its credential denies one of ours.
    fn has_own_credential(&self) -> bool {
        let callers = |credential: &CredentialConfig| credential.from_caller.is_some();
        !self.credential.as_ref().is_some_and(callers)
    }
}

#[cfg(test)]
mod tests;
