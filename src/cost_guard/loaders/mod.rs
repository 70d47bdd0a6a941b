//! Readers of public price lists.
//!
//! Both take the file's bytes, so that where it comes from, and how often, is the caller's business. What they do not
//! know they leave out and count: a price list grows new fields every week, and none of them may stop a reload. What
//! looks like a price and is none (−1 for "varies", a text, zero for "not known") never becomes a price of zero: the
//! model then has no price, and a guard that refuses unknown prices refuses it.

mod litellm;
mod models_dev;
#[cfg(all(test, not(seawall_loom)))]
mod tests;

use std::error::Error;
use std::fmt;

use serde_json::Value;

pub use litellm::litellm;
pub use models_dev::models_dev;

use crate::money::{MoneyError, Rate};

/// A list beyond this is refused: the largest known one has three megabytes.
pub const MOST_BYTES: usize = 32 * 1024 * 1024;

/// What became of a list's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Models that have a price now.
    pub priced: usize,
    /// Other names of such models.
    pub aliases: usize,
    /// Entries without a price by token: not every model is billed so.
    pub unpriced: usize,
    /// Entries of a chat model with prices of zero. Free or not known, the list does not say: they get no price.
    pub zero: usize,
    /// Entries with a price that cannot be: negative, or no number. The first few by name.
    pub invalid: Vec<String>,
}

impl LoadReport {
    fn note_invalid(&mut self, name: &str) {
        const MOST_NAMES: usize = 50;
        if self.invalid.len() < MOST_NAMES {
            self.invalid.push(name.chars().take(100).collect());
        }
    }
}

/// Why a list could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// It is larger than [`MOST_BYTES`].
    TooLarge(usize),
    /// It is no complete JSON.
    Json(serde_json::Error),
    /// It is JSON of another shape.
    Shape(&'static str),
    /// No entry has a price.
    NoPrices,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => {
                write!(f, "the price list has {bytes} bytes, and at most {MOST_BYTES} are read")
            }
            Self::Json(_) => f.write_str("the price list is not complete JSON"),
            Self::Shape(what) => write!(f, "the price list is of another shape: {what}"),
            Self::NoPrices => f.write_str("no entry of the price list has a price"),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}

fn parse(file: &[u8]) -> Result<Value, LoadError> {
    if file.len() > MOST_BYTES {
        return Err(LoadError::TooLarge(file.len()));
    }
    serde_json::from_slice(file).map_err(LoadError::Json)
}

/// A price as JSON has it. The number's shortest decimal is what the list's author wrote.
fn rate(value: &Value, parse: fn(&str) -> Result<Rate, MoneyError>) -> Result<Rate, MoneyError> {
    match value {
        Value::Number(number) => parse(&number.to_string()),
        Value::String(text) => parse(text),
        _ => Err(MoneyError::NotANumber),
    }
}

/// A count, which some lists write as a float.
fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    let whole =
        |number: f64| (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole)).filter(|&count| count > 0)
}
