use super::*;

const S: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn b010_the_wait_never_shrinks_never_wraps_and_is_never_zero() {
    for base in [Duration::from_nanos(1), ms(1), S] {
        let backoff = Backoff::exponential(base).cap(60 * S).jitter(Jitter::None);
        let rng = Rng::seeded(1);
        let mut last = Duration::ZERO;
        for number in (1..200).chain([1025, u32::MAX - 1, u32::MAX]) {
            let wait = backoff.delay(number, None, &rng);
            assert!(base <= wait && wait <= 60 * S && wait >= last, "{number}: {wait:?} after {last:?}");
            last = wait;
        }
        assert_eq!(last, 60 * S);
    }
}

#[test]
fn b011_infinity_and_nan_are_the_cap() {
    let rng = Rng::seeded(1);
    for factor in [1.0, 2.0, 10.0, f64::MAX] {
        for number in [308, 309, 1024, 1025, 10_000, u32::MAX] {
            let backoff = Backoff::exponential(S).cap(20 * S).factor(factor).jitter(Jitter::None);
            let right = if factor > 1.0 { 20 * S } else { S };
            assert_eq!(backoff.delay(number, None, &rng), right, "{factor} ^ {number}");
        }
    }
    let endless = Backoff::exponential(S).cap(Duration::MAX);
    assert_eq!(endless.upper(u32::MAX), Duration::MAX);
    assert_eq!(Backoff::linear(Duration::MAX).cap(Duration::MAX).upper(3), Duration::MAX);
}

#[test]
fn b013_every_jitter_stays_within_its_bounds() {
    let rng = Rng::seeded(3);
    let cases = [
        (Jitter::None, ms(100), ms(100)),
        (Jitter::Share(0.0), ms(100), ms(100)),
        (Jitter::UpTo(Duration::ZERO), ms(100), ms(100)),
        (Jitter::UpTo(ms(200)), ms(100), ms(250)),
        (Jitter::UpTo(Duration::MAX), ms(100), ms(250)),
        (Jitter::Share(1.0), ms(0), ms(200)),
        (Jitter::Share(0.1), ms(90), ms(110)),
        (Jitter::Full, ms(0), ms(100)),
        (Jitter::Equal, ms(50), ms(100)),
        (Jitter::Decorrelated, ms(100), ms(250)),
    ];
    for (jitter, low, high) in cases {
        let backoff = Backoff::fixed(ms(100)).cap(ms(250)).jitter(jitter);
        let drawn: Vec<Duration> = (0..1000).map(|_| backoff.delay(3, Some(ms(90)), &rng)).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*least >= low && *most <= high, "{jitter:?}: {least:?} to {most:?}");
        let spread = high.checked_sub(low).unwrap();
        let covered = most.saturating_sub(*least);
        assert!(covered >= spread.mul_f64(0.9), "{jitter:?} covers its range: {covered:?} of {spread:?}");
    }
}

#[test]
fn linear_grows_by_the_base_and_custom_by_its_function() {
    let linear = Backoff::linear(ms(200)).cap(S);
    assert_eq!([1, 2, 3, 9].map(|n| linear.upper(n)), [ms(200), ms(400), ms(600), S]);
    let custom = Backoff::custom(ms(1), |n| ms(7) * n).cap(ms(20));
    assert_eq!([1, 2, 3].map(|n| custom.upper(n)), [ms(7), ms(14), ms(20)]);
    let times = Backoff::exponential(ms(100)).factor(1.5);
    assert_eq!([1, 2, 3].map(|n| times.upper(n)), [ms(100), ms(150), ms(225)]);
}

#[test]
fn b013_settings_that_cannot_work_are_named() {
    let field = |backoff: Backoff| backoff.check().err().map(|error| error.field().to_owned());
    assert_eq!(field(Backoff::exponential(S)), None);
    assert_eq!(field(Backoff::fixed(Duration::ZERO)).as_deref(), Some("base"));
    assert_eq!(field(Backoff::fixed(S).cap(ms(999))).as_deref(), Some("base"));
    for factor in [0.5, -2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(field(Backoff::exponential(S).factor(factor)).as_deref(), Some("factor"), "{factor}");
    }
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(
            field(Backoff::fixed(S).jitter(Jitter::Share(share))).as_deref(),
            Some("jitter"),
            "{share}"
        );
    }
}

#[test]
fn settings_at_their_bounds_are_sound() {
    for jitter in [Jitter::Share(0.0), Jitter::Share(1.0), Jitter::UpTo(Duration::ZERO)] {
        assert_eq!(Backoff::fixed(S).cap(S).jitter(jitter).check(), Ok(()), "{jitter:?}");
    }
    assert_eq!(Backoff::exponential(S).factor(1.0).check(), Ok(()));
}

#[test]
fn it_shows_how_it_grows() {
    let shown = [Backoff::fixed(S), Backoff::linear(S), Backoff::exponential(S), Backoff::custom(S, |_| S)]
        .map(|backoff| format!("{:?}", backoff.growth));
    assert_eq!(shown, ["Fixed", "Linear", "Exponential(2.0)", "Custom"]);
}
