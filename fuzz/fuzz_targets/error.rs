//! A verdict depends on what the body says and not on how it is laid out; what cannot be read says nothing.
#![no_main]

use std::time::Duration;

use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use seawall::provider::{BODY_LIMIT, classify};
use seawall_fuzz::{Answer, WALL, assert_verdict};
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Answer { status, headers, body, .. } = Answer::read(input);
    for wall in [Duration::ZERO, Duration::MAX] {
        assert_verdict(&classify(status, &headers, &body, wall));
    }
    for status in [status, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let verdict = classify(status, &headers, &body, WALL);
        assert_verdict(&verdict);
        let without = classify(status, &headers, b"", WALL);
        let Ok(json) = serde_json::from_slice::<Value>(&body) else {
            assert_eq!(verdict, without, "what is no JSON says nothing");
            continue;
        };
        if body.len() < 64 {
            let long = [&body[..], &[b' '; BODY_LIMIT]].concat();
            assert_eq!(classify(status, &headers, &long, WALL), without, "over the limit");
        }
        // A good answer is searched for a name as providers write it: escapes in it make a difference there.
        let plain = status.as_u16() >= 400 || !body.contains(&b'\\');
        if let (true, Ok(pretty)) = (plain, serde_json::to_vec_pretty(&json)) {
            assert_eq!(classify(status, &headers, &pretty, WALL), verdict, "{json}");
        }
    }
});
