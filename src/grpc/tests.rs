use std::time::Duration;

use tonic::{Code, Request, Response, Status};

use super::*;
use crate::call::{Call, Describe};
use crate::refusal::{BoxError, Failure, Fault, Refusal, RefusalKind};
use crate::verdict::{Class, Classify, Verdict};
use crate::{Deadline, time};

const WAIT: Duration = Duration::from_millis(1_500);

fn judge(status: &Status) -> Verdict {
    let result: Result<&Response<()>, &Status> = Err(status);
    StatusClassifier.classify(result)
}

#[test]
fn a_refusal_becomes_a_status_and_is_found_in_it() {
    let refusal = Refusal::new(RefusalKind::RateLimited).with_retry_after(WAIT);
    let status = Status::from(refusal.clone());
    assert_eq!(
        (status.code(), status.message()),
        (Code::ResourceExhausted, "token_bucket is at its limit; try again in 1.5s")
    );
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "1500");
    assert_eq!(status.refusal(), Some(refusal));
    assert_eq!(judge(&status).class(), Class::Refused, "it is no limit of the upstream");
}

#[test]
fn the_other_side_reads_the_wait_in_the_details() {
    for wait in [Duration::from_nanos(1), WAIT, Duration::from_secs(86_400 * 30)] {
        let sent = Status::from(Refusal::new(RefusalKind::RateLimited).with_retry_after(wait));
        // What comes over the wire: no source, and here no pushback either.
        let received = Status::with_details(sent.code(), sent.message(), sent.details().to_vec().into());
        let verdict = judge(&received);
        assert_eq!(verdict.class(), Class::Throttled);
        assert!(verdict.hint().is_some_and(|hint| hint >= wait), "{wait:?}: {:?}", verdict.hint());
    }
}

#[test]
fn a_refusal_without_a_wait_has_no_details() {
    let status = Status::from(Refusal::new(RefusalKind::BudgetExhausted));
    assert_eq!((status.code(), status.details()), (Code::ResourceExhausted, &[][..]));
    assert!(status.metadata().is_empty());
}

#[test]
fn errors_of_layers_become_their_status_and_others_stay() {
    let boxed: BoxError = Refusal::new(RefusalKind::Open).into();
    assert_eq!(status(boxed).code(), Code::Unavailable);
    let fault: Fault<std::fmt::Error> = Refusal::new(RefusalKind::Deadline).into();
    assert_eq!(status(fault).code(), Code::DeadlineExceeded);
    assert_eq!(status(Status::not_found("it")).code(), Code::NotFound);
    let unknown = status(BoxError::from("what is this"));
    assert_eq!((unknown.code(), unknown.refusal()), (Code::Unknown, None));
}

#[test]
fn a_status_of_the_upstream_is_judged_by_its_code() {
    assert_eq!(judge(&Status::unavailable("")).class(), Class::Transient);
    assert_eq!(judge(&Status::invalid_argument("")).class(), Class::Invalid);
    let good: Result<&Response<()>, &Status> = Ok(&Response::new(()));
    assert!(StatusClassifier.classify(good).is_success());
    let mut stop = Status::unavailable("");
    stop.metadata_mut().insert("grpc-retry-pushback-ms", "-1".parse().unwrap());
    assert_eq!(judge(&stop).class(), Class::Unfit, "the server forbids a retry");
}

#[test]
fn a_request_is_read_and_copied_whole() {
    let mut request = Request::new("hello".to_owned());
    assert!(request.call().is_none());
    request.extensions_mut().insert(Call::default());
    request.set_deadline(Deadline::within(WAIT));
    request.tell_time_left(&TIMEOUT, WAIT);
    request.set_attempt(2);
    let copied = copy(&request).unwrap();
    assert_eq!(copied.get_ref(), "hello");
    assert_eq!(copied.time_left(&TIMEOUT), Some(WAIT));
    assert_eq!(copied.call().unwrap().attempt, Some(2));
    assert!(copied.deadline().unwrap().remaining(time::now()) <= WAIT);
}

#[test]
fn what_tonic_sets_as_a_timeout_is_heeded() {
    let mut request = Request::new(());
    request.set_timeout(WAIT);
    assert_eq!(request.time_left(&TIMEOUT), Some(WAIT));
}
