//! How many tokens a text may make.
//!
//! [`estimate`] weighs characters by script: letters, digits, punctuation and each kind of alphabet make tokens of
//! different length. Against the o200k vocabulary of current models it is within about a fifth for European languages,
//! Korean, Chinese, Japanese, source code, Markdown and JSON, and within a few per cent for most of them; a third to two
//! thirds too high for Cyrillic. Dividing characters by four, the usual rule, halves Chinese, Japanese and Korean, and is
//! a third of the truth for base64. It reads gigabytes a second and allocates nothing.
//!
//! Vocabularies differ between models, and the same text can make half as many tokens again in another one. [`Ratios`]
//! learns by how much from the usage that each model reports. The feature `tokenizer` counts exactly where a vocabulary is
//! public, much slower.

#[cfg(feature = "tokenizer")]
mod exact;
mod ratios;
mod weight;

#[cfg(feature = "tokenizer")]
pub use exact::{Vocabulary, count};
pub use ratios::Ratios;
pub(crate) use weight::{TOKEN, to_tokens, weigh, weigh_json};

/// An estimate of the tokens that a text makes; never a bound.
///
/// ```
/// use seawall::call::tokens;
///
/// assert_eq!(tokens::estimate("The quick brown fox jumps over the lazy dog."), 9);
/// assert_eq!(tokens::estimate("今日は天気がいいですね。"), 9);
/// assert_eq!(tokens::estimate(""), 0);
/// ```
#[must_use]
pub fn estimate(text: &str) -> u64 {
    to_tokens(weigh(text.as_bytes()))
}
