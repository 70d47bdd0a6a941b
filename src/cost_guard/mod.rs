//! A budget that holds: money is reserved before a call and settled after it.
//!
//! A guard that checks what is spent, lets a call pass and adds its cost later, overspends: all calls under way
//! pass the same check. This one *reserves*, in one atomic step over all budgets of a call, the most that the call can
//! cost; holds that to the end of the response; and *settles* it to what the upstream says was used. As long as no call uses
//! more than its bound, what is spent and what is reserved are together never above a limit, at any instant. No cancel,
//! error or panic leaves a reservation behind.
//!
//! ```
//! use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
//!
//! // Ten dollars a day.
//! let prices = PriceTable::new().model("gpt-4o", Price::per_million("2.50", "10").unwrap().with_max_output(16_384));
//! let layer = CostGuardLayer::new(prices, Budget::new(Usd::dollars(10), Window::DAY));
//!
//! let today = layer.gate().ledger().account("budget of the day", "").unwrap();
//! assert_eq!(today.left, Some(Usd::dollars(10)));
//! ```
//!
//! Several budgets at once, and half a dollar a day at most for what retries and fallbacks cost:
//!
//! ```
//! use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Prices, PriceTable, Usd, Window};
//!
//! # fn file() -> Vec<u8> {
//! #     br#"{"gpt-4o": {"mode": "chat", "input_cost_per_token": 2.5e-6, "output_cost_per_token": 1e-5}}"#.to_vec()
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let prices = Prices::from(PriceTable::new());
//! prices.replace_from_litellm(&file(), "prices.json")?; // and again whenever the file changes
//! let layer = CostGuardLayer::builder()
//!     .prices(prices)
//!     .budget(Budget::new(Usd::dollars(50), Window::DAY))
//!     .budget(Budget::new(Usd::dollars(2), Window::HOUR).by(BudgetKey::Tenant))
//!     .extra_cap(Usd::cents(50))
//!     .observer(|event: &seawall::monitor::Event<'_>| println!("{event:?}"))
//!     .build()?;
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! | setting | default | why |
//! |---|---|---|
//! | prices | none: you must say, or load a list | |
//! | input is bounded by | its [bytes](Bound::Bytes) | the only bound that holds for certain |
//! | added by the upstream | 512 tokens | roles, separators, instructions for tools |
//! | output without any bound | 32 768 tokens | |
//! | input by reference, or of unknown size | refused | it has no bound |
//! | model without a price | refused, where any budget has a limit | |
//! | usage not reported | charged the [bound](Unreported::Bound) | the upstream may bill it |
//! | patience for what others hold | 2 s | our judgement: some calls end within it |
//! | ledger that does not answer | refused | else a hard budget is not hard |
//! | marks | 50, 80 and 100 % | |
//! | keys a budget | 1 000 000 | spending is never forgotten |
//! | budgets | at most 8 | |
//!
//! # Where it stands
//!
//! Inside retry and fallback, so that each attempt reserves and settles at the price of its own target, and above the
//! token bucket, so that a spent budget refuses before anybody waits; with [`Intake`](crate::call::IntakeLayer) above and
//! [`Outcome`](crate::call::OutcomeLayer) below it, which read request and response. A guard *outside* a retry sees
//! only the last attempt; whoever retries below then tells it of the others by [`CostGuard::charge`].
//!
//! # What is reserved
//!
//! Input: the bytes of the request ([`Bound::Bytes`]), which no tokenizer that works on bytes exceeds, or an estimate
//! with a margin; and an allowance for what the upstream adds. Output: the smallest of what the call allows, what the model
//! can give and a cap of yours, for each choice. Both at the dearest class and tier that can be reached. Calls
//! without a bound (input by reference, or of unknown size) are refused, unless an allowance is set for them. For a call that
//! is [known to be free](crate::call::Call::free), a list of files say, no budget is asked.
//!
//! # What is charged
//!
//! | the attempt | is charged |
//! |---|---|
//! | was not sent, or proven not processed | nothing |
//! | was refused by the upstream | the usage it reports, else nothing |
//! | was answered | the usage; without one, by the [rule](Unreported) |
//! | reports a usage that cannot be | the bound, and flagged |
//! | failed by an error event before any content | the usage reported, else nothing |
//! | failed later, broke, or was given up by a timeout below | by the rule, or the usage reported if that is more |
//! | was left by the caller | by the rule, which is the bound: the upstream may go on, and bill it; with [`drain`](CostGuardLayer::drain) by the usage, where it still comes |
//!
//! A usage above the bound is charged in full, and nobody is admitted until the window turns. Each class is rounded up to
//! the nano-dollar. A settlement changes the window that it was reserved in; where that is gone, nothing.
//!
//! # What is refused
//!
//! | kind | why | wait |
//! |---|---|---|
//! | `BudgetExhausted` | too little is left of what was not *spent* | until the window turns |
//! | `BudgetContended` | enough is left, but calls under way hold it, and none gave it back within the patience, in the order of coming | – |
//! | `Unpriced`, `Unbounded` | no price, or no bound | – |
//! | `TooManyKeys` | a new key, and no account of the budget may be forgotten | – |
//! | `LedgerUnavailable` | the ledger's store does not answer | – |
//!
//! # Keys
//!
//! A tenant must be a *verified* identity: a header that any caller can set is a way to spend somebody else's budget.
//! Accounts are made when a key is first seen and kept while anything is spent or held in their window, so this layer
//! needs no `keyed`: that would share one account among those beyond the bound.
//!
//! # Where it is written down
//!
//! [`MemoryLedger`] forgets with its process. `ledger::FileLedger` (feature `file-ledger`) does not: it writes each
//! reservation to a file before the call is sent, and charges what a dead process left unsettled by a rule. For a store that
//! several processes share, implement [`Ledger`].
//!
//! # Cancellation
//!
//! Dropping a call settles it as the table above says; dropping one that still waits gives up its place. Nothing is left
//! reserved, and nothing is spawned but what [`drain`](CostGuardLayer::drain) asks for.
//!
//! # Events
//!
//! [`Spent`](crate::monitor::Event::Spent) for each attempt that is charged, [`BudgetMark`](crate::monitor::Event::BudgetMark)
//! once a window and mark, [`Refused`](crate::monitor::Event::Refused), or [`WouldRefuse`](crate::monitor::Event::WouldRefuse)
//! where it only observes, [`Waited`](crate::monitor::Event::Waited), [`Unpriced`](crate::monitor::Event::Unpriced), and
//! [`Unreserved`](crate::monitor::Event::Unreserved) where the ledger did not answer and the call passed.
//!
//! To a [`Monitor`](crate::monitor::Monitor) that observes the layer they are `seawall_charged_attempts_total`,
//! `seawall_spent_dollars_total`, `seawall_reserved_dollars_total` and `seawall_extra_spent_dollars_total` by target;
//! `seawall_budget_marks_total`, `seawall_budget_mark_percent`, `seawall_budget_spent_dollars` and
//! `seawall_budget_limit_dollars`; `seawall_layer_refusals_total`, `seawall_layer_would_refuse_total`,
//! `seawall_layer_waits_total`, `seawall_layer_unpriced_total` and `seawall_layer_unreserved_total`.
//!
//! # What it costs
//!
//! In memory: two short locks, one to reserve and one to settle, each of the few threads that share it, whatever the number of
//! budgets, with no code of yours under it; a clock where a window needs one. A budget that is nearly spent, to a mark or to
//! the limit, is asked itself: a few locks more. A price is searched for once and noted by the thread. `ledger::FileLedger` adds
//! the sync of a file to each call, which calls at the same time share.
//!
//! # Clocks
//!
//! Calendar windows follow the wall clock, which may step. One that is put back grants no window twice: the last two
//! windows are remembered, and an unknown earlier one opens only when a window's length has really passed. Rolling windows
//! follow the monotonic clock.

mod bound;
mod budget;
mod calendar;
mod cut;
mod drain;
mod gate;
mod layer;
pub mod ledger;
pub mod loaders;
mod price;
mod reader;
mod settle;
mod table;
mod terms;
mod window;

pub use crate::money::{MoneyError, Rate, Usd};
pub use bound::Bound;
pub use budget::{Budget, BudgetKey, Counts, Spender};
pub use calendar::CalendarUnit;
pub use cut::{CutBody, CutFuture, CutStreams, CutStreamsLayer, Meter, Metered};
pub use drain::{Drain, DrainBody, DrainFuture, DrainLayer, Drainable};
pub use gate::{CostGuard, CostPermit, CostWait};
pub use layer::{CostGuardBuilder, CostGuardLayer, Given, Unpriced};
pub use ledger::{AccountState, Ledger, MemoryLedger};
pub use price::{Hours, OffPeak, Price, PromptTier, Rates, ServiceTier};
pub use reader::{Reads, TenantBy, TenantHeader};
pub use settle::Unreported;

pub use crate::monitor::Basis;
pub use table::{PriceTable, Prices};
pub use window::Window;
