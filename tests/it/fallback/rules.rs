//! The rules of a chain: bounds, deadlines, permits, refusals, routes, overrides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use seawall::call::{IntakeLayer, OutcomeLayer, Overrides};
use seawall::fallback::{Attempts, Commit, FallbackLayer, Route, RoutesHandle, Target, Triggers};
use seawall::gate::GateLayer;
use seawall::monitor::Event;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::{Class, Deadline, Failure, Phase, Refusal, RefusalKind};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::provider::*;
use crate::support::{Answer, TestGate};

fn three() -> Route {
    route().target(Target::at("c").model("c-small"))
}

async fn ask_with(layer: FallbackLayer, providers: &Providers, overrides: Overrides) -> Got {
    let mut request = request(CHAT);
    request.extensions_mut().insert(overrides);
    read(client(layer, providers).oneshot(request).await.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn the_shares_of_all_targets_are_the_most_attempts_of_the_chain() {
    let failing = || Providers::new().on("a", [Reply::Reset]).on("b", [Reply::Reset]).on("c", [Reply::Reset]);
    let shares = async |layer| {
        let providers = failing();
        assert!(try_ask(layer, &providers).await.is_err());
        let calls = providers.seen().into_iter().map(|seen| seen.call.unwrap());
        calls.map(|call| (call.most_attempts.unwrap().get(), call.another_target)).collect::<Vec<_>>()
    };
    assert_eq!(shares(two()).await, [(3, true), (3, false)]);
    assert_eq!(shares(FallbackLayer::new(routes(three()))).await, [(2, true), (2, true), (2, false)]);
    let short = FallbackLayer::builder(routes(three())).max_attempts(2).build().unwrap();
    assert_eq!(shares(short).await, [(1, true), (1, false)], "the third is never asked");
    let own = Route::to("large").target(Target::at("a").attempts(9)).target(Target::at("b"));
    assert_eq!(shares(FallbackLayer::new(routes(own))).await, [(5, true), (1, false)]);
    let single = Route::to("large").target(Target::at("a"));
    assert_eq!(shares(FallbackLayer::new(routes(single))).await, [(6, false)]);
}

#[tokio::test(start_paused = true)]
async fn past_the_deadline_nobody_else_is_asked() {
    let providers = Providers::new().on("a", [status(503, "late").after(3 * SECOND)]).on("b", [ok()]);
    let mut request = request(CHAT);
    request.extensions_mut().insert(Deadline::within(2 * SECOND));
    let got = read(client(two(), &providers).oneshot(request).await.unwrap()).await;
    assert_eq!((got.status, got.body.as_str(), providers.asked().len()), (503, "late", 1));
}

#[tokio::test(start_paused = true)]
async fn a_chain_without_time_says_so_and_not_that_no_target_is_left() {
    // The clock of an attempt runs out at once with that of the call.
    let ask = async |providers: &Providers| {
        let total = TimeoutLayer::new(2 * SECOND);
        let inner = ServiceBuilder::new().layer(total.clone()).layer(OutcomeLayer::new());
        let chain = over(IntakeLayer::new(), two(), inner.service(providers.clone()));
        total.layer(chain).oneshot(request(CHAT)).await
    };
    let alone = Providers::new().on("a", [Reply::Silent]).on("b", [ok()]);
    let both = Providers::new().on("a", [Reply::Reset]).on("b", [Reply::Silent]);
    // The failure of one alone says it all.
    for (providers, told) in [(alone, None), (both, Some("a: Transient, b: Stalled"))] {
        let error = ask(&providers).await.err().unwrap();
        assert_eq!(error.refusal().unwrap().kind(), RefusalKind::TimedOut(Phase::Total));
        assert_eq!(Attempts::find(&*error).map(ToString::to_string).as_deref(), told);
    }
    let answered = Providers::new().on("a", [status(503, "{}")]).on("b", [Reply::Silent]);
    assert_eq!(ask(&answered).await.unwrap().status(), 503, "a real answer is passed on");
}

#[tokio::test(start_paused = true)]
async fn a_targets_own_timeout_is_over_with_its_commit() {
    let own = |target: &str| Target::at(target).timeout(4 * SECOND);
    let layer = || FallbackLayer::new(routes(Route::to("large").target(own("a")).target(own("b"))));
    let providers = Providers::new().on("a", [Reply::Silent]).on("b", [ok()]);
    let start = seawall::time::now();
    assert_eq!(ask(layer(), &providers).await.by(), "b");
    assert_eq!((start.elapsed(), providers.alive.now()), (4 * SECOND, 0));
    let long = steps(vec![send(TOKEN), Step::Wait(20 * SECOND), send(DONE)]);
    let providers = Providers::new().on("a", [long]);
    let got = ask(layer(), &providers).await;
    assert_eq!((got.by(), got.broken), ("a", false), "a committed stream may take its time");
    let providers = Providers::new().on("a", [Reply::Silent]).on("b", [Reply::Silent]);
    let error = try_ask(layer(), &providers).await.err().unwrap();
    assert_eq!(error.refusal().unwrap().previous().unwrap().verdict().class(), Class::Stalled);
}

#[tokio::test(start_paused = true)]
async fn a_kept_failure_holds_no_permit_while_the_next_target_is_asked() {
    let gate = TestGate::default();
    let slow_error = steps(vec![send("one "), send("two")]);
    let Reply::Answer { after, headers, steps, .. } = slow_error else { unreachable!() };
    let failing = Reply::Answer { after, status: 503, headers, steps };
    let providers = Providers::new().on("a", [failing]).on("b", [Reply::Reset]);
    let held = Arc::new(Mutex::new(Vec::new()));
    let (counted, seen) = (gate.clone(), held.clone());
    // No layer below reads the error's body: the fallback itself takes it out of its permits.
    let inner = ServiceBuilder::new()
        .map_request(move |request| {
            seen.lock().unwrap().push(counted.held());
            request
        })
        .layer(GateLayer::from_gate(gate.clone()))
        .service(providers);
    let got = read(over(IntakeLayer::new(), two(), inner).oneshot(request(CHAT)).await.unwrap()).await;
    assert_eq!((got.status, got.body.as_str()), (503, "one two"), "kept whole, and passed on in the end");
    assert_eq!((held.lock().unwrap().as_slice(), gate.held()), (&[0, 0][..], 0));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_never_ends_is_dropped_and_not_waited_for() {
    let Reply::Answer { after, headers, steps, .. } = steps(vec![send("one"), Step::Stall]) else {
        unreachable!()
    };
    let endless = Reply::Answer { after, status: 503, headers, steps };
    let providers = Providers::new().on("a", [endless]).on("b", [ok()]);
    let start = seawall::time::now();
    let got =
        read(over(IntakeLayer::new(), two(), providers.clone()).oneshot(request(CHAT)).await.unwrap()).await;
    assert_eq!((got.by(), start.elapsed(), providers.alive.now()), ("b", SECOND, 0));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_own_layers_go_on_to_the_next_target_and_are_told_together() {
    let gate = TestGate::default();
    gate.answer(Answer::Refused);
    let providers = Providers::new();
    let inner = GateLayer::from_gate(gate).layer(OutcomeLayer::new().layer(providers.clone()));
    let error = over(IntakeLayer::new(), two(), inner).oneshot(request(CHAT)).await.err().unwrap();
    assert_eq!(error.refusal().unwrap().kind(), RefusalKind::NoTarget);
    let attempts = Attempts::find(&*error).unwrap();
    assert_eq!(attempts.to_string(), "a: Refused, b: Refused");
    assert!(attempts.as_slice().iter().all(|attempt| attempt.refused() == Some(RefusalKind::Custom)));
    assert!(providers.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_shortest_wait_that_was_asked_for_is_passed_on() {
    let inner = tower::service_fn(|request: http::Request<seawall::call::CallBody>| async move {
        let wait = if request.uri().host() == Some("a") { 9 } else { 4 };
        let refusal = Refusal::new(RefusalKind::Open).with_retry_after(Duration::from_secs(wait));
        Err::<http::Response<Script>, _>(seawall::BoxError::from(refusal))
    });
    let error = over(IntakeLayer::new(), two(), inner).oneshot(request(CHAT)).await.err().unwrap();
    assert_eq!(error.refusal().unwrap().retry_after(), Some(4 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_one_passes_everything_on_as_it_is() {
    let single = || FallbackLayer::new(routes(Route::to("large").target(Target::at("a"))));
    let providers = Providers::new().on("a", [Reply::Reset]);
    let error = try_ask(single(), &providers).await.err().unwrap();
    assert_eq!((error.to_string().as_str(), error.refusal()), ("connection reset", None));
    let providers = Providers::new().on("a", [stream(&[ROLE, STREAM_ERROR])]);
    assert_eq!(ask(single(), &providers).await.body, [ROLE, STREAM_ERROR].concat());
}

#[tokio::test(start_paused = true)]
async fn a_spent_account_is_left_with_all_its_targets() {
    let spent = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let providers = Providers::new().on("a", [status(429, spent)]).on("b", [ok()]);
    let route = Route::to("large")
        .target(Target::at("a").model("one"))
        .target(Target::at("a").model("two"))
        .target(Target::at("b"));
    let got = ask(FallbackLayer::new(routes(route)), &providers).await;
    assert_eq!(got.served.unwrap().attempts().to_string(), "a: Exhausted (429), a: passed over (Account)");
    assert_eq!(providers.asked(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_accepted_is_seen_unless_opted_in() {
    let providers = Providers::new().on("a", [status(401, "who")]).on("b", [ok()]);
    let got = ask(two(), &providers).await;
    assert_eq!((got.status, providers.asked().len()), (401, 1));
    let opted = Target::at("a").fallback_on(Triggers::default().on(Class::Denied));
    let route = Route::to("large").target(opted).target(Target::at("b"));
    assert_eq!(ask(FallbackLayer::new(routes(route)), &providers).await.by(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_route_is_refused_and_nobody_asked() {
    let providers = Providers::new().on("a", [ok()]);
    for body in [
        r#"{"model":"unknown"}"#,
        r#"{"messages":[]}"#,
        r#"{"model":null}"#,
        r#"{"model":7}"#,
        r#"{"tools":[{"model":"large"}]}"#,
        "[1,2",
    ] {
        let error = client(two(), &providers).oneshot(request(body)).await.err().unwrap();
        assert_eq!(error.refusal().unwrap().kind(), RefusalKind::NoTarget, "{body}");
    }
    assert!(providers.asked().is_empty());
    let twice = r#"{"model":"unknown","model":"large"}"#;
    client(two(), &providers).oneshot(request(twice)).await.unwrap();
    assert_eq!(providers.seen()[0].body, r#"{"model":"a-large","model":"a-large"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_call_can_choose_among_the_targets_of_its_route() {
    let failing = || Providers::new().on("a", [Reply::Reset]).on("b", [ok()]).on("c", [ok()]);
    let layer = || FallbackLayer::new(routes(three()));
    let providers = failing();
    assert_eq!(ask_with(layer(), &providers, Overrides::new().first(["c", "a"])).await.by(), "c");
    assert_eq!(ask_with(layer(), &providers, Overrides::new().only(["b/b-mini"])).await.by(), "b");
    assert_eq!(providers.asked(), ["c", "b"]);
    let mut single = request(CHAT);
    single.extensions_mut().insert(Overrides::new().no_fallback());
    let providers = failing();
    assert!(client(layer(), &providers).oneshot(single).await.is_err());
    assert_eq!(providers.asked(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn routes_are_replaced_for_calls_that_begin_and_not_for_those_under_way() {
    let handle = RoutesHandle::new(routes(route()));
    let providers =
        Providers::new().on("a", [status(503, "{}").after(SECOND)]).on("b", [ok()]).on("c", [ok()]);
    let mut client = client(FallbackLayer::new(&handle), &providers);
    let call = client.ready().await.unwrap().call(request(CHAT));
    handle.replace(routes(Route::to("large").target(Target::at("c"))));
    assert_eq!(read(call.await.unwrap()).await.by(), "b", "it finishes on the old ones");
    let call = client.ready().await.unwrap().call(request(CHAT));
    assert_eq!(read(call.await.unwrap()).await.by(), "c");
}

#[tokio::test(start_paused = true)]
async fn where_the_head_commits_nothing_is_looked_at() {
    let providers =
        Providers::new().on("a", [steps(vec![Step::Wait(SECOND), send(STREAM_ERROR)])]).on("b", [ok()]);
    let layer = FallbackLayer::new(routes(route().commit(Commit::Head)));
    let start = seawall::time::now();
    let response = client(layer, &providers).oneshot(request(CHAT)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!((body.as_ref(), providers.asked().len()), (STREAM_ERROR.as_bytes(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_held_up_to_its_bound_and_then_commits() {
    let layer =
        FallbackLayer::builder(routes(route().commit(Commit::End))).answer_bytes(1_000).build().unwrap();
    let long = steps(std::iter::repeat_n(send(TOKEN), 100).chain([Step::Cut]).collect());
    let providers = Providers::new().on("a", [long]).on("b", [healthy_stream()]);
    let got = ask(layer, &providers).await;
    assert_eq!((got.by(), got.broken), ("a", true));
    assert!(got.served.unwrap().committed_early());
}

#[tokio::test(start_paused = true)]
async fn without_anybody_below_who_reads_it_a_stream_is_read_here() {
    let providers =
        Providers::new().on("a", [stream(&[PING, ROLE, STREAM_ERROR])]).on("b", [healthy_stream()]);
    let got = read(over(IntakeLayer::new(), two(), providers).oneshot(request(CHAT)).await.unwrap()).await;
    assert_eq!((got.by(), got.body.clone()), ("b", [ROLE, TOKEN, STOP, USAGE, DONE].concat()));
}

#[tokio::test(start_paused = true)]
async fn hops_and_the_end_are_told_without_any_secret() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let layer = FallbackLayer::builder(routes(route()))
        .observer(move |event: &Event<'_>| heard.lock().unwrap().push(format!("{event:?}")))
        .name("chain")
        .build()
        .unwrap();
    let providers = Providers::new().on("a", [Reply::Reset]).on("b", [Reply::Reset]);
    let error = try_ask(layer.clone(), &providers).await.err().unwrap();
    let events = told.lock().unwrap().join("\n");
    assert!(
        events.contains("FellOver") && events.contains("NoTargetLeft") && events.contains("chain"),
        "{events}"
    );
    let shown = format!("{error} {error:?} {events} {layer:?} {:?} {:?}", layer.routes(), routes(route()));
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn attempts_of_retries_below_are_a_share_and_of_one_above_a_product() {
    let failing = || status(503, "{}");
    let providers = Providers::new().on("a", [failing()]).on("b", [failing()]).on("c", [failing()]);
    let below = ServiceBuilder::new().layer(RetryLayer::new(RetryPolicy::llm())).layer(OutcomeLayer::new());
    let below = below.service(providers.clone());
    let chain = FallbackLayer::new(routes(three())).layer(below);
    let asked = |from: usize| providers.asked().split_off(from).concat();
    let intake = || IntakeLayer::new();
    let got = intake().layer(chain.clone()).oneshot(request(CHAT)).await.unwrap();
    assert_eq!(
        (got.status().as_u16(), asked(0).as_str()),
        (503, "aabbcc"),
        "six in all, whatever retry would make"
    );
    let above = RetryLayer::new(RetryPolicy::builder().attempts(2).ambiguous(true).build().unwrap());
    intake().layer(above.layer(chain)).oneshot(request(CHAT)).await.unwrap();
    assert_eq!(asked(6), "aabbccaabbcc", "two passes of six");
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_is_kept_at_the_target_and_a_long_one_left_to_the_next() {
    for (wait, by, seconds) in [("2", "a", 2), ("20", "b", 0)] {
        let limited = status(429, "{}").header("retry-after", wait);
        let providers = Providers::new().on("a", [limited, ok()]).on("b", [ok()]);
        let below =
            ServiceBuilder::new().layer(RetryLayer::new(RetryPolicy::llm())).layer(OutcomeLayer::new());
        let start = seawall::time::now();
        let stack = over(IntakeLayer::new(), two(), below.service(providers));
        let got = read(stack.oneshot(request(CHAT)).await.unwrap()).await;
        assert_eq!((got.by(), start.elapsed().as_secs()), (by, seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn each_target_asked_is_a_hop_and_what_it_costs_is_extra() {
    use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};

    let hops = |layer| async move {
        let providers = Providers::new().on("a", [status(500, "no")]).on("b", [Reply::Reset]).on("c", [ok()]);
        ask(layer, &providers).await;
        providers.seen().into_iter().map(|seen| seen.call.unwrap().hop.unwrap()).collect::<Vec<_>>()
    };
    let once = || Route::to("large").target(Target::at("a").attempts(1)).target(Target::at("b").attempts(1));
    let three = once().target(Target::at("c"));
    assert_eq!(hops(FallbackLayer::new(routes(three))).await, [1, 2, 3]);

    // Half a dollar a day for what comes after the first target.
    let prices = PriceTable::new().default_price(Price::per_million("1000", "1000").unwrap());
    let guard = CostGuardLayer::builder()
        .prices(prices)
        .budget(Budget::new(Usd::dollars(1_000), Window::DAY))
        .extra_cap(Usd::dollars(50))
        .build()
        .unwrap();
    let ledger = guard.gate().ledger().clone();
    let providers = Providers::new().on("a", [status(500, "no"), ok()]).on("b", [ok()]);
    let guarded = ServiceBuilder::new().layer(guard).layer(OutcomeLayer::new()).service(providers.clone());
    let mut stack = over(IntakeLayer::new(), FallbackLayer::new(routes(once())), guarded);
    for spent in [9, 9] {
        read(stack.ready().await.unwrap().call(request(CHAT)).await.unwrap()).await;
        let extra = ledger.account("budget of further attempts", "").unwrap().spent;
        assert_eq!(extra, Usd::nanos(spent * 1_000_000), "7 in and 2 out, at the second target alone");
    }
    assert_eq!(ledger.account("budget of the day", "").unwrap().spent, Usd::nanos(18 * 1_000_000));
}
