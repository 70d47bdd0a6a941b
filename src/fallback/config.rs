//! Routes from a file.

use std::collections::BTreeMap;

use http::HeaderName;
use serde::Deserialize;

use super::{Order, Route, Routes, RoutesBuilder, Target, Triggers};
use crate::call::{Commit, Credential, Upstream};
use crate::config_error::ConfigError;
use crate::reading::{self, Env, Time, secret};
use crate::verdict::Class;

/// Routes as a file says them, in JSON or TOML.
///
/// ```
/// use seawall::fallback::Routes;
///
/// let config = r#"{
///     "upstreams": {
///         "openai": { "base_url": "https://api.openai.com/v1", "credential": { "bearer": "env:OPENAI_API_KEY" } },
///         "local": { "base_url": "http://[::1]:8080" }
///     },
///     "routes": {
///         "large": {
///             "targets": [
///                 { "upstream": "openai", "model": "gpt-5", "timeout": "30s", "context": 400000 },
///                 { "upstream": "local", "fallback_on": ["transient", "throttled", "policy"] }
///             ]
///         },
///         "*": { "order": "weighted", "commit": "end", "targets": [{ "upstream": "local", "weight": 2 }] }
///     },
///     "aliases": { "best": "large" }
/// }"#;
/// let routes = Routes::from_json(config, |name| (name == "OPENAI_API_KEY").then(|| "secret".to_owned()))?;
/// assert_eq!(routes.targets(Some("best")).len(), 2);
/// # Ok::<(), seawall::ConfigError>(())
/// ```
///
/// A secret is written as it is, or better as `env:NAME`: what the lookup gives for that name. A credential is
/// `{ bearer }`, `{ header, secret }`, `{ query, secret }` or `{ from_caller }` with the name of a header. Times are
/// `250ms`, `30s` or `2m`. `fallback_on` names exactly the classes (`throttled`, `transient`, `stalled`, `exhausted`,
/// `denied`, `unfit`, `invalid`, `refused`) and `policy`.
impl Routes {
    /// Routes from JSON. `env` looks up what secrets refer to; give `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    ///
    /// Names the entry, as [`RoutesBuilder::build`] does; what is unknown, missing or of the wrong type too. No error holds
    /// the value of a setting.
    pub fn from_json(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        reading::from_json::<Config>(text)?.build(&env)
    }

    /// The same from TOML.
    ///
    /// # Errors
    ///
    /// As for [`from_json`](Self::from_json).
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let config: Config = reading::from_toml(text)?;
        config.build(&env).map_err(|error| reading::in_toml(error, text))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    upstreams: BTreeMap<String, UpstreamConfig>,
    routes: BTreeMap<String, RouteConfig>,
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    #[serde(default)]
    secret_headers: Vec<String>,
    #[serde(default)]
    secret_query: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamConfig {
    pub(crate) base_url: String,
    pub(crate) credential: Option<CredentialConfig>,
    pub(crate) strip_prefix: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialConfig {
    pub(crate) bearer: Option<String>,
    pub(crate) header: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) from_caller: Option<String>,
    pub(crate) secret: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteConfig {
    pub(crate) targets: Vec<TargetConfig>,
    #[serde(default)]
    pub(crate) order: OrderConfig,
    #[serde(default)]
    pub(crate) commit: CommitConfig,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetConfig {
    upstream: String,
    model: Option<String>,
    timeout: Option<Time>,
    attempts: Option<u32>,
    context: Option<u64>,
    weight: Option<u32>,
    fallback_on: Option<Vec<TriggerConfig>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderConfig {
    #[default]
    Listed,
    Weighted,
    Cheapest,
    Fastest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommitConfig {
    Head,
    #[default]
    FirstContent,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TriggerConfig {
    Throttled,
    Transient,
    Stalled,
    Exhausted,
    Denied,
    Unfit,
    Invalid,
    Refused,
    Policy,
}

impl Config {
    fn build(self, env: Env<'_>) -> Result<Routes, ConfigError> {
        let mut routes = Routes::builder();
        for (name, config) in self.upstreams {
            let path = format!("upstreams.{name}");
            routes = routes.upstream(config.build(&name, env).map_err(|error| error.under(&path))?);
        }
        for (model, route) in self.routes {
            routes = routes.route(route.build(model));
        }
        for (name, model) in self.aliases {
            routes = routes.alias(name, model);
        }
        for name in &self.secret_query {
            routes = routes.secret_query(name);
        }
        with_headers(routes, &self.secret_headers)?.build()
    }
}

fn with_headers(mut routes: RoutesBuilder, names: &[String]) -> Result<RoutesBuilder, ConfigError> {
    for (at, name) in names.iter().enumerate() {
        let wrong = |_| ConfigError::new(format!("secret_headers[{at}]"), "is not the name of a header");
        routes = routes.secret_header(name.parse::<HeaderName>().map_err(wrong)?);
    }
    Ok(routes)
}

impl UpstreamConfig {
    pub(crate) fn build(self, name: &str, env: Env<'_>) -> Result<Upstream, ConfigError> {
        let mut upstream = Upstream::new(name, &self.base_url)?;
        if let Some(credential) = self.credential {
            upstream = upstream.credential(credential.build(env)?);
        }
        if let Some(prefix) = &self.strip_prefix {
            upstream = upstream.strip_prefix(prefix)?;
        }
        for (name, value) in &self.headers {
            let value = secret(&format!("headers.{name}"), value, env)?;
            upstream = upstream.header(name, &value)?;
        }
        Ok(upstream)
    }
}

impl CredentialConfig {
    fn build(self, env: Env<'_>) -> Result<Credential, ConfigError> {
        let own = |field: &'static str, value: &str| secret(&format!("credential.{field}"), value, env);
        match (self.bearer, self.header, self.query, self.from_caller, self.secret) {
            (Some(token), None, None, None, None) => Credential::bearer(&own("bearer", &token)?),
            (None, Some(name), None, None, Some(secret)) => {
                Credential::header(&name, &own("secret", &secret)?)
            }
            (None, None, Some(name), None, Some(secret)) => {
                Credential::query(&name, &own("secret", &secret)?)
            }
            (None, None, None, Some(name), None) => {
                let wrong = |_| ConfigError::new("credential.from_caller", "is not the name of a header");
                Ok(Credential::from_caller(name.parse().map_err(wrong)?))
            }
            _ => Err(ConfigError::new(
                "credential",
                "must be one of `bearer`, `header` with `secret`, `query` with `secret`, and `from_caller`",
            )),
        }
    }
}

impl RouteConfig {
    pub(crate) fn build(self, model: String) -> Route {
        let order = match self.order {
            OrderConfig::Listed => Order::Listed,
            OrderConfig::Weighted => Order::Weighted,
            OrderConfig::Cheapest => Order::Cheapest,
            OrderConfig::Fastest => Order::Fastest,
        };
        let commit = match self.commit {
            CommitConfig::Head => Commit::Head,
            CommitConfig::FirstContent => Commit::FirstContent,
            CommitConfig::End => Commit::End,
        };
        let route = Route::to(model).order(order).commit(commit);
        self.targets.into_iter().fold(route, TargetConfig::add)
    }
}

impl TargetConfig {
    pub(crate) fn upstream(&self) -> &str {
        &self.upstream
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn add(route: Route, config: Self) -> Route {
        let mut target = Target::at(config.upstream);
        if let Some(model) = config.model {
            target = target.model(model);
        }
        if let Some(Time(timeout)) = config.timeout {
            target = target.timeout(timeout);
        }
        if let Some(attempts) = config.attempts {
            target = target.attempts(attempts);
        }
        if let Some(context) = config.context {
            target = target.context(context);
        }
        if let Some(weight) = config.weight {
            target = target.weight(weight);
        }
        if let Some(on) = config.fallback_on {
            target = target.fallback_on(on.into_iter().fold(Triggers::none(), TriggerConfig::add));
        }
        route.target(target)
    }
}

impl TriggerConfig {
    pub(crate) fn add(triggers: Triggers, config: Self) -> Triggers {
        triggers.on(match config {
            Self::Throttled => Class::Throttled,
            Self::Transient => Class::Transient,
            Self::Stalled => Class::Stalled,
            Self::Exhausted => Class::Exhausted,
            Self::Denied => Class::Denied,
            Self::Unfit => Class::Unfit,
            Self::Invalid => Class::Invalid,
            Self::Refused => Class::Refused,
            Self::Policy => return triggers.on_policy(),
        })
    }
}

#[cfg(test)]
mod tests;
