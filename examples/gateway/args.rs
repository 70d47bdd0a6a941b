//! What the command line says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
An OpenAI-compatible gateway: routes, retries, limits, budgets, and a live page.

Usage: gateway [OPTIONS]

Without --config it starts three simulated providers (one flaky, one slow, one dear) and a few simulated callers in the
same process, offline, so that there is something to see. With --config it is a real gateway.

Options:
      --config FILE    The configuration, in TOML; see the docs of `seawall::config`. SIGHUP reads it again.
      --listen ADDR    Where to listen, in place of what the configuration says (default 127.0.0.1:8080).
                       Port 0 takes a free one.
      --check          Read the configuration, say what is wrong with it, and end.
      --drain TIME     How long streams may go on after SIGTERM or Ctrl-C (default 30s).
      --open           Show the page, /stats and /metrics to everybody, not to this machine alone.
      --for TIME       End after so long: for trials.
      --quiet          No line for each call.
      --spans          Writes a line to stderr as each span closes: request (with its id), call, attempt.
  -h, --help           This text.

Times are 250ms, 30s, 2m or 1h.
";

/// All options.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) check: bool,
    pub(crate) drain: Duration,
    pub(crate) open: bool,
    pub(crate) ends_after: Option<Duration>,
    pub(crate) quiet: bool,
    pub(crate) spans: bool,
    pub(crate) help: bool,
}

impl Args {
    /// Reads the words behind the command's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            config: None,
            listen: None,
            check: false,
            drain: Duration::from_secs(30),
            open: false,
            ends_after: None,
            quiet: false,
            spans: false,
            help: false,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (name, mut inline) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || {
                let value = inline.take().or_else(|| words.next());
                value.ok_or_else(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--config" => args.config = Some(value()?.into()),
                "--listen" => {
                    let value = value()?;
                    let wrong = |_| format!("--listen: `{value}` is not an address such as 127.0.0.1:8080");
                    args.listen = Some(value.parse().map_err(wrong)?);
                }
                "--drain" => args.drain = time("--drain", &value()?)?,
                "--for" => args.ends_after = Some(time("--for", &value()?)?),
                "--check" => args.check = true,
                "--open" => args.open = true,
                "--quiet" => args.quiet = true,
                "--spans" => args.spans = true,
                "-h" | "--help" => args.help = true,
                _ => return Err(format!("`{name}` is no option")),
            }
            if inline.is_some() {
                return Err(format!("{name} takes no value"));
            }
        }
        if args.check && args.config.is_none() {
            return Err("--check needs a --config".to_owned());
        }
        Ok(args)
    }
}

fn time(option: &str, text: &str) -> Result<Duration, String> {
    let wrong = || format!("{option}: `{text}` is not a time such as 30s");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        _ => return Err(wrong()),
    };
    Ok(unit * number)
}
