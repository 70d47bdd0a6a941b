//! Another model in a form changes the value of that field and no other byte, whatever the form and its boundary.
#![no_main]

use http::Request;
use libfuzzer_sys::fuzz_target;
use seawall::call::{Call, CallBody, IntakeLayer, Key};
use seawall_fuzz::{Pieces, intake};

const NAME: &str = "another-model";

fn read(kind: &[u8], body: &[u8]) -> Option<Request<CallBody>> {
    let request = Request::post("/v1/audio/transcriptions").header("content-type", kind);
    Some(intake(&IntakeLayer::new(), request.body(Pieces::whole(body)).ok()?))
}

fn call(request: &Request<CallBody>) -> &Call {
    request.extensions().get().expect("the intake writes one")
}

// The first line is the content type, the rest the body.
fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (kind, body) = input.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let Some(request) = read(kind, body) else { return };
    let before = call(&request);
    let Some(other) = request.body().with_model(NAME) else {
        assert!(!before.rewritable);
        return;
    };
    assert!(before.rewritable);
    assert_eq!(request.body().bytes().map(|bytes| &bytes[..]), Some(body), "the original stays");
    let after = other.bytes().expect("it is whole").clone();

    if kind.split(|byte| *byte == b';').next().is_some_and(|kind| kind.ends_with(b"json")) {
        // The target for JSON sees to this.
        return;
    }
    let Some(was) = &before.model else { return };
    let at = body.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let same = |at: usize| {
        body[at..].strip_prefix(was.as_str().as_bytes()) == after[at..].strip_prefix(NAME.as_bytes())
            && after[at..].starts_with(NAME.as_bytes())
    };
    let longest = at.saturating_sub(NAME.len().max(was.as_str().len()));
    assert!((longest..=at).any(same), "one value is another");

    // A name can hold the boundary's own bytes only if it was fuzzed so: it has none of ours.
    if !kind.windows(NAME.len()).any(|part| part == NAME.as_bytes()) {
        let again = read(kind, &after).expect("the same content type");
        let again = call(&again);
        assert_eq!(again.model.as_ref().map(Key::as_str), Some(NAME));
        assert_eq!(
            (again.rewritable, again.stream, again.choices, again.estimate),
            (true, before.stream, before.choices, before.estimate)
        );
    }
});
