use super::*;

const HOUR: i64 = 3_600_000;

fn at(wall: i64, clock_hours: u64) -> Moment {
    Moment { clock: clock_hours * 3_600_000_000_000, wall }
}

fn spend(meter: &mut Meter, window: Window, now: Moment) -> Usd {
    meter.turn(window, now);
    let stamp = meter.reserve(window, now, Usd::cents(2));
    meter.settle(stamp, Usd::cents(2), Usd::cents(1));
    meter.spent()
}

#[test]
fn a_clock_put_back_grants_no_window_twice() {
    let window = Window::HOUR;
    let mut meter = Meter::new(window, at(10 * HOUR, 0));
    assert_eq!(spend(&mut meter, window, at(10 * HOUR, 0)), Usd::cents(1));
    assert_eq!(spend(&mut meter, window, at(11 * HOUR, 1)), Usd::cents(1), "a new hour");
    // Back into the hour before: its spending is still known.
    assert_eq!(spend(&mut meter, window, at(10 * HOUR + 1, 1)), Usd::cents(2));
    assert_eq!(spend(&mut meter, window, at(11 * HOUR + 1, 2)), Usd::cents(2));
    // Back into an hour that nobody knows of: it goes on where it is, until an hour has really passed.
    assert_eq!(spend(&mut meter, window, at(5 * HOUR, 2)), Usd::cents(3));
    assert_eq!(
        spend(&mut meter, window, at(5 * HOUR, 3)),
        Usd::cents(1),
        "and then is not locked out for ever"
    );
}

#[test]
fn of_the_windows_before_the_last_one_is_kept() {
    let window = Window::HOUR;
    let mut meter = Meter::new(window, at(10 * HOUR, 0));
    for hour in 10..13 {
        assert_eq!(spend(&mut meter, window, at(hour * HOUR, 0)), Usd::cents(1));
    }
    assert_eq!(spend(&mut meter, window, at(12 * HOUR, 0)), Usd::cents(2));
    assert_eq!(spend(&mut meter, window, at(11 * HOUR, 0)), Usd::cents(2), "and not 3, as in the last");
}

#[test]
fn a_clock_put_forward_by_a_month_and_back_again_grants_no_day_twice() {
    let (window, day) = (Window::DAY, 24 * HOUR);
    let today = 20_000 * day;
    let mut meter = Meter::new(window, at(today, 0));
    assert_eq!(spend(&mut meter, window, at(today, 0)), Usd::cents(1));
    assert_eq!(
        spend(&mut meter, window, at(today + 30 * day, 0)),
        Usd::cents(1),
        "it seems to be another day"
    );
    assert_eq!(spend(&mut meter, window, at(today + 1, 1)), Usd::cents(2));
    for next in 1..30 {
        assert_eq!(spend(&mut meter, window, at(today + next * day, 24)), Usd::cents(1));
    }
    assert_eq!(
        spend(&mut meter, window, at(today + 30 * day, 24 * 30)),
        Usd::cents(2),
        "that day has begun before"
    );
}

#[test]
fn what_a_gone_window_gives_back_is_not_given_to_the_next() {
    let window = Window::MINUTE;
    let mut meter = Meter::new(window, at(0, 0));
    let stamp = meter.reserve(window, at(0, 0), Usd::dollars(4));
    meter.turn(window, at(60_000, 0));
    meter.settle(stamp, Usd::dollars(4), Usd::dollars(1));
    assert_eq!((meter.spent(), meter.reserved()), (Usd::ZERO, Usd::ZERO));
    meter.turn(window, at(59_999, 0));
    assert_eq!((meter.spent(), meter.reserved()), (Usd::dollars(1), Usd::ZERO), "the window before has it");
}

#[test]
fn marks_of_a_rolling_window_are_told_again_only_after_its_length() {
    let window = Window::rolling(Duration::from_secs(3_600)).unwrap();
    let mut meter = Meter::new(window, at(0, 0));
    let mut told = 0;
    for minute in 0..240 {
        let now = Moment { clock: minute * 60_000_000_000, wall: 0 };
        spend(&mut meter, window, now);
        // Sixty cents an hour: above half a dollar all the time, once it is there.
        told += u32::from(meter.pass_marks(&[50], Usd::dollars(1)).is_some());
    }
    assert_eq!(told, 4);
}

#[test]
fn a_window_that_cannot_be_is_named() {
    let (day, nanosecond) = (Duration::from_secs(86_400), Duration::from_nanos(1));
    let field = |window: Result<Window, ConfigError>| window.err().map(|error| error.field().to_owned());
    for length in [Duration::from_secs(1), 366 * day] {
        assert_eq!(field(Window::rolling(length)), None);
    }
    for length in [Duration::from_nanos(999_999_999), 366 * day + nanosecond] {
        assert_eq!(field(Window::rolling(length)).as_deref(), Some("window"));
    }
    for minutes in [-1_080, 0, 1_080] {
        assert_eq!(field(Window::DAY.at_offset(minutes)), None);
    }
    for minutes in [-1_081, 1_081, i16::MIN] {
        assert_eq!(field(Window::DAY.at_offset(minutes)).as_deref(), Some("offset"));
    }
    assert_eq!(field(Window::TOTAL.at_offset(0)).as_deref(), Some("offset"), "it is not of the calendar");
}

#[test]
fn each_window_says_what_it_is_and_what_it_reads() {
    let rolling = Window::rolling(Duration::from_secs(60)).unwrap();
    for (window, name, wall, clock) in [
        (Window::CALL, "budget of a call", false, false),
        (Window::TOTAL, "total budget", false, false),
        (rolling, "rolling budget", false, true),
        (Window::MINUTE, "budget of the minute", true, false),
        (Window::HOUR, "budget of the hour", true, false),
        (Window::DAY, "budget of the day", true, false),
        (Window::WEEK, "budget of the week", true, false),
        (Window::MONTH, "budget of the month", true, false),
    ] {
        assert_eq!((window.name(), window.needs_wall(), window.needs_clock()), (name, wall, clock));
    }
}

#[test]
fn what_is_left_of_a_calendar_window_is_exact_at_any_offset() {
    let left = |window: Window, wall| Meter::new(window, at(wall, 0)).resets_in(window, at(wall, 0));
    assert_eq!(left(Window::HOUR, 10 * HOUR + 900_000), Some(Duration::from_secs(2_700)));
    assert_eq!(left(Window::HOUR, 11 * HOUR - 1), Some(Duration::from_millis(1)));
    let east = Window::DAY.at_offset(60).unwrap();
    assert_eq!(left(east, 22 * HOUR), Some(Duration::from_secs(3_600)), "there it is eleven");
    assert_eq!(left(Window::TOTAL, 0), None);
    let meter = Meter::new(Window::HOUR, at(0, 0));
    let fits = |cents| meter.fits_in(Window::HOUR, at(0, 0), Usd::cents(cents), Usd::cents(5)).is_some();
    assert_eq!([5, 6].map(fits), [true, false], "what is above the limit never fits");
}

#[test]
fn it_is_at_rest_when_nothing_is_spent_or_held_in_a_window_that_is_not_over() {
    let rolling = Window::rolling(Duration::from_secs(3_600)).unwrap();
    for window in [Window::TOTAL, Window::HOUR, rolling] {
        let mut meter = Meter::new(window, at(0, 0));
        assert!(meter.at_rest(window, at(0, 0)), "{window:?}");
        let stamp = meter.reserve(window, at(0, 0), Usd::cents(2));
        assert!(!meter.at_rest(window, at(0, 0)), "held: {window:?}");
        assert!(meter.counts(stamp));
        meter.settle(stamp, Usd::cents(2), Usd::cents(1));
        assert!(!meter.at_rest(window, at(HOUR - 1, 0)), "spent: {window:?}");
        assert_eq!(meter.at_rest(window, at(HOUR, 2)), window != Window::TOTAL, "{window:?}");
    }
    let mut meter = Meter::new(rolling, at(0, 0));
    spend(&mut meter, rolling, at(0, 0));
    // Sixty buckets of a minute, and the one that is not over: it leaves with the sixty-first.
    let after = |minutes: u64| Moment { clock: minutes * 60_000_000_000, wall: 0 };
    assert_eq!([60, 61].map(|minutes| meter.at_rest(rolling, after(minutes))), [false, true]);
}

#[test]
fn a_window_that_lies_ahead_is_not_at_rest_and_no_longer_counts() {
    let mut meter = Meter::new(Window::HOUR, at(10 * HOUR, 0));
    spend(&mut meter, Window::HOUR, at(10 * HOUR, 0));
    let ahead = meter.reserve(Window::HOUR, at(10 * HOUR, 0), Usd::cents(1));
    meter.turn(Window::HOUR, at(8 * HOUR, 1));
    assert!(!meter.counts(ahead) && meter.counts(8));
    assert!(!meter.at_rest(Window::HOUR, at(8 * HOUR, 1)), "that hour comes again");
    assert!(meter.at_rest(Window::HOUR, at(11 * HOUR, 4)));
}

#[test]
fn a_reset_forgets_what_was_spent_and_told_and_keeps_what_is_held() {
    let rolling = Window::rolling(Duration::from_secs(3_600)).unwrap();
    for window in [Window::TOTAL, Window::HOUR, rolling] {
        let mut meter = Meter::new(window, at(0, 0));
        spend(&mut meter, window, at(0, 0));
        meter.reserve(window, at(0, 0), Usd::cents(3));
        assert_eq!(meter.pass_marks(&[50], Usd::cents(2)), Some(50));
        meter.reset();
        assert_eq!((meter.spent(), meter.reserved()), (Usd::ZERO, Usd::cents(3)), "{window:?}");
        assert_eq!(spend(&mut meter, window, at(0, 0)), Usd::cents(1));
        assert_eq!(meter.pass_marks(&[50], Usd::cents(2)), Some(50), "{window:?}");
    }
}

#[test]
fn a_mark_is_passed_once_when_it_is_reached_and_the_highest_is_told() {
    let mut meter = Meter::new(Window::TOTAL, at(0, 0));
    let spent = |meter: &mut Meter| {
        let spent = spend(meter, Window::TOTAL, at(0, 0)).as_nanos() / Usd::cents(1).as_nanos();
        (spent, meter.pass_marks(&[30, 50, 80], Usd::cents(10)))
    };
    let told: Vec<_> =
        (0..10).map(|_| spent(&mut meter)).filter_map(|(cents, mark)| Some((cents, mark?))).collect();
    assert_eq!(told, [(3, 30), (5, 50), (8, 80)]);
    let mut meter = Meter::new(Window::TOTAL, at(0, 0));
    (0..6).for_each(|_| _ = spend(&mut meter, Window::TOTAL, at(0, 0)));
    assert_eq!(meter.pass_marks(&[30, 50, 80], Usd::ZERO), None, "nothing of nothing");
    assert_eq!(meter.pass_marks(&[30, 50, 80], Usd::cents(10)), Some(50));
    assert_eq!(meter.pass_marks(&[], Usd::cents(1)), None);
}

#[test]
fn a_mark_of_a_rolling_window_is_not_told_again_while_its_bucket_is_in_it() {
    let window = Window::rolling(Duration::from_secs(3_600)).unwrap();
    let mut meter = Meter::new(window, at(0, 0));
    let mut told = |minute: u64| {
        let now = Moment { clock: minute * 60_000_000_000, wall: 0 };
        spend(&mut meter, window, now);
        meter.pass_marks(&[50], Usd::cents(1))
    };
    assert_eq!([0, 60, 62].map(&mut told), [Some(50), None, Some(50)]);
}

#[test]
fn what_is_held_in_one_bucket_leaves_with_it_in_one() {
    let window = Window::rolling(Duration::from_secs(3_600)).unwrap();
    let now = |minute: u64| Moment { clock: minute * 60_000_000_000, wall: 0 };
    for (kept, settled) in [(2, 3), (3, 2)] {
        for first in [true, false] {
            let mut meter = Meter::new(window, now(0));
            for cents in if first { [settled, kept] } else { [kept, settled] } {
                meter.reserve(window, now(0), Usd::cents(cents));
            }
            meter.settle(0, Usd::cents(settled), Usd::ZERO);
            meter.reserve(window, now(9), Usd::cents(5));
            meter.turn(window, now(61));
            assert_eq!(meter.reserved(), Usd::cents(5), "{kept} left with its bucket, {settled} was settled");
        }
    }
}

#[test]
fn a_window_is_the_present_one_from_its_first_instant_to_before_the_next() {
    let rolling = Window::rolling(Duration::from_secs(12 * 3_600)).unwrap();
    let Kind::Rolling { bucket, .. } = rolling.0 else { unreachable!("it was made so") };
    let bucket_at = |nanos: u64| Moment { clock: nanos, wall: 0 };
    for (window, made, last, next) in [
        (Window::HOUR, at(10 * HOUR, 0), at(11 * HOUR - 1, 0), at(11 * HOUR, 0)),
        (rolling, bucket_at(bucket), bucket_at(2 * bucket - 1), bucket_at(2 * bucket)),
    ] {
        let mut meter = Meter::new(window, made);
        spend(&mut meter, window, made);
        assert!(meter.is_current(window, made) && meter.is_current(window, last), "{window:?}");
        assert!(!meter.is_current(window, next), "{window:?}");
    }
    for window in [Window::TOTAL, Window::CALL] {
        let meter = Meter::new(window, at(10 * HOUR, 0));
        assert!(
            meter.is_current(window, at(0, 0)) && meter.is_current(window, at(1_000_000 * HOUR, 1_000_000))
        );
        assert_eq!(window.instant(at(7, 7)), 0, "it goes by no clock");
    }
    assert!(!Span::NEVER.holds(0));
}
