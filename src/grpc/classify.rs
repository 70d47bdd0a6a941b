//! What a status means.

use tonic::Status;

use crate::provider::grpc;
use crate::refusal::Failure;
use crate::time::{SystemWall, Wall};
use crate::verdict::{Classify, Verdict};

/// Judges by the status of an error; an answer is a good one. For services over [`tonic::Request`].
///
/// The codes mean what [`provider::grpc::of_status`](crate::provider::grpc::of_status) says; the wait is read from
/// `RetryInfo`, `grpc-retry-pushback-ms` and the usual headers.
///
/// ```
/// use seawall::circuit_breaker::CircuitBreakerLayer;
/// use seawall::grpc::StatusClassifier;
///
/// // Around a closure that calls a generated client.
/// let layer = CircuitBreakerLayer::builder().classify(StatusClassifier::default()).build()?.at_head();
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusClassifier;

impl<Res> Classify<Res, Status> for StatusClassifier {
    fn classify(&self, result: Result<&Res, &Status>) -> Verdict {
        let Err(status) = result else { return Verdict::SUCCESS };
        if let Some(refusal) = status.refusal() {
            return refusal.verdict();
        }
        let code = u32::try_from(i32::from(status.code())).unwrap_or(2);
        grpc::of_parts(code, status.details(), status.metadata().as_ref(), SystemWall.since_epoch())
    }
}
