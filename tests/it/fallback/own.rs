//! Request and response types of a library's own, with no HTTP in sight.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use seawall::call::{Aim, Call, Describe, Destination, Key, Misfit};
use seawall::fallback::{FallbackLayer, Route, Routes, Served, Target};
use seawall::{BoxError, Class, Classify, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::poll_once;

#[derive(Clone)]
struct Chat {
    call: Call,
    model: Key,
    to: Key,
}

impl Default for Chat {
    fn default() -> Self {
        Self { call: Call::default(), model: "".into(), to: "".into() }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Answer {
    text: &'static str,
    overloaded: bool,
    by: Option<Key>,
}

impl Describe for Chat {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        Some(&mut self.call)
    }
}

impl Aim for Chat {
    fn aim(&self, at: &Destination<'_>) -> Result<Self, Misfit> {
        let mut aimed = self.clone();
        aimed.to = at.upstream.name().clone();
        if let Some(model) = at.model {
            aimed.model = model.clone();
        }
        Ok(aimed)
    }
}

fn layer() -> FallbackLayer<impl Classify<Answer, BoxError> + Clone> {
    let route = Route::default_route()
        .target(Target::at("fast").model("fast-1"))
        .target(Target::at("careful").model("careful-1"));
    let routes = Routes::builder().named("fast").unwrap().named("careful").unwrap().route(route);
    let judge = classify::responses(|answer: &Answer| {
        if answer.overloaded { Verdict::new(Class::Transient) } else { Verdict::SUCCESS }
    });
    FallbackLayer::builder(routes.build().unwrap()).classify(judge).build().unwrap()
}

fn overloaded() -> Answer {
    Answer { overloaded: true, ..Answer::default() }
}

#[tokio::test]
async fn an_answer_of_an_own_type_is_replaced_by_the_next_targets() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    let inner = service_fn(move |chat: Chat| {
        asked.lock().unwrap().push((chat.to.clone(), chat.model.clone()));
        let answer = if chat.to.as_str() == "fast" {
            overloaded()
        } else {
            Answer { text: "hi", ..Answer::default() }
        };
        async move { Ok::<_, BoxError>(answer) }
    });
    let tell =
        |answer: &mut Answer, served: &Served| answer.by = Some(served.target().upstream().name().clone());
    let service = layer().at_head_telling(tell).layer(inner);
    let answer = service.oneshot(Chat::default()).await.unwrap();
    assert_eq!((answer.text, answer.by), ("hi", Some("careful".into())));
    let pairs = [("fast", "fast-1"), ("careful", "careful-1")];
    assert_eq!(*seen.lock().unwrap(), pairs.map(|(to, model)| (to.into(), model.into())));
}

#[tokio::test]
async fn exhausted_the_last_answer_is_passed_on() {
    let inner = service_fn(|chat: Chat| async move {
        match chat.to.as_str() {
            "fast" => Ok(overloaded()),
            _ => Err(BoxError::from("reset")),
        }
    });
    assert_eq!(layer().at_head().layer(inner).oneshot(Chat::default()).await.unwrap(), overloaded());
}

#[tokio::test]
async fn the_readied_instance_is_called_first_and_each_later_one_is_readied_itself() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let inner = service_fn(move |_: Chat| {
        let first = counted.fetch_add(1, SeqCst) == 0;
        async move { Ok::<_, BoxError>(if first { overloaded() } else { Answer::default() }) }
    });
    // One slot: an instance that is called without being ready panics, one that is kept ready starves the next.
    let mut service = layer().at_head().layer(ConcurrencyLimit::new(inner, 1));
    for _ in 0..2 {
        assert_eq!(service.ready().await.unwrap().call(Chat::default()).await.unwrap(), Answer::default());
    }
    assert_eq!(calls.load(SeqCst), 3);
}

#[test]
fn a_healthy_call_allocates_nothing() {
    let inner = service_fn(|_: Chat| std::future::ready(Ok::<_, BoxError>(Answer::default())));
    let mut service = layer().at_head().layer(inner);
    let mut cx = Context::from_waker(Waker::noop());
    let mut call = || {
        let mut chat = Chat::default();
        chat.call.model = Some("any-model".into());
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut future = std::pin::pin!(service.call(chat));
        assert!(matches!(poll_once(future.as_mut()), Poll::Ready(Ok(_))));
    };
    call();
    assert_eq!(allocation_counter::measure(call).count_total, 0);
}
