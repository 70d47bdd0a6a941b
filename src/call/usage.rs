//! How many tokens an attempt used, normalised over all providers.

/// Tokens of one attempt, as inclusive totals.
///
/// Providers disagree on what is inside what: OpenAI's prompt tokens contain the cached ones, Anthropic's do not;
/// Gemini's and xAI's output leaves reasoning out, OpenAI's does not. Here `input` always contains cached, cache-written and
/// audio input, and `output` always contains reasoning and audio output. `None` means "not said", which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens.
    pub input: Option<u64>,
    /// All output tokens.
    pub output: Option<u64>,
    /// Input tokens read from a cache; part of `input`.
    pub cached: Option<u64>,
    /// Input tokens written to a cache that lives about five minutes (or for which no lifetime was said); part of
    /// `input`.
    pub cache_write: Option<u64>,
    /// Input tokens written to a cache that lives an hour or longer (OpenAI's twelve); part of `input`.
    pub cache_write_1h: Option<u64>,
    /// Output tokens spent on reasoning; part of `output`.
    pub reasoning: Option<u64>,
    /// Audio tokens in the input; part of `input`.
    pub audio_input: Option<u64>,
    /// Audio tokens in the output; part of `output`.
    pub audio_output: Option<u64>,
    /// Something was said that cannot be: a negative or absurd number, a part larger than its whole. What could be
    /// read is kept; who charges by it falls back to its own estimate.
    pub anomalous: bool,
}

impl Usage {
    /// Takes over what a later report says. Reports are cumulative, so a number replaces the earlier one; what a later
    /// report does not mention stays; an anomaly stays flagged.
    pub fn update(&mut self, later: &Self) {
        fn take(slot: &mut Option<u64>, later: Option<u64>) {
            if later.is_some() {
                *slot = later;
            }
        }
        take(&mut self.input, later.input);
        take(&mut self.output, later.output);
        take(&mut self.cached, later.cached);
        take(&mut self.cache_write, later.cache_write);
        take(&mut self.cache_write_1h, later.cache_write_1h);
        take(&mut self.reasoning, later.reasoning);
        take(&mut self.audio_input, later.audio_input);
        take(&mut self.audio_output, later.audio_output);
        self.anomalous |= later.anomalous;
    }

    /// Whether nothing at all was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Input and output together, as far as they are known.
    #[must_use]
    #[inline]
    pub fn total(&self) -> Option<u64> {
        match (self.input, self.output) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Usage;

    #[test]
    fn a_later_report_replaces_and_never_erases() {
        let mut usage = Usage { input: Some(10), output: Some(1), cached: Some(4), ..Usage::default() };
        usage.update(&Usage { output: Some(7), cached: Some(0), ..Usage::default() });
        assert_eq!(usage.input, Some(10), "not mentioned: stays");
        assert_eq!(usage.output, Some(7), "cumulative: replaced, not added");
        assert_eq!(usage.cached, Some(0), "an explicit zero is a statement");
        assert_eq!(usage.total(), Some(17));
    }
}
