//! What the layers have to say, and what becomes of it: figures, alerts, exports.

mod alert;
mod book;
mod counts;
mod directory;
mod event;
mod gate;
mod gauges;
#[cfg(feature = "serde")]
mod json;
mod listen;
mod look;
#[expect(clippy::module_inception, reason = "the handle that the module is named after")]
mod monitor;
mod permit;
mod prometheus;
mod report;
mod sketch;
mod snapshot;
mod spans;
mod stripes;
mod table;
mod words;

pub use alert::{Alert, Rule, Rules, Severity, Timing};
pub(crate) use event::Observers;
pub use event::{Basis, BreakerCause, BreakerState, Event, Fanout, Observer, StopCause};
pub use gate::{MonitorLayer, Watcher};
pub use gauges::{Gauge, Gauges};
pub use look::{ByAnswer, ByClass, Look};
pub use monitor::{Monitor, MonitorBuilder};
pub use permit::Watched;
pub use prometheus::CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE;
pub use snapshot::{
    Breaker, Budget, Figures, Latency, LayerEvents, Money, Outcomes, Refusals, Series, Snapshot, Target,
    Tokens, Watching,
};
