//! The breaker's states, window, ramp and probes.
#![allow(dead_code, unused_imports, missing_docs)]

mod sync;
mod time;

use seawall::monitor;
use verdict::{Class, Verdict};

/// The settings match on every class, which only the crate itself can.
mod verdict {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Class {
        Success,
        Throttled,
        Transient,
        Stalled,
        Exhausted,
        Denied,
        Unfit,
        Invalid,
        Refused,
        Abandoned,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Scope {
        Request,
        Model,
        Account,
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Verdict(Class, Scope);

    impl Verdict {
        pub fn new(class: Class) -> Self {
            let scope = match class {
                Class::Exhausted | Class::Denied => Scope::Account,
                _ => Scope::Request,
            };
            Self(class, scope)
        }

        pub fn with_scope(self, scope: Scope) -> Self {
            Self(self.0, scope)
        }

        pub fn class(&self) -> Class {
            self.0
        }

        pub fn scope(&self) -> Scope {
            self.1
        }
    }
}

mod config_error {
    pub use seawall::ConfigError;
}


mod circuit_breaker {
    mod cell;
    mod probes;
    mod ramp;
    mod settings;
    mod state;
    mod window;

    pub use settings::{OnThrottled, Settings, SettingsBuilder, SlowUntil};
}
