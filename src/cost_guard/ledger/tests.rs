mod lending;

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Ask, Cause, HoldId, Ledger, Marks, MemoryHold, MemoryLedger, Reservation};
use crate::call::Key;
use crate::cost_guard::{Budget, BudgetKey, Spender, Usd, Window};

fn take(ledger: &MemoryLedger, ask: &Ask<'_>) -> Result<MemoryHold, Cause> {
    match ledger.reserve(ask) {
        Reservation::Now(answer) => answer.map(|granted| granted.hold).map_err(|denied| denied.cause),
        Reservation::Later(_) => panic!("nobody asked to wait"),
    }
}

#[test]
fn asking_twice_with_one_identity_reserves_once() {
    let ledger = MemoryLedger::new(Budget::new(Usd::dollars(1), Window::TOTAL));
    let ask = Ask::new(Spender::default(), Usd::cents(60));
    let (one, two) = (take(&ledger, &ask).unwrap(), take(&ledger, &ask).unwrap());
    assert_eq!(one.id(), two.id());
    assert_eq!(ledger.account("total budget", "").unwrap().reserved, Usd::cents(60));
    ledger.settle(&one, Usd::cents(10), None);
    ledger.release(&two);
    let account = ledger.account("total budget", "").unwrap();
    assert_eq!((account.spent, account.reserved), (Usd::cents(10), Usd::ZERO));
}

#[test]
fn one_budget_that_refuses_leaves_the_others_untouched() {
    let ledger = MemoryLedger::builder()
        .budget(Budget::new(Usd::dollars(9), Window::TOTAL).named("roof"))
        .budget(Budget::new(Usd::dollars(2), Window::CALL))
        .budget(Budget::new(Usd::dollars(1), Window::TOTAL).by(BudgetKey::Model).named("model"))
        .build()
        .unwrap();
    let (one, other) = (Key::from("one"), Key::from("other"));
    let spender = |model| Spender { model: Some(model), ..Spender::default() };
    take(&ledger, &Ask::new(spender(&one), Usd::cents(90))).unwrap();
    assert_eq!(take(&ledger, &Ask::new(spender(&one), Usd::cents(20))), Err(Cause::Contended));
    assert_eq!(take(&ledger, &Ask::new(spender(&other), Usd::dollars(3))), Err(Cause::Exhausted(None)));
    assert_eq!(ledger.account("roof", "").unwrap().reserved, Usd::cents(90));
    take(&ledger, &Ask::new(spender(&other), Usd::cents(20))).unwrap();
    assert!(ledger.audit().balanced);
}

impl PartialEq for MemoryHold {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

#[tokio::test(start_paused = true)]
async fn in_no_hour_of_a_rolling_window_more_than_the_limit_is_spent() {
    let window = Window::rolling(Duration::from_secs(3_600)).unwrap();
    let ledger = MemoryLedger::new(Budget::new(Usd::dollars(10), window));
    let (start, mut spent) = (crate::time::now(), Vec::new());
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..2_000 {
        tokio::time::advance(Duration::from_secs(rng.u64(0..120))).await;
        let amount = Usd::cents(rng.u32(1..100));
        match take(&ledger, &Ask::new(Spender::default(), amount)) {
            Ok(hold) => {
                ledger.settle(&hold, amount, None);
                spent.push((start.elapsed(), amount));
            }
            Err(Cause::Exhausted(Some(wait))) => {
                assert!(wait <= Duration::from_secs(3_660));
                if rng.u8(0..20) == 0 {
                    // The wait that is told is enough, and no longer than it need be.
                    tokio::time::advance(wait.saturating_sub(Duration::from_nanos(1))).await;
                    assert!(take(&ledger, &Ask::new(Spender::default(), amount)).is_err());
                    tokio::time::advance(Duration::from_nanos(1)).await;
                    let hold = take(&ledger, &Ask::new(Spender::default(), amount)).unwrap();
                    ledger.release(&hold);
                }
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let hour = Duration::from_secs(3_600);
    for (at, (begin, _)) in spent.iter().enumerate() {
        let within = spent[at..].iter().take_while(|(when, _)| *when < *begin + hour);
        let sum = within.fold(Usd::ZERO, |sum, (_, amount)| sum.saturating_add(*amount));
        assert!(sum <= Usd::dollars(10), "{sum} from {begin:?}");
    }
}

/// A ledger whose accounts have lent to two desks, and what asks at a desk.
fn at(desk: usize, amount: u64) -> Ask<'static> {
    let mut ask = Ask::new(Spender::default(), Usd::nanos(amount));
    ask.id = HoldId::fresh_at(desk);
    ask
}

fn lending() -> MemoryLedger {
    let ledger = MemoryLedger::new(Budget::new(Usd::nanos(1_000), Window::TOTAL));
    for desk in [0, 1] {
        let hold = take(&ledger, &at(desk, 10)).expect("it fits");
        ledger.settle(&hold, Usd::nanos(10), None);
    }
    ledger
}

#[test]
fn what_is_lent_is_called_back_before_anything_is_refused() {
    let ledger = lending();
    let hold = take(&ledger, &at(0, 980)).expect("it fits, wherever the money lies");
    assert_eq!(take(&ledger, &at(1, 1)), Err(Cause::Contended), "and then nothing is left at any desk");
    ledger.settle(&hold, Usd::nanos(980), None);
    assert_eq!(take(&ledger, &at(1, 1)), Err(Cause::Exhausted(None)));
    assert!(ledger.is_spent());
    assert!(ledger.audit().balanced);
}

#[test]
fn a_lower_limit_a_reset_and_a_charge_hold_for_what_is_lent_too() {
    let ledger = lending();
    ledger.set_limit("total budget", Some(Usd::nanos(29))).unwrap();
    assert_eq!(take(&ledger, &at(0, 10)), Err(Cause::Exhausted(None)));
    ledger.set_limit("total budget", Some(Usd::nanos(1_000))).unwrap();
    take(&ledger, &at(0, 10)).unwrap();
    ledger.charge(&Spender::default(), Usd::nanos(975));
    assert_eq!(take(&ledger, &at(0, 10)), Err(Cause::Exhausted(None)));
    ledger.reset("total budget", "").unwrap();
    let account = ledger.account("total budget", "").unwrap();
    assert_eq!((account.spent, account.reserved), (Usd::ZERO, Usd::nanos(10)));
}

#[test]
fn a_hold_is_settled_once_where_its_money_was_called_back_meanwhile() {
    let ledger = lending();
    let hold = take(&ledger, &at(0, 10)).unwrap();
    assert!(ledger.audit().balanced, "an audit calls all back");
    ledger.settle(&hold, Usd::nanos(7), None);
    ledger.settle(&hold, Usd::nanos(7), None);
    let account = ledger.account("total budget", "").unwrap();
    assert_eq!((account.spent, account.reserved), (Usd::nanos(27), Usd::ZERO));
    assert_eq!(ledger.audit().holds, 0);
}

#[tokio::test(start_paused = true)]
async fn money_lent_in_one_window_is_not_spent_in_the_next() {
    let window = Window::rolling(Duration::from_secs(60)).unwrap();
    let ledger = MemoryLedger::new(Budget::new(Usd::nanos(1_000), window));
    let hold = take(&ledger, &at(0, 10)).unwrap();
    let later = take(&ledger, &at(0, 10)).unwrap();
    ledger.settle(&hold, Usd::nanos(10), None);
    tokio::time::advance(Duration::from_secs(62)).await;
    ledger.settle(&later, Usd::nanos(10), None);
    let account = ledger.account("rolling budget", "").unwrap();
    assert_eq!(
        (account.spent, account.reserved),
        (Usd::ZERO, Usd::ZERO),
        "it belongs to a bucket that is gone"
    );
    take(&ledger, &at(0, 1_000)).expect("nothing is left of it");
}

#[test]
fn an_account_that_has_lent_gives_its_place_to_a_new_key_once_nothing_is_spent_or_held() {
    let budget = Budget::new(Usd::nanos(1_000), Window::TOTAL).by(BudgetKey::Tenant);
    let ledger = MemoryLedger::builder().budget(budget).most_keys(1.try_into().unwrap()).build().unwrap();
    let (one, other) = (Key::from("one"), Key::from("other"));
    let ask = |tenant| Ask::new(Spender { tenant: Some(tenant), ..Spender::default() }, Usd::nanos(1));
    let hold = take(&ledger, &ask(&one)).unwrap();
    let second = take(&ledger, &ask(&one)).unwrap();
    assert_eq!(take(&ledger, &ask(&other)), Err(Cause::TooManyKeys), "it holds something");
    ledger.release(&hold);
    ledger.release(&second);
    take(&ledger, &ask(&other)).expect("at rest");
    assert!(ledger.account("total budget", "one").is_none());
}

#[test]
fn a_budget_of_each_call_has_room_for_any_number_of_tenants_that_have_spent() {
    let budget = Budget::new(Usd::nanos(10), Window::CALL).by(BudgetKey::Tenant);
    let ledger = MemoryLedger::builder().budget(budget).most_keys(1.try_into().unwrap()).build().unwrap();
    for tenant in 0..100_u64 {
        let tenant = Key::from(tenant);
        let ask = Ask::new(Spender { tenant: Some(&tenant), ..Spender::default() }, Usd::nanos(9));
        let hold = take(&ledger, &ask).expect("those before have spent, and hold nothing");
        ledger.settle(&hold, Usd::nanos(9), None);
    }
}

/// What a ledger of one budget and two tenants does, written down as plainly as can be.
#[derive(Default)]
struct Model {
    spent: HashMap<u8, u64>,
    told: HashMap<u8, u64>,
    holds: Vec<(MemoryHold, u8, u64)>,
}

impl Model {
    /// The mark that spending has passed now, if somebody is to be told.
    fn mark(&mut self, tenant: u8, limit: u64) -> Option<u64> {
        let spent = self.spent[&tenant];
        let passed = [50, 80, 100].into_iter().rfind(|mark| spent * 100 >= limit * mark)?;
        (self.told.insert(tenant, passed) != Some(passed)).then_some(passed)
    }

    fn reserved(&self, tenant: u8) -> u64 {
        self.holds.iter().filter(|hold| hold.1 == tenant).map(|hold| hold.2).sum()
    }
}

proptest! {
    #[test]
    fn it_does_what_a_map_would_do(
        // So little that nothing is lent, and more.
        limit in prop_oneof![Just(100_u64), Just(1_000), Just(9_000)],
        steps in proptest::collection::vec(
            (0_u8..4, 0_u8..2, 0_u64..60, any::<proptest::sample::Index>(), 0_usize..3),
            0..400,
        )
    ) {
        let budget = Budget::new(Usd::nanos(limit), Window::TOTAL).by(BudgetKey::Tenant);
        let (ledger, mut model) = (MemoryLedger::new(budget), Model::default());
        let keys = [Key::from("a"), Key::from("b")];
        for (step, tenant, amount, which, desk) in steps {
            let spent = model.spent.get(&tenant).copied().unwrap_or_default();
            match step {
                0 | 1 => {
                    let spender = Spender { tenant: Some(&keys[usize::from(tenant)]), ..Spender::default() };
                    let fits = spent + model.reserved(tenant) + amount <= limit;
                    let mut ask = Ask::new(spender, Usd::nanos(amount));
                    ask.id = HoldId::fresh_at(desk);
                    let answer = take(&ledger, &ask);
                    match (answer, fits) {
                        (Ok(hold), true) => model.holds.push((hold, tenant, amount)),
                        (Err(Cause::Contended), false) => prop_assert!(spent + amount <= limit),
                        (Err(Cause::Exhausted(_)), false) => prop_assert!(spent + amount > limit),
                        (answer, fits) => prop_assert!(false, "{answer:?}, and it fits: {fits}"),
                    }
                }
                _ if model.holds.is_empty() => {}
                2 => {
                    let (hold, tenant, held) = model.holds.swap_remove(which.index(model.holds.len()));
                    // A refund is never more than was held.
                    let paid = amount % (held + 1);
                    let listening = desk != 0;
                    let mut marks = Marks::default();
                    ledger.settle(&hold, Usd::nanos(paid), listening.then_some(&mut marks));
                    ledger.settle(&hold, Usd::MAX, None);
                    *model.spent.entry(tenant).or_default() += paid;
                    let told = marks[0].as_ref().map(|mark| (u64::from(mark.percent), mark.spent.as_nanos()));
                    let mark = listening.then(|| model.mark(tenant, limit)).flatten();
                    prop_assert_eq!(told, mark.map(|mark| (mark, model.spent[&tenant])));
                }
                _ => {
                    let (hold, ..) = model.holds.swap_remove(which.index(model.holds.len()));
                    ledger.release(&hold);
                }
            }
            for (tenant, key) in (0_u8..).zip(&keys) {
                let account = ledger.account("total budget", key.as_str());
                let (spent, reserved) = account.map_or((0, 0), |a| (a.spent.as_nanos(), a.reserved.as_nanos()));
                prop_assert_eq!(spent, model.spent.get(&tenant).copied().unwrap_or_default());
                prop_assert_eq!(reserved, model.reserved(tenant));
                prop_assert!(spent + reserved <= limit);
            }
            // An audit calls back all that is lent: not after each step.
            if which.index(8) == 0 {
                let audit = ledger.audit();
                prop_assert!(audit.balanced);
                prop_assert_eq!(audit.holds, model.holds.len());
            }
        }
    }
}
