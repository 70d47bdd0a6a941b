//! What a request costs.

use std::fmt;

use crate::call::{Blind, Call, Describe, Described, Read};
use crate::deadline::Deadline;

/// A number of units. What is no number of units (`NaN`, a negative or an infinite number) is more than any bucket holds,
/// and the request is refused as too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    /// More than any bucket holds.
    pub const UNBEARABLE: Self = Self(u64::MAX);

    /// Units.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }
}

impl From<u64> for Cost {
    fn from(units: u64) -> Self {
        Self(units)
    }
}

impl From<u32> for Cost {
    fn from(units: u32) -> Self {
        Self(units.into())
    }
}

impl From<usize> for Cost {
    fn from(units: usize) -> Self {
        Self(u64::try_from(units).unwrap_or(u64::MAX))
    }
}

/// Fractions are rounded up.
impl From<f64> for Cost {
    fn from(units: f64) -> Self {
        if units.is_finite() && units >= 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates, and is not negative"
            )]
            Self(units.ceil() as u64)
        } else {
            Self::UNBEARABLE
        }
    }
}

/// Reads what a request costs: its description, and the closures that were given to the builder.
pub trait ReadCosts<Req>: sealed::Sealed {
    #[doc(hidden)]
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call>;
    #[doc(hidden)]
    fn deadline(&self, request: &Req) -> Option<Deadline>;
    /// Fills in the costs that closures know.
    #[doc(hidden)]
    fn fill(&self, request: &Req, costs: &mut [u64]);
}

impl<Req: Describe> ReadCosts<Req> for Described {
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        request.call()
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        request.deadline()
    }

    #[inline]
    fn fill(&self, _request: &Req, _costs: &mut [u64]) {}
}

impl<Req> ReadCosts<Req> for Blind {
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        Read::call(self, request)
    }

    fn deadline(&self, _request: &Req) -> Option<Deadline> {
        None
    }

    #[inline]
    fn fill(&self, _request: &Req, _costs: &mut [u64]) {}
}

/// A reader with one closure more.
#[derive(Clone, Copy)]
pub struct With<R, F> {
    pub(super) rest: R,
    pub(super) dimension: usize,
    pub(super) cost: F,
}

impl<Req, R, F, N> ReadCosts<Req> for With<R, F>
where
    R: ReadCosts<Req>,
    F: Fn(&Req) -> N,
    N: Into<Cost>,
{
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        self.rest.call(request)
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        self.rest.deadline(request)
    }

    fn fill(&self, request: &Req, costs: &mut [u64]) {
        self.rest.fill(request, costs);
        if let Some(cost) = costs.get_mut(self.dimension) {
            *cost = (self.cost)(request).into().units();
        }
    }
}

impl<R: fmt::Debug, F> fmt::Debug for With<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("With")
            .field("rest", &self.rest)
            .field("dimension", &self.dimension)
            .finish_non_exhaustive()
    }
}

/// The tokens that a call is taken to need: what goes in, and what may come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Need {
    /// Of a call; `assumed` output tokens where it does not bound them.
    pub(super) fn of(call: Option<&Call>, assumed: u64) -> Self {
        let Some(call) = call else { return Self { input: 0, output: assumed } };
        let choices = u64::from(call.choices.unwrap_or(1).max(1));
        Self {
            input: call.estimate.map_or(0, |estimate| estimate.input_tokens),
            output: call.output_bound.unwrap_or(assumed).saturating_mul(choices),
        }
    }

    pub(super) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Described {}
    impl Sealed for super::Blind {}
    impl<R, F> Sealed for super::With<R, F> {}
}
