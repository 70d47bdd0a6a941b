//! Whatever the frames, a JSON answer brings the same and means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::Verdict;
use seawall::call::Usage;
use seawall::provider::usage::of_json;
use seawall::provider::{BodyReader, Seen};
use seawall_fuzz::{Frames, WALL, assert_verdict};
use serde_json::Value;

type Meaning = (Seen, Usage, Option<Verdict>, Option<Verdict>);

fn read<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Meaning {
    let mut reader = BodyReader::new().with_wall(WALL);
    let seen = frames.fold(Seen::NOTHING, |seen, frame| seen | reader.feed(frame));
    assert_eq!(seen.has_error(), reader.failure().is_some());
    let meant = reader.finish();
    if let Some(verdict) = meant {
        assert_verdict(&verdict);
    }
    (seen, reader.usage(), reader.failure(), meant)
}

fuzz_target!(|input: &[u8]| {
    let frames = Frames::read(input);
    let whole = read(std::iter::once(frames.body));
    assert_eq!(read(frames.cut()), whole);
    assert_eq!(read(frames.bytes()), whole);
    assert_eq!(of_json(frames.body), whole.1);

    let usage = whole.1;
    let known = [usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning];
    assert!(known.into_iter().flatten().all(|count| count < 1 << 44), "{usage:?}");
    assert!(usage.total().is_some() == (usage.input.is_some() || usage.output.is_some()));

    let Ok(Value::Object(object)) = serde_json::from_slice(frames.body) else { return };
    let (_, _, failure, meant) = whole;
    assert_eq!(meant, Some(failure.unwrap_or(Verdict::SUCCESS)), "a whole answer is not cut");
    // The plainest report of all is read as it stands.
    if let Some(Value::Object(report)) = object.get("usage")
        && object.len() == 1
        && let [("prompt_tokens", input)] = &*report.iter().map(|(k, v)| (&**k, v)).collect::<Vec<_>>()
        && !frames.body.contains(&b'\\')
        && frames.body.windows(7).filter(|part| part == b"\"usage\"").count() == 1
        && frames.body.windows(15).filter(|part| part == b"\"prompt_tokens\"").count() == 1
    {
        assert_eq!(usage.input, input.as_u64().filter(|count| *count <= 1 << 40), "{usage:?}");
    }
});
