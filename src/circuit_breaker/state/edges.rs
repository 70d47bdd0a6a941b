//! What the cell and the handle ask of the state, and votes that nobody waits for.

use super::tests::{BAD, GOOD, SECOND, simple, state};
use super::*;

fn record(state: &mut State, samples: &[Sample]) {
    let ticket = Ticket { generation: state.generation(), probe: 0 };
    for sample in samples {
        assert_eq!(state.record(0, ticket, *sample), Recorded::Kept);
    }
}

#[test]
fn a_call_that_is_let_through_although_it_was_refused_has_no_vote_and_is_not_late() {
    let mut state = state(simple());
    state.force_open();
    record(&mut state, &[GOOD, BAD]);
    assert_eq!(state.state(), BreakerState::Open);
    state.probe_now();
    record(&mut state, &[GOOD, BAD, GOOD, GOOD]);
    assert_eq!(state.state(), BreakerState::HalfOpen);
}

#[test]
fn successes_need_no_look_where_none_can_be_the_call_that_decides() {
    let half_of_four = || simple().without_consecutive_failures().failure_rate(0.5).minimum_calls(4);
    let mut below = state(half_of_four());
    record(&mut below, &[GOOD, BAD, BAD]);
    assert_eq!(below.mode(), Mode::Careful, "the next call fills the minimum");
    let mut forced = state(half_of_four());
    forced.force_closed(0);
    record(&mut forced, &[GOOD, BAD, BAD]);
    assert_eq!(forced.mode(), Mode::Plain, "nothing moves what is forced");
    let mut above = state(half_of_four());
    record(&mut above, &[GOOD, GOOD, GOOD, BAD, GOOD, BAD]);
    assert_eq!(above.mode(), Mode::Plain, "a further success only lowers the share");
    assert_eq!(state(half_of_four().count_window(100)).mode(), Mode::Careful, "each call pushes another out");
}

#[test]
fn successes_are_kept_elsewhere_up_to_the_end_of_a_bucket() {
    let ten_seconds = simple().window(Duration::from_secs(10));
    assert_eq!(state(ten_seconds.clone()).bucket_end(), SECOND);
    assert_eq!(state(ten_seconds.count_window(100)).bucket_end(), 0, "there are no buckets");
}
