//! The bars that no peer stands beside: bodies, requests over HTTP, sizes.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use seawall::call::{Aim, CallBody, Credential, Destination, IntakeLayer, Key, Upstream, rewrite_model};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::retry::{RetryLayer, RetryPolicy};
use tower::{Layer, Service};

use crate::drive::{Loop, call};
use crate::measure::{self, TURNS, paired};
use crate::report::Bar;
use crate::support::bodies::{self, Answering, post, read, request};
use crate::support::streams;

/// One body is some ten thousand times a call: fewer turns of them.
const FEW: usize = TURNS / 4;
/// What stands beside nothing has nothing that suffers with it: long enough to see the machine at its best.
const MANY: usize = 8 * TURNS;

pub fn bars() -> Vec<Bar> {
    let mut bars = vec![permits()];
    bars.extend(rewrites());
    bars.extend(taps());
    bars.push(at_most("intake,-aim,-fallback-and-retry-over-HTTP:allocations", over_http(), 12));
    let bytes = size_of::<<seawall::config::Stacked<Client> as Service<Request<Full<Bytes>>>>::Future>();
    bars.push(at_most("future-of-the-recommended-stack:bytes", bytes as u64, 2_048));
    bars
}

fn at_most(name: &str, measured: u64, limit: u32) -> Bar {
    Bar { name: name.into(), measured: measure::precise(measured), limit: limit.into(), at_least: false }
}

/// Calls, and reads the answer to its end; `see` sees each of its frames.
fn through<S: Answering>(service: &mut S, mut see: impl FnMut(&Bytes)) {
    let Ok(response) = call(service, request()) else { unreachable!("the upstream answers well") };
    let mut body = pin!(response.into_body());
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
        if let Some(data) = frame.data_ref() {
            see(data);
        }
    }
}

fn reads(mut service: impl Answering + 'static) -> Loop {
    Box::new(move |n| {
        for _ in 0..n {
            through(&mut service, |data| {
                black_box(data);
            });
        }
    })
}

/// What each of five permits costs a frame that passes, over the same body bare.
fn permits() -> Bar {
    let frames = streams::events(streams::openai(300 << 10));
    let upstream = bodies::Upstream::stream(frames);
    let (five, bare) = paired(&mut reads(bodies::five_gates(upstream.clone())), &mut reads(upstream), FEW);
    let measured = (five.least - bare.least) / measure::precise(frames.len() as u64) / 5.0;
    Bar {
        name: "five-permits-over-a-body:ns-a-frame-and-permit".into(),
        measured,
        limit: 10.0,
        at_least: false,
    }
}

/// Gigabytes a second.
fn speed(name: &str, bytes: usize, mut run: Loop) -> Bar {
    let least = measure::alone(&mut run, MANY).least;
    let measured = measure::precise(bytes as u64) / least;
    Bar { name: format!("{name}:GB/s"), measured, limit: 1.0, at_least: true }
}

fn repeated<T>(mut one: impl FnMut() -> T + 'static) -> Loop {
    Box::new(move |n| (0..n).for_each(|_| drop(black_box(one()))))
}

/// A body of 100 KB with another model: as text, and as the fallback aims it, which knows already where the name stands.
fn rewrites() -> [Bar; 4] {
    let text = streams::chat(100 << 10);
    let bytes = text.len();
    let rewrite = |text: &str| rewrite_model(black_box(text.as_bytes()), "small");
    let counted = allocation_counter::measure(|| drop(black_box(rewrite(&text)))).count_total;
    let upstream = Upstream::new("b", "https://b.example/v1").expect("a sound address");
    let upstream = upstream.credential(Credential::bearer("secret").expect("a header can hold it"));
    let model = Key::from("small");
    let original = read(post(&Bytes::from(text.clone())));
    let aim = move || black_box(&original).aim(&Destination::new(&upstream).model(&model)).ok();
    let large = allocation_counter::measure(|| drop(black_box(aim()))).bytes_total;
    let aims = repeated(aim);
    let rewrites = repeated(move || rewrite(&text));
    [
        at_most("model-rewrite-of-100-KB:allocations", counted, 1),
        speed("model-rewrite-of-100-KB", bytes, rewrites),
        // Its body is copied once; all else is small.
        at_most("aim-of-100-KB:copies-of-the-body", large / bytes as u64, 1),
        speed("aim-of-100-KB", bytes, aims),
    ]
}

/// A stream whose usage, content and errors are read.
fn taps() -> [Bar; 4] {
    let stream = |kilobytes: usize| streams::openai(kilobytes << 10);
    let events = streams::events(stream(300));
    let whole = streams::frames(stream(300));
    let bytes = events.iter().map(Bytes::len).sum();
    let tapped = |frames| bodies::outcome(bodies::Upstream::stream(frames));
    let held = |kilobytes| {
        let mut service = tapped(streams::events(stream(kilobytes)));
        through(&mut service, |_| {});
        allocation_counter::measure(|| through(&mut service, |_| {})).bytes_max
    };
    let mut same = 0;
    let mut left = events.iter();
    through(&mut tapped(events), |data| {
        same +=
            usize::from(left.next().is_some_and(|sent| std::ptr::eq(&raw const **sent, &raw const **data)));
    });
    [
        speed("SSE-tap,-16-KiB-a-frame", bytes, reads(tapped(whole))),
        speed("SSE-tap,-an-event-a-frame", bytes, reads(tapped(events))),
        at_most("SSE-tap:bytes-held-for-8-MB-above-those-for-100-KB", held(8 << 10) - held(100), 0),
        at_most("SSE-tap:frames-that-are-not-as-they-came", (events.len() - same) as u64, 0),
    ]
}

/// A client whose future is its response.
#[derive(Clone)]
struct Client;

impl Service<Request<CallBody>> for Client {
    type Response = Response<Full<Bytes>>;
    type Error = seawall::BoxError;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        black_box(request);
        std::future::ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
    }
}

/// What the intake, the aim at a first target and both loops allocate for 4 KB of JSON with 12 headers.
fn over_http() -> u64 {
    let upstream = |name: &str| {
        let upstream = Upstream::new(name, "https://api.example.com/v1").expect("a sound address");
        upstream.credential(Credential::bearer("secret").expect("a header can hold it"))
    };
    let route = Route::to("*").target(Target::at("a").model("m")).target(Target::at("b").model("n"));
    let routes = Routes::builder().upstream(upstream("a")).upstream(upstream("b")).route(route).build();
    let fallback = FallbackLayer::new(routes.expect("the routes fit together"));
    let retry = RetryLayer::new(RetryPolicy::llm());
    let mut service = IntakeLayer::new().layer(fallback.layer(retry.layer(Client)));
    let body = Bytes::from(streams::chat(4 << 10));
    let alone = allocation_counter::measure(|| drop(black_box(post(&body)))).count_total;
    let mut served = || _ = black_box(call(&mut service, post(&body)).is_ok());
    // What all calls share is made by the first.
    served();
    allocation_counter::measure(served).count_total - alone
}
