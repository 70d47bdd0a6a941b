//! What a permit of the cost guard goes by when it is settled.

use std::sync::Arc;

use crate::call::Key;
use crate::cost_guard::bound::Tokens;
use crate::cost_guard::price::{Plain, Tariff};

/// What it will be charged by. Plain fields too: see [`Charge`](super::settle::Charge).
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) by: By,
    /// The prices at which it was admitted.
    pub(super) plain: Plain,
    /// The bounds on its input and output.
    pub(super) bounds: [u32; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// No price is known.
    Nothing,
    /// The price of each class.
    Class,
    /// What the permit has beside its terms.
    Rare,
}

impl Terms {
    pub(super) const NOTHING: Self = Self { by: By::Nothing, plain: Plain::FREE, bounds: [0; 2] };

    /// `by_class`: the price depends on nothing else.
    #[inline]
    pub(super) fn of(plain: &Plain, by_class: bool, tokens: Tokens) -> Self {
        match (u32::try_from(tokens.input), u32::try_from(tokens.output)) {
            (Ok(input), Ok(output)) if by_class => {
                Self { by: By::Class, plain: *plain, bounds: [input, output] }
            }
            _ => Self { by: By::Rare, plain: *plain, bounds: [0; 2] },
        }
    }
}

/// What few permits have: prices by tier or hour, more tokens than can be said in short, and somebody who listens.
pub(super) struct Rare {
    /// `None`: the price is that of the terms.
    pub(super) tariff: Option<Arc<Tariff>>,
    pub(super) tokens: Tokens,
    pub(super) service_tier: Option<Key>,
    pub(super) hour: Option<(u8, u16)>,
    pub(super) upstream: Option<Key>,
    pub(super) model: Option<Key>,
    pub(super) extra: bool,
}
