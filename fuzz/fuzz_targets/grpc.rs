//! The trailers decide where they say something, the head where nothing follows it.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use seawall::Class;
use seawall::provider::grpc;
use seawall_fuzz::{Answer, WALL, assert_verdict};

fuzz_target!(|input: &[u8]| {
    let Answer { status, headers, trailers, .. } = Answer::read(input);
    let _ = grpc::is_grpc(&headers);
    for wall in [Duration::ZERO, WALL, Duration::MAX] {
        let end = grpc::at_end(status, &headers, trailers.as_ref(), wall);
        assert_verdict(&end);
        assert_eq!(
            grpc::at_head(status, &headers, true, wall),
            Some(grpc::at_end(status, &headers, None, wall))
        );
        if let Some(head) = grpc::at_head(status, &headers, false, wall) {
            assert_verdict(&head);
        }
    }
    let told = trailers.as_ref().filter(|told| told.contains_key("grpc-status")).unwrap_or(&headers);
    let end = grpc::at_end(status, &headers, trailers.as_ref(), WALL);
    let good = told.get("grpc-status").is_some_and(|code| code.as_bytes().iter().all(|digit| *digit == b'0'));
    // Success is said, and never concluded.
    assert!(end.class() != Class::Success || good, "{end:?}");
});
