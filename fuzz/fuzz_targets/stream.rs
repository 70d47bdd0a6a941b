//! Whatever the frames, a stream brings the same and means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::Verdict;
use seawall::call::Usage;
use seawall::provider::{Seen, StreamReader};
use seawall_fuzz::{Frames, WALL, assert_verdict};

type Meaning = (Seen, Usage, Option<Verdict>, bool, Option<Verdict>);

fn read<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Meaning {
    let mut reader = StreamReader::new().with_wall(WALL);
    let mut all = Seen::NOTHING;
    for frame in frames {
        let seen = reader.feed(frame);
        assert_eq!(seen == Seen::NOTHING, frame.is_empty());
        all |= seen;
    }
    assert_eq!(all.has_error(), reader.failure().is_some(), "an error is a failure, and a failure an error");
    assert!(!all.is_terminal() || reader.is_terminal());
    let (failure, terminal) = (reader.failure(), reader.is_terminal());
    let meant = reader.finish();
    if let Some(verdict) = meant {
        assert_verdict(&verdict);
    }
    if failure.is_some() {
        assert_eq!(meant, failure, "the first one stands");
    }
    assert!(reader.failure().is_none_or(|verdict| !verdict.is_success()));
    // What the end takes of a last event counts for the usage, so it is asked for here.
    (all, reader.usage(), failure, terminal, meant)
}

fuzz_target!(|input: &[u8]| {
    let frames = Frames::read(input);
    let whole = read(std::iter::once(frames.body));
    assert_eq!(read(frames.cut()), whole);
    assert_eq!(read(frames.bytes()), whole);
});
