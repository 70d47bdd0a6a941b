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
