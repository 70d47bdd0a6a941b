//! Budgets and prices, from their sections.

use http::HeaderName;

use crate::config_error::ConfigError;
use crate::cost_guard::{
    Bound, Budget, BudgetKey, CostGuardBuilder, CostGuardLayer, Price, PriceTable, Prices, Rate, Unpriced,
    Unreported, Usd, Window,
};

use super::sections::{
    BudgetSection, CostSection, File, PriceFormat, PriceSection, UnpricedName, UnreportedName, WindowName,
};

/// Whose money budgets by client spend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Tenant {
    /// Nobody asks.
    #[default]
    None,
    /// The client that was recognised by its key.
    Client,
    /// Whoever a header names.
    Header(HeaderName),
}

impl Tenant {
    /// What all budgets together need. A guard knows one tenant a call.
    pub(super) fn of(budgets: &[BudgetSection]) -> Result<Self, ConfigError> {
        let mut found = Self::None;
        for (at, budget) in budgets.iter().enumerate() {
            let path = || format!("budgets[{at}].key");
            let this =
                match budget.key.as_str() {
                    "client" => Self::Client,
                    key => match key.strip_prefix("header:") {
                        None => continue,
                        Some(name) => Self::Header(name.parse().map_err(|_| {
                            ConfigError::new(path(), "does not name a header behind `header:`")
                        })?),
                    },
                };
            if found != Self::None && found != this {
                return Err(ConfigError::new(
                    path(),
                    "is another tenant than that of a budget above: a call has one",
                ));
            }
            found = this;
        }
        Ok(found)
    }
}

impl BudgetSection {
    pub(super) fn budget(&self) -> Result<Budget, ConfigError> {
        let window = match self.window {
            WindowName::Call => Window::CALL,
            WindowName::Minute => Window::MINUTE,
            WindowName::Hour => Window::HOUR,
            WindowName::Day => Window::DAY,
            WindowName::Week => Window::WEEK,
            WindowName::Month => Window::MONTH,
            WindowName::Total => Window::TOTAL,
        };
        let window = match self.utc_offset {
            Some(minutes) => window
                .at_offset(minutes)
                .map_err(|error| ConfigError::new("utc_offset", error.problem().to_owned()))?,
            None => window,
        };
        let key = match self.key.as_str() {
            "all" => BudgetKey::All,
            "upstream" => BudgetKey::Upstream,
            "model" => BudgetKey::Model,
            key if key == "client" || key.starts_with("header:") => BudgetKey::Tenant,
            _ => {
                let problem = "must be `all`, `client`, `upstream`, `model` or `header:NAME`";
                return Err(ConfigError::new("key", problem));
            }
        };
        let mut budget = match &self.limit {
            Some(limit) => Budget::new(dollars("limit", limit)?, window),
            None => Budget::unlimited(window),
        }
        .by(key)
        .named(self.name());
        if self.only_retries {
            budget = budget.extra_only();
        }
        match &self.marks {
            Some(marks) => budget.marks(marks),
            None => Ok(budget),
        }
    }

    /// Its own name, or one that says what it is.
    pub(super) fn name(&self) -> String {
        let window = match self.window {
            WindowName::Call => "call",
            WindowName::Minute => "minute",
            WindowName::Hour => "hour",
            WindowName::Day => "day",
            WindowName::Week => "week",
            WindowName::Month => "month",
            WindowName::Total => "total",
        };
        let of = if self.only_retries { " for retries" } else { "" };
        self.name.clone().unwrap_or_else(|| match self.key.as_str() {
            "all" => format!("{window}{of}"),
            key => format!("{window} by {key}{of}"),
        })
    }

    /// Whether it is the same budget, but perhaps for its limit.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.name(), self.window, self.utc_offset, &self.key, self.only_retries, &self.marks)
            == (other.name(), other.window, other.utc_offset, &other.key, other.only_retries, &other.marks)
    }
}

fn dollars(field: &'static str, text: &str) -> Result<Usd, ConfigError> {
    text.parse().map_err(|error| ConfigError::new(field, format!("is no amount in dollars: {error}")))
}

fn rate(field: &'static str, text: &str) -> Result<Rate, ConfigError> {
    Rate::per_million(text)
        .map_err(|error| ConfigError::new(field, format!("is no price in dollars: {error}")))
}

impl PriceSection {
    fn price(&self) -> Result<Price, ConfigError> {
        let optional =
            |field, text: &Option<String>| text.as_deref().map(|text| rate(field, text)).transpose();
        let mut price = Price::default();
        price.rates.input = rate("input_per_million", &self.input_per_million)?;
        price.rates.output = rate("output_per_million", &self.output_per_million)?;
        price.rates.cached = optional("cached_per_million", &self.cached_per_million)?;
        price.rates.cache_write = optional("cache_write_per_million", &self.cache_write_per_million)?;
        if let Some(amount) = &self.per_request {
            price.request = dollars("per_request", amount)?;
        }
        price.max_output = self.max_output;
        Ok(price)
    }
}

/// The prices of the file, and behind them those of the list that it names.
pub(super) fn prices(file: &File) -> Result<Prices, ConfigError> {
    let mut table = PriceTable::new().source_name("configuration");
    for (model, section) in &file.prices {
        let price = section.price().map_err(|error| error.under(&format!("prices.{model}")))?;
        table = table.model(model.as_str(), price);
    }
    for (upstream, of) in &file.upstreams {
        for (model, section) in &of.prices {
            let path = format!("upstreams.{upstream}.prices.{model}");
            let price = section.price().map_err(|error| error.under(&path))?;
            table = table.at(upstream.as_str(), model.as_str(), price);
        }
    }
    let prices = Prices::from(table);
    if let Some(list) = &file.price_file {
        let wrong = |problem: String| ConfigError::new("price_file.path", problem);
        let text = std::fs::read(&list.path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let loaded = match list.format {
            PriceFormat::Litellm => prices.replace_from_litellm(&text, &list.path),
            PriceFormat::ModelsDev => prices.replace_from_models_dev(&text, &list.path),
        };
        loaded.map_err(|error| wrong(format!("is no price list of that format: {error}")))?;
    }
    Ok(prices)
}

impl CostSection {
    pub(super) fn guard(&self) -> CostGuardBuilder {
        let mut guard = CostGuardLayer::builder();
        if let Some(margin) = self.estimate_margin {
            guard = guard.bound(Bound::Estimate(margin));
        }
        macro_rules! set {
            ($($field:ident),*) => { $(
                if let Some(value) = self.$field {
                    guard = guard.$field(value);
                }
            )* };
        }
        set!(framing, reference_allowance, unknown_input, unknown_output, output_cap);
        if let Some(rule) = self.unreported {
            guard = guard.unreported(match rule {
                UnreportedName::Bound => Unreported::Bound,
                UnreportedName::Seen => Unreported::Seen,
            });
        }
        if let Some(rule) = self.unpriced {
            guard = guard.unpriced(match rule {
                UnpricedName::Refuse => Unpriced::Refuse,
                UnpricedName::Free => Unpriced::Free,
            });
        }
        if let Some(time) = self.patience {
            guard = guard.patience(time.0);
        }
        if self.observe_only == Some(true) { guard.observe_only() } else { guard }
    }
}
