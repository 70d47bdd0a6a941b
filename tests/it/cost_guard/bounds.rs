//! Bounds that hold: tokens of a prompt, accounts of a budget.

use std::num::NonZeroUsize;

use seawall::call::Key;
use seawall::cost_guard::ledger::{Ask, Cause, Reservation};
use seawall::cost_guard::{Budget, BudgetKey, Ledger, MemoryLedger, Spender, Usd, Window};

#[cfg(feature = "tokenizer")]
#[tokio::test(start_paused = true)]
async fn no_prompt_has_more_tokens_than_were_reserved_for_it() {
    use seawall::call::tokens::{self, Vocabulary};
    use tower::{Layer, ServiceExt};

    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut of = |alphabet: &str, length: usize| -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[random(letters.len())]).collect()
    };
    let mut prompts = vec![String::new(), "Hi".into(), "\u{1F469}\u{200D}\u{1F680}".repeat(50)];
    for length in [1, 7, 64, 300, 5_000] {
        // Base64, Korean, code, and what no vocabulary has words for.
        prompts.push(of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", length));
        prompts.push(of("가각간갈감값갓강같개객갠거걱건걸검겁게겨격결겸경계고곡곤골공과관광괴교구국군굴궁권귀규균그극근글금급기길김 .", length));
        prompts.push(of("fn(){}[]<>;:=+-*/&|!\"'\\ \n\tlet mutxyzself01", length));
        prompts.push(of("\u{12000}\u{1F9FF}\u{A9C5}\u{FFFD}\u{0}\u{7F}\u{E000}\u{2028}", length));
    }
    let code =
        "impl<T: Iterator<Item = u8>> Foo for T {\r\n\tfn bar(&self) -> Option<&'static str> { None }\r\n}\n";
    prompts.push(code.repeat(40));
    for prompt in &prompts {
        let truth = [Vocabulary::O200k, Vocabulary::Cl100k].map(|known| tokens::count(prompt, known));
        let truth = truth.into_iter().max().unwrap();
        // As one writes it, and with all that is not ASCII escaped.
        let plain = serde_json::to_string(prompt).unwrap();
        let escaped: String = plain
            .encode_utf16()
            .map(|unit| match u8::try_from(unit) {
                Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
                _ => format!("\\u{unit:04x}"),
            })
            .collect();
        for text in [plain, escaped] {
            let body =
                format!(r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":{text}}}]}}"#);
            let call = seawall::call::read_json(body.as_bytes()).unwrap();
            let layer = super::guard(Usd::dollars(100));
            let service = layer.layer(super::Upstream::default().service());
            let _under_way = service.oneshot(super::request(call)).await.unwrap();
            let reserved = super::account(layer.gate()).reserved;
            assert!(reserved >= super::tokens(truth + 1), "{reserved} for {truth} tokens of {prompt:.40}");
        }
    }
}

fn ask(
    ledger: &MemoryLedger,
    tenant: u64,
    amount: Usd,
) -> Result<seawall::cost_guard::ledger::MemoryHold, Cause> {
    let tenant = Key::from(tenant);
    let mut spender = Spender::default();
    spender.tenant = Some(&tenant);
    match ledger.reserve(&Ask::new(spender, amount)) {
        Reservation::Now(answer) => answer.map(|granted| granted.hold).map_err(|denied| denied.cause),
        Reservation::Later(_) => panic!("nobody waits"),
    }
}

#[test]
fn a_flood_of_a_million_tenants_takes_no_more_accounts_than_allowed_and_forgets_no_spending() {
    // A tenth of the default bound, so that the flood is ten times what there is room for.
    let most = 100_000;
    let ledger = MemoryLedger::builder()
        .budget(Budget::new(Usd::dollars(1), Window::TOTAL).by(BudgetKey::Tenant))
        .most_keys(NonZeroUsize::new(most).unwrap())
        .build()
        .unwrap();
    let pay =
        |tenant| ask(&ledger, tenant, Usd::cents(1)).map(|hold| ledger.settle(&hold, Usd::cents(1), None));
    // Whoever spends nothing makes room for the next.
    for tenant in 0..400_000 {
        ledger.release(&ask(&ledger, tenant, Usd::cents(1)).unwrap());
    }
    assert!(ledger.accounts("total budget").len() <= most);
    let mut refused = 0;
    for tenant in 1_000_000..1_600_000_u64 {
        match pay(tenant) {
            Ok(()) => {}
            Err(cause) => {
                assert_eq!(cause, Cause::TooManyKeys);
                refused += 1;
            }
        }
    }
    let accounts = ledger.accounts("total budget");
    assert!(accounts.len() <= most, "{} accounts", accounts.len());
    let paid = accounts.iter().filter(|(_, account)| account.spent == Usd::cents(1)).count();
    assert_eq!(paid, 600_000 - refused, "whoever has spent is remembered");
    // Nearly all of the room can be used: a search for an account at rest looks at a few.
    assert!(paid > most * 9 / 10, "{paid}");
    assert!(ledger.audit().balanced);
    let known = accounts.iter().find(|(_, account)| account.spent > Usd::ZERO).unwrap();
    let known: u64 = known.0.as_str().parse().unwrap();
    pay(known).unwrap();
}
