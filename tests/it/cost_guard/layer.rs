//! The layer: waiting in order, marks, tenants, modes, and prices that change.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use http::{Request, StatusCode};
use seawall::call::{Answer, Call, Describe, Key, Usage};
use seawall::cost_guard::{
    Budget, BudgetKey, CostGuardLayer, MemoryLedger, Price, PriceTable, Prices, Unpriced, Usd, Window,
};
use seawall::{BoxError, RefusalKind};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{
    Log, Upstream, account, ask, builder, call, drain, guard, json, kind, prices, request, sums, tokens, used,
};
use crate::support::{poll_once, read};

#[tokio::test(start_paused = true)]
async fn contended_calls_wait_in_order_and_are_refused_after_their_patience() {
    let log = Log::default();
    let budget = Budget::new(tokens(150), Window::TOTAL);
    let layer =
        builder().budget(budget).patience(Duration::from_secs(2)).observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(5, 5)))));
    let mut service = layer.layer(upstream.service());
    let first = service.ready().await.unwrap().call(request(call(50, 50))).await.unwrap();

    let mut second = pin!(service.ready().await.unwrap().call(request(call(50, 50))));
    assert!(poll_once(second.as_mut()).is_pending());
    // This one would fit, and still does not overtake.
    let mut third = pin!(service.ready().await.unwrap().call(request(call(5, 5))));
    assert!(poll_once(third.as_mut()).is_pending());
    assert_eq!(account(layer.gate()).waiting, 2);
    assert_eq!(upstream.asked(), 1);

    tokio::time::advance(Duration::from_secs(1)).await;
    drain(first).await;
    let second = second.await.unwrap();
    let third = third.await.unwrap();
    assert_eq!(log.lines(), ["spent $0.00001 of $0.0001 by Usage", "waited", "waited"]);

    // Nothing comes back in time.
    let start = seawall::time::now();
    let error = ask(&mut service, call(50, 50)).await.unwrap_err();
    assert_eq!(kind(&error), RefusalKind::BudgetContended);
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!(account(layer.gate()).waiting, 0);
    // What can never fit does not wait at all.
    let error = ask(&mut service, call(100, 50)).await.unwrap_err();
    assert_eq!((kind(&error), start.elapsed()), (RefusalKind::BudgetExhausted, Duration::from_secs(2)));
    drop((second, third));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_lets_those_behind_it_move_up() {
    let budget = Budget::new(tokens(100), Window::TOTAL);
    let layer = builder().budget(budget).patience(Duration::from_secs(60)).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(0, 0)))));
    let mut service = layer.layer(upstream.service());
    let first = service.ready().await.unwrap().call(request(call(50, 0))).await.unwrap();
    let mut large = Box::pin(service.ready().await.unwrap().call(request(call(100, 0))));
    assert!(poll_once(large.as_mut()).is_pending());
    let small = tokio::spawn(service.ready().await.unwrap().call(request(call(40, 0))));
    tokio::task::yield_now().await;
    assert!(!small.is_finished());
    drop(large);
    let small = tokio::time::timeout(Duration::from_secs(1), small).await.expect("it was woken");
    drop((first, small.unwrap().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait() {
    let budget = Budget::new(tokens(100), Window::TOTAL);
    let layer = builder().budget(budget).patience(Duration::from_secs(60)).build().unwrap();
    let mut service = layer.layer(Upstream::default().service());
    let _first = service.ready().await.unwrap().call(request(call(100, 0))).await.unwrap();
    let mut hurried = call(100, 0);
    hurried.deadline = Some(seawall::Deadline::within(Duration::from_millis(300)));
    let start = seawall::time::now();
    assert!(ask(&mut service, hurried).await.is_err());
    assert_eq!(start.elapsed(), Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn each_mark_is_told_of_once_a_window() {
    let start = seawall::time::now();
    let wall = move || Duration::from_secs(1_800_000_000) + start.elapsed();
    let log = Log::default();
    let budget = Budget::new(tokens(100), Window::HOUR);
    let layer = builder().budget(budget).wall(wall).observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering((0..99).map(|_| Ok(json(&used(10, 0)))));
    let mut service = layer.layer(upstream.service());
    for _ in 0..2 {
        for _ in 0..10 {
            ask(&mut service, call(10, 0)).await.unwrap();
        }
        assert!(ask(&mut service, call(10, 0)).await.is_err());
        let marks: Vec<String> = log.lines().into_iter().filter(|line| line.starts_with("mark")).collect();
        assert_eq!(marks, ["mark 50 at $0.00005", "mark 80 at $0.00008", "mark 100 at $0.0001"]);
        tokio::time::advance(Duration::from_secs(3_600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_have_accounts_of_their_own_under_one_roof() {
    let roof = Budget::new(tokens(250), Window::TOTAL);
    let each = Budget::new(tokens(100), Window::TOTAL).by(BudgetKey::Tenant).named("each");
    let layer =
        builder().budget(roof).budget(each).tenant_header("x-tenant".parse().unwrap()).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(100, 0)))));
    let service = layer.layer(upstream.service());
    let ask = |tenant: &'static str| {
        let mut request = request(call(100, 0));
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        let service = service.clone();
        async move {
            drain(service.oneshot(request).await?).await;
            Ok::<_, BoxError>(())
        }
    };
    ask("acme").await.unwrap();
    let error = ask("acme").await.unwrap_err();
    assert_eq!(error.to_string(), "each of acme has spent its budget");
    ask("umbrella").await.unwrap();
    // The third has spent nothing, but the roof has no room: all or nothing.
    let error = ask("initech").await.unwrap_err();
    assert_eq!(error.to_string(), "total budget has spent its budget");
    let ledger = layer.gate().ledger();
    assert_eq!(ledger.account("each", "initech"), None);
    // Limits change at run time, for all and for one.
    ledger.set_limit("total budget", None).unwrap();
    ledger.set_limit_of("each", "acme", Some(tokens(200))).unwrap();
    ask("acme").await.unwrap();
    ask("initech").await.unwrap();
    assert!(ask("umbrella").await.is_err());
    ledger.reset("each", "umbrella").unwrap();
    ask("umbrella").await.unwrap();
    assert!(ledger.set_limit("no such", None).is_err());
    assert_eq!(ledger.accounts("each").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_is_bounded_and_forgets_no_spending() {
    let each = Budget::new(tokens(100), Window::TOTAL).by(BudgetKey::Tenant).named("each");
    let most = NonZeroUsize::new(10).unwrap();
    let layer = builder().budget(each).most_keys(most).tenant_by(|request: &Request<()>| {
        request.extensions().get::<u64>().map(|&number| Key::from(number))
    });
    let layer = layer.build().unwrap();
    let upstream = Upstream::answering((0..10).map(|_| Ok(json(&used(60, 0)))));
    let service = layer.layer(upstream.service());
    let ask = |tenant: u64| {
        let mut request = request(call(60, 0));
        request.extensions_mut().insert(tenant);
        let service = service.clone();
        async move {
            drain(service.oneshot(request).await?).await;
            Ok::<_, BoxError>(())
        }
    };
    for tenant in 0..10 {
        ask(tenant).await.unwrap();
    }
    for tenant in 10..2_000 {
        assert_eq!(kind(&ask(tenant).await.unwrap_err()), RefusalKind::TooManyKeys);
    }
    for tenant in 0..10 {
        assert_eq!(kind(&ask(tenant).await.unwrap_err()), RefusalKind::BudgetExhausted, "it still knows");
    }
    // One at rest makes room.
    layer.gate().ledger().reset("each", "3").unwrap();
    ask(77).await.unwrap();
    assert_eq!(layer.gate().ledger().accounts("each").len(), 10);
}

#[tokio::test(start_paused = true)]
async fn who_only_observes_refuses_nothing_and_tells_all() {
    let log = Log::default();
    let budget = Budget::new(tokens(10), Window::TOTAL);
    let layer = builder().budget(budget).observe_only().observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(20, 0)))));
    let mut service = layer.layer(upstream.service());
    ask(&mut service, call(20, 0)).await.unwrap();
    assert_eq!(
        log.lines(),
        ["would refuse budget_exhausted", "spent $0.00002 of $0.00002 by Usage", "mark 100 at $0.00002"]
    );
    ask(&mut service, Call::default()).await.unwrap();
    assert_eq!(log.lines(), ["unpriced", "would refuse unpriced"]);
    assert_eq!(sums(layer.gate()), (tokens(20), Usd::ZERO));
    assert_eq!(upstream.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_says_payment_required() {
    let layer = guard(Usd::ZERO).respond();
    let response = layer.layer(Upstream::default().service()).oneshot(request(call(1, 1))).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYMENT_REQUIRED);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let (data, ..) = read(response.into_body()).await;
    let problem: serde_json::Value = serde_json::from_slice(&data).unwrap();
    assert_eq!(problem["kind"], "budget_exhausted");
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_window_says_when_it_resets() {
    let wall = || Duration::from_secs(1_800_000_000);
    let layer = builder().budget(Budget::new(tokens(10), Window::MINUTE)).wall(wall).build().unwrap();
    let upstream = Upstream::answering([Ok(json(&used(10, 0)))]);
    let mut service = layer.layer(upstream.service());
    ask(&mut service, call(10, 0)).await.unwrap();
    let error = ask(&mut service, call(10, 0)).await.unwrap_err();
    let refusal = seawall::refusal::find(&*error).unwrap();
    assert_eq!(refusal.retry_after(), Some(Duration::from_secs(60)));
    // No reset helps one that is larger than the whole budget.
    let error = ask(&mut service, call(11, 0)).await.unwrap_err();
    assert_eq!(seawall::refusal::find(&*error).unwrap().retry_after(), None);
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_is_not_hidden_by_a_busy_service() {
    let layer = guard(Usd::ZERO);
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<()>, http::Response<crate::support::TestBody>>();
    handle.allow(0);
    let mut service = layer.layer(mock);
    let refused = tokio::time::timeout(Duration::from_secs(1), ask(&mut service, call(1, 1))).await;
    assert_eq!(kind(&refused.expect("at once").unwrap_err()), RefusalKind::BudgetExhausted);
}

#[tokio::test(start_paused = true)]
async fn prices_change_for_the_next_call_and_not_for_those_under_way() {
    let shared = Prices::from(prices());
    let budget = Budget::new(Usd::dollars(1), Window::TOTAL);
    let layer = builder().prices(shared.clone()).budget(budget).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(10, 10)))));
    let mut service = layer.layer(upstream.service());
    let under_way = service.ready().await.unwrap().call(request(call(10, 10))).await.unwrap();
    shared.replace(PriceTable::new().model("m", Price::per_million("2", "2").unwrap()));
    drain(under_way).await;
    assert_eq!(account(layer.gate()).spent, tokens(20));
    ask(&mut service, call(10, 10)).await.unwrap();
    assert_eq!(account(layer.gate()).spent, tokens(20 + 40));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_price_passes_only_where_it_may() {
    let (log, upstream) = (Log::default(), Upstream::default());
    let budget = || Budget::new(Usd::dollars(1), Window::TOTAL);
    let strict = builder().budget(budget()).observer(log.observer()).build().unwrap();
    let mut unknown = call(1, 1);
    unknown.model = Some("not on the list".into());
    let error = ask(&mut strict.layer(upstream.service()), unknown.clone()).await.unwrap_err();
    assert_eq!((kind(&error), upstream.asked()), (RefusalKind::Unpriced, 0));
    assert_eq!(log.lines(), ["unpriced", "refused unpriced"]);
    // What is known to cost nothing needs no price.
    let mut gift = unknown.clone();
    gift.free = true;
    ask(&mut strict.layer(upstream.service()), gift).await.unwrap();
    assert_eq!((sums(strict.gate()), log.lines().len()), ((Usd::ZERO, Usd::ZERO), 0));
    let free = builder().budget(budget()).unpriced(Unpriced::Free).build().unwrap();
    ask(&mut free.layer(upstream.service()), unknown).await.unwrap();
    assert_eq!(sums(free.gate()), (Usd::ZERO, Usd::ZERO));
}

/// An own request and response type, without HTTP.
struct Prompt(Call);
struct Reply(Option<Usage>);

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(&self.0)
    }
}

impl Answer for Reply {
    fn usage(&self) -> Option<Usage> {
        self.0
    }
}

#[tokio::test(start_paused = true)]
async fn own_types_say_their_usage() {
    let layer = guard(Usd::dollars(1)).at_head();
    let service = layer.layer(service_fn(|prompt: Prompt| async move {
        let mut usage = Usage::default();
        (usage.input, usage.output) = (Some(7), prompt.0.output_bound.map(|bound| bound / 2));
        Ok::<_, BoxError>(Reply(usage.output.map(|_| usage)))
    }));
    service.clone().oneshot(Prompt(call(100, 10))).await.unwrap();
    assert_eq!(sums(layer.gate()), (tokens(12), Usd::ZERO));
    let mut silent = call(100, 0);
    silent.output_bound = None;
    service.oneshot(Prompt(silent)).await.unwrap();
    assert_eq!(sums(layer.gate()), (tokens(12 + 100), Usd::ZERO), "silence is charged by the rule");
}

#[tokio::test(start_paused = true)]
async fn a_blind_guard_takes_any_request() {
    let table =
        PriceTable::new().default_price(Price::per_million("0", "0").unwrap().with_request(Usd::cents(1)));
    let budget = Budget::new(Usd::cents(2), Window::TOTAL);
    let layer =
        CostGuardLayer::builder().prices(table).budget(budget).blind().unknown_input(0).build().unwrap();
    let service = layer.at_head().layer(service_fn(|_: Vec<u8>| async { Ok::<_, BoxError>(Reply(None)) }));
    for _ in 0..2 {
        service.clone().oneshot(vec![1]).await.unwrap();
    }
    assert!(service.oneshot(vec![1]).await.is_err());
}

#[test]
fn settings_that_cannot_work_are_not_built() {
    let day = || Budget::new(Usd::dollars(1), Window::DAY);
    let two = MemoryLedger::builder().budget(day()).budget(day()).build();
    assert_eq!(two.unwrap_err().field(), "budgets");
    let nine =
        (0..9).fold(MemoryLedger::builder(), |builder, n| builder.budget(day().named(format!("day {n}"))));
    assert_eq!(nine.build().unwrap_err().field(), "budgets");
    assert!(day().marks(&[0]).is_err() && day().marks(&[101]).is_err() && day().marks(&[100, 1]).is_ok());
    assert!(Window::rolling(Duration::ZERO).is_err() && Window::rolling(Duration::MAX).is_err());
    assert!(Window::TOTAL.at_offset(60).is_err() && Window::DAY.at_offset(19 * 60).is_err());
    let ledger = MemoryLedger::new(day());
    assert!(CostGuardLayer::builder().extra_cap(Usd::cents(50)).ledger(ledger).build().is_err());
}
