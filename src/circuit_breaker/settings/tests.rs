//! What can be built, and what votes how.

use std::time::Duration;

use super::*;

const ZERO: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);

fn refused(builder: SettingsBuilder) -> String {
    builder.build().expect_err("it cannot work").field().to_owned()
}

#[test]
fn b193_settings_that_cannot_work_are_named() {
    let new = Settings::builder;
    let absurd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, -0.0, 0.0, 1.000_001, 1.5, 1e-12];
    for share in absurd {
        assert_eq!(refused(new().failure_rate(share)), "failure_rate", "{share}");
        assert_eq!(refused(new().slow_call_rate(SECOND, share)), "slow_call_rate", "{share}");
    }
    for share in [f64::NAN, f64::INFINITY, -0.1, 1.000_001] {
        assert_eq!(refused(new().jitter(share)), "jitter", "{share}");
    }
    assert_eq!(refused(new().consecutive_failures(0, SECOND)), "consecutive_failures");
    assert_eq!(refused(new().consecutive_failures(5, ZERO)), "consecutive_failures");
    assert_eq!(refused(new().consecutive_failures(u32::MAX, SECOND)), "consecutive_failures");
    assert_eq!(refused(new().slow_call_rate(ZERO, 0.5)), "slow_call_rate");
    assert_eq!(refused(new().minimum_calls(0)), "minimum_calls");
    assert_eq!(refused(new().window(ZERO)), "window");
    assert_eq!(refused(new().window(Duration::from_nanos(5))), "window");
    assert_eq!(refused(new().count_window(0)), "count_window");
    assert_eq!(refused(new().count_window(u32::MAX)), "count_window");
    assert_eq!(refused(new().open_for(ZERO)), "open_for");
    assert_eq!(refused(new().open_at_most(ZERO)), "open_at_most");
    assert_eq!(refused(new().open_for(SECOND * 60).open_at_most(SECOND * 59)), "open_at_most");
    assert_eq!(refused(new().open_growth(0)), "open_growth");
    assert_eq!(refused(new().hint_at_most(ZERO)), "hint_at_most");
    assert_eq!(refused(new().probes(0)), "probes");
    assert_eq!(refused(new().probes(u32::MAX)), "probes");
    assert_eq!(refused(new().probe_successes(0)), "probe_successes");
    assert_eq!(refused(new().probe_lease(ZERO)), "probe_lease");
    assert_eq!(refused(new().ramp(ZERO)), "ramp");
}

#[test]
fn b040_a_minimum_above_the_count_window_is_refused_and_only_there() {
    let new = Settings::builder;
    assert_eq!(refused(new().count_window(5).minimum_calls(10)), "minimum_calls");
    assert!(new().count_window(10).minimum_calls(10).build().is_ok());
    assert!(new().window(SECOND).minimum_calls(10_000).build().is_ok(), "time may hold any number");
    let no_rate = new().count_window(5).minimum_calls(10).without_failure_rate();
    assert!(no_rate.build().is_ok(), "nobody asks for the minimum");
}

#[test]
fn what_sounds_extreme_but_works_is_accepted() {
    let new = Settings::builder;
    for share in [1.0, 0.000_001] {
        assert!(new().failure_rate(share).build().is_ok());
    }
    assert!(new().jitter(0.0).build().is_ok());
    assert!(new().jitter(1.0).build().is_ok());
    assert!(new().open_for(Duration::MAX).build().is_ok(), "never by itself");
    assert!(new().healthy_after(ZERO).build().is_ok(), "always healthy");
    assert!(new().abandoned_counts_after(ZERO).build().is_ok(), "any call given up counts");
    assert!(new().open_for(SECOND * 3600).build().is_ok(), "longer than the usual most");
}

#[test]
fn the_defaults_and_the_presets_are_valid() {
    assert_eq!(Settings::default(), Settings::builder().build().unwrap());
    assert!(Settings::tolerant().build().is_ok());
    assert!(Settings::fast().build().is_ok());
}

#[test]
fn two_of_three_reach_two_thirds() {
    for (part, whole) in [(1_u32, 3_u32), (2, 3), (29, 100), (7, 100), (1, 7), (999_999, 1_000_000)] {
        let share = Share::new(f64::from(part) / f64::from(whole));
        assert!(share.is_reached(part.into(), whole.into()), "{part} of {whole}");
        assert!(!share.is_reached(u64::from(part) * 10 - 1, u64::from(whole) * 10), "a little less");
    }
}

#[test]
fn each_class_votes_as_the_table_says() {
    let vote = |settings: SettingsBuilder, verdict: Verdict| settings.build().unwrap().vote(&verdict);
    let new = Settings::builder;
    let usual = [
        (Class::Success, Vote::Success),
        (Class::Transient, Vote::Failure),
        (Class::Stalled, Vote::Failure),
        (Class::Throttled, Vote::Neutral),
        (Class::Exhausted, Vote::Opens),
        (Class::Denied, Vote::Opens),
        (Class::Unfit, Vote::Neutral),
        (Class::Invalid, Vote::Neutral),
        (Class::Refused, Vote::Neutral),
        (Class::Abandoned, Vote::Neutral),
    ];
    for (class, expected) in usual {
        assert_eq!(vote(new(), Verdict::new(class)), expected, "{class:?}");
    }
    let throttled = Verdict::new(Class::Throttled);
    assert_eq!(vote(new().throttled(OnThrottled::Failure), throttled), Vote::Failure);
    assert_eq!(vote(new().throttled(OnThrottled::Opens), throttled), Vote::Opens);
    let callers = || new().own_credential(false);
    assert_eq!(vote(callers(), Verdict::new(Class::Denied)), Vote::Neutral);
    assert_eq!(vote(callers(), Verdict::new(Class::Exhausted)), Vote::Neutral);
    let quota_of_a_model = Verdict::new(Class::Exhausted).with_scope(Scope::Model);
    assert_eq!(vote(callers(), quota_of_a_model), Vote::Opens, "it is out for all callers");
}
