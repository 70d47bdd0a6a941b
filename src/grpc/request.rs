//! Requests of tonic that layers can read.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response};

use crate::call::{Answer, Call, Describe, Once, Overrides, noted, time_left};
use crate::deadline::Deadline;

/// The [`Call`], [`Deadline`], [`Once`] and [`Overrides`] are extensions, as those of an [`http::Request`] are.
impl<T> Describe for Request<T> {
    fn call(&self) -> Option<&Call> {
        self.extensions().get()
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        self.extensions_mut().get_mut()
    }

    fn deadline(&self) -> Option<Deadline> {
        noted::deadline(self.extensions())
    }

    fn set_deadline(&mut self, deadline: Deadline) {
        noted::set_deadline(self.extensions_mut(), deadline);
    }

    fn tell_time_left(&mut self, header: &HeaderName, left: Duration) {
        fields_mut(self.metadata_mut()).insert(header.clone(), time_left::write(header, left));
    }

    fn time_left(&self, header: &HeaderName) -> Option<Duration> {
        let fields: &HeaderMap = self.metadata().as_ref();
        time_left::read(header, fields.get(header)?)
    }

    fn is_idempotent(&self) -> bool {
        self.metadata().contains_key("idempotency-key")
    }

    fn may_repeat(&self) -> bool {
        self.extensions().get::<Once>().is_none()
    }

    fn set_attempt(&mut self, number: u32) {
        noted::set_attempt(self.extensions_mut(), number);
    }

    fn headers_mut(&mut self) -> Option<&mut HeaderMap> {
        Some(fields_mut(self.metadata_mut()))
    }

    fn overrides(&self) -> Option<&Overrides> {
        self.extensions().get()
    }
}

/// Says nothing of itself: a classifier judges it.
impl<T> Answer for Response<T> {}

fn fields_mut(metadata: &mut MetadataMap) -> &mut HeaderMap {
    metadata.as_mut()
}

/// A copy of a request whose message can be copied, for
/// [`RetryPolicyBuilder::copy_with`](crate::retry::RetryPolicyBuilder::copy_with): tonic's own request is not `Clone`.
///
/// ```
/// use seawall::grpc;
/// use seawall::retry::{RetryLayer, RetryPolicy};
///
/// let policy = RetryPolicy::builder().classify(grpc::StatusClassifier).ambiguous(true).copy_with(grpc::copy::<String>);
/// let layer = RetryLayer::new(policy.build()?);
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub fn copy<T: Clone>(request: &Request<T>) -> Option<Request<T>> {
    let (metadata, extensions) = (request.metadata().clone(), request.extensions().clone());
    Some(Request::from_parts(metadata, extensions, request.get_ref().clone()))
}
