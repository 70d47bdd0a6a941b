use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use crate::call::Call;
use crate::monitor::Monitor;
use crate::{BoxError, Class};

/// Keeps what is told, a line a span or event.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    spans: Vec<String>,
    entered: Vec<u64>,
    events: Vec<String>,
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut lines = self.0.lock().unwrap();
        let parent = lines.entered.last().map_or("-".into(), ToString::to_string);
        let mut line = format!("{} in {parent}:", span.metadata().name());
        span.record(&mut Text(&mut line));
        lines.spans.push(line);
        Id::from_u64(lines.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let place = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Text(&mut self.0.lock().unwrap().spans[place]));
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut Text(&mut line));
        self.0.lock().unwrap().events.push(line);
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

/// This thread's spans and events go there. Not alone: a call site that another thread comes to while there is but one
/// subscriber asks that thread's own, which is none, and then is silent for all.
fn listen(kept: &Kept) -> impl Sized {
    let second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    (tracing::subscriber::set_default(kept.clone()), second)
}

#[tokio::test]
async fn a_call_and_its_attempt_are_spans_one_in_the_other() {
    let kept = Kept::default();
    let guard = listen(&kept);
    let monitor = Monitor::new();
    let service = ServiceBuilder::new().layer(monitor.layer()).layer(monitor.attempts()).service_fn(
        async |_: http::Request<String>| {
            tracing::info!("inside");
            Ok::<_, BoxError>(http::Response::builder().status(503).body(String::new())?)
        },
    );
    let mut request = http::Request::new("a secret prompt".to_owned());
    let mut call = Call::default();
    (call.upstream, call.model) = (Some("up".into()), Some("m".into()));
    (call.output_bound, call.hop) = (Some(50), Some(2));
    request.extensions_mut().insert(call);
    service.oneshot(request).await.unwrap();
    drop(guard);
    let lines = kept.0.lock().unwrap();
    let known = "otel.kind=\"client\" gen_ai.operation.name=\"chat\" gen_ai.provider.name=\"up\" \
                 gen_ai.request.model=\"m\" gen_ai.request.max_tokens=50 seawall.hop=2 \
                 seawall.outcome=\"transient\" error.type=\"transient\"";
    assert_eq!(lines.spans, [format!("gen_ai.call in -: {known}"), format!("gen_ai.attempt in 1: {known}")]);
    assert_eq!(lines.events, [" message=inside"]);
    assert!(lines.entered.is_empty());
    assert!(!lines.spans.iter().any(|line| line.contains("secret")));
}

#[tokio::test]
async fn transitions_are_events() {
    let kept = Kept::default();
    let _guard = listen(&kept);
    let monitor = Monitor::new();
    let breaker = crate::circuit_breaker::CircuitBreakerLayer::builder().observer(monitor.clone());
    let breaker = breaker.build().unwrap();
    breaker.gate().force_open();
    let _ = breaker.layer(service_fn(async |_: http::Request<()>| {
        Ok::<_, BoxError>(http::Response::new(String::new()))
    }));
    let events = kept.0.lock().unwrap().events.clone();
    assert!(events[0].contains("from=\"closed\" to=\"open\" cause=Handle"), "{events:?}");
    assert!(events[1].contains("critical: target_out of circuit_breaker"), "{events:?}");
    assert_eq!(crate::monitor::words::class_word(Class::Denied), "denied");
}
