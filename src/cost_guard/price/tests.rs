use proptest::prelude::*;

use super::*;

fn rates(prices: [&str; 8]) -> Rates {
    let [input, output, others @ ..] = prices.map(|text| Rate::per_million(text).ok());
    let [cached, cache_write, cache_write_1h, reasoning, audio_input, audio_output] = others;
    Rates {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        cached,
        cache_write,
        cache_write_1h,
        reasoning,
        audio_input,
        audio_output,
    }
}

fn usage(counts: [u64; 8]) -> Usage {
    let mut usage = Usage::default();
    let [input, output, cached, write, write_1h, reasoning, audio_in, audio_out] = counts.map(Some);
    (usage.input, usage.output, usage.cached) = (input, output, cached);
    (usage.cache_write, usage.cache_write_1h, usage.reasoning) = (write, write_1h, reasoning);
    (usage.audio_input, usage.audio_output) = (audio_in, audio_out);
    usage
}

fn cost(price: &Price, usage: &Usage, at: &Circumstances<'_>) -> Usd {
    Tariff::new(price).cost(usage, at)
}

#[test]
fn golden_numbers() {
    let at = Circumstances::default();
    // Six tokens in, 159 217 written to a cache, 2 745 out.
    let price = Price::new(rates(["5", "25", "0.5", "6.25", "", "", "", ""]));
    let written = usage([6 + 159_217, 2_745, 0, 159_217, 0, 0, 0, 0]);
    assert_eq!(cost(&price, &written, &at), Usd::nanos(1_063_761_250));
    // A thousand in, of which 400 cached and 100 written: 500 · 2 + 400 · 0.1 + 100 · 2.5, and 300 out of which 100
    // reasoned, which costs as much as the rest.
    let price = Price::new(rates(["2", "10", "0.1", "2.5", "", "", "", ""]));
    let mixed = usage([1_000, 300, 400, 100, 0, 100, 0, 0]);
    assert_eq!(cost(&price, &mixed, &at), Usd::nanos(1_000_000 + 40_000 + 250_000 + 3_000_000));
    // Reasoning with a price of its own, and audio on both sides.
    let price = Price::new(rates(["2", "10", "", "", "", "20", "40", "80"]));
    let spoken = usage([100, 100, 0, 0, 0, 40, 30, 20]);
    assert_eq!(
        cost(&price, &spoken, &at),
        Usd::nanos(70 * 2_000 + 30 * 40_000 + 40 * 10_000 + 40 * 20_000 + 20 * 80_000)
    );
    // What has no price of its own costs what it is part of, never nothing.
    let price = Price::per_million("2", "10").unwrap();
    assert_eq!(cost(&price, &mixed, &at), Usd::nanos(1_000 * 2_000 + 300 * 10_000));
}

#[test]
fn a_long_prompt_changes_the_price_of_the_whole_request() {
    let long = rates(["4", "18", "", "", "", "", "", ""]);
    let at = Circumstances::default();
    for (inclusive, threshold_cost) in [(false, 2_000), (true, 4_000)] {
        let price =
            Price::new(rates(["2", "12", "", "", "", "", "", ""])).with_tier(200_000, inclusive, long);
        let input = |tokens| cost(&price, &usage([tokens, 0, 0, 0, 0, 0, 0, 0]), &at).as_nanos() / tokens;
        assert_eq!((input(199_999), input(200_000), input(200_001)), (2_000, threshold_cost, 4_000));
        let dear = Tariff::new(&price);
        assert_eq!(dear.dearest(199_999, None).cost(1, 1), Usd::nanos(14_000));
        assert_eq!(
            dear.dearest(200_001, None).cost(1, 1),
            Usd::nanos(22_000),
            "a bound takes the dearest reachable"
        );
    }
}

#[test]
fn cheaper_hours_and_other_service_tiers() {
    let mut price = Price::new(rates(["0.3", "1.2", "", "", "", "", "", ""]));
    // Monday to Friday from 22:00 to 02:00.
    let hours = vec![Hours { from: 22 * 60, to: 2 * 60, weekdays: 0b1_1111 }];
    price.off_peak = Some(OffPeak { hours, rates: rates(["0.15", "0.6", "", "", "", "", "", ""]) });
    let fast = rates(["0.6", "2.4", "", "", "", "", "", ""]);
    price.service_tiers = vec![ServiceTier { name: "priority".into(), rates: fast, tiers: Vec::new() }];
    let input = usage([1_000_000, 0, 0, 0, 0, 0, 0, 0]);
    for (day, minute, cents) in [
        (0, 21 * 60 + 59, 30),
        (0, 22 * 60, 15),
        (1, 60, 15),
        (1, 120, 30),
        (5, 60, 15),
        (5, 22 * 60, 30),
        (0, 60, 30),
        (6, 60, 30),
    ] {
        let at = Circumstances { hour: Some((day, minute)), service_tier: None };
        assert_eq!(cost(&price, &input, &at), Usd::cents(cents), "day {day}, minute {minute}");
    }
    let priority = Key::from("priority");
    let at = Circumstances { service_tier: Some(&priority), hour: Some((0, 23 * 60)) };
    assert_eq!(cost(&price, &input, &at), Usd::cents(60));
    let tariff = Tariff::new(&price);
    assert_eq!(tariff.dearest(1, Some(&priority)).cost(1_000_000, 0), Usd::cents(60));
    assert_eq!(tariff.dearest(1, None).cost(1_000_000, 0), Usd::cents(30), "never the cheaper hour");
}

#[test]
fn a_span_of_the_day_has_its_first_minute_and_not_its_last() {
    let monday = |from, to| Hours { from, to, weekdays: 1 };
    let within = monday(540, 1_020);
    assert_eq!(
        [539, 540, 1_019, 1_020, 1_100].map(|m| within.contain(0, m)),
        [false, true, true, false, false]
    );
    assert_eq!([1, 6].map(|day| within.contain(day, 600)), [false, false]);
    let a_whole_day = monday(600, 600);
    assert_eq!([599, 600, 1_439].map(|m| a_whole_day.contain(0, m)), [false, true, true]);
    assert_eq!([0, 599, 600].map(|m| a_whole_day.contain(1, m)), [true, true, false]);
}

#[test]
fn a_price_says_what_it_was_made_of() {
    let price = Price::per_million("1", "2").unwrap();
    let with = price.clone().with_request(Usd::cents(1)).with_max_output(9);
    assert_eq!((with.request, with.max_output, &with.rates), (Usd::cents(1), Some(9), &price.rates));
    let tariff = Tariff::new(&with);
    assert_eq!(
        (tariff.cost(&usage([0; 8]), &Circumstances::default()), tariff.max_output),
        (Usd::cents(1), Some(9))
    );
}

#[test]
fn the_hour_matters_only_where_some_are_cheaper() {
    let mut price = Price::per_million("1", "2").unwrap();
    assert!(!Tariff::new(&price).by_hour());
    price = price.with_tier(10, true, Rates::default());
    assert!(!Tariff::new(&price).by_hour());
    price.off_peak = Some(OffPeak { hours: Vec::new(), rates: Rates::default() });
    assert!(Tariff::new(&price).by_hour());
}

#[test]
fn a_bound_has_room_for_what_rounding_each_class_up_adds_and_for_no_more() {
    let slack = |input, output| {
        let price = Price::new(Rates::new(Rate::pico(input), Rate::pico(output)));
        Tariff::new(&price).dearest(0, None).cost(0, 0).as_nanos()
    };
    assert_eq!(slack(1_000, 2_000), 0, "whole nano-dollars");
    assert_eq!(slack(1, 1_000), 4, "five classes of input, rounded once anyway");
    assert_eq!(slack(1_000, 1), 2, "three of output");
    assert_eq!(slack(1_001, 2_001), 6);
}

proptest! {
    #[test]
    fn no_usage_within_the_bound_costs_more_than_the_bound(
        pico in proptest::array::uniform8(0_u64..50_000_000),
        counts in proptest::array::uniform8(0_u64..3_000),
    ) {
        let [input, output, others @ ..] = pico.map(Rate::pico);
        let [cached, write, write_1h, reasoning, audio_in, audio_out] = others.map(Some);
        let price = Price::new(Rates {
            input, output, cached, cache_write: write, cache_write_1h: write_1h, reasoning,
            audio_input: audio_in, audio_output: audio_out,
        }).with_tier(1_000, false, Rates::new(output, input));
        let usage = usage(counts);
        let bound = Tariff::new(&price).dearest(counts[0], None).cost(counts[0], counts[1]);
        prop_assert!(cost(&price, &usage, &Circumstances::default()) <= bound);
    }
}

#[test]
fn only_a_price_that_goes_by_the_class_alone_is_said_in_short() {
    let plain = Price::per_million("2.5", "10").unwrap();
    let short = |price: &Price| Tariff::new(price).short();
    let said = short(&plain).expect("it has no tiers, hours or price of a request");
    let used = usage([1_000, 100, 400, 0, 0, 0, 0, 0]);
    assert_eq!(said.plain.cost(&used), Tariff::new(&plain).cost(&used, &Circumstances::default()));
    let unclassed = usage([1_000, 100, 0, 0, 0, 0, 0, 0]);
    assert_eq!(said.plain.cost_of(1_000, 100), said.plain.cost(&unclassed));
    assert_eq!(said.plain.cost_of(1_000, 100), Usd::nanos(3_500_000));
    assert!(short(&plain.clone().with_request(Usd::cents(1))).is_none(), "a price of each request");
    let dearer = rates(["5", "20", "", "", "", "", "", ""]);
    assert!(short(&plain.with_tier(200_000, false, dearer)).is_none(), "a tier");
    assert!(short(&Price::per_million("4295", "1").unwrap()).is_none(), "over 32 bits of pico-dollars");
    assert!(short(&Price::per_million("4294", "1").unwrap()).is_some());
}
