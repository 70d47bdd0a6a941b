//! A budget that holds.

mod bound;
mod budget;
mod calendar;
mod gate;
mod layer;
pub mod ledger;
pub mod loaders;
mod money;
mod price;
mod reader;
mod settle;
mod table;
mod window;

pub use bound::Bound;
pub use budget::{Budget, BudgetKey, Counts, Spender};
pub use calendar::CalendarUnit;
pub use gate::{CostGuard, CostPermit, CostWait};
pub use layer::{CostGuardBuilder, CostGuardLayer, Given, Unpriced};
pub use ledger::{AccountState, Ledger, MemoryLedger};
pub use money::{MoneyError, Rate, Usd};
pub use price::{Hours, OffPeak, Price, PromptTier, Rates, ServiceTier};
pub use reader::{Reads, TenantBy, TenantHeader};
pub use settle::{Basis, Unreported};
pub use table::{PriceTable, Prices};
pub use window::Window;
