//! What goes wrong, and when.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;

/// What a provider does to one request in place of a good answer. Counts are of tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Fault {
    /// A good answer.
    #[default]
    None,
    /// An error response.
    Status {
        status: u16,
        retry_after: Option<Duration>,
        code: Option<&'static str>,
        message: Option<&'static str>,
    },
    /// The connection is reset once the request was read.
    Reset,
    /// No head, ever.
    Hang,
    /// The head comes so late.
    SlowHead(Duration),
    /// The head comes at once, the first token so late; an answer that is not streamed, as a whole.
    SlowFirstToken(Duration),
    /// The connection ends without the end of the answer.
    Cut { after: u64 },
    /// Silence so long (for ever without a time), then the rest.
    Stall { after: u64, wait: Option<Duration> },
    /// An event that is no JSON stands among the others.
    Malformed { after: u64 },
    /// The stream ends, cleanly, without its terminal event.
    NoDone,
    /// No usage is told, though it was asked for.
    NoUsage,
    /// An error event stands in the stream, and ends it.
    ErrorEvent { after: u64 },
    /// 404: no such model.
    ModelNotFound,
    /// 400: the prompt is too long.
    ContextLength,
    /// 400: the prompt violates a policy.
    ContentPolicy,
}

impl Fault {
    /// An error response with the code and the words that belong to this status.
    pub(crate) const fn status(status: u16) -> Self {
        Self::Status { status, retry_after: None, code: None, message: None }
    }

    /// With this wait as `retry-after`, and as `retry-after-ms` where it is no whole number of seconds.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        if let Self::Status { retry_after, .. } = &mut self {
            *retry_after = Some(wait);
        }
        self
    }

    /// With this error code.
    pub(crate) fn code(mut self, text: &'static str) -> Self {
        if let Self::Status { code, .. } = &mut self {
            *code = Some(text);
        }
        self
    }

    /// With these words.
    pub(crate) fn message(mut self, text: &'static str) -> Self {
        if let Self::Status { message, .. } = &mut self {
            *message = Some(text);
        }
        self
    }
}

/// As a caller writes it: its name, then after a `:` how long it takes (`250ms`, `2s`) or after how many tokens it comes.
/// `503` and `429:2s` (to wait so long), `reset`, `hang`, `slow-head:2s`, `slow-first-token:2s`, `cut:3`, `stall:3` (for ever),
/// `malformed:3`, `no-done`, `no-usage`, `error-event:3`, `model-not-found`, `context-length`, `content-policy`.
impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no fault");
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let wait = || value.and_then(time).ok_or_else(wrong);
        let after = || value.unwrap_or("0").parse().map_err(|_| wrong());
        if let Ok(status) = name.parse() {
            if !(400..600).contains(&status) {
                return Err(wrong());
            }
            let fault = Self::status(status);
            return if value.is_none() { Ok(fault) } else { Ok(fault.retry_after(wait()?)) };
        }
        Ok(match (name, value) {
            ("slow-head", _) => Self::SlowHead(wait()?),
            ("slow-first-token", _) => Self::SlowFirstToken(wait()?),
            ("cut", _) => Self::Cut { after: after()? },
            ("stall", _) => Self::Stall { after: after()?, wait: None },
            ("malformed", _) => Self::Malformed { after: after()? },
            ("error-event", _) => Self::ErrorEvent { after: after()? },
            ("none", None) => Self::None,
            ("reset", None) => Self::Reset,
            ("hang", None) => Self::Hang,
            ("no-done", None) => Self::NoDone,
            ("no-usage", None) => Self::NoUsage,
            ("model-not-found", None) => Self::ModelNotFound,
            ("context-length", None) => Self::ContextLength,
            ("content-policy", None) => Self::ContentPolicy,
            _ => return Err(wrong()),
        })
    }
}

/// `250ms` or `2s`.
fn time(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(millis) => millis.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
    }
}

/// What comes next: the script first, then what always holds, then chance.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) script: VecDeque<Fault>,
    pub(super) always: Fault,
    pub(super) rates: Vec<(f64, Fault)>,
    pub(super) rng: Rng,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self { script: VecDeque::new(), always: Fault::None, rates: Vec::new(), rng: Rng::with_seed(seed) }
    }

    pub(super) fn next(&mut self) -> Fault {
        if let Some(fault) = self.script.pop_front() {
            return fault;
        }
        if self.always != Fault::None || self.rates.is_empty() {
            return self.always.clone();
        }
        let mut drawn = self.rng.f64();
        for (rate, fault) in &self.rates {
            if drawn < *rate {
                return fault.clone();
            }
            drawn -= rate;
        }
        Fault::None
    }
}
