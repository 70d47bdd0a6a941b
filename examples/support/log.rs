//! What the provider saw.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use seawall::time::{self, Instant};

use super::asked::{self, Asked};
use super::fault::Fault;

/// One request, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// From 0, in the order of arrival.
    pub(crate) number: usize,
    /// When its body was there.
    pub(crate) at: Instant,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) body: Bytes,
    pub(crate) body_hash: u64,
    /// The n-th request with this body at this path, from 1, as far back as the log goes.
    pub(crate) attempt: usize,
    /// What was done to it.
    pub(crate) fault: Fault,
    /// The status that it was answered with, once it was.
    pub(crate) status: Option<u16>,
    /// The tokens of output that were handed to the connection.
    pub(crate) sent: u64,
    /// In nano-dollars.
    pub(crate) billed: u64,
    pub(crate) ended: Option<Ended>,
}

/// The end of a request, as the provider saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) at: Instant,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// All of it was handed to the connection.
    Complete,
    /// The provider cut it, for a fault.
    Faulted,
    /// The client went away.
    Disconnected,
    /// The provider was killed.
    Killed,
}

/// The last requests, oldest first.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) entries: VecDeque<Seen>,
    /// How many there were in all.
    pub(super) count: usize,
    most: usize,
}

impl Log {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), count: 0, most: most.max(1) }
    }

    /// Notes a request; its number.
    pub(super) fn note(
        &mut self,
        connection: usize,
        parts: &Parts,
        body: &Bytes,
        asked: Option<&Asked>,
    ) -> usize {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let (body_hash, path) = (hasher.finish(), asked::path(parts));
        let same = |seen: &&Seen| seen.body_hash == body_hash && seen.path == path;
        let attempt = self.entries.iter().filter(same).count() + 1;
        if self.entries.len() == self.most {
            self.entries.pop_front();
        }
        let number = self.count;
        self.entries.push_back(Seen {
            number,
            at: time::now(),
            connection,
            method: parts.method.clone(),
            path: path.to_owned(),
            headers: parts.headers.clone(),
            model: asked.and_then(|asked| asked.model.clone()),
            stream: asked.is_some_and(|asked| asked.stream),
            body: body.clone(),
            body_hash,
            attempt,
            fault: Fault::None,
            status: None,
            sent: 0,
            billed: 0,
            ended: None,
        });
        self.count += 1;
        number
    }

    /// The entry of this number, if the log still holds it.
    pub(super) fn get(&mut self, number: usize) -> Option<&mut Seen> {
        let first = self.count - self.entries.len();
        self.entries.get_mut(number.checked_sub(first)?)
    }
}
