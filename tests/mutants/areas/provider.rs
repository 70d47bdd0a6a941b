//! What a provider says of its limits and of when to come back.
#![allow(dead_code, unused_imports, missing_docs)]

mod verdict {
    pub use seawall::{Class, Reach, Reason, Scope, Verdict};
}

use seawall::call;

mod provider {
    mod error;
    mod fixtures;
    pub mod hint;
    pub mod limits;
}
