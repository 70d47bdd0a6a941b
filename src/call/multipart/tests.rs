use super::*;
use crate::call::model::rewrite_at;

const KIND: &str = "multipart/form-data; boundary=\"--x y\"";

fn form(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, value) in parts {
        body.extend(
            format!("----x y\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n").into_bytes(),
        );
    }
    body.extend(b"----x y--\r\n");
    body
}

fn asked(body: &[u8]) -> Option<Asked> {
    read(body, boundary(KIND).unwrap())
}

#[test]
fn b104_the_field_is_rewritten_and_the_boundary_and_the_file_stay() {
    // A file that holds what looks like another part, but for the line end.
    let file = format!("{}--x y\r\n\r\nmodel", "\u{0}binary--x y".repeat(80_000));
    let parts = |model: &str| {
        form(&[
            ("name=\"file\"; filename=\"a.mp3\"\r\nContent-Type: audio/mpeg", &file),
            ("name=\"model\"", model),
            ("name=\"prompt\"", "names: Ada"),
        ])
    };
    let body = parts("whisper-large");
    let read = asked(&body).unwrap();
    assert_eq!(read.model.unwrap().as_str(), "whisper-large");
    assert!(read.estimate.by_reference, "how long the recording is nobody can say");
    assert_eq!(read.estimate.input_bytes, 10);
    for model in ["w", "whisper-large-v3-turbo", "whisper-small"] {
        assert!(rewrite_at(&body, read.place.unwrap(), model, 0).unwrap() == parts(model), "{model}");
    }
    assert_eq!(rewrite_at(&body, read.place.unwrap(), "a\r\n--x", 0), None);
}

#[test]
fn other_fields_say_what_they_say_in_json() {
    let read = asked(&form(&[("name=stream", "true"), ("name=\"n\"", "3"), ("name=\"model\"", "")])).unwrap();
    assert!(read.stream);
    assert_eq!(read.choices, Some(3));
    assert_eq!(read.model, None);
    assert!(read.place.is_some(), "an empty value can be replaced");
}

#[test]
fn what_is_not_clear_is_not_rewritable() {
    let twice = asked(&form(&[("name=\"model\"", "a"), ("name=\"model\"", "b")])).unwrap();
    assert_eq!(twice.place, None);
    for part in [
        "name=\"model\"; filename=\"m.txt\"",
        "name=\"model\"\r\nContent-Transfer-Encoding: base64",
        "name=\"mo\\\"del\"",
        "filename=\"; name=model\"",
        "x=\"; name=model; \"; name=\"other\"",
    ] {
        assert_eq!(asked(&form(&[(part, "a")])).unwrap().place, None, "{part}");
    }
}

#[test]
fn a_broken_form_is_no_information() {
    let whole = form(&[("name=\"model\"", "a")]);
    for cut in 0..whole.len() - 4 {
        assert!(asked(&whole[..cut]).is_none(), "cut at {cut}");
    }
    assert!(asked(b"").is_none());
    assert!(asked(b"no form at all").is_none());
}

#[test]
fn a_content_type_gives_a_boundary_or_is_no_form() {
    assert_eq!(boundary("multipart/form-data; boundary=abc"), Some("abc"));
    assert_eq!(boundary("Multipart/Form-Data; charset=\"x;y\"; Boundary=\"a b\""), Some("a b"));
    for none in [
        "multipart/form-data",
        "multipart/mixed; boundary=a",
        "multipart/form-data; boundary=",
        "multipart/form-data; x=\"boundary=a\"",
        "application/json",
    ] {
        assert_eq!(boundary(none), None, "{none}");
    }
}
