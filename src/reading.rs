//! Settings from text: what is wrong is named by its path and line, and never by its value, which may be a secret.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};

use crate::config_error::ConfigError;

/// Looks up what a text such as `env:NAME` refers to.
pub(crate) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let line = error.inner().line();
        told(&error.path().to_string(), &error.inner().to_string(), "JSON").at_line(line)
    })?;
    reader.end().map_err(|error| ConfigError::new("", "is not JSON to its end").at_line(error.line()))?;
    Ok(value)
}

#[cfg(feature = "toml")]
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    let syntax = |error: &toml::de::Error| {
        ConfigError::new("", "is not TOML").at_line(error.span().map_or(0, |span| line_of(text, span.start)))
    };
    let reader = toml::Deserializer::parse(text).map_err(|error| syntax(&error))?;
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let told = told(&error.path().to_string(), error.inner().message(), "TOML");
        // The span of what is missing is that of the table it is missing in.
        let span = error.inner().span().map_or(0, |span| line_of(text, span.start));
        toml_line(text, told.field()).map_or(told.clone().at_line(span), |line| told.at_line(line))
    })
}

/// The same error with the line where its setting stands, if the text has such a setting, or else the one it is part of.
#[cfg(feature = "toml")]
pub(crate) fn in_toml(error: ConfigError, text: &str) -> ConfigError {
    match toml_line(text, error.field()) {
        Some(line) => error.at_line(line),
        None => error,
    }
}

/// What a parser says, without the values that it may quote: only what names a setting or a type is taken from it.
fn told(path: &str, text: &str, form: &str) -> ConfigError {
    let path = if path == "." { "" } else { path };
    let quoted = text.split('`').nth(1).map(str::to_owned);
    match quoted {
        Some(field) if text.starts_with("missing field") => ConfigError::new(field, "is missing").under(path),
        Some(_) if text.starts_with("unknown field") => ConfigError::new(path.to_owned(), "is not a setting"),
        Some(field) if text.starts_with("duplicate field") => {
            ConfigError::new(field, "is given twice").under(path)
        }
        _ => ConfigError::new(path.to_owned(), problem(text, form)),
    }
}

fn problem(text: &str, form: &str) -> String {
    let is_type = text.starts_with("invalid ") || text.starts_with("unknown variant");
    // Behind the last one stands no value, only what the setting's type says of itself.
    match text.rsplit_once(", expected ") {
        Some((_, expected)) if is_type => {
            let expected = expected.lines().next().unwrap_or_default();
            let expected = expected.split(" at line ").next().unwrap_or_default();
            format!("has the wrong type or form: expected {expected}")
        }
        _ => format!("cannot be read as {form}"),
    }
}

#[cfg(feature = "toml")]
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

/// The line of a setting by its path: of the last part of the path that is there.
#[cfg(feature = "toml")]
fn toml_line(text: &str, path: &str) -> Option<usize> {
    use toml::de::DeTable;

    let table = DeTable::parse(text).ok()?;
    let (mut at, mut here) = (None, None);
    let mut rest = path;
    while !rest.is_empty() {
        let (span, value) = match here {
            None => step(table.get_ref(), &mut rest)?,
            Some(value) => match inside(value, &mut rest) {
                Some(found) => found,
                None => break,
            },
        };
        at = Some(span);
        here = Some(value);
    }
    at.map(|span| line_of(text, span))
}

#[cfg(feature = "toml")]
type Found<'t, 'i> = (usize, &'t toml::de::DeValue<'i>);

#[cfg(feature = "toml")]
fn inside<'t, 'i>(value: &'t toml::de::DeValue<'i>, rest: &mut &str) -> Option<Found<'t, 'i>> {
    if let Some(index) = rest.strip_prefix('[') {
        let (number, after) = index.split_once(']')?;
        *rest = after.trim_start_matches('.');
        let item = value.as_array()?.get(number.parse::<usize>().ok()?)?;
        return Some((item.span().start, item.get_ref()));
    }
    step(value.as_table()?, rest)
}

/// The entry that the path goes on with: the longest key that it starts with, since keys may hold dots.
#[cfg(feature = "toml")]
fn step<'t, 'i>(table: &'t toml::de::DeTable<'i>, rest: &mut &str) -> Option<Found<'t, 'i>> {
    let starts =
        |key: &str| rest.strip_prefix(key).filter(|after| after.is_empty() || after.starts_with(['.', '[']));
    let (key, value) = table
        .iter()
        .filter(|(key, _)| starts(key.get_ref()).is_some())
        .max_by_key(|(key, _)| key.get_ref().len())?;
    let after = starts(key.get_ref())?;
    *rest = after.strip_prefix('.').unwrap_or(after);
    Some((key.span().start, value.get_ref()))
}

/// The value, or what the environment holds under the name that it refers to.
pub(crate) fn secret(path: &str, value: &str, env: Env<'_>) -> Result<String, ConfigError> {
    let Some(name) = value.strip_prefix("env:") else { return Ok(value.to_owned()) };
    let missing = || ConfigError::new(path.to_owned(), format!("refers to `{name}`, which is not set"));
    env(name).filter(|value| !value.is_empty()).ok_or_else(missing)
}

/// A time: `250ms`, `30s`, `2m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl From<Time> for Duration {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"250ms\", \"30s\", \"2m\" or \"1h\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                time(text).map(Time).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        reader.deserialize_str(Text)
    }
}

fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3_600),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
