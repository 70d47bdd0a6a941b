use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use redb::{Database, StorageBackend};

use super::store::{Opener, Store};
use super::*;
use crate::cost_guard::budget::BudgetKey;
use crate::cost_guard::ledger::{Granted, HoldId};
use crate::cost_guard::window::Window;

/// What outlives a process, and fails when told to.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// How many more syncs succeed.
    syncs: Arc<AtomicI64>,
}

impl Disk {
    fn new() -> Self {
        let disk = Self::default();
        disk.mend();
        disk
    }

    fn fail_after(&self, syncs: i64) {
        self.syncs.store(syncs, Ordering::SeqCst);
    }

    fn mend(&self) {
        self.fail_after(i64::MAX);
    }

    fn check(&self) -> io::Result<()> {
        let works = self.syncs.load(Ordering::SeqCst) > 0;
        if works { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn opener(&self) -> Opener {
        let disk = self.clone();
        Box::new(move || {
            Database::builder().create_with_file_format_v3(true).create_with_backend(disk.clone())
        })
    }

    /// As a process that was killed leaves it.
    fn copy(&self) -> Self {
        let copy = Self::new();
        self.bytes.lock().unwrap().clone_into(&mut copy.bytes.lock().unwrap());
        copy
    }

    fn ledger(&self, builder: FileLedgerBuilder) -> FileLedger {
        builder.open_by(self.opener()).unwrap()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let offset = usize::try_from(offset).unwrap();
        Ok(self.bytes.lock().unwrap()[offset..offset + len].to_vec())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.bytes.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        self.check()?;
        // The last one fails after everything has reached the disk.
        self.syncs.fetch_sub(1, Ordering::SeqCst);
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let offset = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}

fn total(dollars: u32) -> FileLedgerBuilder {
    FileLedger::builder().budget(Budget::new(Usd::dollars(dollars), Window::TOTAL))
}

fn ask(dollars: u32) -> Ask<'static> {
    Ask::new(Spender::default(), Usd::dollars(dollars))
}

async fn reserve(ledger: &FileLedger, ask: &Ask<'_>) -> Result<Granted<MemoryHold>, Denied> {
    match ledger.reserve(ask) {
        Reservation::Now(answer) => answer,
        Reservation::Later(later) => later.await,
    }
}

fn sums(ledger: &FileLedger) -> (Usd, Usd) {
    let account = ledger.account("total budget", "").unwrap();
    assert!(ledger.audit().balanced);
    (account.spent, account.reserved)
}

#[tokio::test]
async fn what_was_spent_is_there_after_a_restart_and_what_was_held_is_charged_by_the_rule() {
    for (rule, spent) in [(Orphaned::Bound, 8), (Orphaned::Nothing, 4)] {
        let disk = Disk::new();
        let ledger = disk.ledger(total(10));
        let settled = reserve(&ledger, &ask(4)).await.unwrap();
        ledger.settle(&settled.hold, Usd::dollars(1), None);
        ledger.settle(&settled.hold, Usd::dollars(4), None);
        let released = reserve(&ledger, &ask(2)).await.unwrap();
        ledger.release(&released.hold);
        ledger.charge(&Spender::default(), Usd::dollars(3));
        let _held = reserve(&ledger, &ask(4)).await.unwrap();
        ledger.flush().await.unwrap();
        assert_eq!((ledger.unwritten(), sums(&ledger)), (1, (Usd::dollars(4), Usd::dollars(4))));

        // Killed, and started again and again: the hold is charged once.
        let disk = disk.copy();
        for _ in 0..3 {
            let again = disk.ledger(total(10).orphaned(rule));
            assert_eq!(sums(&again), (Usd::dollars(spent), Usd::ZERO), "{rule:?}");
            again.close().await.unwrap();
        }
        let again = disk.ledger(total(10));
        let denied = reserve(&again, &ask(7)).await.unwrap_err();
        assert!(matches!(denied.cause, Cause::Exhausted(_)), "the limit holds over the restart");
    }
}

#[tokio::test]
async fn a_reservation_that_was_granted_is_in_the_file() {
    let disk = Disk::new();
    let ledger = disk.ledger(total(10));
    let mut waiting = match ledger.reserve(&ask(3)) {
        Reservation::Later(later) => Box::pin(later),
        Reservation::Now(_) => panic!("the file is asked first"),
    };
    let granted = waiting.as_mut().await.unwrap();
    let after = disk.copy().ledger(total(10));
    assert_eq!(sums(&after).0, Usd::dollars(3));
    // Asked again with its identity it is the same one.
    let mut again = ask(3);
    again.id = granted.hold.id();
    reserve(&ledger, &again).await.unwrap();
    assert_eq!((sums(&ledger).1, ledger.unwritten()), (Usd::dollars(3), 1));
    ledger.settle(&granted.hold, Usd::dollars(2), None);
    ledger.flush().await.unwrap();
    assert_eq!(sums(&disk.copy().ledger(total(10))), (Usd::dollars(2), Usd::ZERO));
}

#[tokio::test]
async fn a_wait_that_is_dropped_reserves_nothing_here_nor_there() {
    let disk = Disk::new();
    let ledger = disk.ledger(total(10));
    for _ in 0..100 {
        drop(ledger.reserve(&ask(10)));
    }
    ledger.flush().await.unwrap();
    assert_eq!((ledger.unwritten(), sums(&ledger)), (0, (Usd::ZERO, Usd::ZERO)));
    assert_eq!(sums(&disk.copy().ledger(total(10))), (Usd::ZERO, Usd::ZERO));
}

#[tokio::test]
async fn who_waits_for_room_gets_it_in_turn_and_in_the_file() {
    let disk = Disk::new();
    let ledger = disk.ledger(total(10));
    let first = reserve(&ledger, &ask(10)).await.unwrap();
    assert!(!first.waited);
    let mut patient = ask(6);
    patient.patience = Duration::from_secs(3_600);
    let Reservation::Later(second) = ledger.reserve(&patient) else { panic!("it waits") };
    ledger.settle(&first.hold, Usd::dollars(1), None);
    let second = second.await.unwrap();
    assert!(second.waited);
    assert_eq!(sums(&disk.copy().ledger(total(10))), (Usd::dollars(7), Usd::ZERO));
}

#[tokio::test]
async fn every_window_and_key_is_restored_and_what_is_over_is_not() {
    let now = Arc::new(AtomicU64::new(1_800_000_000));
    let clock = now.clone();
    let open = |disk: &Disk| {
        let clock = clock.clone();
        let hour = Window::rolling(Duration::from_secs(3_600)).unwrap();
        let builder = FileLedger::builder()
            .budget(Budget::new(Usd::dollars(10), Window::DAY).by(BudgetKey::Tenant))
            .budget(Budget::new(Usd::dollars(10), hour))
            .budget(Budget::new(Usd::dollars(10), Window::TOTAL))
            .wall(move || Duration::from_secs(clock.load(Ordering::SeqCst)));
        disk.ledger(builder)
    };
    let disk = Disk::new();
    let ledger = open(&disk);
    let acme = Key::from("acme");
    let spender = Spender { tenant: Some(&acme), ..Spender::default() };
    ledger.charge(&spender, Usd::dollars(2));
    ledger.close().await.unwrap();
    let spent = |ledger: &FileLedger| {
        let of = |budget: &str, key: &str| ledger.account(budget, key).map(|account| account.spent);
        [of("budget of the day", "acme"), of("rolling budget", ""), of("total budget", "")]
    };
    let two = Some(Usd::dollars(2));
    for (later, expected) in [
        (0, [two, two, two]),
        (3_500, [two, two, two]),
        (3_700, [two, Some(Usd::ZERO), two]),
        (86_400, [Some(Usd::ZERO), Some(Usd::ZERO), two]),
        // Put back by an hour: a window that was used is not granted again.
        (-3_600, [two, two, two]),
    ] {
        now.store(1_800_000_000_u64.saturating_add_signed(later), Ordering::SeqCst);
        let copy = disk.copy();
        assert_eq!(spent(&open(&copy)), expected, "{later} s later");
    }
    // Under another name it begins at nothing, and is found again under the old one.
    now.store(1_800_000_000, Ordering::SeqCst);
    disk.ledger(total(10).budget(Budget::new(Usd::dollars(1), Window::DAY))).close().await.unwrap();
    assert_eq!(spent(&open(&disk)), [two; 3]);
}

#[tokio::test]
async fn a_reset_is_remembered() {
    let disk = Disk::new();
    let ledger = disk.ledger(total(10));
    ledger.charge(&Spender::default(), Usd::dollars(10));
    ledger.reset("total budget", "").unwrap();
    ledger.charge(&Spender::default(), Usd::dollars(1));
    assert!(ledger.reset("no such budget", "").is_err());
    ledger.close().await.unwrap();
    assert_eq!(sums(&disk.ledger(total(10))).0, Usd::dollars(1));
}

#[tokio::test]
async fn a_file_that_fails_refuses_by_type_and_loses_nothing() {
    // Whichever sync fails, and whether or not the batch has landed by then: each dollar is written once.
    for syncs in 0..6 {
        let disk = Disk::new();
        let ledger = disk.ledger(total(1_000));
        let before = reserve(&ledger, &ask(5)).await.unwrap();
        disk.fail_after(syncs);
        ledger.settle(&before.hold, Usd::dollars(1), None);
        let mut granted = Vec::new();
        loop {
            match reserve(&ledger, &ask(1)).await {
                Ok(more) => granted.push(more.hold),
                Err(denied) => break assert_eq!(denied.cause, Cause::Unavailable),
            }
        }
        // While it is down: refused at once, and calls under way still settle.
        assert_eq!(reserve(&ledger, &ask(1)).await.unwrap_err().cause, Cause::Unavailable);
        for hold in &granted {
            ledger.settle(hold, Usd::dollars(1), None);
        }
        ledger.charge(&Spender::default(), Usd::dollars(2));
        let spent = Usd::dollars(3 + u32::try_from(granted.len()).unwrap());
        assert_eq!(sums(&ledger), (spent, Usd::ZERO), "syncs: {syncs}");

        disk.mend();
        while ledger.flush().await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(ledger.unwritten(), 0);
        let last = reserve(&ledger, &ask(1)).await.unwrap();
        ledger.release(&last.hold);
        ledger.close().await.unwrap();
        assert_eq!(sums(&disk.ledger(total(1_000))), (spent, Usd::ZERO), "syncs: {syncs}");
    }
}

#[tokio::test]
async fn a_ledger_that_is_closed_while_its_file_fails_says_so_and_charges_by_the_rule() {
    let disk = Disk::new();
    let ledger = disk.ledger(total(10));
    let held = reserve(&ledger, &ask(5)).await.unwrap();
    disk.fail_after(0);
    ledger.settle(&held.hold, Usd::dollars(1), None);
    let clone = ledger.clone();
    assert_eq!(ledger.close().await.unwrap_err().cause, Cause::Unavailable);
    assert_eq!(reserve(&clone, &ask(1)).await.unwrap_err().cause, Cause::Unavailable);
    assert!(clone.flush().await.is_err());
    disk.mend();
    assert_eq!(sums(&disk.ledger(total(10))), (Usd::dollars(5), Usd::ZERO));
}

#[tokio::test]
async fn reservations_have_a_bound_and_a_place_comes_back() {
    let ledger = Disk::new().ledger(total(10).most_holds(2.try_into().unwrap()));
    let one = reserve(&ledger, &ask(1)).await.unwrap();
    let _two = reserve(&ledger, &ask(1)).await.unwrap();
    assert_eq!(reserve(&ledger, &ask(1)).await.unwrap_err().cause, Cause::Unavailable);
    ledger.release(&one.hold);
    ledger.flush().await.unwrap();
    assert!(matches!(reserve(&ledger, &ask(100)).await.unwrap_err().cause, Cause::Exhausted(_)));
    reserve(&ledger, &ask(1)).await.unwrap();
}

#[tokio::test]
async fn a_file_has_one_process_and_one_that_is_no_ledger_is_an_error() {
    let path = std::env::temp_dir().join(format!("seawall-one-{}.redb", std::process::id()));
    let budget = || Budget::new(Usd::dollars(1), Window::TOTAL);
    let ledger = FileLedger::open(&path, budget()).unwrap();
    let error = FileLedger::open(&path, budget()).unwrap_err();
    assert_eq!((error.field(), error.problem()), ("path", "is in use: one process at a time has a ledger"));
    ledger.close().await.unwrap();
    FileLedger::open(&path, budget()).unwrap().close().await.unwrap();
    std::fs::write(&path, "not a ledger").unwrap();
    assert_eq!(FileLedger::open(&path, budget()).unwrap_err().field(), "path");
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn accounts_whose_windows_are_over_leave_the_file() {
    let now = Arc::new(AtomicU64::new(1_800_000_000));
    let clock = now.clone();
    let disk = Disk::new();
    let builder = FileLedger::builder()
        .budget(Budget::new(Usd::dollars(10), Window::MINUTE).by(BudgetKey::Tenant))
        .wall(move || Duration::from_secs(clock.load(Ordering::SeqCst)));
    let ledger = disk.ledger(builder);
    for tenant in 0..100_u64 {
        let tenant = Key::from(tenant);
        ledger.charge(&Spender { tenant: Some(&tenant), ..Spender::default() }, Usd::dollars(1));
    }
    ledger.flush().await.unwrap();
    let rows = |disk: &Disk| {
        let budgets = [Budget::new(Usd::ZERO, Window::MINUTE).by(BudgetKey::Tenant)];
        let copy = disk.copy();
        Store::open(&copy.opener(), &budgets).unwrap().recover(Orphaned::Bound).unwrap().len()
    };
    assert_eq!(rows(&disk), 100);
    now.fetch_add(120, Ordering::SeqCst);
    for _ in 0..20 {
        ledger.charge(&Spender::default(), Usd::dollars(0));
        ledger.flush().await.unwrap();
    }
    assert_eq!(rows(&disk), 0);
}

#[tokio::test]
async fn what_is_lent_to_threads_is_in_the_file_to_the_nano_dollar() {
    let (disk, mut rng, mut holds) = (Disk::new(), fastrand::Rng::with_seed(8), Vec::new());
    let open = |disk: &Disk| {
        let day = Budget::new(Usd::nanos(60_000), Window::DAY).by(BudgetKey::Tenant);
        let noon = || Duration::from_secs(1_800_000_000);
        disk.ledger(
            FileLedger::builder()
                .budget(Budget::new(Usd::nanos(90_000), Window::TOTAL))
                .budget(day)
                .wall(noon),
        )
    };
    let tenants = ["acme", "other"].map(Key::from);
    let ledger = open(&disk);
    let mut paid = [0; 2];
    for _ in 0..2_000 {
        let at = rng.usize(0..2);
        let spender = Spender { tenant: Some(&tenants[at]), ..Spender::default() };
        let mut ask = Ask::new(spender, Usd::nanos(rng.u64(1..400)));
        ask.id = HoldId::fresh_at(rng.usize(0..4));
        if let Ok(granted) = reserve(&ledger, &ask).await {
            holds.push((granted.hold, at, ask.amount.as_nanos()));
        }
        if holds.is_empty() || rng.u8(0..5) == 0 {
            continue;
        }
        let (hold, at, most) = holds.swap_remove(rng.usize(..holds.len()));
        let cost = rng.u64(0..most + 10) / 8;
        paid[at] += cost;
        ledger.settle(&hold, Usd::nanos(cost), None);
        ledger.settle(&hold, Usd::nanos(7), None);
    }
    for (hold, ..) in holds {
        ledger.release(&hold);
    }
    assert_eq!(sums(&ledger), (Usd::nanos(paid[0] + paid[1]), Usd::ZERO));
    ledger.close().await.unwrap();
    let again = open(&disk);
    assert_eq!(sums(&again), (Usd::nanos(paid[0] + paid[1]), Usd::ZERO));
    for (tenant, paid) in tenants.iter().zip(paid) {
        let spent = again.account("budget of the day", tenant.as_str()).map(|account| account.spent);
        assert_eq!(spent, Some(Usd::nanos(paid)));
    }
}
