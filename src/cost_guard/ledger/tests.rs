use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Ask, Cause, Ledger, MemoryHold, MemoryLedger, Reservation};
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

/// What a ledger of one budget and two tenants does, written down as plainly as can be.
#[derive(Default)]
struct Model {
    spent: HashMap<u8, u64>,
    holds: Vec<(MemoryHold, u8, u64)>,
}

impl Model {
    fn reserved(&self, tenant: u8) -> u64 {
        self.holds.iter().filter(|hold| hold.1 == tenant).map(|hold| hold.2).sum()
    }
}

proptest! {
    #[test]
    fn it_does_what_a_map_would_do(
        steps in proptest::collection::vec((0_u8..3, 0_u8..2, 0_u64..60, any::<proptest::sample::Index>()), 0..200)
    ) {
        let budget = Budget::new(Usd::nanos(100), Window::TOTAL).by(BudgetKey::Tenant);
        let (ledger, mut model) = (MemoryLedger::new(budget), Model::default());
        let keys = [Key::from("a"), Key::from("b")];
        for (step, tenant, amount, which) in steps {
            let spent = model.spent.get(&tenant).copied().unwrap_or_default();
            match step {
                0 => {
                    let spender = Spender { tenant: Some(&keys[usize::from(tenant)]), ..Spender::default() };
                    let fits = spent + model.reserved(tenant) + amount <= 100;
                    let answer = take(&ledger, &Ask::new(spender, Usd::nanos(amount)));
                    match (answer, fits) {
                        (Ok(hold), true) => model.holds.push((hold, tenant, amount)),
                        (Err(Cause::Contended), false) => prop_assert!(spent + amount <= 100),
                        (Err(Cause::Exhausted(_)), false) => prop_assert!(spent + amount > 100),
                        (answer, fits) => prop_assert!(false, "{answer:?}, and it fits: {fits}"),
                    }
                }
                _ if model.holds.is_empty() => {}
                1 => {
                    let (hold, tenant, held) = model.holds.swap_remove(which.index(model.holds.len()));
                    // A refund is never more than was held.
                    let paid = amount % (held + 1);
                    ledger.settle(&hold, Usd::nanos(paid), None);
                    ledger.settle(&hold, Usd::MAX, None);
                    *model.spent.entry(tenant).or_default() += paid;
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
                prop_assert!(spent + reserved <= 100);
            }
            let audit = ledger.audit();
            prop_assert!(audit.balanced);
            prop_assert_eq!(audit.holds, model.holds.len());
        }
    }
}
