//! What is wrong with a setting.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A setting that cannot work, found when a layer, a route or an upstream is built; never at run time.
///
/// It names the setting by its path, as a builder or a configuration file spells it: `max_attempts`,
/// `upstreams.primary.base_url`. Its text never holds the value of a secret.
///
/// ```
/// use seawall::ConfigError;
///
/// let error = ConfigError::new("base_url", "is not an absolute URL of http or https");
/// assert_eq!(error.field(), "base_url");
/// assert_eq!(error.under("upstreams.primary").field(), "upstreams.primary.base_url");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    field: Cow<'static, str>,
    problem: Cow<'static, str>,
    /// Zero: not known.
    line: usize,
}

impl ConfigError {
    /// A problem with the setting at this path. The problem completes the sentence "`field`: …": `must not be zero`.
    #[must_use]
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { field: field.into(), problem: problem.into(), line: 0 }
    }

    /// The same problem of a setting that is part of a larger one: `base_url` under `upstreams.primary` becomes
    /// `upstreams.primary.base_url`, and `[2].model` under `targets` becomes `targets[2].model`.
    #[must_use]
    pub fn under(mut self, parent: &str) -> Self {
        if parent.is_empty() {
            return self;
        }
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{parent}{dot}{}", self.field).into();
        self
    }

    /// The same problem, found in this line of a file, counted from 1; zero where no line is known.
    #[must_use]
    pub const fn at_line(mut self, line: usize) -> Self {
        self.line = line;
        self
    }

    /// The line of the file that the setting stands in, counted from 1, where one is known.
    #[must_use]
    pub const fn line(&self) -> Option<usize> {
        if self.line == 0 { None } else { Some(self.line) }
    }

    /// The path of the setting.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line() {
            write!(f, "line {line}: ")?;
        }
        if self.field.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigError")
            .field("field", &self.field)
            .field("problem", &self.problem)
            .field("line", &self.line())
            .finish()
    }
}

impl Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::ConfigError;

    #[test]
    fn it_names_the_field_and_says_what_is_wrong() {
        let error = ConfigError::new("window", "must not be zero");
        assert_eq!(error.to_string(), "window: must not be zero");
        assert_eq!(error.field(), "window");
    }

    #[test]
    fn it_says_the_line_where_one_is_known() {
        let error = ConfigError::new("window", "must not be zero");
        assert_eq!((error.line(), error.clone().at_line(0).line()), (None, None));
        assert_eq!(error.at_line(7).to_string(), "line 7: window: must not be zero");
        assert_eq!(ConfigError::new("", "is not TOML").at_line(2).to_string(), "line 2: is not TOML");
    }

    #[test]
    fn a_path_grows_from_the_inside_out() {
        let error = ConfigError::new("model", "must not be empty").under("[2]").under("targets").under("");
        assert_eq!(error.field(), "targets[2].model");
    }

    #[test]
    fn it_is_an_error_that_can_be_sent() {
        fn check<T: std::error::Error + Send + Sync + Clone + 'static>() {}
        check::<ConfigError>();
    }
}
