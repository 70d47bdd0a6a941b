//! What an attempt is charged, once it is over. Pure.
//!
//! | it ended | charged |
//! |---|---|
//! | not sent, or proven not to have been processed | nothing |
//! | refused by the upstream (an error status) | the usage it reports, else nothing |
//! | well, with usage | the usage |
//! | well, without usage | by the rule |
//! | with usage that cannot be | the bound, and flagged |
//! | by an error event of the upstream before any content | the usage reported so far, else nothing |
//! | by a later one, by a broken connection, or by a timeout below | by the rule, or the usage reported so far if that is more |
//! | by the caller, after it was sent | by the rule, or the usage reported so far if that is more |

use crate::call::{Outcome, Usage};
use crate::cost_guard::bound::Tokens;
use crate::cost_guard::price::{Circumstances, Plain, Tariff};
use crate::gate::End;
use crate::money::Usd;
use crate::monitor::Basis;
use crate::verdict::{Reach, Verdict};

/// What an attempt is charged of which the upstream does not say what it used: the caller left, or no usage came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreported {
    /// All that was reserved: the upstream may have gone on to the end, and bill it.
    #[default]
    Bound,
    /// The bound of the input, and the output that was seen. For upstreams that stop when the client leaves, and bill what they
    /// generated.
    Seen,
}

/// The head, as far as it matters for money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeadSeen {
    /// None came.
    #[default]
    None,
    /// None came, and nothing was sent or processed.
    Unsent,
    /// A good answer began.
    Good,
    /// The upstream refused.
    Bad,
}

impl HeadSeen {
    /// Of a response with this verdict.
    #[inline]
    pub(crate) fn of(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(verdict) if never_processed(verdict) => Self::Unsent,
            Some(verdict) if !verdict.is_success() => Self::Bad,
            _ => Self::Good,
        }
    }
}

#[inline]
fn never_processed(verdict: Verdict) -> bool {
    matches!(verdict.reach(), Reach::Unsent | Reach::Unprocessed)
}

/// How an attempt is charged. Two plain fields, which are passed in registers; an enum would be moved as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) amount: Usd,
    /// `None`: it was not sent, and no trace of it stays.
    pub(crate) basis: Option<Basis>,
}

impl Charge {
    pub(crate) const RELEASE: Self = Self { amount: Usd::ZERO, basis: None };

    const fn pay(amount: Usd, basis: Basis) -> Self {
        Self { amount, basis: Some(basis) }
    }

    /// What nearly every call is charged: it ended well, and said what went in and out and nothing more of it. `None` is any
    /// other call, for which [`Settling::charge`] has the rules; of these it would say the same.
    #[inline]
    pub(crate) fn plainly(
        price: &Plain,
        end: End,
        head: HeadSeen,
        usage: &Usage,
        said: &Said,
    ) -> Option<Self> {
        let well = said.verdict.is_none_or(|verdict| verdict.is_success() && !never_processed(verdict));
        if !well || end != End::Complete || head != HeadSeen::Good {
            return None;
        }
        match *usage {
            Usage {
                input: Some(input),
                output: Some(output),
                cached: None,
                cache_write: None,
                cache_write_1h: None,
                reasoning: None,
                audio_input: None,
                audio_output: None,
                anomalous: false,
            } => Some(Self::pay(price.cost_of(input, output), Basis::Usage)),
            _ => None,
        }
    }
}

/// What a price goes by.
#[derive(Clone, Copy)]
pub(crate) enum PricedBy<'a> {
    /// By the class of each token alone.
    Class(&'a Plain),
    /// By the prompt's size, the service tier or the hour too.
    More(&'a Tariff, Circumstances<'a>),
}

/// All that a settlement goes by.
pub(crate) struct Settling<'a> {
    pub(crate) price: PricedBy<'a>,
    /// The bounds, and what was reserved by them.
    pub(crate) tokens: Tokens,
    pub(crate) reserved: Usd,
    pub(crate) rule: Unreported,
}

/// What the response says of itself, beside the usage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) content: bool,
    pub(crate) body_bytes: u64,
}

impl Said {
    pub(crate) fn by(outcome: &Outcome) -> Self {
        Self {
            verdict: outcome.verdict(),
            content: outcome.to_content().is_some(),
            body_bytes: outcome.body_bytes(),
        }
    }
}

impl Settling<'_> {
    pub(crate) fn charge(&self, end: End, head: HeadSeen, usage: &Usage, said: &Said) -> Charge {
        let failed = said.verdict.is_some_and(|verdict| !verdict.is_success());
        if end == End::Unsent || head == HeadSeen::Unsent || said.verdict.is_some_and(never_processed) {
            return Charge::RELEASE;
        }
        if usage.anomalous {
            return Charge::pay(self.reserved, Basis::Anomaly);
        }
        match (head, end) {
            (HeadSeen::Bad, _) if usage.total().is_none() => Charge::pay(Usd::ZERO, Basis::Nothing),
            (HeadSeen::Bad, _) => Charge::pay(self.cost(usage), Basis::Usage),
            // The upstream itself says so, and who hears that reads no further. Of one that broke off, or fell silent, nobody
            // knows what it bills.
            (HeadSeen::Good, End::Complete | End::Abandoned)
                if failed && !said.content && usage.total().is_none() =>
            {
                Charge::pay(Usd::ZERO, Basis::Nothing)
            }
            (_, End::Abandoned) => self.at_least(usage, said),
            (HeadSeen::None, _) => self.unreported(usage, said),
            _ if usage.input.is_some() && usage.output.is_some() => {
                Charge::pay(self.cost(usage), Basis::Usage)
            }
            (_, End::Complete) if !failed && usage.total().is_some() => {
                // One side is missing, and has its bound.
                Charge::pay(self.cost(&self.filled(usage)), Basis::Usage)
            }
            _ => self.at_least(usage, said),
        }
    }

    /// By the rule, but never less than what was reported.
    fn at_least(&self, usage: &Usage, said: &Said) -> Charge {
        let unreported = self.unreported(usage, said);
        Charge { amount: unreported.amount.max(self.cost(usage)), ..unreported }
    }

    fn unreported(&self, usage: &Usage, said: &Said) -> Charge {
        match self.rule {
            Unreported::Bound => Charge::pay(self.reserved, Basis::Bound),
            Unreported::Seen => {
                let mut usage = *usage;
                usage.input = usage.input.or(Some(self.tokens.input));
                // No text has more tokens than bytes, nor the answer more than its bound.
                let passed = said.body_bytes.min(self.tokens.output);
                usage.output = Some(usage.output.unwrap_or(0).max(passed));
                Charge::pay(self.cost(&usage), Basis::Seen)
            }
        }
    }

    fn filled(&self, usage: &Usage) -> Usage {
        let mut usage = *usage;
        usage.input = usage.input.or(Some(self.tokens.input));
        usage.output = usage.output.or(Some(self.tokens.output));
        usage
    }

    pub(crate) fn cost(&self, usage: &Usage) -> Usd {
        match &self.price {
            PricedBy::Class(plain) => plain.cost(usage),
            PricedBy::More(tariff, at) => tariff.cost(usage, at),
        }
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use crate::cost_guard::Price;
    use crate::verdict::Class;

    /// Usages with each side said, missing and none, with and without parts, possible and not.
    fn usages() -> impl Iterator<Item = Usage> {
        let sides = [None, Some(0), Some(7)];
        let sides = sides.into_iter().flat_map(move |input| sides.map(|output| (input, output)));
        sides.flat_map(|(input, output)| {
            let plain = Usage { input, output, ..Usage::default() };
            [
                plain,
                Usage { cached: Some(3), ..plain },
                Usage { cache_write: Some(3), ..plain },
                Usage { cache_write_1h: Some(3), ..plain },
                Usage { reasoning: Some(3), ..plain },
                Usage { audio_input: Some(3), ..plain },
                Usage { audio_output: Some(3), ..plain },
                Usage { anomalous: true, ..plain },
            ]
        })
    }

    #[test]
    fn what_is_charged_plainly_is_charged_by_the_rules_too() {
        let mut rates = Price::per_million("2.50", "10").unwrap().rates;
        (rates.cached, rates.reasoning) =
            (Some(crate::money::Rate::pico(1)), Some(crate::money::Rate::pico(2)));
        let tariff = Tariff::new(&Price::new(rates));
        let plain = tariff.plain.unwrap();
        let unsent = Verdict::new(Class::Transient).with_reach(Reach::Unsent);
        let verdicts = [
            None,
            Some(Verdict::SUCCESS),
            Some(Verdict::SUCCESS.with_reach(Reach::Unprocessed)),
            Some(Verdict::new(Class::Transient)),
            Some(unsent),
        ];
        let mut plainly = 0;
        for usage in usages() {
            for verdict in verdicts {
                for end in [End::Complete, End::Failed, End::Broken, End::Abandoned, End::Unsent] {
                    for head in [HeadSeen::None, HeadSeen::Unsent, HeadSeen::Good, HeadSeen::Bad] {
                        let said = Said { verdict, ..Said::default() };
                        let Some(charge) = Charge::plainly(&plain, end, head, &usage, &said) else {
                            continue;
                        };
                        let (price, tokens) = (PricedBy::Class(&plain), Tokens { input: 9, output: 9 });
                        let (reserved, rule) = (Usd::nanos(90), Unreported::Bound);
                        let settling = Settling { price, tokens, reserved, rule };
                        assert_eq!(charge, settling.charge(end, head, &usage, &said), "{usage:?} {said:?}");
                        plainly += 1;
                    }
                }
            }
        }
        assert_eq!(plainly, 8, "two sides of two, with no verdict or a good one: nothing else");
    }
}
