//! Whatever the head and the pieces, a request passes the intake byte for byte, and says the same however it came.
#![no_main]

use http::{HeaderMap, Method, Request, Uri};
use libfuzzer_sys::fuzz_target;
use seawall::call::{Call, CallBody, IntakeLayer, read_json};
use seawall_fuzz::{Answer, Frames, Pieces, intake, read_to_end};

fn request(uri: &Uri, headers: &HeaderMap, body: Pieces) -> Request<Pieces> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers.clone();
    request
}

fn call(request: &Request<CallBody>) -> &Call {
    request.extensions().get().expect("the intake writes one")
}

// The first line is the URL, then come fields, an empty line and the body. The fields of `# TRAILERS` are trailers.
fuzz_target!(|input: &[u8]| {
    let frames = Frames::read(input);
    let end = frames.body.iter().position(|byte| *byte == b'\n').unwrap_or(frames.body.len());
    let (line, rest) = frames.body.split_at(end);
    let uri = Uri::try_from(line).unwrap_or_else(|_| Uri::from_static("/v1/chat/completions"));
    let Answer { headers, trailers, body, .. } = Answer::read(rest.get(1..).unwrap_or_default());
    let frames = frames.of(&body);

    let layer = IntakeLayer::new().record(256);
    let whole = intake(&layer, request(&uri, &headers, Pieces::whole(&body)));
    let coming = intake(&layer, request(&uri, &headers, Pieces::coming(frames.cut(), trailers.clone())));
    let (one, other) = (call(&whole), call(&coming));
    if whole.body().bytes().is_some() && coming.body().bytes().is_some() && !body.is_empty() {
        let facts = |call: &Call| (call.model.clone(), call.stream, call.output_bound, call.choices);
        assert_eq!(facts(one), facts(other));
        assert_eq!((one.estimate, one.rewritable), (other.estimate, other.rewritable));
        assert!(one.replayable && other.replayable);
    }
    if headers.get("content-type").is_some_and(|kind| kind == "application/json")
        && !headers.contains_key("content-encoding")
        && !headers.contains_key("content-length")
        && let Some(asked) = read_json(&body)
    {
        assert_eq!(other.output_bound, asked.output_bound);
        assert!(asked.model.is_none() || other.model == asked.model);
        assert!(other.stream >= asked.stream && other.rewritable >= asked.rewritable);
    }

    for taken in [whole, coming] {
        let replayable = call(&taken).replayable;
        let again = taken.body().clone();
        let (sent, last) = read_to_end(taken.into_body());
        assert_eq!(sent, body);
        assert!(last.is_none() || last == trailers);
        if replayable && again.is_replayable() {
            assert_eq!(read_to_end(again), (sent, last), "the second time");
        }
    }
    // Over the limit it passes as well.
    let tight = IntakeLayer::new().limit(8).record(0);
    let taken = intake(&tight, request(&uri, &headers, Pieces::coming(frames.cut(), trailers.clone())));
    let (sent, last) = read_to_end(taken.into_body());
    assert_eq!((sent, last.unwrap_or_default()), (body.clone(), trailers.unwrap_or_default()));
});
