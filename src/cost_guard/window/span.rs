//! A part of time.

/// From when until when, by what [`Window::instant`](super::Window::instant) gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    from: i64,
    until: i64,
}

impl Span {
    pub(crate) const NEVER: Self = Self::new(0, 0);

    pub(super) const fn new(from: i64, until: i64) -> Self {
        Self { from, until }
    }

    #[inline]
    pub(crate) const fn holds(self, at: i64) -> bool {
        self.from <= at && at < self.until
    }
}
