//! Refusals in, and found in, a status.

use std::error::Error;
use std::sync::Arc;

use http::HeaderValue;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::provider::grpc::status_with_retry;
use crate::refusal::{BoxError, Failure, Refusal, find};

/// The status that an error is: of a refusal as the [module](crate::grpc) says; a status that it is or holds; what tonic
/// knows of other errors, which is `UNKNOWN` for most.
///
/// Above all layers, as `.map_err(grpc::status)`; without it, tonic makes `UNKNOWN` of a refusal.
///
/// ```
/// use seawall::{BoxError, Refusal, RefusalKind, grpc};
///
/// let status = grpc::status(BoxError::from(Refusal::new(RefusalKind::Full)));
/// assert_eq!(status.code(), tonic::Code::ResourceExhausted);
/// ```
pub fn status(error: impl Into<BoxError>) -> Status {
    let error = error.into();
    match find(&*error) {
        Some(refusal) => refusal.into(),
        None => Status::from_error(error),
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let number = refusal.kind().grpc_code();
        let (code, message) = (Code::from_i32(number.into()), refusal.to_string());
        let mut status = match refusal.retry_after() {
            None => Self::new(code, message),
            Some(wait) => {
                let details = status_with_retry(number, &message, wait);
                let mut metadata = MetadataMap::new();
                let millis = i32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
                metadata.as_mut().insert("grpc-retry-pushback-ms", HeaderValue::from(millis));
                Self::with_details_and_metadata(code, message, details.into(), metadata)
            }
        };
        status.set_source(Arc::new(refusal));
        status
    }
}

impl Failure for Status {
    fn refusal(&self) -> Option<Refusal> {
        self.source().and_then(find)
    }
}
