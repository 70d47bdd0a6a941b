//! A ledger that lends is one that does not, only faster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::super::{Ask, Cause, HoldId, Ledger, Marks, MemoryHold, MemoryLedger, Reservation};
use super::take;
use crate::call::Key;
use crate::cost_guard::{Budget, BudgetKey, Spender, Usd, Window};
use crate::time::Wall;

#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Wall for Clock {
    fn since_epoch(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

const TENANTS: [&str; 3] = ["a", "b", "c"];

fn spender(tenant: &Key) -> Spender<'_> {
    Spender { tenant: Some(tenant), ..Spender::default() }
}

/// Two ledgers that are told the same. One of them calls back all that it has lent before each step.
struct Pair {
    lends: MemoryLedger,
    does_not: MemoryLedger,
    wall: Clock,
    keys: [Key; 3],
    holds: Vec<[MemoryHold; 2]>,
}

impl Pair {
    fn new(limit: u64, windows: &[Window]) -> Self {
        let wall = Clock::default();
        let ledger = || {
            let mut builder = MemoryLedger::builder().wall(wall.clone());
            for (at, &window) in windows.iter().enumerate() {
                let by = if at == 0 { BudgetKey::All } else { BudgetKey::Tenant };
                let budget = Budget::new(Usd::nanos(limit), window).by(by).named(at.to_string());
                builder = builder.budget(budget.marks(&[10, 50, 80, 100]).expect("they rise"));
            }
            builder.build().expect("no two have one name")
        };
        let (lends, does_not) = (ledger(), ledger());
        Self { lends, does_not, wall, keys: TENANTS.map(Key::from), holds: Vec::new() }
    }

    fn reserve(&mut self, rng: &mut fastrand::Rng) {
        let (desk, tenant) = (rng.usize(0..3), &self.keys[rng.usize(0..3)]);
        let (amount, force) = (rng.u64(0..60), rng.u8(0..20) == 0);
        let answers = [&self.lends, &self.does_not].map(|ledger| {
            let mut ask = Ask::new(spender(tenant), Usd::nanos(amount));
            (ask.id, ask.force) = (HoldId::fresh_at(desk), force);
            match ledger.reserve(&ask) {
                Reservation::Now(Ok(granted)) => {
                    Ok((granted.hold, granted.denied.map(|denied| denied.cause)))
                }
                Reservation::Now(Err(denied)) => Err(denied.cause),
                Reservation::Later(_) => unreachable!("nobody asked to wait"),
            }
        });
        let said = answers.map(|answer| answer.map(|(_, denied)| denied));
        assert_eq!(said[0], said[1]);
        if let [Ok((one, _)), Ok((other, _))] = answers {
            self.holds.push([one, other]);
        }
    }

    fn settle(&mut self, rng: &mut fastrand::Rng) {
        if self.holds.is_empty() {
            return;
        }
        let hold = self.holds.swap_remove(rng.usize(..self.holds.len()));
        // Sometimes more than was held.
        let (paid, listening) = (rng.u64(0..80), rng.bool());
        let told = [(&self.lends, hold[0]), (&self.does_not, hold[1])].map(|(ledger, hold)| {
            let mut marks = Marks::default();
            ledger.settle(&hold, Usd::nanos(paid), listening.then_some(&mut marks));
            ledger.release(&hold);
            marks.map(|mark| mark.map(|mark| (mark.percent, mark.spent)))
        });
        assert_eq!(told[0], told[1]);
    }

    fn manage(&self, rng: &mut fastrand::Rng, limit: u64) {
        let (what, amount) = (rng.u8(0..5), Usd::nanos(rng.u64(0..2 * limit)));
        let (budget, tenant) = (rng.u8(0..2).to_string(), rng.usize(0..3));
        for ledger in [&self.lends, &self.does_not] {
            let key = if budget == "0" { "" } else { TENANTS[tenant] };
            // The second budget is not always there.
            let _ = match what {
                0 => ledger.set_limit(&budget, Some(amount)),
                1 => ledger.set_limit_of(&budget, key, Some(amount)),
                2 => ledger.set_limit_of(&budget, key, None),
                3 => ledger.reset(&budget, key),
                _ => {
                    ledger.charge(&spender(&self.keys[tenant]), Usd::nanos(amount.as_nanos() / 20));
                    Ok(())
                }
            };
        }
    }

    fn compare(&self) {
        assert_eq!(self.lends.is_spent(), self.does_not.is_spent());
        for budget in ["0", "1"] {
            for key in TENANTS.into_iter().chain([""]) {
                assert_eq!(self.lends.account(budget, key), self.does_not.account(budget, key));
            }
        }
    }
}

async fn run(seed: u64, windows: &[Window]) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let limit = [100, 1_000, 9_000][rng.usize(0..3)];
    let (mut pair, mut back_once) = (Pair::new(limit, windows), 45);
    for step in 0..300 {
        match rng.u8(0..100) {
            0..=44 => pair.reserve(&mut rng),
            45..=84 => pair.settle(&mut rng),
            85..=89 => pair.manage(&mut rng, limit),
            _ => {
                let seconds = rng.u64(0..40);
                tokio::time::advance(Duration::from_secs(seconds)).await;
                // The wall's clock is put back once.
                let now = pair.wall.0.load(Ordering::Relaxed);
                let back = if rng.u8(0..10) == 0 { std::mem::take(&mut back_once) } else { 0 };
                pair.wall.0.store((now + seconds).saturating_sub(back), Ordering::Relaxed);
            }
        }
        assert!(pair.does_not.audit().balanced);
        pair.compare();
        if step % 50 == 49 {
            let audit = pair.lends.audit();
            assert_eq!((audit, audit.balanced), (pair.does_not.audit(), true), "seed {seed}, step {step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_lends_says_the_same_as_who_does_not() {
    let rolling = Window::rolling(Duration::from_secs(120)).unwrap();
    let all: [&[Window]; 7] = [
        &[Window::TOTAL],
        &[rolling],
        &[Window::MINUTE],
        &[Window::TOTAL, rolling],
        &[rolling, Window::MINUTE],
        &[Window::CALL, Window::TOTAL],
        &[Window::MINUTE, Window::CALL],
    ];
    for (seed, windows) in (0..70).zip(all.into_iter().cycle()) {
        run(seed, windows).await;
    }
}

/// A ledger of which a desk has some money, while another call holds half of all.
fn half_held() -> (MemoryLedger, MemoryHold, impl Fn(u64) -> Result<MemoryHold, Cause>) {
    let budget =
        Budget::new(Usd::nanos(1_000_000_000), Window::TOTAL).named("0").marks(&[]).expect("none is fine");
    let ledger = MemoryLedger::new(budget);
    let ask = |ledger: &MemoryLedger, desk, amount| {
        let mut ask = Ask::new(Spender::default(), Usd::nanos(amount));
        ask.id = HoldId::fresh_at(desk);
        take(ledger, &ask)
    };
    let held = ask(&ledger, 0, 500_000_000).expect("half of it");
    ask(&ledger, 1, 1).expect("and more");
    let there = ledger.clone();
    (ledger, held, move |amount| ask(&there, 1, amount))
}

#[test]
fn what_is_charged_beside_all_holds_is_not_lent_any_more() {
    let (ledger, _held, ask) = half_held();
    ledger.charge(&Spender::default(), Usd::nanos(499_999_990));
    assert_eq!(ask(10), Err(Cause::Contended));
    ask(9).expect("it is what is left");
}

#[test]
fn what_costs_more_than_was_held_leaves_less_for_those_who_were_lent_some() {
    let (ledger, held, ask) = half_held();
    let mut other = Ask::new(Spender::default(), Usd::nanos(1));
    other.id = HoldId::fresh_at(0);
    let other = take(&ledger, &other).unwrap();
    assert!(ledger.account("0", "").is_some_and(|account| account.reserved == Usd::nanos(500_000_002)));
    ledger.settle(&other, Usd::nanos(499_999_990), None);
    assert_eq!(ask(10), Err(Cause::Contended));
    ask(9).expect("it is what is left");
    ledger.settle(&held, Usd::nanos(500_000_010), None);
    assert_eq!(ask(1), Err(Cause::Exhausted(None)));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_passed_again_is_told_whichever_desk_has_the_money() {
    let window = Window::rolling(Duration::from_secs(60)).unwrap();
    let budget = Budget::new(Usd::nanos(1_000_000_000), window).named("0").marks(&[10]).unwrap();
    let ledger = MemoryLedger::new(budget);
    let reserve = |desk, amount| {
        let mut ask = Ask::new(Spender::default(), Usd::nanos(amount));
        ask.id = HoldId::fresh_at(desk);
        take(&ledger, &ask).unwrap()
    };
    let settle = |hold: &MemoryHold, amount| {
        let mut marks = Marks::default();
        ledger.settle(hold, Usd::nanos(amount), Some(&mut marks));
        marks[0].as_ref().map(|mark| mark.percent)
    };
    assert_eq!(settle(&reserve(0, 100_000_000), 100_000_000), Some(10));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(settle(&reserve(0, 99_999_999), 99_999_999), None);
    let [_, late] = [(); 2].map(|()| reserve(1, 1_000));
    // The first mark leaves the window with what was spent by then.
    tokio::time::advance(Duration::from_secs(32)).await;
    reserve(0, 1);
    assert_eq!(settle(&late, 1_000), Some(10));
}

#[test]
fn a_limit_of_its_own_says_whether_an_account_is_spent() {
    let ledger = MemoryLedger::new(Budget::new(Usd::nanos(10), Window::TOTAL).named("0"));
    ledger.set_limit_of("0", "", Some(Usd::nanos(20))).unwrap();
    for spent in [false, true] {
        let hold = take(&ledger, &Ask::new(Spender::default(), Usd::nanos(10))).unwrap();
        ledger.settle(&hold, Usd::nanos(10), None);
        assert_eq!(ledger.is_spent(), spent);
    }
}

#[test]
fn a_budget_of_each_call_is_never_spent() {
    let ledger = MemoryLedger::new(Budget::new(Usd::nanos(10), Window::CALL).named("0"));
    let hold = take(&ledger, &Ask::new(Spender::default(), Usd::nanos(10))).unwrap();
    ledger.settle(&hold, Usd::nanos(10), None);
    assert_eq!(take(&ledger, &Ask::new(Spender::default(), Usd::nanos(11))), Err(Cause::Exhausted(None)));
    assert!(!ledger.is_spent(), "the next call may be cheaper");
    ledger.set_limit("0", Some(Usd::nanos(9))).unwrap();
    assert!(!ledger.is_spent());
}

#[test]
fn threads_together_never_use_more_than_the_limit() {
    const LIMIT: u64 = 4_000;
    let budgets = [(BudgetKey::All, "all"), (BudgetKey::Tenant, "each")];
    let budgets = budgets.map(|(by, name)| Budget::new(Usd::nanos(LIMIT), Window::TOTAL).by(by).named(name));
    let [all, each] = budgets;
    let ledger = MemoryLedger::builder().budget(all).budget(each).build().unwrap();
    let (over, paid) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn({
                    let (ledger, paid) = (&ledger, &paid);
                    move || work(ledger, seed, paid)
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let account = ledger.account("all", "").unwrap();
                assert!(account.spent.saturating_add(account.reserved) <= Usd::nanos(LIMIT));
                assert!(ledger.audit().balanced);
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    let account = ledger.account("all", "").unwrap();
    assert_eq!((account.spent.as_nanos(), account.reserved), (paid.load(Ordering::Relaxed), Usd::ZERO));
    assert_eq!(ledger.audit().holds, 0);
}

/// Reserves and settles; part of what is reserved is settled from another desk's thread by being left in a pool.
fn work(ledger: &MemoryLedger, seed: u64, paid: &AtomicU64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (key, mut holds) = (Key::from(TENANTS[usize::try_from(seed).unwrap_or(0) % 3]), Vec::new());
    for _ in 0..3_000 {
        let amount = rng.u64(1..40);
        let mut ask = Ask::new(spender(&key), Usd::nanos(amount));
        ask.id = HoldId::fresh_at(rng.usize(0..2));
        match ledger.reserve(&ask) {
            Reservation::Now(Ok(granted)) => holds.push((granted.hold, amount)),
            Reservation::Now(Err(denied)) => {
                assert!(matches!(denied.cause, Cause::Contended | Cause::Exhausted(_)));
            }
            Reservation::Later(_) => unreachable!("nobody asked to wait"),
        }
        if holds.len() > 8 || rng.bool() {
            let Some((hold, amount)) = holds.pop() else { continue };
            let cost = if rng.u8(0..30) == 0 { amount } else { 0 };
            paid.fetch_add(cost, Ordering::Relaxed);
            ledger.settle(&hold, Usd::nanos(cost), None);
        }
    }
    for (hold, _) in &holds {
        ledger.release(hold);
    }
}
