use http::header::{AUTHORIZATION, COOKIE};

use super::*;
use crate::call::AttemptNumber;

fn request() -> Request<CallBody> {
    let mut request = Request::patch("https://a.example/v1/x?y=1")
        .version(Version::HTTP_2)
        .header("x-of-mine", "1")
        .header(COOKIE, "a")
        .header("x-of-mine", HeaderValue::from_bytes(b"\xff\t2").unwrap())
        .header("x-empty", "")
        .header(COOKIE, "b")
        .body(CallBody::from("{}"))
        .unwrap();
    let mut secret = HeaderValue::from_static("secret-of-A");
    secret.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, secret);
    request.extensions_mut().insert(Call { stream: true, ..Call::default() });
    request
}

fn assert_same(one: &Request<CallBody>, other: &Request<CallBody>) {
    assert_eq!((one.method(), one.uri(), one.version()), (other.method(), other.uri(), other.version()));
    let headers = |request: &Request<CallBody>| -> Vec<_> {
        let headers = request.headers().iter();
        headers.map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive())).collect()
    };
    assert_eq!(headers(one), headers(other), "in the same order");
    let stream = |request: &Request<CallBody>| request.extensions().get().map(|call: &Call| call.stream);
    assert_eq!((one.extensions().len(), stream(one)), (other.extensions().len(), stream(other)));
    assert_eq!(one.body().bytes(), other.body().bytes());
}

#[test]
fn what_is_unpacked_is_what_was_kept() {
    let mut request = request();
    for extensions in 0..3 {
        let mut kept = keep(&request).unwrap();
        assert!(kept.headers().is_empty() && kept.extensions().is_empty(), "as little as can be");
        unpack(&mut kept);
        assert_same(&kept, &request);
        unpack(&mut kept);
        assert_same(&kept, &request);
        match extensions {
            0 => drop(request.extensions_mut().insert(AttemptNumber(7))),
            _ => drop(request.extensions_mut().remove::<Call>()),
        }
    }
}

#[test]
fn headers_for_which_there_is_no_room_are_kept_too() {
    let mut request = request();
    for number in 0..200 {
        let name = HeaderName::try_from(format!("x-{number}")).unwrap();
        request.headers_mut().insert(name, HeaderValue::try_from("long ".repeat(number)).unwrap());
    }
    let mut kept = keep(&request).unwrap();
    unpack(&mut kept);
    assert_same(&kept, &request);
}

#[test]
fn a_body_that_was_not_kept_is_no_reason_to_keep_its_request() {
    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"x"));
    let request = request().map(|_| CallBody::streaming(body, 0));
    let mut sent = keep(&request).expect("nobody has begun to read it");
    unpack(&mut sent);
    let frame = futures_util::FutureExt::now_or_never(http_body_util::BodyExt::frame(sent.body_mut()));
    assert!(frame.flatten().is_some_and(|frame| frame.is_ok()));
    assert!(keep(&request).is_none());
}

#[test]
fn requests_of_other_types_are_kept_as_they_are() {
    assert_eq!(keep(&7_u8), Some(7));
    let request = request().map(|_| "a body of another type");
    let mut kept = keep(&request).unwrap();
    assert_eq!(kept.headers(), request.headers());
    unpack(&mut kept);
    assert_eq!((kept.headers(), kept.body()), (request.headers(), request.body()));
}

#[test]
fn what_is_packed_shows_no_secret() {
    let shown = format!("{:?} {:?}", keep(&request()), Packed::of(&request(), CallBody::empty()));
    assert!(!shown.contains("secret") && !shown.contains("a.example"), "{shown}");
}

#[test]
fn a_usual_request_is_kept_in_one_allocation() {
    let request = request();
    // What is shared by all copies is made by the first.
    drop(keep(&request));
    let mut kept = None;
    assert_eq!(allocation_counter::measure(|| kept = keep(&request)).count_total, 1);
}

#[test]
fn as_many_headers_as_can_be_and_the_longest_name_are_kept() {
    let mut request = request();
    let longest = HeaderName::try_from("x".repeat(65_535)).unwrap();
    request.headers_mut().insert(longest, HeaderValue::from_static("1"));
    let mut number = 0;
    while request.headers_mut().try_insert(number_name(number), HeaderValue::from(number)).is_ok() {
        number += 1;
    }
    assert!(number > 20_000);
    let mut kept = keep(&request).unwrap();
    unpack(&mut kept);
    assert_same(&kept, &request);
}

fn number_name(number: u32) -> HeaderName {
    HeaderName::try_from(format!("n-{number}")).expect("it is a name")
}

#[test]
fn any_form_of_a_url_is_kept() {
    for uri in
        ["*", "a.example:443", "/only/a?path#", "https://a.example", "//x//?&&", "http://[::1]:8080/%2f"]
    {
        let Ok(uri) = uri.parse::<Uri>() else { continue };
        let mut request = request();
        *request.uri_mut() = uri;
        *request.method_mut() = Method::from_bytes(b"A-METHOD-OF-NOBODY-THAT-IS-LONG").unwrap();
        let mut kept = keep(&request).unwrap();
        unpack(&mut kept);
        assert_same(&kept, &request);
    }
}
