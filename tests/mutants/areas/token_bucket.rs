//! The buckets, their line, and the rates that users state.
#![allow(dead_code, unused_imports, missing_docs)]

mod sync;
mod time;

mod config_error {
    pub use seawall::ConfigError;
}

mod token_bucket {
    mod bucket;
    mod core;
    mod few;
    mod queue;
    mod quota;

    pub use quota::Quota;

    mod tests {
        mod bucket;
        mod core;
        mod queue;
        mod quota;

        mod support {
            use std::num::NonZeroU64;

            use crate::token_bucket::bucket::Costs;

            pub(in super::super) fn n(number: u64) -> NonZeroU64 {
                NonZeroU64::new(number).unwrap()
            }

            pub(in super::super) fn few(costs: &[u64]) -> Costs {
                Costs::from_fn(costs.len(), |index| costs[index])
            }
        }
    }
}
