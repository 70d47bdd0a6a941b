//! The command line.

use std::time::Duration;

use super::app::args::{Args, HELP};

fn parse(line: &str) -> Result<Args, String> {
    Args::parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn every_option_is_read_with_its_value_behind_it_or_behind_an_equals_sign() {
    for line in [
        "--config a.toml --listen 127.0.0.1:0 --drain 2m --for 1h --check --open --quiet --spans",
        "--config=a.toml --listen=127.0.0.1:0 --drain=2m --for=1h --check --open --quiet --spans",
    ] {
        let args = parse(line).unwrap();
        assert_eq!(args.config.as_deref(), Some(std::path::Path::new("a.toml")));
        assert_eq!(args.listen, Some("127.0.0.1:0".parse().unwrap()));
        assert_eq!(args.drain, Duration::from_secs(120));
        assert_eq!(args.ends_after, Some(Duration::from_secs(3_600)));
        assert!(args.check && args.open && args.quiet && args.spans && !args.help);
    }
    assert_eq!(parse("--drain 250ms").unwrap().drain, Duration::from_millis(250));
    assert!(parse("-h").unwrap().help);
}

#[test]
fn without_options_it_is_the_simulation() {
    let args = parse("").unwrap();
    assert_eq!((args.config, args.listen, args.ends_after), (None, None, None));
    assert_eq!(args.drain, Duration::from_secs(30));
    assert!(!args.check && !args.open && !args.quiet && !args.spans && !args.help);
}

#[test]
fn what_is_wrong_is_said() {
    for (line, problem) in [
        ("--confg a", "`--confg` is no option"),
        ("a.toml", "`a.toml` is no option"),
        ("--config", "--config needs a value"),
        ("--listen 8080", "--listen: `8080` is not an address such as 127.0.0.1:8080"),
        ("--drain 30", "--drain: `30` is not a time such as 30s"),
        ("--drain s", "--drain: `s` is not a time such as 30s"),
        ("--for 5d", "--for: `5d` is not a time such as 30s"),
        ("--for 99999999999s", "--for: `99999999999s` is not a time such as 30s"),
        ("--quiet=yes", "--quiet takes no value"),
        ("--check", "--check needs a --config"),
    ] {
        assert_eq!(parse(line).unwrap_err(), problem);
    }
}

#[test]
fn the_help_names_every_option() {
    for option in [
        "--config FILE",
        "--listen ADDR",
        "--check",
        "--drain TIME",
        "--open",
        "--for TIME",
        "--quiet",
        "--spans",
        "--help",
    ] {
        assert!(HELP.contains(option), "{option}");
    }
    assert!(HELP.lines().all(|line| line.len() <= 120));
}
