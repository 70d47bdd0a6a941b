use http::header::{AUTHORIZATION, HOST};

use super::*;
use crate::call::Credential;

fn upstream(base: &str) -> Upstream {
    Upstream::new("b", base).unwrap()
}

fn post(uri: &str, body: impl Into<CallBody>) -> Request<CallBody> {
    Request::post(uri).body(body.into()).unwrap()
}

fn key(name: &str) -> Key {
    Key::from(name)
}

#[test]
fn b091_no_secret_of_another_travels_and_the_own_one_is_there_once() {
    let mut request = post(
        "https://a.example/v1/chat/completions?key=A1&x=1&API%5Fkey=A2&access_token=A3",
        r#"{"model":"a"}"#,
    );
    for name in [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "cookie",
        "proxy-authorization",
        "x-private",
    ] {
        request.headers_mut().append(name, HeaderValue::from_static("secret-of-A"));
        request.headers_mut().append(name, HeaderValue::from_static("secret-of-A-2"));
    }
    let places = SecretPlaces::default().and_header(HeaderName::from_static("x-private"));
    let (bearer, header) =
        (Credential::bearer("B-key").unwrap(), Credential::header("x-api-key", "B-key").unwrap());
    let query = Credential::query("key", "B key/").unwrap();
    for (credential, header, uri) in [
        (Credential::none(), None, "https://b.example/v1/chat/completions?x=1"),
        (bearer, Some(("authorization", "Bearer B-key")), "https://b.example/v1/chat/completions?x=1"),
        (header, Some(("x-api-key", "B-key")), "https://b.example/v1/chat/completions?x=1"),
        (query, None, "https://b.example/v1/chat/completions?x=1&key=B%20key%2F"),
    ] {
        let upstream = upstream("https://b.example").credential(credential);
        let model = key("b");
        let aimed = request.aim(&Destination::new(&upstream).model(&model).secrets(&places)).unwrap();
        assert_eq!(aimed.uri(), uri);
        let all: Vec<_> =
            aimed.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(all, header.into_iter().collect::<Vec<_>>());
        assert!(aimed.headers().values().all(HeaderValue::is_sensitive));
        let shown = format!("{aimed:?} {upstream:?} {:?}", upstream.own_credential());
        assert!(!shown.contains("Bearer") && !shown.contains("secret-of-A"), "{shown}");
    }
}

#[test]
fn a_callers_own_credential_stays_only_where_it_was_asked_for() {
    let mut request = post("https://a.example/", "");
    request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer mine"));
    request.headers_mut().insert("x-api-key", HeaderValue::from_static("other"));
    let upstream = upstream("https://b.example").credential(Credential::from_caller(AUTHORIZATION));
    let aimed = request.aim(&Destination::new(&upstream)).unwrap();
    assert_eq!(aimed.headers().len(), 1);
    assert_eq!(aimed.headers()[AUTHORIZATION], "Bearer mine");
    assert!(aimed.headers()[AUTHORIZATION].is_sensitive());
}

#[test]
fn b094_the_length_follows_the_body() {
    let upstream = upstream("https://b.example");
    for (name, length) in [("longer-by-seven", 27), ("x", 13), ("8-letter", 20)] {
        let mut request = post("https://a.example/", r#"{"model":"original"}"#);
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("20"));
        request.headers_mut().insert("content-digest", HeaderValue::from_static("sha-256=:x:"));
        for _attempt in 1..=2 {
            let model = key(name);
            let aimed = request.aim(&Destination::new(&upstream).model(&model)).unwrap();
            assert_eq!(aimed.headers()[CONTENT_LENGTH], length.to_string());
            assert_eq!(aimed.body().bytes().unwrap().len(), length);
            assert!(!aimed.headers().contains_key("content-digest"));
        }
    }
}

#[test]
fn b095_a_body_that_is_all_there_is_sent_with_its_length() {
    let mut request = post("https://a.example/", r#"{"model":"original"}"#);
    request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    let (upstream, model) = (upstream("https://b.example"), key("b"));
    let aimed = request.aim(&Destination::new(&upstream).model(&model)).unwrap();
    assert_eq!(aimed.headers()[CONTENT_LENGTH], "13");
    assert!(!aimed.headers().contains_key(TRANSFER_ENCODING));
    // Trailers need chunks.
    let trailers = HeaderMap::from_iter([(HeaderName::from_static("x"), HeaderValue::from_static("y"))]);
    *request.body_mut() = CallBody::from(r#"{"model":"original"}"#).with_trailers(trailers);
    let aimed = request.aim(&Destination::new(&upstream).model(&model)).unwrap();
    assert!(aimed.headers().contains_key(TRANSFER_ENCODING));
    assert!(aimed.body().trailers().is_some());
}

#[test]
fn b097_path_and_query_are_there_exactly_once() {
    for (base, path, expected) in [
        ("https://b.example", "/v1/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("https://b.example/", "/v1/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("https://b.example/v1", "/v1/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("https://b.example/v1/", "/v1/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("https://b.example/v1", "/chat/completions", "/v1/chat/completions"),
        ("https://b.example/v1", "/v1", "/v1"),
        ("https://b.example/v1", "/v11/chat", "/v1/v11/chat"),
        ("https://b.example/openai/v1", "/v1/chat", "/openai/v1/chat"),
        ("https://b.example/openai/v1", "/openai/v1/chat", "/openai/v1/chat"),
        (
            "https://b.example/openai/deployments/d",
            "/chat/completions",
            "/openai/deployments/d/chat/completions",
        ),
        ("https://b.example/openai/deployments/d", "/v1/chat", "/openai/deployments/d/v1/chat"),
        ("https://b.example/a/v1/b", "/v1/chat", "/a/v1/b/v1/chat"),
        ("https://b.example/v1", "/a%2Fb/c", "/v1/a%2Fb/c"),
        ("https://b.example/v1%2F", "/v1/c", "/v1%2F/v1/c"),
        ("https://b.example/v1", "//double//slash", "/v1//double//slash"),
        ("https://b.example/v1", "/", "/v1"),
        ("https://b.example", "/", "/"),
        ("https://b.example/v1?api-version=2", "/chat?x=1&api-version=1", "/v1/chat?x=1&api-version=2"),
        ("https://b.example/v1", "/chat?", "/v1/chat"),
        ("https://b.example/v1", "/chat?a=1&a=2&b", "/v1/chat?a=1&a=2&b"),
        ("https://b.example/v1", "/chat?q=a%26b%3Dc+d", "/v1/chat?q=a%26b%3Dc+d"),
    ] {
        for from in [format!("https://a.example{path}"), path.to_owned()] {
            let joined = upstream(base).join(&from.parse().unwrap()).unwrap();
            assert_eq!(joined.to_string(), format!("https://b.example{expected}"), "{base} and {from}");
        }
    }
    let stripped = upstream("https://b.example/beta/openai").strip_prefix("/v1").unwrap();
    assert_eq!(stripped.join(&"/v1/chat".parse().unwrap()).unwrap().path(), "/beta/openai/chat");
    assert_eq!(stripped.join(&"/v1beta/chat".parse().unwrap()).unwrap().path(), "/beta/openai/v1beta/chat");
}

#[test]
fn a_url_that_grows_too_long_is_refused_and_not_cut() {
    let long = format!("/{}", "x".repeat(65_500));
    let upstream = upstream(&format!("https://b.example/{}", "y".repeat(100)));
    assert_eq!(post(&long, "").aim(&Destination::new(&upstream)).unwrap_err(), Misfit::TooLong);
}

#[test]
fn b098_host_and_authority_name_the_target() {
    for (base, host) in [
        ("https://b.example:443/v1", "b.example"),
        ("http://b.example:80", "b.example"),
        ("https://b.example:8443", "b.example:8443"),
        ("https://b.example:80", "b.example:80"),
        ("http://[::1]:9000", "[::1]:9000"),
        ("https://[::1]:443", "[::1]"),
    ] {
        let upstream = upstream(base);
        let mut request = post("https://a.example/v1", "");
        let bare = request.aim(&Destination::new(&upstream)).unwrap();
        assert_eq!(bare.uri().authority().unwrap().as_str(), host);
        assert!(!bare.headers().contains_key(HOST), "the client derives it from the URL");
        request.headers_mut().insert(HOST, HeaderValue::from_static("a.example"));
        let aimed = request.aim(&Destination::new(&upstream)).unwrap();
        assert_eq!(aimed.headers().get_all(HOST).iter().collect::<Vec<_>>(), [host]);
    }
}

#[test]
fn b100_no_two_parts_of_a_request_name_two_models() {
    let (upstream, model) = (upstream("https://b.example"), key("b/mini"));
    for (uri, aimed_uri) in [
        ("/v1/chat?model=forbidden", "/v1/chat?model=b%2Fmini"),
        ("/v1/chat?model=x&a=1&model=y", "/v1/chat?a=1&model=b%2Fmini"),
        ("/openai/deployments/forbidden/chat?v=1", "/openai/deployments/b%2Fmini/chat?v=1"),
    ] {
        let request = post(uri, r#"{"model":"allowed","model":"twice"}"#);
        let aimed = request.aim(&Destination::new(&upstream).model(&model)).unwrap();
        assert_eq!(aimed.uri().path_and_query().unwrap(), aimed_uri);
        assert_eq!(aimed.body().bytes().unwrap(), r#"{"model":"b/mini","model":"b/mini"}"#);
    }
}

#[test]
fn a_model_that_only_the_path_names_is_replaced_there() {
    let (upstream, model) = (upstream("https://b.example"), key("gemini-mini"));
    for (path, expected) in [
        (
            "/v1beta/models/gemini-large:streamGenerateContent",
            "/v1beta/models/gemini-mini:streamGenerateContent",
        ),
        ("/model/vendor.large-v1:0/converse", "/model/gemini-mini/converse"),
        ("/v1/projects/p/models/x:predict", "/v1/projects/p/models/gemini-mini:predict"),
    ] {
        let aimed = post(path, r#"{"contents":[]}"#).aim(&Destination::new(&upstream).model(&model)).unwrap();
        assert_eq!(aimed.uri().path(), expected);
        assert_eq!(aimed.body().bytes().unwrap(), r#"{"contents":[]}"#);
    }
}

#[test]
fn a_request_whose_model_cannot_be_replaced_says_so_and_keeps_its_own() {
    let (upstream, model) = (upstream("https://b.example"), key("b"));
    let at = Destination::new(&upstream);
    for body in ["{}", r#"{"model":5}"#, "not json"] {
        let request = post("/v1/chat", body);
        assert_eq!(request.aim(&at.model(&model)).unwrap_err(), Misfit::NotRewritable, "{body}");
        assert_eq!(request.aim(&at).unwrap().body().bytes().unwrap(), body, "its own model is no change");
    }
    let list = Request::get("/v1/list").body(CallBody::empty()).unwrap();
    assert!(list.aim(&at.model(&model)).is_ok(), "there is nothing to name");
}

#[test]
fn the_call_names_model_and_upstream_and_the_original_stays() {
    let mut request = post("/v1", r#"{"model":"a"}"#);
    request.extensions_mut().insert(Call::default());
    let (upstream, model) = (upstream("https://b.example"), key("b"));
    let aimed = request.aim(&Destination::new(&upstream).model(&model)).unwrap();
    let call = aimed.call().unwrap();
    assert_eq!((call.model.as_ref(), call.upstream.as_ref()), (Some(&model), Some(upstream.name())));
    assert_eq!(request.call().unwrap().model, None);
    assert_eq!(request.uri(), "/v1");
}

#[test]
fn headers_of_an_upstream_replace_the_callers() {
    let mut request = post("/v1", "");
    request.headers_mut().append("x-version", HeaderValue::from_static("1"));
    request.headers_mut().append("x-version", HeaderValue::from_static("2"));
    let upstream = upstream("https://b.example").header("x-version", "3").unwrap();
    let aimed = request.aim(&Destination::new(&upstream)).unwrap();
    assert_eq!(aimed.headers().get_all("x-version").iter().collect::<Vec<_>>(), ["3"]);
}

#[test]
fn a_setting_that_cannot_work_names_its_field_and_shows_no_secret() {
    for (base, problem) in [
        ("", "URL"),
        ("api.example.com/v1", "http"),
        ("/v1", "http"),
        ("ftp://b.example", "http"),
        ("https://", "URL"),
        ("https://user:hunter2@b.example", "user"),
        ("https://b.example/a b", "URL"),
        ("https://:443", ""),
    ] {
        let error = Upstream::new("b", base).unwrap_err();
        assert_eq!(error.field(), "base_url", "{base}");
        assert!(
            error.problem().contains(problem) && !error.to_string().contains("hunter2"),
            "{base}: {error}"
        );
    }
    assert_eq!(Upstream::new("", "https://b.example").unwrap_err().field(), "name");
    for bad in ["", " ", "hunter2\n", "hunter2\r\nx: y", "hunter2\0"] {
        let errors =
            [Credential::bearer(bad), Credential::header("x-api-key", bad), Credential::query("key", bad)];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.field(), "credential", "{bad:?}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
    assert_eq!(Credential::header("x y", "s").unwrap_err().field(), "credential.header");
    assert_eq!(upstream("https://b.example").header("Host", "x").unwrap_err().field(), "headers.Host");
    assert_eq!(upstream("https://b.example").header("x", "a\nb").unwrap_err().field(), "headers.x");
    assert_eq!(upstream("https://b.example").strip_prefix("v1").unwrap_err().field(), "strip_prefix");
}
