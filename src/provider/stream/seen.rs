//! What a frame brought.

use std::ops::{BitOr, BitOrAssign, Sub};

/// What a frame of a body brought: a set of marks, as small as a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen(u8);

impl Seen {
    /// Nothing at all: the frame was empty.
    pub const NOTHING: Self = Self(0);
    /// Any byte: the upstream lives.
    pub const ALIVE: Self = Self(1);
    /// A part of the answer.
    pub const CONTENT: Self = Self(1 << 1);
    /// A report of used tokens.
    pub const USAGE: Self = Self(1 << 2);
    /// The end of the answer.
    pub const TERMINAL: Self = Self(1 << 3);
    /// An error.
    pub const ERROR: Self = Self(1 << 4);

    /// Whether all marks of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there was anything but signs of life.
    #[must_use]
    pub const fn is_news(self) -> bool {
        self.0 & !Self::ALIVE.0 != 0
    }

    /// Whether there was a part of the answer.
    #[must_use]
    pub const fn has_content(self) -> bool {
        self.contains(Self::CONTENT)
    }

    /// Whether there was a report of used tokens.
    #[must_use]
    pub const fn has_usage(self) -> bool {
        self.contains(Self::USAGE)
    }

    /// Whether the answer came to its end.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        self.contains(Self::TERMINAL)
    }

    /// Whether there was an error.
    #[must_use]
    pub const fn has_error(self) -> bool {
        self.contains(Self::ERROR)
    }
}

impl BitOr for Seen {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Seen {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Sub for Seen {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
