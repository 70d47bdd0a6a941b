//! How many tokens an answer used: the counts of each API as inclusive totals.
//!
//! | API | input | output |
//! |---|---|---|
//! | OpenAI chat, DeepSeek, Groq, Mistral, OpenRouter | `prompt_tokens`, cache inside | `completion_tokens`, reasoning inside |
//! | OpenAI responses | `input_tokens`, cache inside | `output_tokens`, reasoning inside |
//! | Anthropic, Bedrock converse | `input_tokens` + cache read + cache written | `output_tokens` |
//! | Gemini | `promptTokenCount` + `toolUsePromptTokenCount` | `candidatesTokenCount` + `thoughtsTokenCount` |
//! | xAI | `prompt_tokens` | what `total_tokens` has above the prompt |
//! | Cohere v2 | `tokens.input_tokens` | `tokens.output_tokens` |
//!
//! The names in a report tell which rule holds, not the provider: servers that are compatible with one API stand behind
//! many hosts. Where a total is larger than input and output together, the rest counts as output (where the cache is
//! inside the input; elsewhere totals mean too many things). Reports are cumulative: a later one replaces name by
//! name, `null` never erases, and an explicit zero is a zero. A number that cannot be (negative, broken, a text, above
//! 2⁴⁰, a part above its whole) sets [`Usage::anomalous`](crate::call::Usage::anomalous) and is otherwise ignored.

mod body;
mod counts;

pub use body::BodyReader;
pub(crate) use counts::Counts;

use crate::call::Usage;

/// The usage that a JSON body reports, wherever its API puts it; empty if it reports none or is not JSON.
///
/// For a body that comes in frames, see [`BodyReader`].
///
/// ```
/// use seawall::provider::usage;
///
/// let used = usage::of_json(br#"{"usage": {"prompt_tokens": 12, "completion_tokens": 30}}"#);
/// assert_eq!((used.input, used.output, used.total()), (Some(12), Some(30), Some(42)));
/// ```
#[must_use]
pub fn of_json(body: &[u8]) -> Usage {
    let mut reader = BodyReader::new();
    reader.feed(body);
    reader.usage()
}

#[cfg(test)]
mod tests;
