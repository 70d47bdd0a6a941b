//! What a request pays in the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;
use crate::call::{Call, Estimate, Outcome, Usage};
use crate::refusal::{Refusal, RefusalKind};
use crate::time;
use crate::token_bucket::tests::support::n;
use crate::token_bucket::{Abandoned, Quota, TokenBucketBuilder, TokenBucketLayer};

/// A chat request: this many tokens in by estimate, at most this many out.
fn chat(input: u64, output: u64) -> Request<()> {
    let estimate = Some(Estimate::new(input, input * 4));
    let call = Call { estimate, output_bound: Some(output), ..Call::default() };
    let mut request = Request::new(());
    request.extensions_mut().insert(call);
    request
}

fn usage(input: u64, output: u64) -> Usage {
    let mut usage = Usage::default();
    (usage.input, usage.output) = (Some(input), Some(output));
    usage
}

type Frames = StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, BoxError>>>>;

/// Answers with three frames; the outcome says what `report` says.
fn answering(
    status: u16,
    report: Option<Usage>,
) -> impl Service<Request<()>, Response = Response<Frames>, Error = BoxError, Future: Send> + Clone {
    tower::service_fn(move |_: Request<()>| async move {
        let outcome = Arc::new(Outcome::new(time::now()));
        if let Some(report) = report {
            // Reported twice, as cumulative numbers are.
            outcome.update_usage(&report);
            outcome.update_usage(&report);
        }
        let frames = ["a", "b", ""].map(|text| Ok(Frame::data(Bytes::from(text))));
        let body = StreamBody::new(futures_util::stream::iter(Vec::from(frames)));
        Ok(Response::builder().status(status).extension(outcome).body(body)?)
    })
}

/// 60 requests and 6 000 tokens a minute.
fn builder() -> TokenBucketBuilder {
    TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(60)))
        .tokens(Quota::per_minute(n(6_000)))
        .refuse()
}

macro_rules! left {
    ($layer:expr) => {
        ["requests", "tokens"].map(|name| $layer.gate().level(name).unwrap().available)
    };
}

#[tokio::test(start_paused = true)]
async fn b064_a_response_is_charged_what_it_reports_and_the_next_waits_for_the_debt() {
    let layer = TokenBucketLayer::builder().tokens(Quota::per_minute(n(111))).refuse().build().unwrap();
    let service = layer.layer(answering(200, Some(usage(7_000, 3_000))));
    let response = service.clone().oneshot(chat(5, 5)).await.unwrap();
    response.into_body().collect().await.unwrap();
    let level = layer.gate().level("tokens").unwrap();
    assert_eq!((level.available, level.debt), (0, 10_000 - 111));
    let error = service.oneshot(chat(5, 5)).await.unwrap_err();
    let wait = crate::refusal::find(&*error).unwrap().retry_after().unwrap();
    let expected = Duration::from_secs(60) * (10_000 - 111 + 10) / 111;
    assert!(wait.abs_diff(expected) < Duration::from_micros(1), "{wait:?}, not {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn b065_a_stream_is_settled_once() {
    let layer = builder().build().unwrap();
    let service = layer.layer(answering(200, Some(usage(100, 50))));
    let mut body = service.oneshot(chat(200, 1_000)).await.unwrap().into_body();
    assert_eq!(left!(layer), [9, 4_800], "reserved while it runs");
    while let Some(frame) = body.frame().await {
        frame.unwrap();
    }
    assert_eq!(left!(layer), [9, 5_850]);
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(left!(layer), [9, 5_850]);
}

#[tokio::test(start_paused = true)]
async fn b067_each_dimension_is_settled_by_its_own_rule() {
    let layer = TokenBucketLayer::builder()
        .dimension("input", Quota::per_minute(n(1_000)), |_: &Request<()>| 100_u64)
        .settled_by("input", |usage| usage.input)
        .dimension("output", Quota::per_minute(n(1_000)), |_: &Request<()>| 100_u64)
        .settled_by("output", |usage| usage.output)
        .build()
        .unwrap();
    let service = layer.layer(answering(200, Some(usage(30, 170))));
    service.oneshot(Request::new(())).await.unwrap().into_body().collect().await.unwrap();
    let left = ["input", "output"].map(|name| layer.gate().level(name).unwrap().available);
    assert_eq!(left, [970, 830]);
}

#[tokio::test(start_paused = true)]
async fn b068_a_dropped_stream_pays_by_the_rule() {
    let partly = Some(Usage { output: Some(50), ..Usage::default() });
    for (rule, report, paid) in [
        (Abandoned::Known, Some(usage(90, 40)), 130),
        (Abandoned::Known, partly, 100 + 50),
        (Abandoned::Known, None, 100),
        (Abandoned::Keep, Some(usage(90, 40)), 4_000),
        (Abandoned::Refund, Some(usage(90, 40)), 0),
    ] {
        let layer = builder().abandoned(rule).build().unwrap();
        let service = layer.layer(answering(200, report));
        let mut body = service.oneshot(chat(100, 3_900)).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(left!(layer), [9, 6_000 - paid], "{rule:?} {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b068_what_has_passed_of_a_dropped_stream_is_paid_where_it_reports_nothing() {
    let reported = |input, output| Some(Usage { input, output, ..Usage::default() });
    for (bytes, report, paid) in [
        (2_000, None, 100 + 500),
        (1_000_000, None, 4_000),
        (2_000, reported(None, Some(30)), 130),
        (2_000, reported(Some(80), None), 80 + 500),
    ] {
        let service = tower::service_fn(move |_: Request<()>| async move {
            let outcome = Outcome::new(time::now());
            outcome.add_body_bytes(bytes);
            outcome.update_usage(&report.unwrap_or_default());
            let frames = ["a", "b"].map(|text| Ok(Frame::data(Bytes::from(text))));
            let body: Frames = StreamBody::new(futures_util::stream::iter(Vec::from(frames)));
            Ok::<_, BoxError>(Response::builder().extension(Arc::new(outcome)).body(body)?)
        });
        let layer = builder().build().unwrap();
        let response = layer.layer(service).oneshot(chat(100, 3_900)).await.unwrap();
        drop(response);
        assert_eq!(left!(layer), [9, 6_000 - paid], "{bytes} bytes, {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_left_comes_back_in_full_with_its_request() {
    let unsent: [fn() -> BoxError; 1] = [|| Refusal::new(RefusalKind::Full).into()];
    for error in unsent {
        let layer = builder().build().unwrap();
        let service =
            tower::service_fn(move |_: Request<()>| async move { Err::<Response<Frames>, _>(error()) });
        layer.layer(service).oneshot(chat(100, 900)).await.unwrap_err();
        assert_eq!(left!(layer), [10, 6_000]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_processed_is_kept() {
    let layer = builder().build().unwrap();
    let reset =
        tower::service_fn(|_: Request<()>| async { Err::<Response<Frames>, BoxError>("reset".into()) });
    layer.layer(reset).oneshot(chat(100, 900)).await.unwrap_err();
    assert_eq!(left!(layer), [9, 5_000]);
    // What an upstream throttled it did not process, but it counted the request.
    layer.layer(answering(429, None)).oneshot(chat(100, 900)).await.unwrap();
    assert_eq!(left!(layer), [8, 5_000]);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_its_head_was_sent_and_pays_its_input() {
    let layer = builder().build().unwrap();
    let never =
        tower::service_fn(|_: Request<()>| std::future::pending::<Result<Response<Frames>, BoxError>>());
    let mut call = tokio_test::task::spawn(layer.layer(never).oneshot(chat(100, 900)));
    assert!(call.poll().is_pending());
    drop(call);
    assert_eq!(left!(layer), [9, 5_900]);
}

#[tokio::test(start_paused = true)]
async fn nonsense_of_an_upstream_is_not_believed() {
    let layer = builder().build().unwrap();
    let mut absurd = usage(u64::MAX, 3);
    for anomalous in [false, true] {
        absurd.anomalous = anomalous;
        let service = layer.layer(answering(200, Some(absurd)));
        service.oneshot(chat(100, 400)).await.unwrap().into_body().collect().await.unwrap();
        absurd = usage(1, 1);
    }
    assert_eq!(left!(layer), [8, 5_000], "the estimate stands");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_users_closure_harms_its_own_call_alone() {
    let layer = TokenBucketLayer::builder()
        .tokens_by(Quota::per_minute(n(1_000)), |request: &Request<()>| {
            assert!(request.uri().path() != "/panic", "by the test");
            100_u64
        })
        .settled_by("tokens", |_| panic!("by the test"))
        .build()
        .unwrap();
    let service = layer.layer(answering(200, None));
    let mut panics = chat(1, 1);
    *panics.uri_mut() = "/panic".parse().unwrap();
    let call = service.clone();
    assert!(tokio::spawn(async move { call.oneshot(panics).await.map(drop) }).await.is_err());
    assert_eq!(layer.gate().level("tokens").unwrap().available, 1_000);
    service.oneshot(chat(1, 1)).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(layer.gate().level("tokens").unwrap().available, 900, "what was reserved is kept");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_described_costs_what_is_assumed_and_never_too_much() {
    let quota = Quota::per_minute(n(1_500));
    let layer =
        TokenBucketLayer::builder().tokens(quota).abandoned(Abandoned::Keep).refuse().build().unwrap();
    let service = layer.layer(answering(200, None));
    service.clone().oneshot(Request::new(())).await.unwrap();
    assert_eq!(layer.gate().level("tokens").unwrap().available, 500);
    let layer = TokenBucketLayer::builder()
        .tokens(Quota::per_minute(n(300)))
        .abandoned(Abandoned::Keep)
        .build()
        .unwrap();
    layer.layer(answering(200, None)).oneshot(Request::new(())).await.unwrap();
    assert_eq!(layer.gate().level("tokens").unwrap().available, 0, "all it holds, but not too large");
}

#[tokio::test(start_paused = true)]
async fn choices_multiply_the_output() {
    let layer = builder().abandoned(Abandoned::Keep).build().unwrap();
    let mut request = chat(100, 200);
    request.extensions_mut().get_mut::<Call>().unwrap().choices = Some(3);
    layer.layer(answering(200, None)).oneshot(request).await.unwrap();
    assert_eq!(left!(layer), [9, 5_300]);
}
