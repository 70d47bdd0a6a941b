//! The verdict that the head of a response allows, where nobody read its body.

use http::{Response, StatusCode};
use http_body::Body;

use super::{classify, grpc};
use crate::call::Outcome;
use crate::refusal::Failure;
use crate::time::{SystemWall, Wall};
use crate::verdict::{Classify, Verdict, of_error};

/// Over HTTP: the verdict of the [`Outcome`] if one was read, else by status and headers: the wait that they ask for,
/// `x-should-retry`, and the `grpc-status` of a head that nothing follows. An error is one of our own refusals or else
/// [`Class::Transient`](crate::Class::Transient).
///
/// A good head is not looked at beyond its status, so that a healthy call costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadClassifier;

impl<B: Body, E: Failure> Classify<Response<B>, E> for HeadClassifier {
    #[inline]
    fn classify(&self, result: Result<&Response<B>, &E>) -> Verdict {
        match result {
            Ok(response) => of_head(response),
            Err(error) => of_error(error),
        }
    }

    fn status(&self, response: &Response<B>) -> Option<StatusCode> {
        Some(response.status())
    }
}

fn of_head<B: Body>(response: &Response<B>) -> Verdict {
    if let Some(verdict) = Outcome::of(response).and_then(|outcome| outcome.verdict()) {
        return verdict;
    }
    let (status, headers) = (response.status(), response.headers());
    if grpc::is_grpc(headers) {
        let ended = response.body().is_end_stream();
        return grpc::at_head(status, headers, ended, SystemWall.since_epoch()).unwrap_or(Verdict::SUCCESS);
    }
    if status.is_client_error() || status.is_server_error() {
        return classify(status, headers, &[], SystemWall.since_epoch());
    }
    Verdict::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::{Empty, Full};

    use super::*;
    use crate::refusal::BoxError;
    use crate::verdict::Class;

    fn verdict<B: Body>(response: &Response<B>) -> Verdict {
        HeadClassifier.classify(Ok::<_, &BoxError>(response))
    }

    #[test]
    fn the_headers_give_the_hint_and_override_the_class() {
        let limited = Response::builder().status(429).header("retry-after", "0.847");
        let limited = verdict(&limited.body(Empty::<&[u8]>::new()).unwrap());
        assert_eq!((limited.class(), limited.hint()), (Class::Throttled, Some(Duration::from_millis(847))));
        let told = Response::builder().status(400).header("x-should-retry", "true");
        assert_eq!(verdict(&told.body(Empty::<&[u8]>::new()).unwrap()).class(), Class::Transient);
        let plain = Response::builder().status(400).header("x-should-retry", "maybe");
        assert_eq!(verdict(&plain.body(Empty::<&[u8]>::new()).unwrap()).class(), Class::Invalid);
    }

    #[test]
    fn a_grpc_status_in_the_head_counts_only_where_nothing_follows() {
        let head =
            || Response::builder().header("content-type", "application/grpc").header("grpc-status", "14");
        assert_eq!(verdict(&head().body(Empty::<&[u8]>::new()).unwrap()).class(), Class::Transient);
        assert!(verdict(&head().body(Full::new(&b"frame"[..])).unwrap()).is_success());
    }

    #[test]
    fn the_outcome_that_was_read_goes_before_the_status() {
        let mut response = Response::builder().status(429).body(Empty::<&[u8]>::new()).unwrap();
        let outcome = Outcome::new(crate::time::now());
        outcome.set_verdict(Verdict::new(Class::Exhausted));
        response.extensions_mut().insert(std::sync::Arc::new(outcome));
        assert_eq!(verdict(&response).class(), Class::Exhausted);
    }
}
