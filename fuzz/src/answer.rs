//! An input read as the head and body of an answer.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// An answer as it stands on the wire, or as the gRPC samples write it.
///
/// Lenient, so that nearly every input is one: a line that is no field is passed over, as is a status that cannot be.
#[derive(Debug)]
pub struct Answer {
    /// 429 where none is given.
    pub status: StatusCode,
    /// The fields before the first empty line, or before the line `# TRAILERS`.
    pub headers: HeaderMap,
    /// The fields behind that line.
    pub trailers: Option<HeaderMap>,
    /// All behind the first empty line.
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads an input. A line ends with LF, or CR LF; other bytes stay in the values.
    #[must_use]
    pub fn read(input: &[u8]) -> Self {
        let mut answer = Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: HeaderMap::new(),
            trailers: None,
            body: Vec::new(),
        };
        let mut rest = input;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let (line, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                answer.body = rest.to_vec();
                break;
            }
            answer.line(line);
        }
        answer
    }

    fn line(&mut self, line: &[u8]) {
        let status = |text: Option<&[u8]>| text.and_then(|text| StatusCode::from_bytes(text).ok());
        if line.starts_with(b"# TRAILERS") {
            self.trailers = Some(HeaderMap::new());
        } else if line.starts_with(b"HTTP/") {
            let code = line.split(|byte| *byte == b' ').nth(1);
            self.status = status(code).unwrap_or(self.status);
        } else if let Some(code) = line.strip_prefix(b":status:") {
            self.status = status(Some(code.trim_ascii())).unwrap_or(self.status);
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                self.trailers.as_mut().unwrap_or(&mut self.headers).append(name, value);
            }
        }
    }
}
