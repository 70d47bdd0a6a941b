use super::{LoadError, MOST_BYTES, litellm, models_dev};
use crate::call::Key;
use crate::cost_guard::{Price, PriceTable, Prices, Rate};

/// A file in the first format, with all that such files are known to hold.
const LITELLM: &str = r#"{
  "sample_spec": {"input_cost_per_token": "dollars for a token", "max_output_tokens": "a number", "mode": "one of: chat"},
  "gpt-4o": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05,
    "cache_read_input_token_cost": 1.25e-06, "max_output_tokens": 16384.0, "input_cost_per_token_batches": 1.25e-06,
    "output_cost_per_token_batches": 5e-06, "supports_vision": true, "a_field_of_next_week": [1]},
  "gpt-6-luna": {"litellm_provider": "openai", "mode": "responses", "input_cost_per_token": 1e-07, "output_cost_per_token": 5e-07,
    "cache_read_input_token_cost": 1e-08, "cache_creation_input_token_cost": 1.25e-07,
    "cache_creation_input_token_cost_above_12hr": 2.5e-07, "input_cost_per_token_above_272k_tokens": 2e-07,
    "output_cost_per_token_above_272k_tokens": 7.5e-07, "cache_read_input_token_cost_above_272k_tokens": 2e-08,
    "input_cost_per_token_priority": 2e-07, "output_cost_per_token_priority": 1e-06,
    "input_cost_per_token_above_272k_tokens_priority": 4e-07, "max_output_tokens": 128000},
  "claude-opus-5-5": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 4e-06, "output_cost_per_token": 2e-05,
    "cache_creation_input_token_cost": 5e-06, "cache_creation_input_token_cost_above_1hr": 8e-06,
    "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.6e-05,
    "provider_specific_entry": {"us": 1.1, "fast": 2.0}},
  "claude-latest": {"alias_of": "claude-opus-5-5"},
  "xai/grok-4.7": {"litellm_provider": "xai", "mode": "chat", "input_cost_per_token": 2e-06, "output_cost_per_token": 6e-06,
    "input_cost_per_token_above_200k_tokens": 4e-06, "output_cost_per_token_above_200k_tokens": 1.2e-05,
    "input_cost_per_token_above_128_tokens": 2e-06},
  "databricks/noisy": {"litellm_provider": "databricks", "mode": "chat", "input_cost_per_token": 3.0001999999999996e-07, "output_cost_per_token": 1},
  "dashscope/qwen": {"litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [
    {"range": [0, 32000.0], "input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06},
    {"range": [32000.0, 128000.0], "input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06}]},
  "deepseek-chat": {"litellm_provider": "deepseek", "mode": "chat", "input_cost_per_token": 3e-07, "output_cost_per_token": 1.2e-06,
    "input_cost_per_token_cache_hit": 6e-09, "cache_read_input_token_cost": 6e-09,
    "off_peak_pricing": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07,
      "windows": [{"hours_utc": ["10:00-01:00"], "weekdays": [1, 2, 3, 4, 5]}, {"hours_utc": "00:00-00:00", "weekdays": [6, 7, 99]}, {}]}},
  "text-embedding-3-small": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0},
  "rerank": {"litellm_provider": "cohere", "mode": "rerank", "input_cost_per_query": 0.002},
  "no-output": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06},
  "free-or-unknown": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0.0},
  "varies": {"litellm_provider": "openrouter", "mode": "chat", "input_cost_per_token": -1, "output_cost_per_token": -1},
  "a-text": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "cheap", "output_cost_per_token": 1e-06},
  "null": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": null, "output_cost_per_token": null},
  "fallback_generalizations": [{"pattern": "gpt-.*", "like": "gpt-4o"}]
}"#;

const MODELS_DEV: &str = r#"{
  "openai": {"id": "openai", "env": ["OPENAI_API_KEY"], "models": {
    "gpt-5.4": {"id": "gpt-5.4", "cost": {"input": 2.5, "output": 15, "cache_read": 0.25,
        "tiers": [{"input": 5, "output": 22.5, "cache_read": 0.5, "tier": {"type": "context", "size": 272000}}],
        "context_over_200k": {"input": 5, "output": 22.5, "cache_read": 0.5}}, "limit": {"context": 1050000, "output": 128000}},
    "no-cost": {"id": "no-cost", "limit": {"context": 1, "output": 1}},
    "free": {"id": "free", "cost": {"input": 0, "output": 0}}}},
  "google": {"id": "google", "models": {
    "gemini-3.1-pro-preview": {"id": "g", "cost": {"input": 2, "output": 12, "cache_read": 0.2, "reasoning": 12, "input_audio": 1,
        "context_over_200k": {"input": 4, "output": 18, "cache_read": 0.4}}, "status": "beta"},
    "negative": {"id": "n", "cost": {"input": -1, "output": 1}}}},
  "empty": {"id": "empty"}
}"#;

fn price<'t>(table: &'t PriceTable, upstream: &str, model: &str) -> &'t Price {
    let upstream = Some(upstream).filter(|upstream| !upstream.is_empty());
    table.price(upstream, model).unwrap_or_else(|| panic!("{model} has a price"))
}

#[test]
fn a_litellm_file_is_read_with_all_its_traps() {
    let (table, report) = litellm(LITELLM.as_bytes()).unwrap();
    assert_eq!((report.priced, report.aliases, report.unpriced, report.zero), (8, 1, 3, 1), "{report:?}");
    assert_eq!(report.invalid, ["a-text", "varies"]);
    for model in [
        "sample_spec",
        "varies",
        "a-text",
        "null",
        "free-or-unknown",
        "no-output",
        "fallback_generalizations",
    ] {
        assert!(table.price(None, model).is_none(), "{model}");
    }
    let gpt = price(&table, "openai", "gpt-4o");
    assert_eq!((gpt.rates.input, gpt.rates.output), (Rate::pico(2_500_000), Rate::pico(10_000_000)));
    assert_eq!((gpt.rates.cached, gpt.max_output), (Some(Rate::pico(1_250_000)), Some(16_384)));
    assert_eq!(gpt.service_tiers[0].name, Key::from("batches"));
    assert_eq!(
        gpt.service_tiers[0].rates.cached,
        Some(Rate::pico(1_250_000)),
        "what a tier leaves out is the base's"
    );
    let luna = price(&table, "", "gpt-6-luna");
    assert_eq!((luna.tiers[0].threshold, luna.tiers[0].inclusive), (272_000, false));
    assert_eq!(luna.tiers[0].rates.cached, Some(Rate::pico(20_000)));
    assert_eq!(luna.rates.cache_write_1h, Some(Rate::pico(250_000)));
    let priority = &luna.service_tiers[0];
    assert_eq!(
        (priority.rates.output, priority.tiers[0].rates.input),
        (Rate::pico(1_000_000), Rate::pico(400_000))
    );
    let opus = price(&table, "", "claude-latest");
    assert_eq!(opus.rates.cache_write_1h, Some(Rate::pico(8_000_000)));
    assert_eq!(opus.tiers[0].rates.cache_write_1h, Some(Rate::pico(16_000_000)));
    let grok = price(&table, "xai", "grok-4.7");
    assert!(grok.tiers.iter().all(|tier| tier.inclusive));
    assert!(grok.tiers.iter().any(|tier| tier.threshold == 128));
    assert_eq!(price(&table, "", "xai/grok-4.7"), grok);
    let noisy = price(&table, "databricks", "noisy");
    assert_eq!((noisy.rates.input, noisy.rates.output), (Rate::pico(300_020), Rate::pico(1_000_000_000_000)));
    let qwen = price(&table, "dashscope", "qwen");
    assert_eq!((qwen.rates.input, qwen.tiers[0].threshold), (Rate::pico(1_000_000), 32_000));
    let off = price(&table, "", "deepseek-chat").off_peak.as_ref().unwrap();
    assert!(
        off.hours.iter().any(|span| span.contain(0, 10 * 60))
            && !off.hours.iter().any(|span| span.contain(1, 120))
    );
    assert!(off.hours.iter().any(|span| span.contain(6, 120)));
    assert_eq!(price(&table, "", "text-embedding-3-small").rates.output, Rate::ZERO);
}

#[test]
fn a_models_dev_file_is_read_with_all_its_traps() {
    let (table, report) = models_dev(MODELS_DEV.as_bytes()).unwrap();
    assert_eq!((report.priced, report.unpriced, report.zero), (2, 1, 1));
    assert_eq!(report.invalid, ["google/negative"]);
    let gpt = price(&table, "openai", "gpt-5.4");
    let thresholds: Vec<u64> = gpt.tiers.iter().map(|tier| tier.threshold).collect();
    assert_eq!(thresholds, [272_000], "not the derived 200 000");
    assert_eq!(gpt.max_output, Some(128_000));
    let gemini = price(&table, "", "google/gemini-3.1-pro-preview");
    assert_eq!((gemini.tiers[0].threshold, gemini.tiers[0].rates.output), (200_000, Rate::pico(18_000_000)));
    assert_eq!(gemini.rates.reasoning, Some(Rate::pico(12_000_000)));
    assert!(table.price(None, "gpt-5.4").is_none(), "a bare name is sold by many");
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_table_as_it_was() {
    let prices = Prices::from(PriceTable::new().model("mine", Price::per_million("1", "1").unwrap()));
    prices.replace_from_litellm(LITELLM.as_bytes(), "prices.json").unwrap();
    let half = &LITELLM.as_bytes()[..LITELLM.len() / 2];
    let large = vec![b' '; MOST_BYTES + 1];
    for (file, what) in [
        (half, "not complete JSON"),
        (&large, "at most"),
        (b"[]", "another shape"),
        (b"{}", "no entry"),
        (b"{\"x\": {\"input_cost_per_token\": NaN}}", "not complete JSON"),
        (b"", "not complete JSON"),
    ] {
        let error = prices.replace_from_litellm(file, "broken").unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(prices.replace_from_models_dev(file, "broken").is_err());
        let table = prices.table();
        assert_eq!(table.source(), "prices.json");
        assert!(table.price(None, "gpt-4o").is_some() && table.price(None, "mine").is_some());
    }
    assert!(matches!(litellm(&large), Err(LoadError::TooLarge(bytes)) if bytes == large.len()));
    // One list takes the place of the other; what the user set stays.
    prices.replace_from_models_dev(MODELS_DEV.as_bytes(), "api.json").unwrap();
    let table = prices.table();
    assert!(table.price(None, "gpt-4o").is_none() && table.price(None, "mine").is_some());
    assert_eq!(table.source(), "api.json");
}

#[test]
fn prices_are_looked_up_from_the_nearest_to_the_farthest() {
    let cents = |cents: &str| Price::per_million(cents, cents).unwrap();
    let table = PriceTable::new()
        .model("m", cents("1"))
        .at("cheap", "m", cents("2"))
        .pattern("m-", cents("3"))
        .pattern("m-long-", cents("4"))
        .pattern_at("cheap", "m-", cents("5"))
        .alias("alias", "m")
        .alias("loop", "loop")
        .provider("eu", "cheap");
    let cost = |upstream: &str, model| {
        table.price(Some(upstream), model).map(|price| price.rates.input.as_pico() / 1_000_000)
    };
    assert_eq!((cost("other", "m"), cost("cheap", "m"), cost("eu", "m")), (Some(1), Some(2), Some(2)));
    assert_eq!((cost("other", "alias"), cost("cheap", "alias")), (Some(1), Some(2)));
    assert_eq!(
        (cost("other", "m-1"), cost("other", "m-long-1"), cost("cheap", "m-long-1")),
        (Some(3), Some(4), Some(5))
    );
    assert_eq!((cost("other", "unknown"), cost("other", "loop")), (None, None));
    let table = table.clone().default_price(cents("9"));
    assert_eq!(table.price(None, "unknown"), Some(&cents("9")));
}
