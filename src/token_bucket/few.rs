//! One value a dimension: up to three in place, so that usual requests allocate nothing and move little.

use std::ops::{Deref, DerefMut};

/// As many values as there are dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Few<T> {
    One([T; 1]),
    Two([T; 2]),
    Three([T; 3]),
    More(Box<[T]>),
}

impl<T: Copy> Few<T> {
    /// At least one: none is one too.
    #[inline]
    pub(super) fn from_fn(len: usize, mut value: impl FnMut(usize) -> T) -> Self {
        match len {
            0 | 1 => Self::One([value(0)]),
            2 => Self::Two([value(0), value(1)]),
            3 => Self::Three([value(0), value(1), value(2)]),
            more => Self::More((0..more).map(value).collect()),
        }
    }

    /// The same values in another place: whoever lends that one leaves the first in registers.
    #[inline]
    pub(super) fn elsewhere(self) -> Self {
        match self {
            Self::One([a]) => Self::One([a]),
            Self::Two([a, b]) => Self::Two([a, b]),
            Self::Three([a, b, c]) => Self::Three([a, b, c]),
            Self::More(more) => Self::More(more),
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::One(values) => values,
            Self::Two(values) => values,
            Self::Three(values) => values,
            Self::More(values) => values,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(values) => values,
            Self::Two(values) => values,
            Self::Three(values) => values,
            Self::More(values) => values,
        }
    }
}
