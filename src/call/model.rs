//! Where a body names its model, and the same body with another name.
//!
//! In JSON it is the top-level member `model`, recognised after its escapes are resolved, wherever it stands and
//! whatever else is called `model` deeper inside. Where it is given twice, the last one is what the caller asked for, as
//! in nearly every JSON parser; since some servers go by the first, a rewrite changes each of them, so that no two
//! readers of the body see two models. All other bytes stay as they are: numbers, escapes and the order of members are
//! not touched, because nothing is parsed into a value and written out again.

use crate::call::json::{self, Lexer, Malformed, Text, Token};

/// Where the name of the model stands in a body, and how it is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A JSON string, its quotes included.
    Json { start: usize, end: usize, repeated: bool },
    /// The value of a form's field.
    Form { start: usize, end: usize },
}

impl Place {
    /// A name's place in a JSON body.
    pub(crate) fn of_text(text: Text, repeated: bool) -> Self {
        let quoted = text.quoted();
        Self::Json { start: quoted.start, end: quoted.end, repeated }
    }
}

/// The JSON body with this model instead of its own, or `None` where it has none to replace: no object, no top-level
/// `model` that is a string, not JSON, or nested more than 128 deep.
///
/// One allocation of the exact size, and two reads of the body.
///
/// ```
/// use seawall::call::rewrite_model;
///
/// let body = br#"{"tools":[{"model":"not this"}], "model": "large", "seed": 4634343214213523454}"#;
/// let small = rewrite_model(body, "small").unwrap();
/// assert_eq!(small, br#"{"tools":[{"model":"not this"}], "model": "small", "seed": 4634343214213523454}"#);
/// assert_eq!(rewrite_model(b"[1, 2]", "small"), None);
/// ```
#[must_use]
pub fn rewrite_model(body: &[u8], model: &str) -> Option<Vec<u8>> {
    rewrite_at(body, find(body)?, model, 0)
}

/// Where a JSON body names its model.
pub(crate) fn find(body: &[u8]) -> Option<Place> {
    let mut found = Found::default();
    each_model(body, |text| found.see(text)).ok()?;
    found.place()
}

/// Gathers what the members called `model` say, in their order.
#[derive(Debug, Default)]
pub(crate) struct Found {
    last: Option<Text>,
    strings: u32,
}

impl Found {
    /// The next value of such a member: its text, or `None` where it is no string.
    pub(crate) fn see(&mut self, text: Option<Text>) {
        self.last = text;
        self.strings += u32::from(text.is_some() && self.strings < 2);
    }

    /// The last value, if it is a string.
    pub(crate) fn last(&self) -> Option<Text> {
        self.last
    }

    pub(crate) fn place(&self) -> Option<Place> {
        self.last.map(|text| Place::of_text(text, self.strings > 1))
    }
}

/// The body with the name at this place replaced, and room for so many bytes behind it.
pub(crate) fn rewrite_at(body: &[u8], place: Place, model: &str, room: usize) -> Option<Vec<u8>> {
    match place {
        Place::Json { repeated: true, .. } => rewrite_each(body, model, room),
        Place::Json { start, end, .. } => {
            let (before, after) = (body.get(..start)?, body.get(end..)?);
            let length = before.len() + json::quoted_len(model) + after.len();
            let mut out = Vec::with_capacity(length + room);
            out.extend_from_slice(before);
            json::write_quoted(model, &mut out);
            out.extend_from_slice(after);
            Some(out)
        }
        Place::Form { start, end } => {
            // A line end would end the field.
            if model.contains(['\r', '\n']) {
                return None;
            }
            let parts = [body.get(..start)?, model.as_bytes(), body.get(end..)?];
            let length: usize = parts.iter().map(|part| part.len()).sum();
            let mut out = Vec::with_capacity(length + room);
            for part in parts {
                out.extend_from_slice(part);
            }
            Some(out)
        }
    }
}

/// Replaces the name in every top-level member `model` that is a string.
fn rewrite_each(body: &[u8], model: &str, room: usize) -> Option<Vec<u8>> {
    let mut length = body.len();
    let quoted = json::quoted_len(model);
    each_model(body, |text| {
        if let Some(text) = text {
            length = length - text.quoted().len() + quoted;
        }
    })
    .ok()?;
    let mut out = Vec::with_capacity(length + room);
    let mut copied = 0;
    each_model(body, |text| {
        if let Some(text) = text {
            let value = text.quoted();
            out.extend_from_slice(body.get(copied..value.start).unwrap_or_default());
            json::write_quoted(model, &mut out);
            copied = value.end;
        }
    })
    .ok()?;
    out.extend_from_slice(body.get(copied..)?);
    Some(out)
}

/// Calls `see` with the value of every top-level member `model`: its text, or `None` where it is no string.
fn each_model(body: &[u8], mut see: impl FnMut(Option<Text>)) -> Result<(), Malformed> {
    let mut lexer = Lexer::new(body);
    // `model` is a member of the outermost value, or there is none.
    if !matches!(lexer.next()?, Some(Token::Open { object: true, .. })) {
        return Err(Malformed);
    }
    while let Some(token) = lexer.next()? {
        let Token::Key(key) = token else { continue };
        if lexer.depth() == 1 && is_model(body, key) {
            match lexer.next()? {
                Some(Token::String(text)) => see(Some(text)),
                _ => see(None),
            }
        }
    }
    Ok(())
}

fn is_model(body: &[u8], key: Text) -> bool {
    if key.escaped { &*key.meant(body) == b"model" } else { key.raw(body) == b"model" }
}

#[cfg(test)]
mod tests;
