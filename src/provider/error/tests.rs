use super::*;
use crate::provider::fixtures::{self, WALL};

#[test]
fn every_sample_is_read_as_the_index_says() {
    for entry in fixtures::index() {
        let is_stream = entry.is_stream() && !entry.file.contains("429");
        if is_stream || !entry.file.ends_with(".http") {
            continue;
        }
        let sample = entry.sample();
        let verdict = classify(sample.status, &sample.headers, &sample.body, Duration::ZERO);
        let said = (
            format!("{:?}", verdict.class()),
            format!("{:?}", verdict.scope()),
            Some(format!("{:?}", verdict.reason())).filter(|reason| reason != "Unspecified"),
            verdict.hint(),
        );
        let wanted = (entry.class, entry.scope, entry.reason, entry.hint);
        assert_eq!(said, wanted, "{}", entry.file);
    }
    let _ = WALL;
}
