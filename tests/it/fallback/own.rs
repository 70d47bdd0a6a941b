//! Request and response types of a library's own, with no HTTP in sight.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use seawall::call::{Aim, Call, Describe, Destination, Key, Misfit};
use seawall::fallback::{FallbackBuilder, FallbackLayer, Route, Routes, Served, Standing, Target};
use seawall::{BoxError, Class, Classify, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::poll_once;

#[derive(Clone)]
struct Chat {
    call: Call,
    model: Key,
    to: Key,
    /// Where it cannot be aimed at.
    misfits: Option<&'static str>,
}

impl Default for Chat {
    fn default() -> Self {
        Self { call: Call::default(), model: "".into(), to: "".into(), misfits: None }
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
        if self.misfits == Some(at.upstream.name().as_str()) {
            return Err(Misfit::NotRewritable);
        }
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

/// What a call and the attempts below it are told, where every target fails.
async fn told(builder: FallbackBuilder<impl Classify<Answer, BoxError> + Clone>, chat: Chat) -> Vec<String> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let inner = service_fn(move |chat: Chat| {
        telling.lock().unwrap().push(format!("{} {} {:?}", chat.to, chat.model, chat.call));
        std::future::ready(Ok::<_, BoxError>(overloaded()))
    });
    let answer = builder.build().unwrap().at_head().layer(inner).oneshot(chat).await;
    let mut told = told.lock().unwrap().clone();
    told.push(format!("{answer:?}"));
    told
}

#[tokio::test]
async fn a_call_that_need_not_be_weighed_goes_as_one_that_is() {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    for (count, own, most) in
        (1..=3).flat_map(|count| (0..4).flat_map(move |own| (1..8).map(move |most| (count, own, most))))
    {
        for misfits in [None, Some("one"), Some("two")] {
            let targets = NAMES[..count].iter().map(|name| match own {
                0 => Target::at(*name).model("m"),
                own => Target::at(*name).attempts(own),
            });
            let routes = NAMES.iter().fold(Routes::builder(), |routes, name| routes.named(*name).unwrap());
            let routes = routes.route(targets.fold(Route::default_route(), Route::target)).build().unwrap();
            let judge = classify::responses(|_: &Answer| Verdict::new(Class::Transient));
            let plain = FallbackLayer::builder(routes.clone()).classify(judge).max_attempts(most);
            // Whoever asks for health has every call weighed.
            let weighed = FallbackLayer::builder(routes).classify(judge).max_attempts(most);
            let weighed = weighed.health(|_: &Target| Standing::Serves);
            let chat = Chat { misfits, ..Chat::default() };
            let plain = told(plain, chat.clone()).await;
            assert_eq!(plain, told(weighed, chat).await, "{count} {own} {most} {misfits:?}");
            assert!(plain.len() > 1 || misfits.is_some(), "it was asked");
        }
    }
}
