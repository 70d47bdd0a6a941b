//! Where a `multipart/form-data` body names its model, and what else it asks for.
//!
//! Audio and image APIs take forms. Only the bytes of a field's value are ever replaced; boundary, headers and all other
//! parts stay as they are.

use memchr::memmem;

use crate::call::asked::Asked;
use crate::call::model::Place;
use crate::call::{Estimate, Key, tokens};

/// The boundary that a content type gives, or `None` where it is no form.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = parameter(parameters, "boundary")?;
    // By RFC 2046 it has 1 to 70 characters.
    (1..=70).contains(&value.len()).then_some(value)
}

/// What a form asks for, or `None` where it is not one that ends as it should.
///
/// Where a field is given twice, forms have no common rule; a form with two models is not rewritable.
pub(crate) fn read(body: &[u8], boundary: &str) -> Option<Asked> {
    let mut asked = Asked {
        model: None,
        place: None,
        stream: false,
        output_bound: None,
        choices: None,
        service_tier: None,
        estimate: Estimate::default(),
    };
    let mut weight = 0;
    let mut models = 0;
    for part in Parts::new(body, boundary) {
        let part = part?;
        let value = body.get(part.start..part.end)?;
        if part.file {
            // A recording or an image: what it costs its bytes do not tell.
            asked.estimate.by_reference = true;
            continue;
        }
        let text = || std::str::from_utf8(value).ok();
        match part.name {
            b"model" => {
                models += 1;
                asked.model = text().filter(|name| !name.is_empty()).map(Key::from);
                asked.place = Some(Place::Form { start: part.start, end: part.end });
            }
            b"stream" => asked.stream = value == b"true",
            b"n" => asked.choices = text().and_then(|count| count.parse().ok()).filter(|count| *count > 0),
            _ => {
                asked.estimate.input_bytes += value.len() as u64;
                weight += tokens::weigh(value);
            }
        }
    }
    asked.estimate.input_tokens = tokens::to_tokens(weight);
    asked.estimate.unscaled_tokens = asked.estimate.input_tokens;
    if models != 1 {
        asked.place = None;
    }
    Some(asked)
}

struct Part<'a> {
    name: &'a [u8],
    file: bool,
    /// Of its value.
    start: usize,
    end: usize,
}

/// Goes through the parts; `None` for the rest where the form is broken.
struct Parts<'a> {
    body: &'a [u8],
    /// The delimiter that ends a part: a line end, two hyphens, the boundary.
    delimiter: Vec<u8>,
    /// Behind a delimiter.
    at: Option<usize>,
}

impl<'a> Parts<'a> {
    fn new(body: &'a [u8], boundary: &str) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        // The first one may have no line end before it.
        let first = delimiter.get(2..).unwrap_or_default();
        let at = if body.starts_with(first) {
            Some(first.len())
        } else {
            memmem::find(body, &delimiter).map(|at| at + delimiter.len())
        };
        // A body without any boundary is broken: one look at it says so.
        Self { body, delimiter, at: at.or(Some(body.len())) }
    }

    fn part(&self, at: usize) -> Option<Step<'a>> {
        let rest = self.body.get(at..)?;
        if rest.starts_with(b"--") {
            return Some(Step::End);
        }
        // Blanks may stand between the boundary and its line end.
        let line = memmem::find(rest, b"\r\n")?;
        if !rest.get(..line)?.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return None;
        }
        let headers = at + line;
        let head_end = headers + memmem::find(self.body.get(headers..)?, b"\r\n\r\n")?;
        let start = head_end + 4;
        // An empty value: the line end before the delimiter is the one that ends the headers.
        let search = start - 2;
        let end = search + memmem::find(self.body.get(search..)?, &self.delimiter)?;
        let next = end + self.delimiter.len();
        let head = self.body.get(headers..head_end)?;
        let (name, file) = disposition(head).unwrap_or((b"", true));
        let plain = end >= start && is_plain(head);
        // A value in another encoding, or none at all, is read as a file: not looked into and not replaced.
        Some(Step::Part(Part { name, file: file || !plain, start, end: end.max(start) }, next))
    }
}

enum Step<'a> {
    Part(Part<'a>, usize),
    End,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Option<Part<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.take()?;
        match self.part(at) {
            Some(Step::Part(part, next)) => {
                self.at = Some(next);
                Some(Some(part))
            }
            Some(Step::End) => None,
            None => Some(None),
        }
    }
}

/// The name of a part, and whether it is a file.
fn disposition(head: &[u8]) -> Option<(&[u8], bool)> {
    let value = header(head, "content-disposition")?;
    let (_, parameters) = value.split_once(';')?;
    let name = parameter(parameters, "name")?;
    let file = parameter(parameters, "filename").is_some() || parameter(parameters, "filename*").is_some();
    Some((name.as_bytes(), file))
}

fn is_plain(head: &[u8]) -> bool {
    header(head, "content-transfer-encoding").is_none_or(|coding| {
        ["7bit", "8bit", "binary"].iter().any(|plain| coding.eq_ignore_ascii_case(plain))
    })
}

/// The value of this header in the head of a part.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let head = std::str::from_utf8(head).ok()?;
    head.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The value of a parameter such as `; name="x"`. An escaped quote is not undone: such a name is none that we look for.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = parameters;
    loop {
        let (key, tail) = rest.split_once('=')?;
        let tail = tail.trim_start();
        let (value, after) = match tail.strip_prefix('"') {
            Some(quoted) => {
                let end = closing_quote(quoted)?;
                (quoted.get(..end)?, quoted.get(end + 1..)?)
            }
            None => tail.split_at(tail.find(';').unwrap_or(tail.len())),
        };
        if key.trim_matches([' ', '\t', ';']).eq_ignore_ascii_case(name) {
            return Some(value.trim());
        }
        rest = after;
    }
}

fn closing_quote(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    quoted.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

#[cfg(test)]
mod tests;
