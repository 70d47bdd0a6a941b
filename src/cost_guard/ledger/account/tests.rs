//! One account by itself: who waits, who may pass, and when nobody needs it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;
use crate::cost_guard::window::Window;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn wakers() -> [Waker; 3] {
    std::array::from_fn(|_| Arc::new(Count::default()).into())
}

fn ids<const N: usize>() -> [HoldId; N] {
    std::array::from_fn(|_| HoldId::fresh())
}

fn is(told: Option<Waker>, waker: &Waker) -> bool {
    told.is_some_and(|told| told.will_wake(waker))
}

fn budget(window: Window) -> Budget {
    Budget::new(Usd::cents(10), window)
}

fn account(budget: &Budget) -> Account {
    Account::new(budget, Key::from(""), Moment::default())
}

fn spend(account: &mut Account, budget: &Budget, amount: Usd) {
    let stamp = account.meter.reserve(budget.window, Moment::default(), Usd::ZERO);
    account.meter.settle(stamp, Usd::ZERO, amount);
}

#[test]
fn it_is_at_rest_when_nobody_needs_it() {
    let budget = budget(Window::TOTAL);
    let rests = |change: fn(&mut Account, &Budget)| {
        let mut account = account(&budget);
        change(&mut account, &budget);
        account.at_rest(&budget, Moment::default())
    };
    assert!(rests(|_, _| {}));
    assert!(!rests(|account, _| account.live = 1), "a hold is not settled");
    assert!(!rests(|account, _| account.limit = Some(Usd::cents(10))), "a limit of its own");
    assert!(!rests(|account, _| assert!(account.enqueue(HoldId::fresh(), None))), "somebody waits");
    assert!(!rests(|account, budget| spend(account, budget, Usd::nanos(1))), "something is spent");
}

#[test]
fn an_amount_fits_up_to_the_limit() {
    let check = |budget: &Budget, spent, amount| {
        let mut account = account(budget);
        spend(&mut account, budget, Usd::cents(spent));
        account.check(budget, budget.limit, HoldId::fresh(), Usd::cents(amount), Moment::default())
    };
    for (window, spent) in [(Window::CALL, 0), (Window::CALL, 9), (Window::TOTAL, 0)] {
        assert_eq!(check(&budget(window), spent, 10), None);
        assert_eq!(check(&budget(window), spent, 11), Some(Cause::Exhausted(None)));
    }
    assert_eq!(check(&budget(Window::TOTAL), 9, 2), Some(Cause::Exhausted(None)));
    assert_eq!(check(&Budget::unlimited(Window::TOTAL), 9, 1_000), None);
}

#[test]
fn whoever_waits_first_passes_first() {
    let budget = budget(Window::TOTAL);
    let (mut account, [first, second, newcomer]) = (account(&budget), ids());
    assert!(account.enqueue(first, None) && account.enqueue(second, None));
    let mut check = |id| account.check(&budget, budget.limit, id, Usd::cents(1), Moment::default());
    assert_eq!(check(first), None);
    assert_eq!((check(second), check(newcomer)), (Some(Cause::Contended), Some(Cause::Contended)));
}

#[test]
fn each_waits_once_and_is_told_by_its_newest_waker() {
    let (mut account, [one, two], [old, new, other]) = (account(&budget(Window::TOTAL)), ids(), wakers());
    assert!(account.first().is_none());
    assert!(account.enqueue(one, Some(&old)) && account.enqueue(two, Some(&other)));
    assert!(account.enqueue(one, Some(&new)));
    assert_eq!(account.waiting(), 2);
    assert!(is(account.first(), &new));
    assert!(account.enqueue(one, None) && account.first().is_none(), "it no longer wants to be told");
}

#[test]
fn whoever_leaves_the_front_lets_the_next_be_woken_and_nobody_else_does() {
    let (mut account, [a, b, c], [first, second, third]) = (account(&budget(Window::TOTAL)), ids(), wakers());
    for (id, waker) in [(a, &first), (b, &second), (c, &third)] {
        assert!(account.enqueue(id, Some(waker)));
    }
    assert!(account.dequeue(b).is_none(), "the first still waits");
    assert!(account.dequeue(b).is_none() && account.waiting() == 2, "it has left");
    assert!(is(account.dequeue(a), &third));
    assert!(account.dequeue(c).is_none() && account.waiting() == 0);
}

#[test]
fn there_are_no_more_waiters_than_the_bound_and_those_that_wait_go_on() {
    let mut account = account(&budget(Window::TOTAL));
    let known = HoldId::fresh();
    assert!(account.enqueue(known, None));
    assert!((1..MOST_WAITERS).all(|_| account.enqueue(HoldId::fresh(), None)));
    assert!(!account.enqueue(HoldId::fresh(), None));
    assert!(account.enqueue(known, None));
    assert_eq!(account.waiting(), MOST_WAITERS);
}

#[test]
fn a_mark_is_told_with_its_account_unless_there_is_no_limit_or_each_call_has_its_own() {
    let marked = |budget: &Budget, spent| {
        let mut account = account(budget);
        spend(&mut account, budget, spent);
        account.mark(budget, budget.limit)
    };
    let total = budget(Window::TOTAL);
    let mark = marked(&total, Usd::cents(8)).unwrap();
    assert_eq!((mark.percent, mark.spent, mark.limit), (80, Usd::cents(8), Usd::cents(10)));
    assert_eq!(mark.label.name(), total.name());
    assert_eq!(marked(&total, Usd::cents(4)), None);
    assert_eq!(marked(&Budget::unlimited(Window::TOTAL), Usd::MAX), None);
    assert_eq!(marked(&budget(Window::CALL), Usd::cents(10)), None);
}

#[test]
fn it_lends_up_to_a_nano_dollar_below_the_next_mark_and_at_last_below_the_limit() {
    let budget = budget(Window::TOTAL).marks(&[50, 80]).unwrap();
    let below = |cents: u32| Usd::cents(cents).saturating_sub(Usd::nanos(1));
    for (spent, bound) in [(0, 5), (4, 5), (5, 8), (8, 10), (10, 10)] {
        let mut account = account(&budget);
        spend(&mut account, &budget, Usd::cents(spent));
        assert_eq!(account.next_bound(&budget, budget.limit), Some(Usd::cents(bound)), "{spent} spent");
        let left = below(bound).saturating_sub(Usd::cents(spent));
        assert_eq!(account.lendable(&budget, budget.limit), left, "{spent} spent");
        account.lent = Usd::nanos(7);
        assert_eq!(
            account.lendable(&budget, budget.limit),
            left.saturating_sub(Usd::nanos(7)),
            "lent already"
        );
        assert!(account.enqueue(HoldId::fresh(), None));
        assert_eq!(account.lendable(&budget, budget.limit), Usd::ZERO, "those who wait come first");
    }
}

#[test]
fn without_a_limit_it_lends_plenty_and_knows_no_bound() {
    for budget in [Budget::unlimited(Window::TOTAL), budget(Window::CALL)] {
        let account = account(&budget);
        assert_eq!(account.next_bound(&budget, budget.limit), None);
        assert_eq!(account.lendable(&budget, budget.limit), PLENTY);
    }
    assert!(PLENTY > Usd::dollars(1_000_000_000), "more than a program spends between two looks");
}

#[test]
fn a_mark_that_is_passed_is_untold_until_somebody_is_told() {
    let untold = |budget: &Budget, spent| {
        let mut account = account(budget);
        spend(&mut account, budget, Usd::cents(spent));
        let before = account.untold(budget, budget.limit);
        account.mark(budget, budget.limit);
        (before, account.untold(budget, budget.limit))
    };
    assert_eq!(untold(&budget(Window::TOTAL), 8), (true, false));
    assert_eq!(untold(&budget(Window::TOTAL), 1), (false, false));
    assert_eq!(untold(&budget(Window::CALL), 8), (false, false), "it has no sum");
    assert_eq!(untold(&Budget::unlimited(Window::TOTAL), 8), (false, false));
}

#[test]
fn a_budget_of_each_call_bounds_each_call_and_no_other_does() {
    let most = |budget: &Budget| account(budget).most(budget, budget.limit);
    assert_eq!((most(&budget(Window::CALL)), most(&budget(Window::TOTAL))), (Usd::cents(10), Usd::MAX));
    let (budget, own) = (budget(Window::CALL), Some(Usd::cents(3)));
    assert_eq!(Account { limit: own, ..account(&budget) }.most(&budget, budget.limit), Usd::cents(3));
}
