//! The `api.json` of models.dev.

use serde_json::{Map, Value};

use super::{LoadError, LoadReport, count, parse, rate};
use crate::cost_guard::price::{Price, PromptTier, Rates};
use crate::cost_guard::table::PriceTable;
use crate::money::{MoneyError, Rate};

/// Reads the `api.json` of models.dev: an object of providers, each with an object of models, with prices in dollars a
/// million tokens.
///
/// A model is found by its provider and name, and by `provider/name`; the bare name alone says too little, since many
/// providers sell the same model at other prices.
///
/// ```
/// use seawall::cost_guard::loaders;
///
/// let file = br#"{"groq": {"id": "groq", "models": {"m": {"id": "m", "cost": {"input": 0.59, "output": 0.79}}}}}"#;
/// let (prices, _) = loaders::models_dev(file)?;
/// assert!(prices.price(None, "groq/m").is_some());
/// assert!(prices.price(None, "m").is_none(), "whose it is, is not said");
/// # Ok::<(), loaders::LoadError>(())
/// ```
///
/// # Errors
///
/// Where the file is too large, cut off, or not of that shape.
pub fn models_dev(file: &[u8]) -> Result<(PriceTable, LoadReport), LoadError> {
    let Value::Object(providers) = parse(file)? else {
        return Err(LoadError::Shape("not an object of providers"));
    };
    let (mut table, mut report) = (PriceTable::new().source_name("models.dev"), LoadReport::default());
    for (provider, about) in &providers {
        let Some(models) = about.get("models").and_then(Value::as_object) else { continue };
        for (name, model) in models {
            let full = format!("{provider}/{name}");
            match price(model) {
                Ok(Some(price)) if price.rates.input.is_zero() && price.rates.output.is_zero() => {
                    report.zero += 1;
                }
                Ok(Some(price)) => {
                    report.priced += 1;
                    table = table.at(provider.as_str(), name.as_str(), price.clone()).model(full, price);
                }
                Ok(None) => report.unpriced += 1,
                Err(_) => report.note_invalid(&full),
            }
        }
    }
    Ok((table, report))
}

fn price(model: &Value) -> Result<Option<Price>, MoneyError> {
    let Some(cost) = model.get("cost").and_then(Value::as_object) else { return Ok(None) };
    let Some(rates) = rates(cost)? else { return Ok(None) };
    let mut price = Price::new(rates);
    price.max_output = count(model.get("limit").and_then(|limit| limit.get("output")));
    match cost.get("tiers").and_then(Value::as_array) {
        Some(tiers) => {
            for tier in tiers.iter().filter_map(Value::as_object) {
                price.tiers.extend(context_tier(tier)?);
            }
        }
        // Derived from the first tier and written whatever its size is; so it counts only where there are no tiers.
        None => {
            if let Some(long) = cost.get("context_over_200k").and_then(Value::as_object) {
                let long = self::rates(long)?;
                price.tiers.extend(long.map(|rates| PromptTier {
                    threshold: 200_000,
                    inclusive: false,
                    rates,
                }));
            }
        }
    }
    Ok(Some(price))
}

fn context_tier(tier: &Map<String, Value>) -> Result<Option<PromptTier>, MoneyError> {
    let Some(bound) = tier.get("tier") else { return Ok(None) };
    let by_context = bound.get("type").and_then(Value::as_str) == Some("context");
    let Some(threshold) = count(bound.get("size")).filter(|_| by_context) else { return Ok(None) };
    Ok(rates(tier)?.map(|rates| PromptTier { threshold, inclusive: false, rates }))
}

fn rates(cost: &Map<String, Value>) -> Result<Option<Rates>, MoneyError> {
    let one = |field: &str| match cost.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => rate(value, Rate::per_million).map(Some),
    };
    let (Some(input), Some(output)) = (one("input")?, one("output")?) else { return Ok(None) };
    Ok(Some(Rates {
        cached: one("cache_read")?,
        cache_write: one("cache_write")?,
        reasoning: one("reasoning")?,
        audio_input: one("input_audio")?,
        audio_output: one("output_audio")?,
        ..Rates::new(input, output)
    }))
}
