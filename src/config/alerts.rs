//! The alert rules, from their section.

use super::sections::AlertsSection;
use crate::config_error::ConfigError;
use crate::monitor::{Rules, Timing};

impl AlertsSection {
    pub(super) fn rules(&self) -> Result<Rules, ConfigError> {
        if self.enabled == Some(false) {
            return Ok(Rules::none());
        }
        let mut rules = Rules::default();
        macro_rules! set {
            ($($field:ident => $setter:ident,)*) => { $(
                if let Some(value) = self.$field {
                    rules = rules.$setter(value);
                }
            )* };
        }
        set! {
            success_warning => success_warning, success_critical => success_critical, fallbacks_an_hour => fallbacks,
            trips_an_hour => trips, cost_growth => cost_growth, dearer => dearer, minimum => minimum,
        }
        if let Some(limit) = self.p99 {
            rules = rules.slow((Timing::Head, limit.0));
        }
        if let Some(time) = self.hold {
            rules = rules.hold(time.0);
        }
        if let Some(amount) = &self.cost_baseline {
            let amount = amount.parse().map_err(|error| {
                ConfigError::new("cost_baseline", format!("is no amount in dollars: {error}"))
            })?;
            rules = rules.cost_baseline(amount);
        }
        Ok(rules)
    }
}
