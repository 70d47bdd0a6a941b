use std::time::Duration;

use super::*;
use crate::call::Key;

#[test]
fn a_refusal_is_small_and_crosses_threads() {
    fn crosses<T: Send + Sync + Clone + 'static>() {}
    crosses::<Refusal>();
    assert!(size_of::<Refusal>() <= 16, "{} bytes", size_of::<Refusal>());
}

#[test]
fn display_is_one_line_and_says_who_what_and_how_long() {
    let label = Label::new("primary").with_key_class("upstream").with_key(Key::from("first"));
    let refusal =
        Refusal::new(RefusalKind::Open).with_label(Arc::new(label)).with_retry_after(Duration::from_secs(3));
    assert_eq!(refusal.to_string(), "primary of first is open; try again in 3s");
    assert_eq!(refusal.key_class(), Some("upstream"));
    assert_eq!(Refusal::new(RefusalKind::Full).to_string(), "bulkhead is full");
}

#[test]
fn it_is_found_behind_any_number_of_sources_and_any_lifetime() {
    #[derive(Debug)]
    struct Wrapped<'a>(Refusal, &'a str);
    impl fmt::Display for Wrapped<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.1)
        }
    }
    impl Error for Wrapped<'_> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    let text = String::from("borrowed");
    let refusal = Refusal::new(RefusalKind::Full);
    let boxed: Box<dyn Error + Send + Sync + '_> = Box::new(Wrapped(refusal.clone(), &text));
    assert_eq!(boxed.refusal(), Some(refusal.clone()));
    let direct: BoxError = refusal.clone().into();
    assert_eq!(direct.refusal(), Some(refusal));
    let other: BoxError = "connection reset".into();
    assert_eq!(other.refusal(), None);
}

#[test]
fn the_upstreams_own_failure_ends_the_chain_of_sources() {
    let earlier: Arc<dyn Error + Send + Sync> = Arc::from(BoxError::from("connection reset"));
    let refusal = Refusal::new(RefusalKind::Open)
        .with_previous(Previous::new(Verdict::new(Class::Transient)).with_error(earlier));
    let mut last: &dyn Error = &refusal;
    while let Some(next) = last.source() {
        last = next;
    }
    assert_eq!(last.to_string(), "connection reset");
    assert_eq!(refusal.previous().map(|previous| previous.verdict().class()), Some(Class::Transient));
}

#[test]
fn b170_over_http_the_wait_is_rounded_up_and_at_least_a_second() {
    for (wait, header) in [(1, "1"), (999, "1"), (1_000, "1"), (1_001, "2"), (59_001, "60")] {
        let refusal = Refusal::new(RefusalKind::RateLimited).with_retry_after(Duration::from_millis(wait));
        let response = refusal.to_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], header, "{wait} ms");
    }
    let zero = Refusal::new(RefusalKind::Open).with_retry_after(Duration::ZERO).to_response();
    assert_eq!(zero.headers()["retry-after"], "1");
    let never = Refusal::new(RefusalKind::TooLarge).to_response();
    assert!(!never.headers().contains_key("retry-after"), "no wait helps, so none is advised");
}

#[test]
fn a_problem_document_escapes_what_it_quotes() {
    let label = Label::new("say \"no\"\n\\");
    let response = Refusal::new(RefusalKind::Full).with_label(Arc::new(label)).to_response();
    let body = std::str::from_utf8(response.body()).unwrap();
    assert!(body.contains(r#""layer":"say \"no\"\u000a\\""#), "{body}");
    assert!(body.contains(r#""status":503"#));
    assert_eq!(response.extensions().get::<Refusal>().map(Refusal::kind), Some(RefusalKind::Full));
}

#[test]
fn over_grpc_it_is_trailers_only_with_pushback() {
    let label = Label::new("überlauf 100%");
    let response = Refusal::new(RefusalKind::Open)
        .with_label(Arc::new(label))
        .with_retry_after(Duration::from_micros(1_500))
        .to_grpc_response();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["grpc-status"], "14");
    assert_eq!(response.headers()["grpc-retry-pushback-ms"], "2");
    let message = response.headers()["grpc-message"].to_str().unwrap();
    assert!(message.starts_with("%C3%BCberlauf 100%25 is open"), "{message}");
}

#[test]
fn timeouts_count_against_the_upstream_and_other_refusals_do_not() {
    assert_eq!(Refusal::new(RefusalKind::TimedOut(Phase::Head)).verdict().class(), Class::Stalled);
    assert_eq!(Refusal::new(RefusalKind::Open).verdict().class(), Class::Refused);
}

#[test]
fn a_label_and_what_came_before_do_not_displace_each_other() {
    let previous = || Previous::new(Verdict::new(Class::Transient));
    let label = || Arc::new(Label::new("mine").with_key(Key::from("k")));
    let plain = Refusal::new(RefusalKind::Full);
    for refusal in [
        plain.clone().with_label(label()).with_previous(previous()),
        plain.clone().with_previous(previous()).with_label(label()),
    ] {
        assert_eq!((refusal.name(), refusal.key()), ("mine", Some(&Key::from("k"))));
        assert_eq!(refusal.previous().unwrap().verdict().class(), Class::Transient);
        assert_eq!(refusal, refusal.clone());
        assert_ne!(refusal, plain.clone().with_label(label()), "what came before is part of it");
    }
    assert_eq!(plain.clone().with_previous(previous()).name(), plain.name());
}
