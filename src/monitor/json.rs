//! How a snapshot is written with serde: durations in seconds, money in dollars, classes and kinds by their words.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::money::Usd;
use crate::monitor::snapshot::float;
use crate::monitor::{BreakerState, Outcomes, Refusals, Snapshot, words};

impl Snapshot {
    /// As JSON: durations in seconds, money in dollars, all names as in the struct.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers, text and maps of text can be written")
    }
}

pub(super) fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn dollars<S: Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(float(amount.as_nanos()) / 1e9)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn state<S: Serializer>(state: &BreakerState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(words::state_word(*state))
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(words::CLASSES))?;
        for (class, count) in self.iter() {
            map.serialize_entry(words::class_word(class), &count)?;
        }
        map.end()
    }
}

impl Serialize for Refusals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(words::KINDS))?;
        for (kind, count) in self.iter() {
            map.serialize_entry(kind.as_str(), &count)?;
        }
        map.end()
    }
}
