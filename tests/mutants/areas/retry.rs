//! The waits between attempts, and what they may cost.
#![allow(dead_code, unused_imports, missing_docs)]

mod rng;
mod sync;
mod time;

use seawall::{call, gate};

mod config_error {
    pub use seawall::ConfigError;
}

mod retry {
    mod backoff;
    mod budget;

    pub use backoff::{Backoff, Jitter};
    pub use budget::{Budget, BudgetBuilder};
}
