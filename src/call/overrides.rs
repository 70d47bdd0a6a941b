//! What one call says about its targets itself.

use crate::call::Key;

/// What one call says about its targets itself: an extension of the request, read by the fallback.
///
/// Targets are named `upstream` or `upstream/model`.
///
/// ```
/// use seawall::call::Overrides;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Overrides::new().only(["azure"]).no_fallback());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Overrides {
    only: Option<Vec<Key>>,
    first: Vec<Key>,
    no_fallback: bool,
}

impl Overrides {
    /// Nothing but what the route says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these targets of the route may serve this call; none of them is none at all.
    pub fn only<K: Into<Key>>(mut self, targets: impl IntoIterator<Item = K>) -> Self {
        self.only = Some(targets.into_iter().map(Into::into).collect());
        self
    }

    /// These targets of the route first, in this order; then the others in the route's order.
    pub fn first<K: Into<Key>>(mut self, targets: impl IntoIterator<Item = K>) -> Self {
        self.first = targets.into_iter().map(Into::into).collect();
        self
    }

    /// One target only: no other is asked after it.
    pub fn no_fallback(mut self) -> Self {
        self.no_fallback = true;
        self
    }

    /// Whether this target may serve.
    pub(crate) fn allows(&self, upstream: &Key, model: Option<&Key>) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| is_named(name, upstream, model)))
    }

    /// Its place among those that come first.
    pub(crate) fn place(&self, upstream: &Key, model: Option<&Key>) -> Option<usize> {
        self.first.iter().position(|name| is_named(name, upstream, model))
    }

    /// Whether an order was given.
    pub(crate) fn orders(&self) -> bool {
        !self.first.is_empty()
    }

    pub(crate) fn is_single(&self) -> bool {
        self.no_fallback
    }
}

fn is_named(name: &Key, upstream: &Key, model: Option<&Key>) -> bool {
    name == upstream
        || model.is_some_and(|model| {
            let rest = name.as_str().strip_prefix(upstream.as_str());
            rest.and_then(|rest| rest.strip_prefix('/')) == Some(model.as_str())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_by_upstream_or_with_their_model() {
        let (upstream, model) = (Key::from("azure"), Key::from("org/large"));
        let allows = |name: &str| Overrides::new().only([name]).allows(&upstream, Some(&model));
        assert!(allows("azure") && allows("azure/org/large"));
        assert!(!allows("azure/") && !allows("azure/org") && !allows("azurelarge") && !allows("groq"));
        assert!(Overrides::new().allows(&upstream, None));
        assert!(!Overrides::new().only::<Key>([]).allows(&upstream, None), "an empty list allows none");
        assert_eq!(Overrides::new().first(["groq", "azure"]).place(&upstream, None), Some(1));
    }
}
