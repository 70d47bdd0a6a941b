//! The name of one of many states.

use std::borrow::Borrow;
use std::fmt;

use compact_str::CompactString;

/// Names one state of a keyed layer: an upstream, a model, a tenant.
///
/// Up to 24 bytes are kept in place, so that making, cloning and comparing a usual key allocates nothing.
///
/// A key that decides about money or limits must come from a verified identity. A header that any caller can set is a
/// way to spend somebody else's budget.
///
/// ```
/// use seawall::call::Key;
///
/// let key = Key::from("openai");
/// assert_eq!(key.as_str(), "openai");
/// assert_eq!(Key::from(42).as_str(), "42");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(CompactString);

impl Key {
    /// The key as text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether two texts are the same. Short ones, as most names are, are compared in place: the call of a function takes longer.
#[inline]
pub(crate) fn same_text(one: &[u8], other: &[u8]) -> bool {
    /// Two parts, of which each may have some of the other: together all of it.
    fn parts<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((text.first_chunk()?, text.last_chunk()?))
    }
    match one.len() {
        length if length != other.len() => false,
        0 => true,
        4..8 => parts::<4>(one) == parts::<4>(other),
        8..=16 => parts::<8>(one) == parts::<8>(other),
        _ => one == other,
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(CompactString::new(text))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(CompactString::from(text))
    }
}

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        let mut text = CompactString::const_new("");
        // Writing to a string cannot fail; 20 digits stay in place.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{number}"));
        Self(text)
    }
}

/// Hash and order are those of the text.
impl Borrow<str> for Key {
    #[inline]
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Key {
    #[inline]
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::same_text;

    #[test]
    fn texts_are_the_same_in_all_their_bytes_and_in_nothing_less() {
        let text: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let text = &text[..length];
            let copy = text.to_vec();
            assert!(same_text(text, &copy));
            for at in 0..length {
                let mut other = text.to_vec();
                other[at] = 0;
                assert!(!same_text(text, &other), "{length} bytes, of which the one at {at} differs");
                assert!(!same_text(text, &text[..at]), "the other is shorter");
            }
        }
    }
}
