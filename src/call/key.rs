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
