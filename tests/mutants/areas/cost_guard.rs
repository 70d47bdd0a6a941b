//! Budgets: their windows, the calendar, prices, and the accounts of a ledger.
#![allow(dead_code, unused_imports, missing_docs)]

mod money;
mod stripes;
mod sync;
mod time;

use seawall::refusal;

mod call {
    pub use seawall::call::*;

    /// The crate's own is private.
    pub fn same_text(one: &[u8], other: &[u8]) -> bool {
        one == other
    }
}

mod config_error {
    pub use seawall::ConfigError;
}

mod cost_guard {
    mod budget;
    mod calendar;
    pub mod ledger;
    mod price;
    mod window;

    pub use budget::{Budget, BudgetKey, Counts, Spender};
    pub use calendar::CalendarUnit;
    pub use ledger::{AccountState, Ledger, MemoryLedger};
    pub use price::{Hours, OffPeak, Price, PromptTier, Rates, ServiceTier};
    pub use window::Window;

    pub use crate::money::{MoneyError, Rate, Usd};
}
