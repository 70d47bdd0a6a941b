//! Reported faults of fallback chains, by their numbers.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use seawall::call::{CallBody, Credential, IntakeLayer, OutcomeLayer, Upstream};
use seawall::fallback::{Attempts, Commit, FallbackLayer, Route, Routes, Target};
use seawall::{BoxError, Class, Failure, RefusalKind};
use tower::{Layer, Service, ServiceExt};

use super::provider::*;

#[tokio::test(start_paused = true)]
async fn b089_each_target_gets_its_own_model_and_otherwise_the_same_json() {
    let providers = Providers::new().on("a", [status(503, "{}")]).on("b", [ok()]);
    let layer = two();
    for _ in 0..2 {
        assert_eq!(ask(layer.clone(), &providers).await.by(), "b");
    }
    let bodies: Vec<_> = providers.seen().into_iter().map(|seen| seen.body).collect();
    let (a, b) = (CHAT.replace("large", "a-large"), CHAT.replace("large", "b-mini"));
    assert_eq!(bodies, [&a, &b, &a, &b].map(|body| Bytes::from(body.clone())));
}

#[tokio::test(start_paused = true)]
async fn b091_no_upstream_sees_the_secret_of_another() {
    let providers =
        Providers::new().on("a", [status(503, "{}")]).on("b", [status(503, "{}")]).on("c", [ok()]);
    let keyed = Upstream::new("b", "https://b/v1").unwrap();
    let keyed = keyed.credential(Credential::query("key", "secret-of-b").unwrap());
    let header = Upstream::new("c", "https://c/v1").unwrap();
    let header = header.credential(Credential::header("x-private", "secret-of-c").unwrap());
    let routes = Routes::builder().upstream(upstream("a")).upstream(keyed).upstream(header);
    let route = Route::to("large").target(Target::at("a")).target(Target::at("b")).target(Target::at("c"));
    let layer = FallbackLayer::new(routes.route(route).build().unwrap());
    let mut request = request(CHAT);
    *request.uri_mut() =
        "https://caller.invalid/v1/chat/completions?key=secret-of-caller&x=1".parse().unwrap();
    for name in ["authorization", "x-api-key", "cookie", "x-private"] {
        request.headers_mut().insert(name, "secret-of-caller".parse().unwrap());
    }
    client(layer, &providers).oneshot(request).await.unwrap();
    for seen in providers.seen() {
        let all = format!("{} {:?} {:?}", seen.uri, seen.headers, seen.body);
        // Sensitive headers hide in `Debug`: their values are looked at one by one.
        let values: Vec<_> = seen.headers.values().map(|value| value.to_str().unwrap()).collect();
        let all = format!("{all} {}", values.join(" "));
        let own = format!("secret-of-{}", seen.host);
        assert_eq!(all.matches("secret-of-").count(), all.matches(&own).count(), "{all}");
        assert_eq!(all.matches(&own).count(), 1, "its own once: {all}");
        assert!(seen.uri.query().unwrap().contains("x=1"));
    }
    assert_eq!(providers.asked(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn b092_the_answer_has_the_headers_of_its_own_target_only() {
    let limited = status(429, "{}").header("retry-after", "60").header("x-request-id", "of-a");
    let big = limited.header("x-noise", "n".repeat(64 * 1024));
    let providers = Providers::new().on("a", [big]).on("b", [ok().header("x-request-id", "of-b")]);
    let got = ask(two(), &providers).await;
    assert_eq!(got.headers["x-request-id"], "of-b");
    assert_eq!(got.headers.len(), 2, "{:?}", got.headers);
    let told = FallbackLayer::builder(routes(route())).tell_headers().build().unwrap();
    let got = ask(told, &providers).await;
    assert_eq!(
        (&got.headers["x-served-by"], &got.headers["x-targets-asked"]),
        (&"b".parse().unwrap(), &"2".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn b094_b095_the_length_follows_the_model_at_each_attempt() {
    for model in ["longer-by-some", "x", "large"] {
        let providers = Providers::new().on("a", [status(503, "{}")]).on("b", [ok()]);
        let route = Route::to("large").target(Target::at("a")).target(Target::at("b").model(model));
        let mut request = request(CHAT);
        request.headers_mut().insert("content-length", CHAT.len().into());
        client(FallbackLayer::new(routes(route)), &providers).oneshot(request).await.unwrap();
        for seen in providers.seen() {
            assert_eq!(seen.headers["content-length"], seen.body.len().to_string());
            assert!(!seen.headers.contains_key("transfer-encoding"));
        }
        assert_eq!(providers.seen()[1].body, CHAT.replace("large", model));
    }
}

#[tokio::test(start_paused = true)]
async fn b097_b098_path_query_and_host_are_those_of_each_target() {
    let providers = Providers::new().on("a", [status(503, "{}")]).on("::1", [ok()]).on("[::1]", [ok()]);
    let odd = Upstream::new("b", "http://[::1]:8080/openai/v1?api-version=7").unwrap();
    let routes = Routes::builder().upstream(upstream("a")).upstream(odd).route(route()).build().unwrap();
    let mut request = request(CHAT);
    *request.uri_mut() = "https://caller.invalid/v1/chat/completions?x=1".parse().unwrap();
    request.headers_mut().insert("host", "caller.invalid".parse().unwrap());
    client(FallbackLayer::new(routes), &providers).oneshot(request).await.unwrap();
    let seen = providers.seen();
    assert_eq!(
        (seen[0].uri.to_string(), &seen[0].headers["host"]),
        ("https://a/v1/chat/completions?x=1".into(), &"a".parse().unwrap())
    );
    assert_eq!(seen[1].uri, "http://[::1]:8080/openai/v1/chat/completions?x=1&api-version=7");
    assert_eq!(seen[1].headers["host"], "[::1]:8080");
}

#[tokio::test(start_paused = true)]
async fn b100_a_model_in_the_query_names_the_same_one_as_the_body() {
    let providers = Providers::new().on("a", [ok()]);
    let mut request = request(CHAT);
    *request.uri_mut() = "https://caller.invalid/v1/chat/completions?model=forbidden".parse().unwrap();
    client(two(), &providers).oneshot(request).await.unwrap();
    let seen = providers.seen().remove(0);
    assert_eq!(seen.uri.query(), Some("model=a-large"));
    assert!(!format!("{}{:?}", seen.uri, seen.body).contains("forbidden"));
}

#[tokio::test(start_paused = true)]
async fn b101_b103_only_the_bytes_of_the_top_level_model_change() {
    let odd = r#"{"tools":[{"model":"large","n":4634343214213523454}], "x":1e400,"y":0.1000,"z":-0,"s":"\ud800 \u0041","d":{"a":1,"a":2}, "m\u006fdel" : "large"}"#;
    let providers = Providers::new().on("a", [status(503, "{}")]).on("b", [ok()]);
    client(two(), &providers).oneshot(request(odd)).await.unwrap();
    let at = odd.rfind("\"large\"").unwrap();
    let expected = format!("{}\"b-mini\"{}", &odd[..at], &odd[at + 7..]);
    assert_eq!(providers.seen()[1].body, expected);
}

#[tokio::test(start_paused = true)]
async fn b104_a_form_gets_the_model_of_its_target_and_keeps_its_file() {
    let file = "f".repeat(1 << 20);
    let form = format!(
        "--sep\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nlarge\r\n--sep\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n{file}\r\n--sep--\r\n"
    );
    let providers = Providers::new().on("a", [status(503, "{}")]).on("b", [ok()]);
    let mut request = request(&form);
    request.headers_mut().insert("content-type", "multipart/form-data; boundary=sep".parse().unwrap());
    client(two(), &providers).oneshot(request).await.unwrap();
    let seen = providers.seen();
    assert!(
        seen[0].body == form.replace("large", "a-large") && seen[1].body == form.replace("large", "b-mini")
    );
}

#[tokio::test(start_paused = true)]
async fn b104_what_cannot_be_rewritten_goes_where_the_name_stays_and_the_error_is_the_original() {
    let providers = Providers::new().on("a", [status(503, "first")]).on("b", [ok()]);
    let route = Route::default_route().target(Target::at("a")).target(Target::at("b").model("b-mini"));
    let mut request = request("not a form and not JSON");
    request.headers_mut().insert("content-type", "application/octet-stream".parse().unwrap());
    let got =
        read(client(FallbackLayer::new(routes(route)), &providers).oneshot(request).await.unwrap()).await;
    assert_eq!((got.status, got.body.as_str()), (503, "first"));
    assert_eq!(providers.asked(), ["a"]);
    assert_eq!(
        got.attempts.unwrap().to_string(),
        "a: Transient (503), b: passed over (Misfit(NotRewritable))"
    );
}

#[tokio::test(start_paused = true)]
async fn b106_the_last_response_of_an_exhausted_chain_is_unchanged() {
    let bad = r#"{"error":{"type":"invalid_request_error","message":"max_tokens is too large"}}"#;
    let providers =
        Providers::new().on("a", [status(503, "{}")]).on("b", [status(400, bad).header("x-id", "7")]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.status, got.body.as_str(), &got.headers["x-id"]), (400, bad, &"7".parse().unwrap()));
    let attempts = got.attempts.unwrap();
    assert_eq!(attempts.to_string(), "a: Transient (503), b: Invalid (400)", "the first failure is told too");
    assert_eq!(attempts.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn b107_each_target_is_asked_at_most_once_a_pass() {
    let providers = Providers::new().on("a", [status(500, "{}")]).on("b", [status(500, "last")]);
    let mut client = client(two(), &providers);
    for pass in 1..=2 {
        let got = read(client.ready().await.unwrap().call(request(CHAT)).await.unwrap()).await;
        assert_eq!((got.status, got.body.as_str()), (500, "last"));
        assert_eq!(
            providers.asked().len(),
            2 * pass,
            "an outer loop's passes times the targets, and no more"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn b109_nothing_of_the_first_attempt_is_seen_in_the_second() {
    let cut = steps(vec![send(ROLE), send(TOKEN), Step::Cut]);
    let providers = Providers::new().on("a", [stream(&[DONE])]).on("b", [cut]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.by(), got.broken), ("b", true), "a cut stream ends in an error");
    assert!(!got.body.contains("[DONE]"));
    assert_eq!(got.outcome.unwrap().verdict().unwrap().class(), Class::Transient);
}

#[tokio::test(start_paused = true)]
async fn b110_an_error_before_content_falls_over_and_the_caller_sees_nothing_of_it() {
    for failing in [stream(&[PING, ROLE, STREAM_ERROR]), stream(&[]), stream(&[PING]), stream(&[ROLE, DONE])]
    {
        let providers = Providers::new().on("a", [failing]).on("b", [healthy_stream()]);
        let got = ask(two(), &providers).await;
        assert_eq!(got.by(), "b");
        assert_eq!(got.body, [ROLE, TOKEN, STOP, USAGE, DONE].concat());
        assert_eq!(got.served.unwrap().attempts().asked(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b110_a_healthy_stream_passes_frame_by_frame_without_delay() {
    let wait = || Step::Wait(SECOND);
    let slow = steps(vec![
        send(PING),
        wait(),
        send(ROLE),
        wait(),
        send(TOKEN),
        wait(),
        send(TOKEN),
        wait(),
        send(DONE),
    ]);
    let providers = Providers::new().on("a", [slow]);
    let start = seawall::time::now();
    let mut body = client(two(), &providers).oneshot(request(CHAT)).await.unwrap().into_body();
    assert_eq!(start.elapsed(), 2 * SECOND, "the head comes with the first content");
    let mut times = Vec::new();
    while let Some(frame) = body.frame().await {
        times.push((frame.unwrap().into_data().unwrap(), start.elapsed().as_secs()));
    }
    let expected = [(PING, 2), (ROLE, 2), (TOKEN, 2), (TOKEN, 3), (DONE, 4)];
    assert_eq!(times, expected.map(|(text, at)| (Bytes::from(text), at)));
}

#[tokio::test(start_paused = true)]
async fn b112_two_streams_that_fail_before_content_make_a_plain_error() {
    let failing = || stream(&[PING, ROLE, STREAM_ERROR]);
    let providers = Providers::new().on("a", [failing()]).on("b", [failing()]);
    let error = try_ask(two(), &providers).await.err().unwrap();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.kind(), RefusalKind::NoTarget);
    assert_eq!(refusal.to_response().status(), 503);
    assert_eq!(refusal.previous().unwrap().verdict().class(), Class::Transient);
    assert_eq!(Attempts::find(&*error).unwrap().asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn b112_an_error_with_a_status_goes_before_a_stream_that_failed() {
    let providers = Providers::new().on("a", [status(503, "busy")]).on("b", [stream(&[ROLE, STREAM_ERROR])]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.status, got.body.as_str()), (503, "busy"));
}

#[tokio::test(start_paused = true)]
async fn b145_a_character_that_is_cut_by_frames_passes_untouched() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"日本\"}}]}\n\n".as_bytes();
    for at in 0..text.len() {
        let (one, two_) = (Bytes::from_static(&text[..at]), Bytes::from_static(&text[at..]));
        let cut = steps(vec![Step::Send(one), Step::Send(two_), send(DONE)]);
        let providers = Providers::new().on("a", [cut]);
        let got = ask(two(), &providers).await;
        assert_eq!(got.body.as_bytes(), [text, DONE.as_bytes()].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn b149_a_preamble_without_end_commits_at_its_bound_and_says_so() {
    let mut endless: Vec<Step> = (0..400).map(|_| Step::Send(Bytes::from(vec![b':'; 1024]))).collect();
    endless.push(send("\n\n"));
    endless.push(send(TOKEN));
    let providers = Providers::new().on("a", [steps(endless)]).on("b", [ok()]);
    let response = client(two(), &providers).oneshot(request(CHAT)).await.unwrap();
    let got = read(response).await;
    assert_eq!(got.by(), "a");
    assert!(got.served.unwrap().committed_early());
    assert_eq!(got.body.len(), 400 * 1024 + 2 + TOKEN.len());
    let empty = steps(std::iter::repeat_n(send(""), 5_000).chain([send(TOKEN)]).collect());
    let providers = Providers::new().on("a", [empty]);
    let got = ask(two(), &providers).await;
    assert!(got.served.unwrap().committed_early(), "empty frames are bounded too");
}

#[tokio::test(start_paused = true)]
async fn b152_the_status_decides_before_the_type_of_the_content() {
    let limited = status(429, "{\"error\":{}}");
    let Reply::Answer { after, status, steps, .. } = limited else { unreachable!() };
    let headers = vec![("content-type", "text/event-stream".into())];
    let providers = Providers::new()
        .on("a", [Reply::Answer { after, status, headers, steps }])
        .on("b", [healthy_stream()]);
    assert_eq!(ask(two(), &providers).await.by(), "b");
}

#[tokio::test(start_paused = true)]
async fn b154_trailers_pass_and_failing_ones_fall_over() {
    let grpc = |steps| {
        let headers = vec![("content-type", "application/grpc".into())];
        Reply::Answer { after: Duration::ZERO, status: 200, headers, steps }
    };
    let trailers = |code: &str| {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", code.parse().unwrap());
        Step::Trailers(trailers)
    };
    let providers = Providers::new()
        .on("a", [grpc(vec![trailers("14")])])
        .on("b", [grpc(vec![send("frame"), trailers("0")])]);
    let response = client(two(), &providers).oneshot(request(CHAT)).await.unwrap();
    let (data, trailers, error) = crate::support::read(response.into_body()).await;
    assert_eq!((data.as_slice(), error), (&b"frame"[..], None));
    assert_eq!(trailers.unwrap()["grpc-status"], "0");
    assert_eq!(providers.asked(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn b184_leaving_while_the_first_frames_are_looked_at_ends_the_call() {
    let providers = Providers::new().on("a", [steps(vec![send(PING), Step::Stall])]).on("b", [ok()]);
    let client = client(two(), &providers);
    let call = tokio::time::timeout(SECOND, client.oneshot(request(CHAT)));
    assert!(call.await.is_err());
    assert_eq!(providers.alive.now(), 0, "the inner body is gone with its caller");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(providers.asked(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn b187_leaving_between_two_targets_asks_nobody_else() {
    let slow = status(503, "{}").after(30 * SECOND);
    let providers = Providers::new().on("a", [slow]).on("b", [ok()]);
    let call = tokio::time::timeout(29 * SECOND, client(two(), &providers).oneshot(request(CHAT)));
    assert!(call.await.is_err());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((providers.asked().len(), providers.alive.now()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_sent_and_not_kept_is_not_sent_by_halves() {
    let frames = ["one ", "two"].map(|text| Ok::<_, BoxError>(http_body::Frame::data(Bytes::from(text))));
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let mut request = request("");
    *request.body_mut() = CallBody::streaming(body, 0);
    request.headers_mut().insert("content-type", "audio/wav".parse().unwrap());
    let providers = Providers::new().on("a", [status(503, "busy")]).on("b", [ok()]);
    let route = Route::default_route().target(Target::at("a")).target(Target::at("b"));
    let layer = FallbackLayer::new(routes(route));
    let inner = OutcomeLayer::new().layer(providers.clone());
    let stack = over(IntakeLayer::new().record(0), layer, inner);
    let got = read(stack.oneshot(request).await.unwrap()).await;
    assert_eq!((got.status, providers.asked().len()), (503, 1));
    assert_eq!(providers.seen()[0].body, "one two");
}

#[tokio::test(start_paused = true)]
async fn b091_the_providers_of_all_scenarios_notice_a_foreign_secret() {
    let leaks = |request: Request<CallBody>| {
        let providers = Providers::new().on("a", [ok()]);
        tokio::spawn(async move { drop(providers.oneshot(request).await) })
    };
    let to_a = || Request::post("https://a/v1").header("authorization", "Bearer secret-of-a");
    assert!(leaks(to_a().body(CallBody::empty()).unwrap()).await.is_ok());
    let header = to_a().header("x-api-key", "secret-of-b").body(CallBody::empty()).unwrap();
    let body = to_a().body(CallBody::from("secret-of-caller")).unwrap();
    let mut query = to_a().body(CallBody::empty()).unwrap();
    *query.uri_mut() = "https://a/v1?key=secret-of-c".parse().unwrap();
    for request in [header, body, query] {
        assert!(leaks(request).await.unwrap_err().is_panic());
    }
    let shown = std::panic::catch_unwind(|| without_secret(&"Bearer secret-of-a"));
    assert!(shown.is_err());
}

#[tokio::test(start_paused = true)]
async fn b172_an_encoded_answer_passes_with_its_length_its_tag_and_its_bytes() {
    let plain = ANSWER.repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, plain.as_bytes()).unwrap();
    let bytes = Bytes::from(gzip.finish().unwrap());
    let (half, rest) = (bytes.slice(..bytes.len() / 2), bytes.slice(bytes.len() / 2..));
    let headers = vec![
        ("content-type", "application/json".into()),
        ("content-encoding", "gzip".into()),
        ("content-length", bytes.len().to_string()),
        ("etag", "\"tag\"".into()),
    ];
    let steps = vec![Step::Send(half), Step::Send(rest)];
    let reply = Reply::Answer { after: Duration::ZERO, status: 200, headers: headers.clone(), steps };
    for commit in [Commit::Head, Commit::FirstContent, Commit::End] {
        let providers = Providers::new().on("a", [reply.clone()]);
        let layer = FallbackLayer::new(routes(route().commit(commit)));
        let response = client(layer, &providers).oneshot(request(CHAT)).await.unwrap();
        for (name, value) in &headers {
            assert_eq!(response.headers()[*name], value.as_str());
        }
        assert_eq!(response.headers().len(), headers.len());
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), bytes);
    }
}
