use http::HeaderValue;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::provider::fixtures::{self, WALL};

type Short = (Class, Scope, Reason);

const NONE: Reason = Reason::Unspecified;
const EXHAUSTED: Short = (Class::Exhausted, Scope::Account, NONE);
const DENIED: Short = (Class::Denied, Scope::Account, NONE);
const INVALID: Short = (Class::Invalid, Scope::Request, NONE);
const POLICY: Short = (Class::Invalid, Scope::Request, Reason::Policy);
const CONTEXT: Short = (Class::Unfit, Scope::Model, Reason::Context);
const MODEL: Short = (Class::Unfit, Scope::Model, Reason::Model);
const LIMIT: Short = (Class::Unfit, Scope::Model, Reason::Limit);
const TRANSIENT: Short = (Class::Transient, Scope::Upstream, NONE);
const CAPACITY: Short = (Class::Transient, Scope::Upstream, Reason::Capacity);
const BY_ACCOUNT: Short = (Class::Throttled, Scope::Account, NONE);
const BY_MODEL: Short = (Class::Throttled, Scope::Model, NONE);
const SUCCESS: Short = (Class::Success, Scope::Request, NONE);

fn short(verdict: Verdict) -> Short {
    (verdict.class(), verdict.scope(), verdict.reason())
}

fn with_headers(status: u16, fields: &[(&'static str, &str)], body: &str) -> Verdict {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    classify(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), WALL)
}

fn read(status: u16, body: &Value) -> Short {
    short(with_headers(status, &[], &body.to_string()))
}

#[test]
fn every_sample_is_read_as_the_index_says() {
    let mut seen = 0;
    for entry in fixtures::index().iter().filter(|entry| !entry.is_grpc() && !entry.is_stream()) {
        let sample = entry.sample();
        // Their own `Date` counts, and not the wall clock.
        let verdict = classify(sample.status, &sample.headers, &sample.body, Duration::ZERO);
        let said = (
            format!("{:?}", verdict.class()),
            format!("{:?}", verdict.scope()),
            Some(format!("{:?}", verdict.reason())).filter(|reason| reason != "Unspecified"),
            verdict.hint(),
        );
        let wanted = (entry.class.clone(), entry.scope.clone(), entry.reason.clone(), entry.hint);
        assert_eq!(said, wanted, "{}", entry.file);
        seen += 1;
    }
    assert_eq!(seen, 30);
}

#[test]
fn a_code_overrules_the_status_and_a_family_does_not() {
    for code in [
        "insufficient_quota",
        "billing_not_active",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    ] {
        assert_eq!(read(429, &json!({"error": {"type": "x", "code": code}})), EXHAUSTED, "{code}");
    }
    // A code that is not known yet, under a type that is.
    assert_eq!(read(429, &json!({"error": {"type": "insufficient_quota", "code": "new"}})), EXHAUSTED);
    assert_eq!(read(402, &json!({"error": {"code": "invalid_request_error"}})), EXHAUSTED, "by status");
    assert_eq!(read(429, &json!({"error": {"type": "rate_limit_error", "code": "slow_down"}})), BY_ACCOUNT);
    assert_eq!(read(503, &json!({"error": {"code": "slow_down"}})), BY_ACCOUNT);
    assert_eq!(read(429, &json!({"error": {"type": "tokens", "code": "rate_limit_exceeded"}})), BY_MODEL);
    assert_eq!(
        read(429, &json!({"error": {"code": "429", "message": "high demand"}})),
        BY_MODEL,
        "a deployment"
    );
    assert_eq!(read(429, &json!({"error": {"code": "flex_unavailable"}})), CAPACITY);
    assert_eq!(read(500, &json!({"error": {"type": "server_error", "code": null}})), TRANSIENT);
}

#[test]
fn requests_at_fault_are_told_from_targets_that_do_not_fit() {
    let openai = |code: &str| read(400, &json!({"error": {"type": "invalid_request_error", "code": code}}));
    assert_eq!(openai("context_length_exceeded"), CONTEXT);
    assert_eq!(openai("string_above_max_length"), INVALID, "a field, and not the context");
    assert_eq!(openai("unsupported_parameter"), INVALID);
    assert_eq!(openai("invalid_encrypted_content"), INVALID);
    assert_eq!(openai("cyber_policy"), POLICY);
    assert_eq!(openai("model_not_found"), MODEL);
    let anthropic = |status, kind: &str, text: &str| {
        read(status, &json!({"type": "error", "error": {"type": kind, "message": text}}))
    };
    assert_eq!(anthropic(404, "not_found_error", "model: x"), MODEL);
    assert_eq!(anthropic(413, "request_too_large", ""), INVALID);
    assert_eq!(anthropic(400, "invalid_request_error", "Output blocked by content filtering policy"), POLICY);
    assert_eq!(anthropic(400, "invalid_request_error", "quoted: prompt is too long"), INVALID);
    assert_eq!(anthropic(401, "authentication_error", ""), DENIED);
    assert_eq!(anthropic(403, "permission_error", ""), DENIED);
    assert_eq!(anthropic(529, "overloaded_error", ""), CAPACITY);
    assert_eq!(anthropic(409, "conflict_error", ""), TRANSIENT);
    assert_eq!(read(403, &json!({"error": {"code": 403, "metadata": {"reasons": ["violence"]}}})), POLICY);
    assert_eq!(read(403, &json!({"error": {"code": 403, "metadata": {"provider_name": "p"}}})), INVALID);
    let deployment = json!({"error": {"code": "DeploymentNotFound"}});
    assert_eq!(read(404, &deployment), MODEL);
}

#[test]
fn codes_in_details_go_before_those_beside_the_sentence() {
    let anthropic = |status, code: &str| {
        let error = json!({"type": "rate_limit_error", "details": {"error_code": code}});
        read(status, &json!({"type": "error", "error": error}))
    };
    assert_eq!(anthropic(429, "contract_spend_limit_reached"), EXHAUSTED);
    assert_eq!(anthropic(429, "ramp_limit_exceeded"), BY_ACCOUNT);
    assert_eq!(anthropic(400, "organization_on_hold"), DENIED);
    let key = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"});
    let google = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [key]}});
    assert_eq!(read(400, &google), DENIED);
}

#[test]
fn a_request_above_the_limit_is_told_by_its_numbers() {
    let openai = |status, text: &str| {
        read(status, &json!({"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}}))
    };
    let large = "Request too large for m on tokens per min (TPM): Limit 100, Requested 101.";
    assert_eq!(openai(429, large), LIMIT);
    assert_eq!(openai(413, large), LIMIT);
    assert_eq!(openai(429, "Request too large for m: Limit 100, Requested 100."), BY_MODEL);
    assert_eq!(openai(429, "Request too large for m: Limit 100, Used 90, Requested 101."), BY_MODEL);
    assert_eq!(openai(429, "Rate limit reached: Limit 100, Requested 101."), BY_MODEL);
}

#[test]
fn google_quotas_are_told_by_their_ids() {
    let quota = |violations: Value, message: &str| {
        let failure =
            json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations});
        let status = "RESOURCE_EXHAUSTED";
        let error = json!({"code": 429, "status": status, "message": message, "details": [failure]});
        // As an object, and as an array of one.
        let once = read(429, &json!({"error": error}));
        assert_eq!(read(429, &json!([{"error": error}])), once);
        once
    };
    let day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    assert_eq!(quota(json!([{"quotaId": day, "quotaValue": "50"}]), "").0, Class::Exhausted);
    assert_eq!(quota(json!([{"quotaId": "TokensPerMinutePerProject"}]), ""), BY_ACCOUNT);
    assert_eq!(quota(json!([{"quotaId": "TokensPerMinutePerModel"}]), ""), BY_MODEL);
    assert_eq!(quota(json!([{"quotaId": day, "quotaValue": "0"}]), ""), MODEL, "not in this plan");
    assert_eq!(quota(json!([{"quotaId": day}]), "Exceeded: metric x, limit: 0, model: m"), MODEL);
    assert_eq!(quota(json!([{"quotaId": day}]), "metric x, limit: 0.5").0, Class::Exhausted);
    assert_eq!(
        read(429, &json!({"error": {"code": "quota_exceeded"}})),
        (Class::Exhausted, Scope::Model, NONE)
    );
    assert_eq!(read(400, &json!({"error": {"code": 400, "status": "FAILED_PRECONDITION"}})), DENIED);
    let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let long = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": long}});
    assert_eq!(read(400, &long), CONTEXT);
}

#[test]
fn routers_clouds_and_small_shapes_are_read() {
    let router =
        |status, metadata: Value| read(status, &json!({"error": {"code": status, "metadata": metadata}}));
    assert_eq!(router(402, json!({"limit_source": "openrouter_in_flight_budget"})), BY_ACCOUNT, "it passes");
    assert_eq!(router(402, json!({"reason": "weight_exceeds_budget"})), EXHAUSTED);
    let cloud = |status, name: &str, text: &str| {
        let body = json!({"message": text}).to_string();
        short(with_headers(status, &[("x-amzn-errortype", name)], &body))
    };
    assert_eq!(cloud(429, "ThrottlingException:http://a/b", ""), BY_ACCOUNT);
    assert_eq!(cloud(429, "ModelNotReadyException", ""), CAPACITY);
    assert_eq!(cloud(424, "com.amazon#ModelErrorException", ""), TRANSIENT);
    assert_eq!(cloud(400, "ServiceQuotaExceededException", ""), EXHAUSTED);
    assert_eq!(cloud(400, "ValidationException", "Input is too long for requested model."), CONTEXT);
    assert_eq!(cloud(400, "ValidationException", "bad"), INVALID);
    assert_eq!(cloud(403, "AccessDeniedException", ""), DENIED);
    let text = |error: &str| read(429, &json!({"code": "Some resource has been exhausted", "error": error}));
    assert_eq!(text("Your team has used all available credits."), EXHAUSTED);
    assert_eq!(text("Too many requests."), BY_ACCOUNT);
    assert_eq!(read(422, &json!({"detail": [{"msg": "bad"}]})), INVALID);
    let capacity = json!({"type": "https://x/y#temporary-reduced-capacity", "status": 503});
    assert_eq!(read(503, &capacity), CAPACITY);
}

#[test]
fn a_limit_of_zero_a_minute_never_passes_where_zero_means_it() {
    let verdict = |name, limit| short(with_headers(429, &[(name, limit)], "{}"));
    assert_eq!(verdict("x-ratelimit-limit-req-minute", "0"), MODEL);
    assert_eq!(verdict("x-ratelimit-limit-req-minute", "1"), BY_ACCOUNT);
    assert_eq!(verdict("x-ratelimit-limit-requests", "0"), BY_ACCOUNT, "unknown");
}

#[test]
fn a_prohibition_that_asks_for_a_wait_is_a_quota() {
    let wait = [("retry-after", "60")];
    let verdict = with_headers(403, &wait, r#"{"statusCode": 403}"#);
    assert_eq!((short(verdict), verdict.hint()), (EXHAUSTED, Some(Duration::from_secs(60))));
    assert_eq!(short(with_headers(403, &[], r#"{"statusCode": 403}"#)), INVALID);
}

#[test]
fn b169_should_retry_overrides_the_class() {
    let verdict = |status, says, body| with_headers(status, &[("x-should-retry", says)], body);
    assert_eq!(short(verdict(503, "false", "")), (Class::Unfit, Scope::Upstream, NONE));
    assert_eq!(verdict(429, "false", "").class(), Class::Unfit);
    assert_eq!(verdict(400, "true", "").class(), Class::Transient);
    assert_eq!(verdict(503, "maybe", "").class(), Class::Transient);
    assert_eq!(verdict(400, "maybe", "").class(), Class::Invalid);
    // What is stopped anyway keeps its class; a good answer is good.
    assert_eq!(verdict(400, "false", "").class(), Class::Invalid);
    assert_eq!(verdict(402, "false", "").class(), Class::Exhausted);
    assert_eq!(verdict(200, "true", "").class(), Class::Success);
    let both = [("x-should-retry", "true"), ("x-should-retry", "false")];
    assert_eq!(with_headers(503, &both, "").class(), Class::Unfit);
}

#[test]
fn b152_the_status_decides_before_the_content_type() {
    let kind = [("content-type", "text/event-stream"), ("retry-after", "2")];
    let verdict = with_headers(429, &kind, r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}"#);
    assert_eq!((verdict.class(), verdict.hint()), (Class::Throttled, Some(Duration::from_secs(2))));
}

#[test]
fn an_error_under_a_good_status_is_an_error() {
    assert_eq!(read(200, &json!({"error": {"code": 429, "message": "limited"}})), BY_ACCOUNT);
    assert_eq!(read(200, &json!({"error": {"code": 502, "message": "gone"}})), TRANSIENT);
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": ""}, "output": []});
    assert_eq!(read(200, &failed), TRANSIENT);
    assert_eq!(read(200, &json!({"promptFeedback": {"blockReason": "SAFETY"}})), POLICY);
    for good in [
        json!({"error": null, "output": []}),
        json!({"choices": [{"message": {"content": "{\"error\": {\"code\": 429}}"}}]}),
        json!({"choices": [], "error": {"code": 500}}),
        json!({"promptFeedback": {"blockReason": "X"}, "candidates": [{}]}),
        json!({"error": "a field of its own"}),
    ] {
        assert_eq!(read(200, &good), SUCCESS, "{good}");
    }
}

#[test]
fn errors_inside_a_stream_need_no_status() {
    let read = |event: Value| short(in_stream(&event, WALL));
    assert_eq!(read(json!({"type": "error", "error": {"type": "overloaded_error"}})), CAPACITY);
    assert_eq!(read(json!({"type": "error", "code": "rate_limit_exceeded", "message": ""})), BY_MODEL);
    let failed = json!({"response": {"error": {"code": "insufficient_quota", "message": ""}}});
    assert_eq!(read(failed), EXHAUSTED);
    assert_eq!(read(json!({"error": {"code": 400, "type": "invalid_request_error"}})), INVALID);
    assert_eq!(read(json!({"error": {"code": null, "type": "invalid_request_error"}})), INVALID);
    assert_eq!(read(json!({"error": {"code": 503, "status": "UNAVAILABLE"}})), CAPACITY);
    let router =
        json!({"choices": [{}], "error": {"code": 502, "metadata": {"error_type": "provider_unavailable"}}});
    assert_eq!(read(router), TRANSIENT);
    assert_eq!(read(json!({"x_groq": {"error": "over capacity"}})), TRANSIENT);
    assert_eq!(read(json!("text")), TRANSIENT);
    assert_eq!(short(of_code("throttlingException")), BY_ACCOUNT);
    assert_eq!(short(of_code("no such code")), TRANSIENT);
    let limited = json!({"error": {"code": "rate_limit_exceeded", "message": "Please try again in 1.146s."}});
    assert_eq!(in_stream(&limited, WALL).hint(), Some(Duration::from_millis(1_146)));
}

#[test]
fn bodies_that_say_nothing_leave_it_to_the_status() {
    let deep = "[".repeat(100_000);
    let nested = format!(r#"{{"error": {}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let long =
        format!(r#"{{"error": {{"code": "insufficient_quota", "message": "{}"}}}}"#, "x".repeat(BODY_LIMIT));
    let digits = format!(r#"{{"error": {{"code": {}}}}}"#, "9".repeat(60_000));
    let cut = r#"{"error": {"code": "insufficient_quota", "mess"#;
    for body in
        [&*deep, &*nested, &*long, &*digits, cut, "", "<html>insufficient_quota</html>", "null", "\u{0}"]
    {
        assert_eq!(short(with_headers(429, &[], body)), BY_ACCOUNT);
        assert_eq!(short(with_headers(500, &[], body)), TRANSIENT);
        assert_eq!(short(with_headers(200, &[], body)), SUCCESS);
    }
    assert_eq!(read(499, &json!({})).0, Class::Abandoned);
    assert_eq!(read(424, &json!({})), TRANSIENT);
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "error",
        "code",
        "type",
        "message",
        "status",
        "details",
        "metadata",
        "headers",
        "violations",
        "quotaId",
        "X-RateLimit-Reset",
        "retryDelay",
        "18s",
        "insufficient_quota",
        "RESOURCE_EXHAUSTED",
        "QuotaFailure",
        "type.googleapis.com/google.rpc.QuotaFailure",
        "@type",
        "reason",
        "Please try again in 5s",
        "429",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_makes_a_verdict_panic(status in 100_u16..1000, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let status = StatusCode::from_u16(status).unwrap();
        let verdict = classify(status, &HeaderMap::new(), &body, WALL);
        prop_assert_eq!(verdict.class(), of_status(status).class(), "noise says nothing");
    }

    #[test]
    fn no_json_makes_a_verdict_panic(status in 200_u16..600, json in any_json()) {
        let verdict = with_headers(status, &[], &json.to_string());
        prop_assert!(verdict.hint().is_none_or(|hint| !hint.is_zero() && hint <= hint::LONGEST));
        prop_assert!(!in_stream(&json, WALL).is_success());
    }
}
