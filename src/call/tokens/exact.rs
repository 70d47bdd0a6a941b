//! Exact counts.

/// A vocabulary that is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vocabulary {
    /// OpenAI's models since GPT-4o.
    O200k,
    /// OpenAI's models before, from GPT-3.5 on.
    Cl100k,
}

impl Vocabulary {
    /// The vocabulary of this model, or `None` where it is not public.
    #[must_use]
    pub fn of_model(model: &str) -> Option<Self> {
        // Gateways write the vendor before the name.
        let name = model.rsplit('/').next().unwrap_or(model);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if starts(&[
            "gpt-4o",
            "chatgpt-4o",
            "gpt-4.1",
            "gpt-4.5",
            "gpt-5",
            "gpt-6",
            "gpt-oss",
            "o1",
            "o3",
            "o4",
        ]) {
            Some(Self::O200k)
        } else if starts(&["gpt-4", "gpt-3.5", "text-embedding-"]) {
            Some(Self::Cl100k)
        } else {
            None
        }
    }
}

/// How many tokens this text makes in this vocabulary, exactly; the framing of messages is not in it.
///
/// Some ten megabytes a second, fifty to a hundred times slower than [`estimate`](super::estimate); the first call for a
/// vocabulary also builds it, which takes about a tenth of a second: make it before the first request comes.
///
/// ```
/// use seawall::call::tokens::{self, Vocabulary};
///
/// assert_eq!(tokens::count("The quick brown fox jumps over the lazy dog.", Vocabulary::O200k), 10);
/// ```
#[must_use]
pub fn count(text: &str, vocabulary: Vocabulary) -> u64 {
    let tokenizer = match vocabulary {
        Vocabulary::O200k => bpe_openai::o200k_base(),
        Vocabulary::Cl100k => bpe_openai::cl100k_base(),
    };
    tokenizer.count(text) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_vocabulary_or_none_that_is_known() {
        assert_eq!(Vocabulary::of_model("openai/gpt-4o-mini"), Some(Vocabulary::O200k));
        assert_eq!(Vocabulary::of_model("gpt-4-turbo"), Some(Vocabulary::Cl100k));
        assert_eq!(Vocabulary::of_model("claude-opus-5"), None);
    }

    #[test]
    fn the_estimate_is_close_to_the_count() {
        for (text, vocabulary) in [
            (
                "Tower layers keep calls up. A permit is held until the body of the response has ended.",
                Vocabulary::O200k,
            ),
            ("fn main() { let answer: u32 = 42; println!(\"{answer}\"); }", Vocabulary::O200k),
            ("명령을 실행하고 결과를 화면에 보여 줍니다.", Vocabulary::O200k),
        ] {
            let (exact, estimate) = (count(text, vocabulary), super::super::estimate(text));
            assert!(
                estimate * 10 >= exact * 7 && estimate * 10 <= exact * 14,
                "{text}: {estimate} of {exact}"
            );
        }
    }
}
