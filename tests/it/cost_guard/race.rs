//! A hard budget is hard: no race, cancel, error or panic overspends it, or leaves a reservation behind.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use seawall::call::{Answer, Call, Describe, Usage};
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::monitor::Event;
use seawall::{BoxError, Class, RefusalKind, Verdict};
use tower::{Layer, Service, ServiceExt};

use super::{call, kind, prices, tokens};

#[derive(Clone)]
struct Prompt(Call);

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(&self.0)
    }
}

struct Reply {
    usage: Option<Usage>,
    verdict: Option<Verdict>,
}

impl Answer for Reply {
    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }
}

/// An upstream with books of its own. A call that is cancelled goes on there to the end, and is billed as much as it may
/// cost.
#[derive(Clone)]
struct Provider {
    billed: Arc<AtomicU64>,
    rng: Arc<Mutex<Rng>>,
}

struct Bill {
    billed: Arc<AtomicU64>,
    amount: u64,
}

impl Drop for Bill {
    fn drop(&mut self) {
        self.billed.fetch_add(self.amount, Ordering::SeqCst);
    }
}

impl Service<Prompt> for Provider {
    type Response = Reply;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, prompt: Prompt) -> Self::Future {
        let (input, output) = (prompt.0.estimate.unwrap().input_bytes, prompt.0.output_bound.unwrap());
        let bill = Bill { billed: self.billed.clone(), amount: (input + output) * 1_000 };
        let (wait, fate, share) = {
            let mut rng = self.rng.lock().unwrap();
            (rng.u64(1..20_000), rng.u8(0..20), rng.u64(0..=100))
        };
        Box::pin(async move {
            // All of it, and not only its amount: it is the drop that counts.
            let mut bill = bill;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            assert!(fate != 0, "a bug in the client");
            if fate == 1 {
                return Err("connection reset".into());
            }
            if fate < 4 {
                bill.amount = 0;
                return Ok(Reply { usage: None, verdict: Some(Verdict::new(Class::Transient)) });
            }
            let mut usage = Usage::default();
            (usage.input, usage.output) = (Some(input / 4), Some(output * share / 100));
            bill.amount = (input / 4 + output * share / 100) * 1_000;
            Ok(Reply { usage: Some(usage), verdict: None })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_by_64_tasks_over_three_windows_spend_what_the_provider_says() {
    let start = seawall::time::now();
    let wall = move || Duration::from_secs(1_800_000_000) + start.elapsed();
    let (limit, day) = (tokens(400_000), 86_400);
    let layer = CostGuardLayer::builder()
        .prices(prices())
        .framing(0)
        .budget(Budget::new(limit, Window::DAY))
        .budget(Budget::new(tokens(60_000), Window::rolling(Duration::from_secs(3_600)).unwrap()))
        .budget(Budget::unlimited(Window::TOTAL))
        .extra_cap(tokens(80_000))
        .wall(wall)
        .build()
        .unwrap();
    let seed = 7;
    let provider = Provider { billed: Arc::default(), rng: Arc::new(Mutex::new(Rng::with_seed(seed))) };
    let service = layer.clone().at_head().layer(provider.clone());
    let ledger = layer.gate().ledger().clone();
    let (admitted, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));

    let sample = {
        let ledger = ledger.clone();
        move || {
            for (name, limit) in [
                ("budget of the day", limit),
                ("rolling budget", tokens(60_000)),
                ("budget of further attempts", tokens(80_000)),
            ] {
                let account = ledger.account(name, "").unwrap();
                assert!(account.spent.saturating_add(account.reserved) <= limit, "{name}: {account:?}");
            }
        }
    };
    let tasks: Vec<_> = (0..64_u64)
        .map(|task| {
            let (service, sample) = (service.clone(), sample.clone());
            let (admitted, refused) = (admitted.clone(), refused.clone());
            let mut rng = Rng::with_seed(seed * 1_000 + task);
            tokio::spawn(async move {
                for n in 0..157 {
                    // Three days, and what is left of the calls in each.
                    tokio::time::sleep(Duration::from_secs(rng.u64(0..2 * 3 * day / 157))).await;
                    let mut prompt = call(rng.u64(1..400), rng.u64(1..400));
                    prompt.attempt = Some(1 + u32::from(n % 5 == 0));
                    let called = AssertUnwindSafe(service.clone().oneshot(Prompt(prompt))).catch_unwind();
                    // A third of the callers leaves at some point, some before the first poll.
                    let patience = if rng.u8(0..3) == 0 { rng.u64(0..15_000) } else { u64::MAX / 1_000_000 };
                    match tokio::time::timeout(Duration::from_millis(patience), called).await {
                        Ok(Ok(Err(error))) if seawall::refusal::find(&*error).is_some() => {
                            refused.fetch_add(1, Ordering::SeqCst);
                        }
                        _ => {
                            admitted.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    sample();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let audit = ledger.audit();
    assert!(audit.balanced && audit.holds == 0 && audit.reserved.is_zero(), "{audit:?}");
    let spent = ledger.account("total budget", "").unwrap().spent;
    assert_eq!(spent, Usd::nanos(provider.billed.load(Ordering::SeqCst)), "to the nano-dollar");
    let (admitted, refused) = (admitted.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert!(admitted > 2_000 && refused > 500, "both happen: {admitted} and {refused}");
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_parallel_worst_case_calls_one_passes() {
    let layer = CostGuardLayer::builder()
        .prices(prices())
        .framing(0)
        .budget(Budget::new(Usd::cents(5), Window::TOTAL))
        .build()
        .unwrap();
    // Each uses all of its bound, which is all of the budget.
    let service = layer.clone().at_head().layer(tower::service_fn(|prompt: Prompt| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut usage = Usage::default();
        usage.input = prompt.0.estimate.map(|estimate| estimate.input_bytes);
        usage.output = prompt.0.output_bound;
        Ok::<_, BoxError>(Reply { usage: Some(usage), verdict: None })
    }));
    let calls = (0..100).map(|_| service.clone().oneshot(Prompt(call(30_000, 20_000))));
    let results = futures_util::future::join_all(calls).await;
    let refusals: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).map(kind).collect();
    assert_eq!(refusals.len(), 99);
    // They waited for the one under way, and then it had spent it all.
    assert!(refusals.iter().all(|&kind| kind == RefusalKind::BudgetExhausted), "{refusals:?}");
    assert_eq!(layer.gate().ledger().account("total budget", "").unwrap().spent, Usd::cents(5));
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_used_to_97_percent_before_it_is_exhausted() {
    let table = PriceTable::new().model("m", Price::per_million("2.50", "10").unwrap());
    let contended = Arc::new(Mutex::new(None));
    let (seen, handle) = (contended.clone(), Arc::new(Mutex::new(None::<seawall::cost_guard::MemoryLedger>)));
    let ledger = handle.clone();
    let layer = CostGuardLayer::builder()
        .prices(table)
        .budget(Budget::new(Usd::dollars(10), Window::TOTAL))
        .patience(Duration::from_secs(60))
        .observer(move |event: &Event<'_>| {
            if let Event::Waited { .. } = event {
                let spent =
                    ledger.lock().unwrap().as_ref().unwrap().account("total budget", "").unwrap().spent;
                seen.lock().unwrap().get_or_insert(spent);
            }
        })
        .build()
        .unwrap();
    *handle.lock().unwrap() = Some(layer.gate().ledger().clone());
    let rng = Arc::new(Mutex::new(Rng::with_seed(11)));
    let answers = rng.clone();
    let service = layer.clone().at_head().layer(tower::service_fn(move |prompt: Prompt| {
        let (share, wait) = {
            let mut rng = answers.lock().unwrap();
            (rng.u64(5..=100), rng.u64(500..20_000))
        };
        async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let mut usage = Usage::default();
            // English has about five bytes a token.
            usage.input = prompt.0.estimate.map(|estimate| estimate.input_bytes / 5);
            usage.output = prompt.0.output_bound.map(|bound| bound * share / 100);
            Ok::<_, BoxError>(Reply { usage: Some(usage), verdict: None })
        }
    }));
    let tasks = (0..16).map(|_| {
        let (service, rng) = (service.clone(), rng.clone());
        async move {
            loop {
                let size = rng.lock().unwrap().u64(200..20_000);
                match service.clone().oneshot(Prompt(call(size, 1_000))).await.map_err(|error| kind(&error)) {
                    Ok(_) | Err(RefusalKind::BudgetContended) => {}
                    Err(kind) => break kind,
                }
            }
        }
    });
    let mut tasks: futures_util::stream::FuturesUnordered<_> = tasks.map(Box::pin).collect();
    let first = futures_util::StreamExt::next(&mut tasks).await.unwrap();
    let account = layer.gate().ledger().account("total budget", "").unwrap();
    assert_eq!(first, RefusalKind::BudgetExhausted);
    #[expect(
        clippy::print_stdout,
        reason = "the figure is for the reader of the run; the promise is asserted below"
    )]
    {
        println!(
            "contended from {:?}, exhausted at {}",
            contended.lock().unwrap().map(|usd| usd.to_string()),
            account.spent
        );
    }
    assert!(account.spent >= Usd::cents(970), "{account:?}");
}
