//! Models of the ledger's core: every order in which threads can meet is tried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use loom::thread;

use super::wait::Queue;
use super::{Ask, HoldId, Ledger, MemoryHold, MemoryLedger, Reservation};
use crate::cost_guard::{Budget, BudgetKey, Spender, Usd, Window};

fn reserve(ledger: &MemoryLedger, desk: usize, amount: u64) -> Option<MemoryHold> {
    let mut ask = Ask::new(Spender::default(), Usd::nanos(amount));
    ask.id = HoldId::fresh_at(desk);
    match ledger.reserve(&ask) {
        Reservation::Now(Ok(granted)) => Some(granted.hold),
        _ => None,
    }
}

fn ledger(limits: &[u64]) -> MemoryLedger {
    let mut builder = MemoryLedger::builder();
    for (at, &limit) in limits.iter().enumerate() {
        let budget = Budget::new(Usd::nanos(limit), Window::TOTAL).named(format!("{at}"));
        let by = if at == 0 { BudgetKey::All } else { BudgetKey::Tenant };
        builder = builder.budget(budget.by(by)).most_keys(8.try_into().unwrap());
    }
    builder.build().unwrap()
}

fn used(ledger: &MemoryLedger, budget: &str) -> (u64, u64) {
    let account = ledger.account(budget, "").unwrap();
    (account.spent.as_nanos(), account.reserved.as_nanos())
}

#[test]
fn loom_the_last_of_a_budget_is_given_once() {
    loom::model(|| {
        let ledger = ledger(&[10, 10]);
        let other = ledger.clone();
        let theirs = thread::spawn(move || reserve(&other, 1, 6));
        let mine = reserve(&ledger, 0, 6);
        let theirs = theirs.join().unwrap();
        assert!(mine.is_some() ^ theirs.is_some(), "one, and not none: two accounts are taken in one step");
        assert_eq!((used(&ledger, "0"), used(&ledger, "1")), ((0, 6), (0, 6)));
        assert!(ledger.audit().balanced);
    });
}

#[test]
fn loom_a_hold_settles_once_whoever_does_it() {
    loom::model(|| {
        let ledger = ledger(&[10]);
        let hold = reserve(&ledger, 0, 6).unwrap();
        let other = ledger.clone();
        let releasing = thread::spawn(move || other.release(&hold));
        ledger.settle(&hold, Usd::nanos(4), None);
        releasing.join().unwrap();
        let (spent, reserved) = used(&ledger, "0");
        assert!(matches!((spent, reserved), (0 | 4, 0)), "{spent} {reserved}");
        assert!(ledger.audit().balanced);
    });
}

/// A ledger whose first desk has money, and the hold by which it got it.
fn lending() -> (MemoryLedger, MemoryHold) {
    let ledger = ledger(&[100]);
    let first = reserve(&ledger, 0, 5).unwrap();
    (ledger, first)
}

#[test]
fn loom_what_is_lent_is_spent_once() {
    loom::model(|| {
        let (ledger, _first) = lending();
        let other = ledger.clone();
        let theirs = thread::spawn(move || reserve(&other, 1, 91));
        let mine = reserve(&ledger, 0, 5);
        let theirs = theirs.join().unwrap();
        assert!(mine.is_some() ^ theirs.is_some(), "each fits alone, whatever was lent before");
        assert!(ledger.audit().balanced);
    });
}

#[test]
fn loom_a_hold_at_a_desk_is_settled_while_its_money_is_called_back() {
    loom::model(|| {
        let (ledger, _first) = lending();
        let hold = reserve(&ledger, 0, 4).unwrap();
        let other = ledger.clone();
        let settling = thread::spawn(move || other.settle(&hold, Usd::nanos(2), None));
        assert!(reserve(&ledger, 1, 91).is_some(), "it fits, before and after");
        settling.join().unwrap();
        assert_eq!(used(&ledger, "0"), (2, 96));
        assert!(ledger.audit().balanced);
    });
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn loom_what_is_given_back_is_never_missed_by_who_waits() {
    loom::model(|| {
        let ledger = ledger(&[10]);
        let hold = reserve(&ledger, 0, 10).unwrap();
        let other = ledger.clone();
        let settling = thread::spawn(move || other.settle(&hold, Usd::nanos(1), None));

        let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut ask = Ask::new(Spender::default(), Usd::nanos(5));
        ask.id = HoldId::fresh_at(1);
        let mut queue = Queue::new(Some(&waker));
        let taken = ledger.take(&ask, &mut queue).is_ok();
        settling.join().unwrap();
        // Either it came after the settlement, or the settlement woke it.
        assert!(taken || count.0.load(Ordering::SeqCst) == 1);
        if !taken {
            assert!(ledger.take(&ask, &mut Queue::new(Some(&waker))).is_ok(), "and then it fits");
        }
        assert_eq!(used(&ledger, "0"), (1, 5));
    });
}
