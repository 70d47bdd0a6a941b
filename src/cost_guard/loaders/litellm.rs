//! LiteLLM's `model_prices_and_context_window.json`.

use serde_json::{Map, Value};

use super::{LoadError, LoadReport, count, parse, rate};
use crate::call::Key;
use crate::cost_guard::price::{Hours, OffPeak, Price, PromptTier, Rates, ServiceTier};
use crate::cost_guard::table::PriceTable;
use crate::money::{MoneyError, Rate, Usd};

/// Reads LiteLLM's price file: an object of models, with prices in dollars a token.
///
/// A model is found by its key in the file (`gemini/gemini-3.8-flash`), and by its provider and bare name.
///
/// ```
/// use seawall::cost_guard::loaders;
///
/// let file = br#"{
///     "gpt-4o": {"mode": "chat", "input_cost_per_token": 2.5e-6, "output_cost_per_token": 1e-5, "max_output_tokens": 16384},
///     "odd": {"mode": "chat", "input_cost_per_token": -1}
/// }"#;
/// let (prices, report) = loaders::litellm(file)?;
/// assert!(prices.price(None, "gpt-4o").is_some() && prices.price(None, "odd").is_none());
/// println!("{report:?}");
/// # Ok::<(), loaders::LoadError>(())
/// ```
///
/// # Errors
///
/// Where the file is too large, cut off, or not of that shape.
pub fn litellm(file: &[u8]) -> Result<(PriceTable, LoadReport), LoadError> {
    let Value::Object(models) = parse(file)? else {
        return Err(LoadError::Shape("not an object of models"));
    };
    let (mut table, mut report) = (PriceTable::new().source_name("litellm"), LoadReport::default());
    for (name, model) in &models {
        let Value::Object(model) = model else { continue };
        if name == "sample_spec" {
            continue;
        }
        if let Some(of) = model.get("alias_of").and_then(Value::as_str) {
            table = table.alias(name.as_str(), of);
            report.aliases += 1;
            continue;
        }
        match price(model) {
            Ok(Some(price)) if price.rates.input.is_zero() && price.rates.output.is_zero() => {
                report.zero += 1;
            }
            Ok(Some(price)) => {
                report.priced += 1;
                let provider = model.get("litellm_provider").and_then(Value::as_str).unwrap_or_default();
                if !provider.is_empty() {
                    table = table.at(provider, bare(name, provider), price.clone());
                }
                table = table.model(name.as_str(), price);
            }
            Ok(None) => report.unpriced += 1,
            Err(_) => report.note_invalid(name),
        }
    }
    Ok((table, report))
}

/// The name without the provider before it.
fn bare<'a>(name: &'a str, provider: &str) -> &'a str {
    name.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name)
}

/// What a field's name says.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Field<'a> {
    class: Class,
    /// Thousands or units of prompt tokens above which it holds.
    above: Option<u64>,
    service: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Input,
    Output,
    Cached,
    CacheWrite,
    CacheWriteLong,
    Reasoning,
    AudioInput,
    AudioOutput,
}

const CLASSES: [(&str, Class); 11] = [
    ("input_cost_per_token_cache_hit", Class::Cached),
    ("input_cost_per_token", Class::Input),
    ("output_cost_per_token", Class::Output),
    ("explicit_cache_read_input_token_cost", Class::Cached),
    ("cache_read_input_token_cost", Class::Cached),
    ("cache_creation_input_token_cost_above_12hr", Class::CacheWriteLong),
    ("cache_creation_input_token_cost_above_1hr", Class::CacheWriteLong),
    ("cache_creation_input_token_cost", Class::CacheWrite),
    ("output_cost_per_reasoning_token", Class::Reasoning),
    ("input_cost_per_audio_token", Class::AudioInput),
    ("output_cost_per_audio_token", Class::AudioOutput),
];

const SERVICES: [&str; 6] = ["batches", "flex", "priority", "balanced", "ultrafast", "decisions"];

/// Reads `class[_above_{N}k_tokens][_service]`; anything else is a field of another kind, or of next week.
fn field(name: &str) -> Option<Field<'_>> {
    let (mut rest, class) =
        CLASSES.iter().find_map(|(prefix, class)| Some((name.strip_prefix(prefix)?, *class)))?;
    let mut above = None;
    if let Some(tail) = rest.strip_prefix("_above_") {
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = tail.split_at_checked(digits)?;
        let number: u64 = number.parse().ok()?;
        let (factor, tail) = match tail.strip_prefix('k') {
            Some(tail) => (1_000, tail),
            None => (1, tail),
        };
        rest = tail.strip_prefix("_tokens")?;
        above = Some(number.checked_mul(factor)?);
    }
    let service = if rest.is_empty() { "" } else { rest.strip_prefix('_')? };
    (service.is_empty() || SERVICES.contains(&service)).then_some(Field { class, above, service })
}

/// The prices by class of one tier, as far as the file has them.
#[derive(Clone, Copy, Default)]
struct Found {
    input: Option<Rate>,
    output: Option<Rate>,
    others: Rates,
}

impl Found {
    fn set(&mut self, class: Class, rate: Rate) {
        match class {
            Class::Input => self.input = Some(rate),
            Class::Output => self.output = Some(rate),
            // Of two fields for one class the dearer counts.
            Class::Cached => self.others.cached = self.others.cached.max(Some(rate)),
            Class::CacheWrite => self.others.cache_write = Some(rate),
            Class::CacheWriteLong => self.others.cache_write_1h = self.others.cache_write_1h.max(Some(rate)),
            Class::Reasoning => self.others.reasoning = Some(rate),
            Class::AudioInput => self.others.audio_input = Some(rate),
            Class::AudioOutput => self.others.audio_output = Some(rate),
        }
    }

    fn rates(&self, base: &Rates) -> Rates {
        let input = self.input.unwrap_or(base.input);
        Rates { input, output: self.output.unwrap_or(base.output), ..self.others }.or(base)
    }
}

type Tiers<'a> = Vec<(Option<u64>, &'a str, Found)>;

fn gather<'a>(model: &'a Map<String, Value>) -> Result<Tiers<'a>, MoneyError> {
    let mut tiers: Tiers<'a> = Vec::new();
    for (name, value) in model {
        let Some(Field { class, above, service }) = field(name) else { continue };
        if value.is_null() {
            continue;
        }
        let rate = rate(value, Rate::per_token)?;
        if let Some(tier) = tiers.iter_mut().find(|tier| tier.0 == above && tier.1 == service) {
            tier.2.set(class, rate);
        } else {
            let mut found = Found::default();
            found.set(class, rate);
            tiers.push((above, service, found));
        }
    }
    Ok(tiers)
}

fn price(model: &Map<String, Value>) -> Result<Option<Price>, MoneyError> {
    let found = gather(model)?;
    let ranges = ranges(model)?;
    let base = found
        .iter()
        .find(|tier| tier.0.is_none() && tier.1.is_empty())
        .map(|tier| tier.2)
        .unwrap_or_default();
    let first = ranges.first().map(|range| range.rates);
    let text = |field: &str| model.get(field).and_then(Value::as_str).unwrap_or_default();
    // What makes no text (embeddings, reranking) has no output to pay for.
    let answers = matches!(text("mode"), "" | "chat" | "completion" | "responses");
    let Some(input) = base.input.or(first.map(|rates| rates.input)) else { return Ok(None) };
    let output = base.output.or(first.map(|rates| rates.output)).or((!answers).then_some(Rate::ZERO));
    let Some(output) = output else { return Ok(None) };
    let rates = Found { input: Some(input), output: Some(output), ..base }.rates(&first.unwrap_or_default());

    let mut price = Price::new(rates);
    // This provider switches at the threshold itself, all others above it.
    let inclusive = text("litellm_provider") == "xai";
    price.tiers = tiers(&found, "", &rates, inclusive);
    price.tiers.extend(ranges.into_iter().filter(|range| range.threshold > 0));
    for service in SERVICES {
        let plain =
            found.iter().find(|tier| tier.0.is_none() && tier.1 == service).map(|tier| tier.2.rates(&rates));
        let long = tiers(&found, service, &plain.unwrap_or(rates), inclusive);
        if plain.is_some() || !long.is_empty() {
            let rates = plain.unwrap_or(rates);
            price.service_tiers.push(ServiceTier { name: Key::from(service), rates, tiers: long });
        }
    }
    price.off_peak = off_peak(model, &rates)?;
    price.max_output = count(model.get("max_output_tokens"));
    if let Some(request) = model.get("input_cost_per_request").filter(|value| value.is_number()) {
        price.request = request.to_string().parse::<Usd>()?;
    }
    Ok(Some(price))
}

fn tiers(found: &Tiers<'_>, service: &str, base: &Rates, inclusive: bool) -> Vec<PromptTier> {
    let mine = found.iter().filter(|tier| tier.1 == service);
    mine.filter_map(|tier| Some(PromptTier { threshold: tier.0?, inclusive, rates: tier.2.rates(base) }))
        .collect()
}

/// `tiered_pricing`: a list of ranges of the prompt's size, each with prices of its own.
fn ranges(model: &Map<String, Value>) -> Result<Vec<PromptTier>, MoneyError> {
    let mut tiers = Vec::new();
    for range in model.get("tiered_pricing").and_then(Value::as_array).into_iter().flatten() {
        let Some(fields) = range.as_object() else { continue };
        let from = fields.get("range").and_then(Value::as_array).and_then(|range| range.first());
        let threshold = count(from).unwrap_or(0);
        let Some(found) = gather(fields)?.into_iter().find(|tier| tier.0.is_none() && tier.1.is_empty())
        else {
            continue;
        };
        if found.2.input.is_some() && found.2.output.is_some() {
            tiers.push(PromptTier { threshold, inclusive: false, rates: found.2.rates(&Rates::default()) });
        }
    }
    tiers.sort_by_key(|tier| tier.threshold);
    Ok(tiers)
}

fn off_peak(model: &Map<String, Value>, base: &Rates) -> Result<Option<OffPeak>, MoneyError> {
    let Some(fields) = model.get("off_peak_pricing").and_then(Value::as_object) else { return Ok(None) };
    let Some(found) = gather(fields)?.into_iter().find(|tier| tier.0.is_none() && tier.1.is_empty()) else {
        return Ok(None);
    };
    let windows = fields.get("windows").and_then(Value::as_array);
    let hours: Vec<Hours> = windows.into_iter().flatten().flat_map(hours).collect();
    Ok((!hours.is_empty()).then(|| OffPeak { hours, rates: found.2.rates(base) }))
}

/// `{"hours_utc": "00:00-00:00" or a list of such, "weekdays": [1..7]}`, where 1 is Monday.
fn hours(window: &Value) -> Vec<Hours> {
    let days = window.get("weekdays").and_then(Value::as_array).map(|days| {
        let bits = days.iter().filter_map(Value::as_u64).filter(|day| (1..=7).contains(day));
        bits.fold(0, |mask, day| mask | 1 << (day - 1))
    });
    let weekdays = days.unwrap_or(Hours::EVERY_DAY);
    let spans: Vec<&str> = match window.get("hours_utc") {
        Some(Value::String(span)) => vec![span],
        Some(Value::Array(spans)) => spans.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let minute = |text: &str| {
        let (hour, minute) = text.trim().split_once(':')?;
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let span = |text: &str| {
        let (from, to) = text.split_once('-')?;
        Some(Hours { from: minute(from)?, to: minute(to)?, weekdays })
    };
    spans.into_iter().filter_map(span).collect()
}
