//! Faults that others had: reservations, leaks, limits and windows.

use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use seawall::RefusalKind;
use seawall::call::Call;
use seawall::cost_guard::ledger::{Ask, Cause, Denied, Granted, HoldId, Marks, MemoryWait, Reservation};
use seawall::cost_guard::{
    Budget, BudgetKey, CostGuardLayer, Ledger, MemoryLedger, Price, PriceTable, Rate, Rates, Spender,
    Unreported, Usd, Window,
};
use tower::{Layer, Service, ServiceExt};

use super::{
    Log, Upstream, account, ask, builder, call, drain, guard, json, kind, prices, request, response, sse,
    sums, tokens, used,
};
use crate::support::{TestBody, poll_once};

#[test]
fn b113_parallel_calls_cannot_all_pass_one_check() {
    let ledger = MemoryLedger::new(Budget::new(Usd::dollars(10), Window::TOTAL));
    ledger.charge(&Spender::default(), Usd::cents(950));
    let (threads, over, granted) = (50, AtomicU64::new(0), AtomicU64::new(0));
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                let ask = Ask::new(Spender::default(), Usd::cents(50));
                if let Reservation::Now(Ok(_)) = ledger.reserve(&ask) {
                    granted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        barrier.wait();
        for _ in 0..1_000 {
            let account = ledger.account("total budget", "").unwrap();
            if account.spent.saturating_add(account.reserved) > Usd::dollars(10) {
                over.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    assert_eq!((granted.into_inner(), over.into_inner()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn b115_a_cancelled_call_leaks_no_reservation() {
    // Each of a thousand calls would leave a dollar behind; the budget is 50.
    let layer = guard(Usd::dollars(50));
    let upstream = Upstream::default();
    let mut service = layer.layer(upstream.service());
    let dollar = || call(500_000, 500_000);
    for _ in 0..100 {
        // Before the first poll nothing is proven: the call was made.
        drop(service.ready().await.unwrap().call(request(dollar())));
        let (spent, reserved) = sums(layer.gate());
        assert_eq!(reserved, Usd::ZERO);
        assert_eq!(spent, Usd::dollars(1), "the upstream may have been asked");
        layer.gate().ledger().reset("total budget", "").unwrap();

        {
            let mut future = pin!(service.ready().await.unwrap().call(request(dollar())));
            let _ = poll_once(future.as_mut());
        }
        assert_eq!(sums(layer.gate()).1, Usd::ZERO, "after a poll");

        let response = service.ready().await.unwrap().call(request(dollar())).await.unwrap();
        drop(response);
        assert_eq!(sums(layer.gate()).1, Usd::ZERO, "after the head");
        layer.gate().ledger().reset("total budget", "").unwrap();
    }
    assert_eq!(layer.gate().ledger().audit().holds, 0);
}

#[tokio::test(start_paused = true)]
async fn b115_a_call_that_never_reached_the_upstream_is_free() {
    // The inner service is not ready; the caller leaves meanwhile.
    let layer = guard(Usd::dollars(1));
    let (mock, mut handle) = tower_test::mock::pair::<http::Request<()>, http::Response<TestBody>>();
    handle.allow(0);
    let ledger = layer.gate().ledger();
    ledger.set_limit("total budget", Some(Usd::ZERO)).unwrap();
    let mut service = layer.layer(mock);
    // A spent budget does not ask the inner service whether it is ready, ...
    let _ = service.ready().await.unwrap().call(request(call(1, 1))).await.unwrap_err();
    assert!(poll_once(pin!(service.ready())).is_ready());
    // ... and when it is not spent after all, the call readies it itself. Leaving then costs nothing.
    ledger.set_limit("total budget", Some(Usd::dollars(1))).unwrap();
    let mut future = Box::pin(service.call(request(call(1, 1))));
    assert!(poll_once(future.as_mut()).is_pending());
    assert_eq!(sums(layer.gate()).1, tokens(2));
    drop(future);
    assert_eq!(sums(layer.gate()), (Usd::ZERO, Usd::ZERO));
}

#[tokio::test(start_paused = true)]
async fn b116_an_error_before_the_first_chunk_costs_nothing() {
    for stream in [false, true] {
        for status in [400, 401, 403, 404, 429, 500, 503, 529] {
            let layer = guard(Usd::cents(10));
            let body = br#"{"error":{"type":"server_error","message":"no"}}"#;
            let upstream = Upstream::answering([Ok(response(status, "application/json", &[body]))]);
            let mut asked = call(1_000, 1_000);
            asked.stream = stream;
            ask(&mut layer.layer(upstream.service()), asked).await.unwrap();
            assert_eq!(sums(layer.gate()), (Usd::ZERO, Usd::ZERO), "{status}, stream: {stream}");
        }
        // An error event instead of the first content.
        let layer = guard(Usd::cents(10));
        let event = r#"{"error":{"message":"overloaded","type":"server_error","code":503}}"#;
        let upstream = Upstream::answering([Ok(sse(&[event])), Ok(sse(&[event, event]))]);
        let mut service = layer.layer(upstream.service());
        ask(&mut service, call(1_000, 1_000)).await.unwrap();
        assert_eq!(sums(layer.gate()), (Usd::ZERO, Usd::ZERO));
        // Who asks the next target then reads no further.
        let response = service.ready().await.unwrap().call(request(call(1_000, 1_000))).await.unwrap();
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(sums(layer.gate()), (Usd::ZERO, Usd::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn b116_a_connection_that_was_never_made_costs_nothing_but_one_that_broke_does() {
    #[derive(Debug)]
    struct Connect(std::io::Error);
    impl std::fmt::Display for Connect {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("client error (Connect)")
        }
    }
    impl std::error::Error for Connect {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    for (error, spent) in [
        (std::io::ErrorKind::ConnectionRefused, Usd::ZERO),
        (std::io::ErrorKind::HostUnreachable, Usd::ZERO),
        (std::io::ErrorKind::ConnectionReset, tokens(2_000)),
    ] {
        let layer = guard(Usd::cents(10));
        let upstream = Upstream::answering([Err(Connect(error.into()).into())]);
        ask(&mut layer.layer(upstream.service()), call(1_000, 1_000)).await.unwrap_err();
        assert_eq!(sums(layer.gate()), (spent, Usd::ZERO), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b118_a_call_that_cannot_be_estimated_does_not_reserve_the_whole_budget() {
    let table = PriceTable::new().default_price(Price::per_million("1", "1").unwrap());
    let budget = Budget::new(Usd::dollars(100), Window::TOTAL);
    let layer =
        builder().prices(table).unknown_input(4_000_000).unknown_output(40_000_000).budget(budget).build();
    let layer = layer.unwrap();
    let service = layer.layer(Upstream::default().service());
    let unknown = || service.clone().oneshot(request(Call::default()));
    let (one, two) = (unknown().await.unwrap(), unknown().await.unwrap());
    assert_eq!(account(layer.gate()).reserved, Usd::dollars(88));
    assert_eq!(kind(&unknown().await.err().unwrap()), RefusalKind::BudgetContended);
    drop((one, two));

    // Without those settings it is refused, and says why.
    let layer = guard(Usd::dollars(100));
    let mut service = layer.layer(Upstream::default().service());
    let error = ask(&mut service, Call::default()).await.unwrap_err();
    assert_eq!(kind(&error), RefusalKind::Unpriced);
    let mut referring = call(10, 10);
    referring.estimate.as_mut().unwrap().by_reference = true;
    let error = ask(&mut service, referring).await.unwrap_err();
    assert_eq!(kind(&error), RefusalKind::Unbounded);
}

#[tokio::test(start_paused = true)]
async fn b119_the_output_asked_for_is_capped_by_what_the_model_can_give() {
    let table = PriceTable::new().model("m", Price::per_million("1", "1").unwrap().with_max_output(8_000));
    for (asked, cap, choices, output) in [
        (Some(65_536), None, None, 8_000),
        (Some(65_536), Some(1_000), None, 1_000),
        (Some(500), Some(1_000), None, 500),
        (None, None, None, 8_000),
        (None, Some(1_000), Some(3), 3_000),
        (Some(0), None, None, 8_000),
        (Some(1_000_000_000_000), None, Some(0), 8_000),
        (Some(u64::MAX), None, Some(2), 16_000),
    ] {
        let budget = Budget::unlimited(Window::TOTAL);
        let mut building = builder().prices(table.clone()).budget(budget);
        if let Some(cap) = cap {
            building = building.output_cap(cap);
        }
        let layer = building.build().unwrap();
        let mut wanted = call(9_000, 0);
        (wanted.output_bound, wanted.choices) = (asked, choices);
        let _response = layer.layer(Upstream::default().service()).oneshot(request(wanted)).await.unwrap();
        assert_eq!(account(layer.gate()).reserved, tokens(9_000 + output), "{asked:?} {cap:?} {choices:?}");
    }
    // Beyond all that can be counted it saturates, and is refused rather than wrapped.
    let layer = guard(Usd::dollars(1));
    let mut huge = call(u64::MAX, u64::MAX);
    huge.choices = Some(u32::MAX);
    let error = ask(&mut layer.layer(Upstream::default().service()), huge).await.unwrap_err();
    assert_eq!(kind(&error), RefusalKind::BudgetExhausted);
}

/// A ledger whose store is gone.
#[derive(Clone)]
struct Gone(Arc<[Budget; 1]>);

impl Ledger for Gone {
    type Hold = HoldId;
    type Later = std::future::Ready<Result<Granted<HoldId>, Denied>>;

    fn budgets(&self) -> &[Budget] {
        &*self.0
    }

    fn reserve(&self, ask: &Ask<'_>) -> Reservation<HoldId, Self::Later> {
        let denied = Denied::new(Cause::Unavailable);
        if ask.amount.is_zero() {
            Reservation::Now(Err(denied))
        } else {
            Reservation::Later(std::future::ready(Err(denied)))
        }
    }

    fn settle(&self, _hold: &HoldId, _amount: Usd, _marks: Option<&mut Marks>) {}

    fn charge(&self, _spender: &Spender<'_>, _amount: Usd) {}
}

#[tokio::test(start_paused = true)]
async fn b121_a_ledger_that_is_gone_refuses_and_passes_only_if_told_to() {
    let gone = || Gone(Arc::new([Budget::new(Usd::dollars(1), Window::TOTAL)]));
    for asked in [call(0, 0), call(10, 10)] {
        let (upstream, log) = (Upstream::default(), Log::default());
        let layer = builder().observer(log.observer()).ledger(gone()).build().unwrap();
        let error = ask(&mut layer.layer(upstream.service()), asked.clone()).await.unwrap_err();
        assert_eq!((kind(&error), upstream.asked()), (RefusalKind::LedgerUnavailable, 0));
        assert_eq!(log.lines(), ["refused ledger_unavailable"]);

        let layer = builder().observer(log.observer()).fail_open().ledger(gone()).build().unwrap();
        ask(&mut layer.layer(upstream.service()), asked).await.unwrap();
        assert_eq!(upstream.asked(), 1);
        assert_eq!(log.lines()[0], "unreserved", "it is told of");
    }
}

#[tokio::test(start_paused = true)]
async fn b122_a_budget_of_zero_refuses_and_none_never_does() {
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(1, 1)))));
    let mut zero = guard(Usd::ZERO).layer(upstream.service());
    let error = ask(&mut zero, call(1, 1)).await.unwrap_err();
    assert_eq!((kind(&error), upstream.asked()), (RefusalKind::BudgetExhausted, 0));

    let layer = builder().build().unwrap();
    let mut none = layer.layer(upstream.service());
    for wanted in [call(1, 1), call(u64::MAX, u64::MAX), Call::default()] {
        ask(&mut none, wanted).await.unwrap();
    }
    assert_eq!(upstream.asked(), 3);

    let mut just_below = guard(Usd::nanos(1_999)).layer(upstream.service());
    assert_eq!(kind(&ask(&mut just_below, call(1, 1)).await.unwrap_err()), RefusalKind::BudgetExhausted);
    let mut just_enough = guard(Usd::nanos(2_000)).layer(upstream.service());
    ask(&mut just_enough, call(1, 1)).await.unwrap();
}

#[test]
fn b124_no_price_is_negative_or_not_a_number() {
    for text in ["-1", "NaN", "inf", "-inf", "", "free"] {
        assert!(Rate::per_token(text).is_err(), "{text}");
        assert!(Price::per_million(text, "1").is_err(), "{text}");
        assert!(text.parse::<Usd>().is_err(), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn b136_a_settlement_changes_the_window_of_its_reservation() {
    let start = seawall::time::now();
    let wall = move || Duration::from_secs(1_800_000_000) + start.elapsed();
    for window in [Window::MINUTE, Window::rolling(Duration::from_secs(60)).unwrap()] {
        let budget = Budget::new(Usd::dollars(5), window).named("b");
        let ledger = MemoryLedger::builder().budget(budget).wall(wall).build().unwrap();
        let state = || ledger.account("b", "").unwrap_or_else(|| panic!("an account"));
        tokio::time::advance(Duration::from_secs(59)).await;
        let Reservation::Now(Ok(four)) = ledger.reserve(&Ask::new(Spender::default(), Usd::dollars(4)))
        else {
            panic!("it fits")
        };
        assert_eq!((state().spent, state().reserved), (Usd::ZERO, Usd::dollars(4)));
        // The window of the reservation is gone now, with what it held.
        tokio::time::advance(Duration::from_secs(66)).await;
        assert_eq!(state().left, Some(Usd::dollars(5)));
        ledger.settle(&four.hold, Usd::dollars(1), None);
        assert_eq!(
            (state().spent, state().reserved),
            (Usd::ZERO, Usd::ZERO),
            "nothing is added, nothing given"
        );
        assert!(ledger.audit().balanced);
        // Within its window it counts.
        let Reservation::Now(Ok(two)) = ledger.reserve(&Ask::new(Spender::default(), Usd::dollars(2))) else {
            panic!("it fits")
        };
        ledger.settle(&two.hold, Usd::dollars(1), None);
        ledger.settle(&two.hold, Usd::dollars(1), None);
        assert_eq!((state().spent, state().reserved), (Usd::dollars(1), Usd::ZERO), "once");
        tokio::time::advance(Duration::from_secs(1_795)).await;
    }
}

#[test]
fn b137_the_day_begins_where_the_offset_puts_it() {
    let (day, noon_of_29th) = (86_400_000_i64, 1_795_953_600_000_i64);
    for hours in [-11, 0, 9, 14] {
        let midnight = noon_of_29th - noon_of_29th.rem_euclid(day) + day - i64::from(hours) * 3_600_000;
        let now = Arc::new(AtomicI64::new(0));
        let clock = now.clone();
        let wall = move || Duration::from_millis(clock.load(Ordering::SeqCst).unsigned_abs());
        let budget = Budget::new(Usd::dollars(1), Window::DAY.at_offset(hours * 60).unwrap());
        let ledger = MemoryLedger::builder().budget(budget).wall(wall).build().unwrap();
        now.store(midnight - 1_000, Ordering::SeqCst);
        ledger.charge(&Spender::default(), Usd::dollars(1));
        let state = || ledger.account("budget of the day", "").unwrap();
        assert_eq!((state().spent, state().resets_in), (Usd::dollars(1), Some(Duration::from_secs(1))));
        now.store(midnight, Ordering::SeqCst);
        assert_eq!(state().spent, Usd::ZERO, "at midnight of +{hours}");
        now.store(midnight + 1_000, Ordering::SeqCst);
        ledger.charge(&Spender::default(), Usd::cents(10));
        assert_eq!((state().spent, state().resets_in), (Usd::cents(10), Some(Duration::from_secs(86_399))));
    }
}

#[tokio::test(start_paused = true)]
async fn b143_every_attempt_that_was_billed_is_charged() {
    let answers = || {
        let cut =
            sse(&[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, &used(100, 20)]).map(TestBody::with_error);
        let failed = response(500, "application/json", &[used(50, 0).as_bytes()]);
        Upstream::answering([Ok(cut), Ok(failed), Ok(json(&used(100, 40)))])
    };
    let usage_of = [(100, 20), (50, 0), (100, 40)];
    let sum: u64 = usage_of.iter().map(|(input, output)| input + output).sum();

    // The guard inside the retry: each attempt reserves and settles for itself.
    let inside = guard(Usd::dollars(1));
    let mut service = inside.layer(answers().service());
    for attempt in 1..=3 {
        let mut again = call(1_000, 100);
        again.attempt = Some(attempt);
        let _ = ask(&mut service, again).await;
    }
    assert_eq!(sums(inside.gate()), (tokens(sum), Usd::ZERO));

    // The guard outside of it sees the last attempt alone: whoever retries below tells of the others.
    let outside = guard(Usd::dollars(1));
    let (gate, inner) = (outside.gate().clone(), answers().service());
    let retry = tower::service_fn(move |request: http::Request<()>| {
        let (gate, mut inner) = (gate.clone(), inner.clone());
        async move {
            for (input, output) in usage_of.into_iter().take(2) {
                let response = inner.ready().await?.call(request.clone()).await?;
                drain(response).await;
                let mut usage = seawall::call::Usage::default();
                (usage.input, usage.output) = (Some(input), Some(output));
                gate.charge(request.extensions().get().unwrap(), &usage).unwrap();
            }
            inner.ready().await?.call(request).await
        }
    });
    ask(&mut outside.layer(retry), call(1_000, 100)).await.unwrap();
    assert_eq!(sums(outside.gate()), (tokens(sum), Usd::ZERO));
}

#[tokio::test(start_paused = true)]
async fn further_attempts_have_a_cap_of_their_own() {
    let layer =
        builder().budget(Budget::new(Usd::dollars(1), Window::TOTAL)).extra_cap(tokens(100)).build().unwrap();
    let upstream = Upstream::answering((0..9).map(|_| Ok(json(&used(60, 20)))));
    let mut service = layer.layer(upstream.service());
    let attempt = |attempt, hop| {
        let mut call = call(60, 20);
        (call.attempt, call.hop) = (Some(attempt), Some(hop));
        call
    };
    ask(&mut service, attempt(1, 1)).await.unwrap();
    ask(&mut service, attempt(2, 1)).await.unwrap();
    let refused = ask(&mut service, attempt(1, 2)).await.unwrap_err();
    assert_eq!(kind(&refused), RefusalKind::BudgetExhausted, "a second target is a further attempt too");
    assert!(refused.to_string().contains("budget of further attempts"), "{refused}");
    ask(&mut service, attempt(1, 1)).await.unwrap();
    let ledger = layer.gate().ledger();
    assert_eq!(ledger.account("budget of further attempts", "").unwrap().spent, tokens(80));
    assert_eq!(account(layer.gate()).spent, tokens(240));
}

#[test]
fn ledgers_and_waits_can_be_sent() {
    fn check<T: Send + 'static>() {}
    check::<MemoryLedger>();
    check::<MemoryWait>();
    check::<CostGuardLayer>();
    let _ = (Unreported::Seen, BudgetKey::Tenant, Rates::default(), prices());
    assert!(matches!(Poll::Ready(()), Poll::Ready(())));
}
