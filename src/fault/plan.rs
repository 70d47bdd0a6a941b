//! Which fault comes next: pure, and told what was drawn.

use std::collections::VecDeque;

use super::inject::Inject;
use crate::config_error::ConfigError;

/// What a whole is made of: rates are kept as integers, so that their sum is exact.
pub(super) const WHOLE: u64 = 1 << 32;

/// The script first, then chance.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) script: VecDeque<Inject>,
    pub(super) rates: Rates,
}

/// Faults, each with its part of [`WHOLE`]; never more than that in all.
#[derive(Debug, Default)]
pub(super) struct Rates(Vec<(u64, Inject)>);

impl Rates {
    /// # Errors
    ///
    /// A rate that is no share, or shares of more than a whole.
    pub(super) fn new(rates: impl IntoIterator<Item = (f64, Inject)>) -> Result<Self, ConfigError> {
        let mut left = WHOLE;
        let mut parts = Vec::new();
        for (rate, inject) in rates {
            if !(0.0..=1.0).contains(&rate) {
                return Err(ConfigError::new("rate", "must be a share, from 0 to 1"));
            }
            let part = part(rate);
            left = left
                .checked_sub(part)
                .ok_or_else(|| ConfigError::new("rate", "must be no more than 1 in the sum of all"))?;
            parts.push((part, inject));
        }
        Ok(Self(parts))
    }

    /// The fault at this place within [`WHOLE`].
    fn at(&self, mut drawn: u64) -> Option<&Inject> {
        self.0.iter().find_map(|(part, inject)| {
            if drawn < *part {
                return Some(inject);
            }
            drawn -= part;
            None
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^32")]
#[expect(clippy::cast_precision_loss, reason = "a power of two")]
fn part(rate: f64) -> u64 {
    // Down, so that thirds do not add up to more than a whole.
    (rate * WHOLE as f64).floor() as u64
}

impl Plan {
    /// The fault of the next call. A number is drawn only where there is something to draw for.
    pub(super) fn next(&mut self, draw: impl FnOnce() -> u64) -> Option<Inject> {
        let next = match self.script.pop_front() {
            Some(inject) => Some(inject),
            None if self.rates.0.is_empty() => None,
            None => self.rates.at(draw()).cloned(),
        };
        next.filter(Inject::is_fault)
    }
}
