//! What the provider bills.

/// Prices in nano-dollars a token, which is thousandths of a dollar a million tokens: $0.42 a million is 420.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Price {
    input: u64,
    output: u64,
}

impl Price {
    pub(crate) const fn nanos(input: u64, output: u64) -> Self {
        Self { input, output }
    }

    /// What this many tokens cost, exactly.
    pub(crate) const fn of(self, input: u64, output: u64) -> u64 {
        self.input * input + self.output * output
    }
}

/// What a caller pays who goes away before the end of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Billing {
    /// The input, and the output that was handed to the connection. Nothing for a whole answer that was not sent.
    #[default]
    Sent,
    /// The whole answer, as soon as it was begun.
    Whole,
}
