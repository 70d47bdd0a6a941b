//! The map from a caller's model to ordered targets.

use std::fmt;
use std::sync::Arc;

use http::HeaderName;

use super::order::{Order, Set};
use super::target::{Target, TargetBuilder};
use crate::call::{Commit, Key, SecretPlaces, Upstream};
use crate::config_error::ConfigError;

/// A caller's model and the targets that can serve it, in order. See [`Routes`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Route {
    pub(super) pattern: Key,
    targets: Vec<TargetBuilder>,
    order: Order,
    commit: Commit,
}

impl Route {
    /// The route of this model. One `*` stands for any text: `gpt-*`, `*-mini`, or alone for every model and for none.
    pub fn to(model: impl Into<Key>) -> Self {
        Self {
            pattern: model.into(),
            targets: Vec::new(),
            order: Order::default(),
            commit: Commit::default(),
        }
    }

    /// The route of every call that no other route is for, also of one that names no model.
    pub fn default_route() -> Self {
        Self::to("*")
    }

    /// One more target.
    pub fn target(mut self, target: TargetBuilder) -> Self {
        self.targets.push(target);
        self
    }

    /// In which order they are asked. By default as listed.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// When an answer can no longer be replaced by another target's. By default at its first content.
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = commit;
        self
    }
}

/// The map from a caller's model to ordered targets. Cheap to clone.
///
/// A model is looked up by its exact name or alias, then by the pattern with the longest text before and after its `*`.
///
/// ```
/// use seawall::call::{Credential, Upstream};
/// use seawall::fallback::{Route, Routes, Target};
///
/// # fn main() -> Result<(), seawall::ConfigError> {
/// let routes = Routes::builder()
///     .upstream(Upstream::new("openai", "https://api.openai.com/v1")?.credential(Credential::bearer("secret")?))
///     .upstream(Upstream::new("groq", "https://api.groq.com/openai/v1")?)
///     .route(Route::to("large").target(Target::at("openai").model("gpt-5")).target(Target::at("groq").model("gpt-oss-120b")))
///     .route(Route::to("gpt-*").target(Target::at("openai")))
///     .alias("best", "large")
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Routes(Arc<Table>);

/// What was built.
pub(super) struct Table {
    pub(super) routes: Vec<Built>,
    /// Sorted by name.
    exact: Vec<(Key, usize)>,
    /// The most telling first.
    patterns: Vec<(Key, usize)>,
    fallback: Option<usize>,
    pub(super) secrets: SecretPlaces,
}

/// A route whose targets are found.
pub(super) struct Built {
    pub(super) targets: Vec<Arc<Target>>,
    pub(super) all: Set,
    pub(super) order: Order,
    pub(super) commit: Commit,
    /// The smallest context that is known of a target; what is no larger fits everywhere.
    pub(super) least_context: u64,
    /// Whether it must be known when a target was asked.
    pub(super) timed: bool,
}

impl Routes {
    /// Without any route.
    pub fn builder() -> RoutesBuilder {
        RoutesBuilder {
            upstreams: Vec::new(),
            routes: Vec::new(),
            aliases: Vec::new(),
            secrets: SecretPlaces::default(),
        }
    }

    /// The targets of this model in their listed order; none if no route is for it.
    #[must_use]
    pub fn targets(&self, model: Option<&str>) -> &[Arc<Target>] {
        self.0.find(model).and_then(|at| self.0.routes.get(at)).map_or(&[], |route| &route.targets)
    }

    #[inline]
    pub(super) fn table(&self) -> &Table {
        &self.0
    }

    /// Takes over what was learned of targets that are the same in another table.
    pub(super) fn adopt(&self, old: &Self) {
        let olds: Vec<_> = old.0.routes.iter().flat_map(|route| &route.targets).collect();
        for target in self.0.routes.iter().flat_map(|route| &route.targets) {
            if let Some(same) = olds.iter().find(|old| old.is_same(target)) {
                target.pace.adopt(&same.pace);
            }
        }
    }
}

impl Table {
    /// The route of this model.
    #[inline]
    pub(super) fn find(&self, model: Option<&(impl AsRef<str> + ?Sized)>) -> Option<usize> {
        match model {
            Some(model) if !self.is_for_all() => self.find_named(model.as_ref()),
            _ => self.fallback,
        }
    }

    /// Whether there is no route but the default one.
    #[inline]
    fn is_for_all(&self) -> bool {
        self.exact.is_empty() && self.patterns.is_empty()
    }

    fn find_named(&self, model: &str) -> Option<usize> {
        if let Ok(at) = self.exact.binary_search_by(|(name, _)| name.as_str().cmp(model)) {
            return self.exact.get(at).map(|(_, route)| *route);
        }
        let pattern = self.patterns.iter().find(|(pattern, _)| matches(pattern.as_str(), model));
        pattern.map(|(_, route)| *route).or(self.fallback)
    }
}

fn matches(pattern: &str, model: &str) -> bool {
    pattern
        .split_once('*')
        .is_some_and(|(start, end)| model.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)))
}

/// Builds [`Routes`].
#[derive(Clone, Debug)]
#[must_use]
pub struct RoutesBuilder {
    upstreams: Vec<Upstream>,
    routes: Vec<Route>,
    aliases: Vec<(Key, Key)>,
    secrets: SecretPlaces,
}

impl RoutesBuilder {
    /// One more upstream.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// An upstream that is only a name, for request types that know themselves what to do with it. Over HTTP its host does
    /// not exist.
    ///
    /// # Errors
    ///
    /// `name` is empty.
    pub fn named(self, name: impl Into<Key>) -> Result<Self, ConfigError> {
        Ok(self.upstream(Upstream::new(name, "http://upstream.invalid")?))
    }

    /// One more route.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Another name for a model that has a route of exactly that name, or for another alias.
    pub fn alias(mut self, name: impl Into<Key>, model: impl Into<Key>) -> Self {
        self.aliases.push((name.into(), model.into()));
        self
    }

    /// One more header in which callers send secrets: it goes to no upstream. The headers of all credentials and the
    /// usual ones are known ([`SecretPlaces`]).
    pub fn secret_header(mut self, name: HeaderName) -> Self {
        self.secrets = self.secrets.and_header(name);
        self
    }

    /// The same for a key of the query.
    pub fn secret_query(mut self, name: &str) -> Self {
        self.secrets = self.secrets.and_query(name);
        self
    }

    /// The map.
    ///
    /// # Errors
    ///
    /// Names the entry: an upstream that is not known or defined twice, a route without targets, defined twice, or with
    /// more than one `*`; two targets of a route that are the same, more than 64 of them, a zero; an alias of nothing, in a
    /// circle, or in the place of a route.
    pub fn build(self) -> Result<Routes, ConfigError> {
        let mut upstreams: Vec<Arc<Upstream>> = Vec::with_capacity(self.upstreams.len());
        let mut secrets = self.secrets;
        for upstream in self.upstreams {
            if upstreams.iter().any(|known| known.name() == upstream.name()) {
                return Err(ConfigError::new(format!("upstreams.{}", upstream.name()), "is defined twice"));
            }
            secrets = secrets.and_of(upstream.own_credential());
            upstreams.push(Arc::new(upstream));
        }
        let mut table =
            Table { routes: Vec::new(), exact: Vec::new(), patterns: Vec::new(), fallback: None, secrets };
        for route in &self.routes {
            let path = format!("routes.{}", route.pattern);
            table.add(route, &upstreams).map_err(|error| error.under(&path))?;
        }
        for (name, model) in &self.aliases {
            let target = resolve(&self.aliases, model, &table.exact)
                .map_err(|problem| ConfigError::new(format!("aliases.{name}"), problem))?;
            let taken = table.exact.iter().any(|(known, _)| known == name);
            if taken {
                return Err(ConfigError::new(
                    format!("aliases.{name}"),
                    "is also the name of a route or alias",
                ));
            }
            table.exact.push((name.clone(), target));
        }
        table.exact.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        // The more of its text is given, the more telling a pattern is.
        table.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.as_str().len()));
        Ok(Routes(Arc::new(table)))
    }
}

/// The route that an alias leads to.
fn resolve(aliases: &[(Key, Key)], model: &Key, routes: &[(Key, usize)]) -> Result<usize, &'static str> {
    let mut model = model;
    for _ in 0..=aliases.len() {
        // A route goes before an alias of the same name, which is an error of its own.
        if let Some((_, route)) = routes.iter().find(|(name, _)| name == model) {
            return Ok(*route);
        }
        let Some((_, next)) = aliases.iter().find(|(name, _)| name == model) else {
            return Err("leads to no route");
        };
        model = next;
    }
    Err("leads in a circle")
}

impl Table {
    fn add(&mut self, route: &Route, upstreams: &[Arc<Upstream>]) -> Result<(), ConfigError> {
        let pattern = route.pattern.as_str();
        if pattern.is_empty() {
            return Err(ConfigError::new("", "has no name"));
        }
        if pattern.matches('*').count() > 1 {
            return Err(ConfigError::new("", "has more than one `*`"));
        }
        let known = self.exact.iter().chain(&self.patterns).any(|(name, _)| *name == route.pattern);
        if known || (pattern == "*" && self.fallback.is_some()) {
            return Err(ConfigError::new("", "is defined twice"));
        }
        let exact = (!pattern.contains('*')).then_some(&route.pattern);
        let targets = targets(&route.targets, exact, upstreams)?;
        let least_context = targets.iter().filter_map(|target| target.context()).min().unwrap_or(u64::MAX);
        let timed = route.order == Order::Fastest || targets.iter().any(|target| target.timeout().is_some());
        let all = Set::first(targets.len());
        let built = Built { targets, all, order: route.order, commit: route.commit, least_context, timed };
        let at = self.routes.len();
        self.routes.push(built);
        match exact {
            Some(name) => self.exact.push((name.clone(), at)),
            None if pattern == "*" => self.fallback = Some(at),
            None => self.patterns.push((route.pattern.clone(), at)),
        }
        Ok(())
    }
}

fn targets(
    builders: &[TargetBuilder],
    route: Option<&Key>,
    upstreams: &[Arc<Upstream>],
) -> Result<Vec<Arc<Target>>, ConfigError> {
    if builders.is_empty() {
        return Err(ConfigError::new("targets", "must not be empty"));
    }
    if builders.len() > Set::MOST {
        return Err(ConfigError::new("targets", "are more than 64"));
    }
    let mut targets: Vec<Arc<Target>> = Vec::with_capacity(builders.len());
    for (at, builder) in builders.iter().enumerate() {
        let path = format!("targets[{at}]");
        let upstream = upstreams.iter().find(|known| *known.name() == builder.upstream);
        let target = match upstream {
            Some(upstream) => builder.build(upstream.clone(), route),
            None => Err(ConfigError::new("upstream", "is not defined")),
        };
        let target = target.map_err(|error| error.under(&path))?;
        if let Some(same) = targets.iter().position(|known| known.is_same(&target)) {
            return Err(ConfigError::new(path, format!("is the same as targets[{same}]")));
        }
        targets.push(Arc::new(target));
    }
    Ok(targets)
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.0;
        let names = table.exact.iter().chain(&table.patterns).map(|(name, at)| (name.as_str(), *at));
        let default = table.fallback.map(|at| ("*", at));
        let targets = |at: usize| {
            let targets = table.routes.get(at).map_or(&[][..], |route| &route.targets);
            targets.iter().map(|target| target.upstream().name().as_str()).collect::<Vec<_>>()
        };
        f.debug_map().entries(names.chain(default).map(|(name, at)| (name, targets(at)))).finish()
    }
}

#[cfg(test)]
mod tests;
