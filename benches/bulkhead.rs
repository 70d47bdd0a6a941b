//! What a bulkhead costs a call, beside tower's `ConcurrencyLimit` in the same run.
//!
//! Read the ratios, not the times: bulkhead ≤ limit, refusal < 0.8 × limit, two threads ≥ 0.6 × one thread.
//! The figures of a run are kept under `target/criterion/`.
#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use seawall::bulkhead::BulkheadLayer;
use seawall::gate::{Admission, Gate};
use seawall::{Fault, Refusal};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

type Error = Fault<Infallible>;

/// The inner service: as little as can be.
#[derive(Clone, Copy)]
struct Echo;

impl Service<u64> for Echo {
    type Response = u64;
    type Error = Error;
    type Future = Ready<Result<u64, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(request))
    }
}

#[derive(Clone, Copy)]
struct Web;

impl Service<Request<()>> for Web {
    type Response = Response<Full<Bytes>>;
    type Error = Error;
    type Future = Ready<Result<Response<Full<Bytes>>, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"hello")))))
    }
}

/// One call from readiness to answer, on this thread alone.
fn once<S: Service<Req>, Req>(service: &mut S, request: Req) -> Result<S::Response, S::Error> {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    match pin!(service.call(request)).poll(&mut cx) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

/// The same, and the body to its end.
fn whole<S, B>(service: &mut S) -> Option<usize>
where
    S: Service<Request<()>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    let body = once(service, Request::new(())).ok()?.into_body();
    let mut body = pin!(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut length = 0;
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
        length += frame.data_ref().map_or(0, Bytes::len);
    }
    Some(length)
}

fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bulkhead");
    let head = BulkheadLayer::new(64).at_head();
    group.bench_function("bare", |b| b.iter(|| once(&mut Echo, black_box(7))));
    let mut limit = ConcurrencyLimit::new(Echo, 64);
    group.bench_function("concurrency_limit", |b| b.iter(|| once(&mut limit, black_box(7))));
    let mut service = head.layer(Echo);
    group.bench_function("head", |b| b.iter(|| once(&mut service, black_box(7))));
    let keyed = BulkheadLayer::builder(64).keyed_by(|n: &u64| Some((*n % 16).into())).build();
    let mut keyed = keyed.expect("its settings are right").at_head().layer(Echo);
    group.bench_function("keyed", |b| b.iter(|| once(&mut keyed, black_box(7))));

    let full = BulkheadLayer::new(1).refuse().at_head();
    let Admission::Now(_slot) = full.gate().admit(&mut 0_u64) else { unreachable!("it is free") };
    let mut refusing = full.layer(Echo);
    group.bench_function("refusal", |b| b.iter(|| once(&mut refusing, black_box(7))));

    group.bench_function("http_bare", |b| b.iter(|| whole(&mut Web)));
    let mut limit = ConcurrencyLimit::new(Web, 64);
    group.bench_function("http_concurrency_limit", |b| b.iter(|| whole(&mut limit)));
    let mut web = BulkheadLayer::new(64).layer(Web);
    group.bench_function("http_body_end", |b| b.iter(|| whole(&mut web)));

    let none = |what: &str, run: &mut dyn FnMut()| {
        // The state of a new key is made once.
        run();
        let count = allocation_counter::measure(run).count_total;
        assert_eq!(count, 0, "{what} allocates");
    };
    none("a healthy call", &mut || assert!(once(&mut service, 7).is_ok()));
    none("a call to a known key", &mut || assert!(once(&mut keyed, 7).is_ok()));
    none("a refusal", &mut || assert!(matches!(once(&mut refusing, 7), Err(Fault::Refused(_)))));
    none("a call over HTTP", &mut || assert!(whole(&mut web).is_some()));
}

/// Calls a second of so many threads on one state: the time given is that of all calls one after the other.
fn threads<S>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, service: &S, threads: u32)
where
    S: Service<u64, Response = u64, Error = Error> + Clone + Send + Sync,
{
    group.bench_function(format!("{name}_{threads}"), |b| {
        b.iter_custom(|calls| {
            let each = calls.div_ceil(u64::from(threads));
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    let mut service = service.clone();
                    scope.spawn(move || (0..each).for_each(|n| drop(black_box(once(&mut service, n)))));
                }
            });
            Duration::max(begun.elapsed(), Duration::from_nanos(1))
        });
    });
}

fn contended(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bulkhead_contended");
    let service = BulkheadLayer::new(64).at_head().layer(Echo);
    let limit = ConcurrencyLimit::new(Echo, 64);
    for n in [1, 2] {
        threads(&mut group, "head", &service, n);
        threads(&mut group, "concurrency_limit", &limit, n);
    }
}

const _: () = assert!(size_of::<Refusal>() <= 32);

criterion_group!(benches, overhead, contended);
criterion_main!(benches);
