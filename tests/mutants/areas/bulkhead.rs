//! The slots and their line.
#![allow(dead_code, unused_imports, missing_docs)]

mod sync;
mod time;

use seawall::call;

mod bulkhead {
    mod queue;
    mod rank;
    mod slots;

    mod tests {
        mod model;
        mod slots;

        use std::sync::Arc;
        use std::time::Duration;

        use crate::call::Priority;
    }
}
