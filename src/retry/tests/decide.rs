//! Which failures are repeated, how often, and who says no.

use std::error::Error;

use http::{HeaderName, Method, StatusCode};
use tower::{Layer, ServiceExt};

use super::*;
use crate::Failure;
use crate::call::{Call, Describe, Key, Once};
use crate::deadline::Deadline;
use crate::refusal::Phase;
use crate::verdict::{Class, Reach, Verdict, classify};

async fn run(policy: RetryPolicy, script: impl IntoIterator<Item = Reply>, request: Req) -> (usize, String) {
    let (upstream, told) = (Upstream::new(script), Told::default());
    let _ = told.layer(policy).layer(upstream.clone()).oneshot(request).await;
    (upstream.calls(), told.last())
}

#[tokio::test(start_paused = true)]
async fn b014_attempts_count_the_first_one() {
    for attempts in [1, 2, 3] {
        let policy = steady().attempts(attempts).build().unwrap();
        let (calls, why) = run(policy, [Reply::Says(503, &[])], post()).await;
        assert_eq!((calls, why), (attempts as usize, format!("{attempts} Attempts")));
    }
    assert_eq!(RetryPolicy::builder().attempts(0).build().unwrap_err().field(), "attempts");
}

#[tokio::test(start_paused = true)]
async fn b014_attempts_without_a_bound_are_stopped_by_the_deadline() {
    let policy = steady().attempts(u32::MAX).no_budget().build().unwrap();
    let mut request = post();
    request.extensions_mut().insert(Deadline::within(secs(60)));
    let start = time::now();
    let (calls, why) = run(policy, [Reply::Says(503, &[])], request).await;
    // 0.5, 1, 2, 4, 8, 16 and then 20 s, which would be over.
    assert_eq!((calls, why.as_str()), (8, "8 Deadline"));
    assert_eq!(time::now() - start, ms(51_500), "the wait that does not fit is not begun");
}

#[tokio::test(start_paused = true)]
async fn each_class_is_repeated_or_not() {
    let cases = [
        (408, 3),
        (409, 3),
        (429, 3),
        (500, 3),
        (502, 3),
        (503, 3),
        (504, 3),
        (524, 3),
        (529, 3),
        (200, 1),
        (400, 1),
        (401, 1),
        (402, 1),
        (403, 1),
        (404, 1),
        (413, 1),
        (422, 1),
    ];
    for (status, attempts) in cases {
        let (calls, _) = run(steady().build().unwrap(), [Reply::Says(status, &[])], post()).await;
        assert_eq!(calls, attempts, "{status}");
    }
    assert_eq!(run(steady().build().unwrap(), [Reply::Fails], post()).await.0, 3);
}

#[tokio::test(start_paused = true)]
async fn b007_what_may_have_been_done_is_repeated_only_where_that_is_harmless() {
    let http = || RetryPolicy::builder().build().unwrap();
    let fails = || [Reply::Fails];
    assert_eq!(run(http(), fails(), post()).await, (1, "1 NotIdempotent".to_owned()));
    assert_eq!(run(http(), [Reply::Says(503, &[])], post()).await.0, 1);
    assert_eq!(run(http(), [Reply::Says(429, &[])], post()).await.0, 3, "turned away, not begun");
    let mut keyed = post();
    keyed.headers_mut().insert("idempotency-key", "k".parse().unwrap());
    assert_eq!(run(http(), fails(), keyed).await.0, 3);
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::HEAD] {
        let mut request = post();
        *request.method_mut() = method;
        assert_eq!(run(http(), fails(), request).await.0, 3);
    }
    let opted_in = RetryPolicy::builder().ambiguous(true).build().unwrap();
    assert_eq!(run(opted_in, fails(), post()).await.0, 3);
    assert_eq!(run(RetryPolicy::llm(), fails(), post()).await.0, 3);
}

#[tokio::test(start_paused = true)]
async fn b008_a_proof_that_nothing_was_processed_is_followed_once_at_once_and_free() {
    let unprocessed = |result: Result<&Res, &BoxError>| {
        result.err().map(|_| Verdict::new(Class::Transient).with_reach(Reach::Unprocessed))
    };
    let policy = RetryPolicy::builder()
        .budget(Budget::builder().reserve(0).build().unwrap())
        .classify(classify::or_else(unprocessed, crate::provider::HeadClassifier))
        .build()
        .unwrap();
    let upstream = Upstream::new([Reply::Fails, Reply::Says(200, &[])]);
    let layer = RetryLayer::new(policy);
    let response = layer.layer(upstream.clone()).oneshot(post()).await.unwrap();
    assert_eq!((response.status(), upstream.gaps()), (StatusCode::OK, vec![Duration::ZERO]));
    // The second time it is a retry like any other, and this budget has none.
    let upstream = Upstream::new([Reply::Fails]);
    assert!(layer.layer(upstream.clone()).oneshot(post()).await.is_err());
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn b016_an_open_breaker_ends_the_call_and_carries_the_last_real_failure() {
    let script = [Reply::Says(503, &[]), Reply::Says(503, &[]), Reply::Refuses(RefusalKind::Open)];
    let (upstream, told) = (Upstream::new(script), Told::default());
    let policy = steady().attempts(5).build().unwrap();
    let error = told.layer(policy).layer(upstream.clone()).oneshot(post()).await.unwrap_err();
    let refusal = error.refusal().expect("it is still a refusal");
    assert_eq!((upstream.calls(), refusal.kind(), told.last().as_str()), (3, RefusalKind::Open, "3 Refused"));
    let previous = refusal.previous().expect("the upstream had answered before");
    assert_eq!(previous.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(previous.verdict().class(), Class::Transient);
    let mut last: &(dyn Error + 'static) = &*error;
    while let Some(source) = last.source() {
        last = source;
    }
    assert!(last.to_string().contains("503"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_a_classifier_takes_for_a_success_carries_the_failure_before_it_too() {
    let judge = classify::from_fn(|result: Result<&Res, &BoxError>| match result {
        Ok(response) if response.status().is_server_error() => Verdict::new(Class::Transient),
        _ => Verdict::SUCCESS,
    });
    for attempts in [2, 5] {
        let upstream = Upstream::new([Reply::Says(503, &[]), Reply::Refuses(RefusalKind::Open)]);
        let layer = RetryLayer::new(steady().attempts(attempts).classify(judge).build().unwrap());
        let error = layer.layer(upstream.clone()).oneshot(post()).await.unwrap_err();
        let refusal = error.refusal().expect("it is still a refusal");
        assert_eq!((upstream.calls(), refusal.previous().is_some()), (2, true), "of {attempts} attempts");
    }
}

#[test]
fn a_policy_behind_a_count_is_the_same_policy() {
    let ends = |policy: &dyn Policy<Req, Res, BoxError>| policy.ends_with_success();
    let policy = steady().build().unwrap();
    assert!(ends(&policy) && ends(&Arc::new(policy)));
}

#[tokio::test(start_paused = true)]
async fn b017_our_own_refusals_are_not_retried_and_cost_nothing() {
    let kinds =
        [RefusalKind::RateLimited, RefusalKind::Full, RefusalKind::BudgetExhausted, RefusalKind::Deadline];
    for kind in kinds {
        let (upstream, told) = (Upstream::new([Reply::Refuses(kind)]), Told::default());
        let policy = steady().classes([Class::Refused, Class::Transient]).build().unwrap();
        let budget = policy.budget().unwrap().clone();
        let error = told.layer(policy).layer(upstream.clone()).oneshot(post()).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!((upstream.calls(), refusal.kind(), refusal.previous().is_none()), (1, kind, true));
        assert_eq!((budget.left_in_thousandths(None), told.last().as_str()), (10_000, "1 Refused"));
    }
}

fn to(another_target: bool) -> Req {
    let mut request = post();
    let call = Call { another_target, upstream: Some(Key::from("one")), ..Call::default() };
    request.extensions_mut().insert(call);
    request
}

#[tokio::test(start_paused = true)]
async fn a_stalled_attempt_is_repeated_only_at_the_last_target() {
    for phase in [Phase::Head, Phase::FirstContent, Phase::Connect] {
        let stalled = || [Reply::Refuses(RefusalKind::TimedOut(phase))];
        let policy = || steady().build().unwrap();
        assert_eq!(run(policy(), stalled(), to(true)).await, (1, "1 AnotherTarget".to_owned()));
        assert_eq!(run(policy(), stalled(), to(false)).await.0, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_opts_out() {
    let mut request = post();
    request.extensions_mut().insert(Once);
    assert_eq!(
        run(steady().build().unwrap(), [Reply::Says(503, &[])], request).await,
        (1, "1 OptedOut".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn rules_by_status_class_and_connection() {
    let unsent = |result: Result<&Res, &BoxError>| {
        result.err().map(|_| Verdict::new(Class::Transient).with_reach(Reach::Unsent))
    };
    let policy = || {
        let none = |base| Backoff::exponential(base).cap(secs(120)).jitter(Jitter::None);
        steady()
            .rule(Rule::class(Class::Transient).floor(ms(700)))
            .rule(Rule::status(StatusCode::SERVICE_UNAVAILABLE).backoff(none(secs(30))).attempts(4))
            .rule(Rule::unsent().attempts(5).backoff(none(secs(2))))
            .classify(classify::or_else(unsent, crate::provider::HeadClassifier))
            .build()
            .unwrap()
    };
    let gaps = async |reply: Reply| {
        let upstream = Upstream::new([reply]);
        let _ = RetryLayer::new(policy()).layer(upstream.clone()).oneshot(post()).await;
        upstream.gaps()
    };
    assert_eq!(gaps(Reply::Says(500, &[])).await, [ms(700), secs(1)], "a floor by class");
    assert_eq!(
        gaps(Reply::Says(503, &[])).await,
        [secs(30), secs(60), secs(120)],
        "base and attempts by status"
    );
    assert_eq!(gaps(Reply::Fails).await, [2, 4, 8, 16].map(secs), "connect errors");
}

#[tokio::test(start_paused = true)]
async fn the_documented_delays_are_never_shorter_than_they_begin() {
    for (status, base) in [(500, 5), (502, 10), (503, 30), (504, 15)] {
        let upstream = Upstream::statuses([status]);
        // Seeded: seven waits may all fall short by chance.
        let policy =
            RetryPolicy::builder().ambiguous(true).slow_recovery().attempts(8).seed(5).build().unwrap();
        let _ = RetryLayer::new(policy).layer(upstream.clone()).oneshot(post()).await;
        let gaps = upstream.gaps();
        assert_eq!(gaps.len(), 7);
        assert!(gaps.iter().all(|gap| *gap >= secs(base) && *gap <= secs(121)), "{status}: {gaps:?}");
        assert!(gaps.iter().any(|gap| *gap > secs(2 * base)), "and they grow: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b022_b023_a_retry_is_charged_when_it_is_scheduled() {
    let budget = Budget::builder().ratio(0.0).reserve(20).build().unwrap();
    let backoff = Backoff::fixed(secs(60)).cap(secs(60)).jitter(Jitter::None);
    let policy = steady().backoff(backoff).budget(budget.clone()).build().unwrap();
    let upstream = Upstream::statuses([503]);
    let service = RetryLayer::new(policy).layer(upstream.clone());
    let calls: Vec<_> = (0..100).map(|_| tokio::spawn(service.clone().oneshot(post()))).collect();
    tokio::time::sleep(secs(59)).await;
    assert_eq!(calls.iter().filter(|call| call.is_finished()).count(), 80, "told at once, not after a wait");
    assert_eq!(upstream.calls(), 100);
    tokio::time::sleep(secs(2)).await;
    assert_eq!(upstream.calls(), 120, "of 100 calls, with all of their retries");
    assert!(!budget.try_take(None));
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_another_upstream_is_not_touched() {
    let policy = steady().build().unwrap();
    let budget = policy.budget().unwrap().clone();
    let service = RetryLayer::new(policy).layer(Upstream::statuses([503]));
    for _ in 0..50 {
        let _ = service.clone().oneshot(to(false)).await;
    }
    assert!(!budget.try_take(Some(&Key::from("one"))));
    assert!(budget.try_take(Some(&Key::from("two"))) && budget.try_take(None));
}

#[tokio::test(start_paused = true)]
async fn the_longest_time_bounds_the_last_attempt() {
    let policy = steady().attempts(9).max_time(secs(4)).build().unwrap();
    let start = time::now();
    assert_eq!(run(policy, [Reply::Says(500, &[])], post()).await, (4, "4 Time".to_owned()));
    assert_eq!(time::now() - start, ms(3500));
}

#[tokio::test(start_paused = true)]
async fn b025_one_idempotency_key_for_all_attempts_and_the_callers_own_is_kept() {
    let seen = async |request: Req| {
        let policy = steady().idempotency_key().build().unwrap();
        let upstream = Upstream::statuses([500, 500, 200]);
        RetryLayer::new(policy).layer(upstream.clone()).oneshot(request).await.unwrap();
        let seen = upstream.seen();
        let keys: Vec<Vec<String>> = seen
            .iter()
            .map(|seen| seen.head.headers.get_all("idempotency-key").iter())
            .map(|keys| keys.map(|key| key.to_str().unwrap().to_owned()).collect())
            .collect();
        keys
    };
    let (one, other) = (seen(post()).await, seen(post()).await);
    assert_eq!((one.len(), one[0].len(), one[0][0].len()), (3, 1, 32));
    assert!(one[1] == one[0] && one[2] == one[0] && one != other);
    let mut own = post();
    own.headers_mut().insert("idempotency-key", "mine".parse().unwrap());
    assert_eq!(seen(own).await, vec![vec!["mine".to_owned()]; 3]);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_knows_its_number_and_is_otherwise_the_same() {
    #[derive(Clone, PartialEq, Debug)]
    struct Mine(u8);
    let header = HeaderName::from_static("x-attempt");
    let policy = steady().attempt_header(header.clone()).build().unwrap();
    let upstream = Upstream::statuses([500]);
    let mut request = to(false);
    *request.version_mut() = http::Version::HTTP_2;
    request.extensions_mut().insert(Mine(7));
    let _ = RetryLayer::new(policy.clone()).layer(upstream.clone()).oneshot(request).await;
    for (number, seen) in (1..).zip(upstream.seen().iter()) {
        assert_eq!(seen.head.headers[&header], number.to_string());
        let call: &Call = seen.head.extensions.get().unwrap();
        assert_eq!(call.attempt, Some(number));
        assert_eq!(seen.head.extensions.get(), Some(&Mine(7)));
        assert_eq!(seen.head.version, http::Version::HTTP_2);
    }
    // Without a call the number is an extension of its own.
    let upstream = Upstream::statuses([500]);
    let _ = RetryLayer::new(policy).layer(upstream.clone()).oneshot(post()).await;
    let number = |seen: &Seen| seen.head.extensions.get().map(|number: &crate::call::AttemptNumber| number.0);
    assert_eq!(upstream.seen().iter().map(number).collect::<Vec<_>>(), [None, Some(2), Some(3)]);
    assert!(post().call().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_is_told_once() {
    let (upstream, told) = (Upstream::statuses([503, 500, 200]), Told::default());
    told.layer(steady().build().unwrap()).layer(upstream).oneshot(post()).await.unwrap();
    assert_eq!(
        told.lines(),
        ["1 again after 500ms", "2 again after 1s"],
        "a good answer is no end to tell of"
    );
}
