use super::*;
use crate::call::Usage;
use crate::cost_guard::price::Circumstances;
use crate::money::Usd;

fn price(dollars: u64) -> Price {
    Price::per_million(&dollars.to_string(), "1").expect("a price")
}

/// What a thousand tokens of input cost, by what is noted.
fn noted(prices: &Prices, upstream: Option<&Key>, model: Option<&Key>) -> Option<Usd> {
    let usage = Usage { input: Some(1_000), ..Usage::default() };
    prices.find(upstream, model).map(|found| match found.more {
        None => found.short.plain.cost(&usage),
        Some(tariff) => tariff.cost(&usage, &Circumstances::default()),
    })
}

/// The same by the table.
fn looked_up(prices: &Prices, upstream: Option<&Key>, model: Option<&Key>) -> Option<Usd> {
    let usage = Usage { input: Some(1_000), ..Usage::default() };
    let table = prices.table();
    table.tariff(upstream, model).map(|tariff| tariff.cost(&usage, &Circumstances::default()))
}

/// All of one length and last letter, so that they want one place; short and long, known and not.
const MODELS: [&str; 8] = [
    "m-a",
    "n-a",
    "p-a",
    "alias-a",
    "unknown-a",
    "a-name-that-is-longer-than-all-that-are-noted-a",
    "",
    "p-very-long-model-name-of-more-than-40-bytes-a",
];

const LONG_UPSTREAM: &str = "an-upstream-with-a-name-of-more-than-40-bytes";

fn any_table(rng: &mut fastrand::Rng, from: PriceTable) -> PriceTable {
    let (mut table, model) = (from, |rng: &mut fastrand::Rng| MODELS[rng.usize(..MODELS.len())]);
    for _ in 0..rng.usize(0..4) {
        let price = price(rng.u64(1..100));
        table = match rng.u8(0..7) {
            0 => table.model(model(rng), price),
            1 => table.at("one", model(rng), price),
            2 => table.pattern("p-", price),
            3 => table.pattern_at(LONG_UPSTREAM, "p-", price),
            4 => table.alias("alias-a", model(rng)),
            5 => table.provider("other", "one"),
            _ => table.default_price(price),
        };
    }
    table
}

#[test]
fn what_a_thread_has_noted_is_what_the_table_says() {
    let mut rng = fastrand::Rng::with_seed(5);
    let upstreams = ["one", "other", "third", LONG_UPSTREAM].map(Key::from);
    let models = MODELS.map(Key::from);
    // Two handles at once, whose tables begin as clones of one another.
    let first = any_table(&mut rng, PriceTable::new().model("m-a", price(1)));
    let handles = [Prices::from(first.clone()), Prices::from(first)];
    for _ in 0..20_000 {
        let prices = &handles[rng.usize(0..2)];
        if rng.u8(0..40) == 0 {
            // One in use, changed.
            let from = if rng.bool() { PriceTable::new() } else { PriceTable::clone(&handles[0].table()) };
            prices.replace(any_table(&mut rng, from));
        }
        let upstream = upstreams.get(rng.usize(0..5));
        let model = models.get(rng.usize(0..9));
        let (noted, looked_up) = (noted(prices, upstream, model), looked_up(prices, upstream, model));
        assert_eq!(noted, looked_up, "{upstream:?} {model:?}");
    }
}

#[test]
fn a_table_that_is_gone_leaves_no_price_behind() {
    let model = Key::from("m");
    for dollars in 1..100 {
        let prices = Prices::from(PriceTable::new().model("m", price(dollars)));
        assert_eq!(noted(&prices, None, Some(&model)), looked_up(&prices, None, Some(&model)));
        prices.replace(PriceTable::new());
        assert_eq!(noted(&prices, None, Some(&model)), None);
    }
}
