//! A wait is never zero, absurd or a fraction of a millisecond, whatever the head and the body are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::provider::{BODY_LIMIT, hint};
use seawall_fuzz::{Answer, WALL, assert_wait};

fuzz_target!(|input: &[u8]| {
    let answer = Answer::read(input);
    let read = hint::read(&answer.headers, &answer.body, WALL);
    let outright = hint::of_headers(&answer.headers, WALL);
    assert_wait(read);
    assert_wait(outright);
    // What the headers ask for outright goes before all that has to be made out.
    assert!(outright.is_none() || outright == read, "{outright:?} {read:?}");
    // A body over the limit is not read.
    if answer.body.len() < 64 {
        let long = [&answer.body[..], &[b' '; BODY_LIMIT]].concat();
        let without = hint::read(&answer.headers, b"", WALL);
        assert_eq!(hint::read(&answer.headers, &long, WALL), without);
    }
    // A longer one under the same name counts, a shorter one or a broken one changes nothing.
    let mut more = answer.headers.clone();
    more.append("retry-after-ms", "-1".parse().expect("a value"));
    assert_eq!(hint::of_headers(&more, WALL), outright);
    more.append("retry-after-ms", "2678400000".parse().expect("a value"));
    assert_eq!(hint::of_headers(&more, WALL), Some(hint::LONGEST));
    // No time is too early or too late.
    for wall in [std::time::Duration::ZERO, std::time::Duration::MAX] {
        assert_wait(hint::read(&answer.headers, &answer.body, wall));
    }
    let _ = hint::should_retry(&answer.headers);
});
