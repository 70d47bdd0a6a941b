//! The wire samples under `tests/fixtures/wire/`, and what each must be read as.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Sun, 29 Nov 2026 12:00:00 GMT, which most samples carry as their `Date`, since the Unix epoch.
pub(crate) const WALL: Duration = Duration::from_secs(1_795_953_600);

/// A response as it stands on the wire.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// A line of the index; `None` is "nothing said".
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) file: String,
    pub(crate) class: String,
    pub(crate) scope: String,
    pub(crate) reason: Option<String>,
    pub(crate) hint: Option<Duration>,
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
    pub(crate) splits: Vec<usize>,
}

impl Entry {
    pub(crate) fn sample(&self) -> Sample {
        load(&self.file)
    }

    /// Whether the sample is an answer of gRPC, and not one of plain HTTP.
    pub(crate) fn is_grpc(&self) -> bool {
        is_grpc(&self.file)
    }

    /// Whether the sample is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.file.contains("stream") || self.file.contains("responses")
    }
}

pub(crate) fn load(file: &str) -> Sample {
    let bytes = std::fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    if is_grpc(file) { grpc(&String::from_utf8(bytes).unwrap()) } else { http(&bytes) }
}

pub(crate) fn index() -> Vec<Entry> {
    let text = std::fs::read_to_string(folder().join("index.tsv")).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let names: Vec<&str> = lines.next().unwrap().collect();
    lines.map(|line| entry(&names, &line.collect::<Vec<_>>())).collect()
}

fn is_grpc(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|kind| kind == "grpc")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire")
}

fn entry(names: &[&str], fields: &[&str]) -> Entry {
    assert_eq!(names.len(), fields.len(), "{fields:?}");
    let said = |name: &str| {
        let at = names.iter().position(|each| *each == name).unwrap();
        Some(fields[at]).filter(|field| *field != "-")
    };
    let number = |name: &str| said(name).map(|field| field.parse::<u64>().unwrap());
    Entry {
        file: said("file").unwrap().to_owned(),
        class: said("class").unwrap().to_owned(),
        scope: said("scope").unwrap().to_owned(),
        reason: said("reason").map(str::to_owned),
        hint: number("hint_ms").map(Duration::from_millis),
        input: number("input"),
        output: number("output"),
        cached: number("cached"),
        cache_write: number("cache_write"),
        reasoning: number("reasoning"),
        splits: said("splits")
            .map_or_else(Vec::new, |all| all.split(',').map(|each| each.parse().unwrap()).collect()),
    }
}

fn http(bytes: &[u8]) -> Sample {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends with an empty line");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (first, fields) = head.split_once("\r\n").unwrap();
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    fields.split("\r\n").for_each(|line| append(&mut headers, line));
    Sample { status, headers, body: bytes[end + 4..].to_vec(), trailers: None }
}

fn grpc(text: &str) -> Sample {
    let mut sample =
        Sample { status: StatusCode::OK, headers: HeaderMap::new(), body: Vec::new(), trailers: None };
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("# TRAILERS") {
            sample.trailers = Some(HeaderMap::new());
        } else if let Some(status) = line.strip_prefix(":status: ") {
            sample.status = status.parse().unwrap();
        } else if !line.starts_with('#') {
            append(sample.trailers.as_mut().unwrap_or(&mut sample.headers), line);
        }
    }
    sample
}

fn append(headers: &mut HeaderMap, line: &str) {
    let (name, value) = line.split_once(':').expect("a field has a name");
    headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value.trim()).unwrap());
}

mod tests {
    use super::*;

    #[test]
    fn every_sample_is_in_the_index_and_agrees_with_it() {
        let index = index();
        let files = std::fs::read_dir(folder()).unwrap().count() - 1;
        assert_eq!(index.len(), files);
        for entry in index {
            let sample = entry.sample();
            assert!(!sample.headers.is_empty(), "{entry:?}");
            assert_eq!(
                sample.trailers.is_some(),
                entry.is_grpc() && !sample.headers.contains_key("grpc-status")
            );
            // Parts lie within their whole, and splits within the body.
            let written = entry.cache_write.unwrap_or(0);
            assert!(entry.cached.is_none_or(|cached| Some(cached + written) <= entry.input), "{entry:?}");
            assert!(entry.reasoning.is_none() || entry.reasoning <= entry.output, "{entry:?}");
            assert!(entry.splits.iter().all(|at| *at < sample.body.len()), "{entry:?}");
        }
    }
}
