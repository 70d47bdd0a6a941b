//! The reader of event streams.
#![allow(dead_code, unused_imports, missing_docs)]

mod provider {
    mod sse;
}
