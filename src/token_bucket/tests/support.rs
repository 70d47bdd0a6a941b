//! What the tests share.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{Service, ServiceExt};

use crate::BoxError;
use crate::call::{Call, Describe, Estimate};
use crate::refusal::Refusal;
use crate::token_bucket::Quota;
use crate::token_bucket::bucket::Costs;

pub(super) fn n(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

pub(super) fn per_second(amount: u64, burst: u64) -> Quota {
    Quota::per_second(n(amount)).burst(n(burst))
}

pub(super) fn few(costs: &[u64]) -> Costs {
    Costs::from_fn(costs.len(), |index| costs[index])
}

/// The refusal in an error.
pub(super) fn refusal(error: &BoxError) -> Refusal {
    crate::refusal::find(&**error).expect("only refusals fail here")
}

/// A request that costs what it says.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    pub(super) cost: u64,
    pub(super) call: Call,
}

impl Job {
    pub(super) fn of(cost: u64) -> Self {
        Self { cost, call: Call::default() }
    }

    pub(super) fn tokens(input: u64, output: u64) -> Self {
        let mut job = Self::of(0);
        job.call.estimate = Some(Estimate::new(input, input * 4));
        job.call.output_bound = Some(output);
        job
    }
}

impl Describe for Job {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }
}

pub(super) fn request() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}

pub(super) fn ok() -> Response<Full<Bytes>> {
    Response::new(Full::from("ok"))
}

/// Calls once and says whether it passed.
pub(super) async fn passes<S, Req>(service: &S, request: Req) -> bool
where
    S: Service<Req> + Clone,
{
    service.clone().oneshot(request).await.is_ok()
}

/// A service that answers at once.
pub(super) fn instant<Req>()
-> impl Service<Req, Response = (), Error = BoxError, Future = std::future::Ready<Result<(), BoxError>>> + Clone
{
    tower::service_fn(|_: Req| std::future::ready(Ok(())))
}

pub(super) async fn advance(time: Duration) {
    tokio::time::advance(time).await;
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
