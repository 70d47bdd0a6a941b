//! Amounts and rates.
#![allow(dead_code, unused_imports, missing_docs)]

mod money;
