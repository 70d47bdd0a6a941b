use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Histogram, Recorder, SharedString, Unit, with_local_recorder};

use super::*;
use crate::monitor::BreakerState;
use crate::monitor::table::tests::full;

/// Keeps what is set, by name and labels; counts how often a handle is made.
#[derive(Default)]
struct Kept {
    values: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    made: AtomicU64,
}

impl Kept {
    fn make(&self, key: &Key) -> Arc<AtomicU64> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        self.values.lock().unwrap().entry(name).or_default().clone()
    }

    fn get(&self, name: &str) -> u64 {
        self.values.lock().unwrap().get(name).unwrap_or_else(|| panic!("{name}")).load(Ordering::Relaxed)
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.make(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.make(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn all_figures_are_handed_over_and_handles_are_made_once() {
    let (kept, mut publisher, mut snapshot) = (Kept::default(), Publisher::new(), full());
    with_local_recorder(&kept, || publisher.publish(&snapshot));
    let made = kept.made.load(Ordering::Relaxed);
    let samples = snapshot.prometheus().lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(made, samples as u64, "one for each line that Prometheus would get");
    assert_eq!(kept.get("seawall_calls_total{outcome=success}"), 1);
    let gauge = |name: &str| f64::from_bits(kept.get(name));
    assert!((gauge("seawall_layer_wait_seconds_total{layer=a layer}") - 1.5).abs() < 1e-9);
    let open = "seawall_breaker_state{breaker=b,key=k,state=open}";
    assert!((gauge(open) - 1.0).abs() < 1e-9);
    snapshot.breakers[0].state = BreakerState::Closed;
    snapshot.alerts.clear();
    with_local_recorder(&kept, || publisher.publish(&snapshot));
    assert_eq!(kept.made.load(Ordering::Relaxed), made);
    assert_eq!(kept.get(open), 0, "the state that was left");
    assert_eq!(
        kept.get("seawall_alert{rule=slow,severity=warning,subject=calls}"),
        0,
        "an alert that is off"
    );
}
