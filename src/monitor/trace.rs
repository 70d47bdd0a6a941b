//! Spans and events for `tracing`; nothing at all without that feature.

#[cfg(feature = "tracing")]
mod on;

#[cfg(feature = "tracing")]
pub(super) use on::{Trace, event};

/// What there is of a span without the feature.
#[cfg(not(feature = "tracing"))]
pub(super) struct Trace;

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "called as what there is with the feature")]
impl Trace {
    #[inline]
    pub(super) fn begin(_: super::gate::Scope, _: Option<&crate::call::Call>) -> Self {
        Self
    }

    #[inline]
    pub(super) fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }

    #[inline]
    pub(super) fn end(&self, _: crate::verdict::Class, _: Option<crate::refusal::RefusalKind>, _: [u32; 3]) {}
}

#[cfg(not(feature = "tracing"))]
#[inline]
pub(super) fn event(_: &super::Event<'_>) {}
