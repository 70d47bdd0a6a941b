//! A caller that waits for its place, and gets it.

use std::time::Duration;

use seawall::bulkhead::BulkheadLayer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

use crate::drive::{Echo, Loop};
use crate::ours::SOUND;
use handing::turn;

/// What the benches of the crate share.
#[path = "../../support/handing.rs"]
mod handing;

/// One place, two callers: the first is admitted at once, the second waits until the first is done.
fn handed_over(service: impl Service<u64> + Clone + 'static) -> Loop {
    let (mut first, mut second) = (service.clone(), service);
    Box::new(move |n| (0..n).for_each(|_| turn(&mut first, &mut second)))
}

/// With the default limit of a wait, which takes a timer.
pub fn bulkhead() -> Loop {
    handed_over(BulkheadLayer::new(1).at_head().layer(Echo))
}

/// For ever, if need be: as tower's waits.
pub fn bulkhead_for_ever() -> Loop {
    let layer = BulkheadLayer::builder(1).max_wait(Duration::MAX).build();
    handed_over(layer.expect(SOUND).at_head().layer(Echo))
}

pub fn concurrency_limit() -> Loop {
    handed_over(ConcurrencyLimit::new(Echo, 1))
}
