//! What is stated of a limit can be, whatever the head is.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use seawall::provider::hint;
use seawall::provider::limits::{Limits, Reset};
use seawall_fuzz::{Answer, WALL, assert_wait};

fuzz_target!(|input: &[u8]| {
    let answer = Answer::read(input);
    let limits = Limits::read(&answer.headers, WALL);
    assert_eq!(limits.is_empty(), limits.iter().next().is_none());
    for limit in limits.iter() {
        assert!(limit.limit.is_some() || limit.remaining.is_some() || limit.reset.is_some(), "{limit:?}");
        assert!(limit.limit != Some(0), "{limit:?}");
        if let (Some(limit), Some(left)) = (limit.limit, limit.remaining) {
            assert!(left <= limit, "{left} of {limit}");
        }
        if let Some(Reset::Full(time) | Reset::Window(time)) = limit.reset {
            assert!(time <= hint::LONGEST, "{limit:?}");
        }
        if let Some(refill) = limit.refill() {
            assert!(refill.units > 0 && !refill.per.is_zero(), "{limit:?}");
        }
        assert!(limits.of(limit.dimension).any(|other| other == limit));
    }
    for wall in [Duration::ZERO, WALL, Duration::MAX] {
        assert_wait(hint::read(&answer.headers, b"", wall));
        let _ = Limits::read(&answer.headers, wall);
    }
});
