//! Models of the ledger's core: every order in which threads can meet is tried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use loom::thread;

use super::wait::Queue;
use super::{Ask, HoldId, Ledger, MemoryHold, MemoryLedger, Reservation};
use crate::cost_guard::{Budget, BudgetKey, Spender, Usd, Window};

fn reserve(ledger: &MemoryLedger, amount: u64) -> Option<MemoryHold> {
    match ledger.reserve(&Ask::new(Spender::default(), Usd::nanos(amount))) {
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
        let theirs = thread::spawn(move || reserve(&other, 6));
        let mine = reserve(&ledger, 6);
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
        let hold = reserve(&ledger, 6).unwrap();
        let other = ledger.clone();
        let releasing = thread::spawn(move || other.release(&hold));
        ledger.settle(&hold, Usd::nanos(4), None);
        releasing.join().unwrap();
        let (spent, reserved) = used(&ledger, "0");
        assert!(matches!((spent, reserved), (0 | 4, 0)), "{spent} {reserved}");
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
        let hold = reserve(&ledger, 10).unwrap();
        let other = ledger.clone();
        let settling = thread::spawn(move || other.settle(&hold, Usd::nanos(1), None));

        let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut ask = Ask::new(Spender::default(), Usd::nanos(5));
        ask.id = HoldId::fresh();
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
