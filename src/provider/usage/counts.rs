//! The counts of a usage object under the names that providers give them, and how they add up.
//!
//! They are kept apart by name until they are asked for, because a later report may replace one of them alone, and what
//! is inside what can only be told from all of them.

use serde_json::{Map, Value};

use crate::call::Usage;

/// More than any request can use; a number above it is nonsense, and sums of what is below it cannot overflow.
const ABSURD: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Name {
    /// Input with everything in it: OpenAI chat and its like.
    Prompt,
    Completion,
    /// Input of the APIs that say `input_tokens`: with the cache in it (OpenAI responses) or beside it (Anthropic).
    Input,
    Output,
    /// Gemini's four parts.
    GeminiPrompt,
    GeminiCandidates,
    GeminiThoughts,
    GeminiToolUse,
    Total,
    CachedInside,
    CachedBeside,
    WriteInside,
    WriteBeside,
    WriteShort,
    WriteLong,
    Reasoning,
    AudioInput,
    AudioOutput,
}

const NAMES: usize = Name::AudioOutput as usize + 1;

/// The last number said under each name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    counts: [Option<u64>; NAMES],
    anomalous: bool,
}

impl Counts {
    /// Takes over a later report: what it says replaces, what it does not say stays.
    pub(crate) fn update(&mut self, report: &Value) {
        match report {
            Value::Null => {}
            Value::Object(fields) => self.object(fields),
            _ => self.anomalous = true,
        }
    }

    /// Takes over a later reading.
    pub(crate) fn merge(&mut self, later: &Self) {
        for (slot, later) in self.counts.iter_mut().zip(later.counts) {
            *slot = later.or(*slot);
        }
        self.anomalous |= later.anomalous;
    }

    /// A report that could not be read.
    pub(crate) fn flag(&mut self) {
        self.anomalous = true;
    }

    /// The inclusive totals.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage { anomalous: self.anomalous, ..Usage::default() };
        let (inside, cached) = self.input(&mut usage);
        self.output(&mut usage, inside);
        usage.cached = cached;
        self.writes(&mut usage);
        usage.reasoning = self.at(Name::Reasoning).or(self.at(Name::GeminiThoughts));
        usage.audio_input = self.at(Name::AudioInput);
        usage.audio_output = self.at(Name::AudioOutput);
        usage.anomalous |= has_part_above_whole(&usage);
        usage
    }

    /// Sets the input; says whether the cache is inside it as it was reported, and what was read from the cache.
    fn input(&self, usage: &mut Usage) -> (bool, Option<u64>) {
        let inside = self.at(Name::CachedInside).or(self.at(Name::CachedBeside));
        if let Some(prompt) = self.at(Name::Prompt) {
            usage.input = Some(prompt);
            return (true, inside);
        }
        if let Some(prompt) = self.at(Name::GeminiPrompt) {
            usage.input = Some(prompt + self.at(Name::GeminiToolUse).unwrap_or(0));
            return (true, inside);
        }
        let beside = [self.at(Name::CachedBeside), self.write_beside()];
        usage.input = self.at(Name::Input).map(|input| input + beside.into_iter().flatten().sum::<u64>());
        (beside.iter().all(Option::is_none), self.at(Name::CachedBeside).or(self.at(Name::CachedInside)))
    }

    /// What was written to a cache outside the input. The parts by lifetime may be there without their sum.
    fn write_beside(&self) -> Option<u64> {
        self.at(Name::WriteBeside).or_else(|| match self.at(Name::WriteInside) {
            Some(_) => None,
            // OpenAI's parts come with their sum, so parts alone are Anthropic's or Bedrock's.
            None => self.by_lifetime(),
        })
    }

    fn by_lifetime(&self) -> Option<u64> {
        match (self.at(Name::WriteShort), self.at(Name::WriteLong)) {
            (None, None) => None,
            (short, long) => Some(short.unwrap_or(0) + long.unwrap_or(0)),
        }
    }

    fn output(&self, usage: &mut Usage, inside: bool) {
        let gemini = self.at(Name::GeminiPrompt).or(self.at(Name::GeminiCandidates)).is_some();
        usage.output = match self.at(Name::Completion).or(self.at(Name::Output)) {
            // Gemini leaves out what is zero, and its thoughts are not among its candidates.
            None if gemini => Some(
                self.at(Name::GeminiCandidates).unwrap_or(0) + self.at(Name::GeminiThoughts).unwrap_or(0),
            ),
            said => said,
        };
        // xAI and some others count reasoning in the total alone. What the total has above its parts was billed, so it
        // counts as output. Where the cache is beside the input, totals differ in what they hold, and are not used.
        if inside && let (Some(total), Some(input)) = (self.at(Name::Total), usage.input) {
            let rest = total.saturating_sub(input);
            // Embeddings say no output, and a total that leaves room for none: that is a zero, not an unknown.
            if usage.output.is_none_or(|output| rest > output) {
                usage.output = Some(rest);
            }
        }
    }

    fn writes(&self, usage: &mut Usage) {
        usage.cache_write_1h = self.at(Name::WriteLong);
        let sum = self.at(Name::WriteBeside).or(self.at(Name::WriteInside));
        usage.cache_write = match (sum, self.by_lifetime()) {
            (Some(sum), parts) => {
                usage.anomalous |= parts.is_some_and(|parts| parts > sum);
                Some(sum.saturating_sub(usage.cache_write_1h.unwrap_or(0)))
            }
            (None, _) => self.at(Name::WriteShort),
        };
    }

    fn object(&mut self, fields: &Map<String, Value>) {
        for (key, value) in fields {
            if let Some(name) = name(key) {
                self.set(name, value);
                continue;
            }
            match (key.as_str(), value) {
                ("prompt_tokens_details" | "input_tokens_details", Value::Object(details)) => {
                    self.input_details(details);
                }
                ("completion_tokens_details" | "output_tokens_details", Value::Object(details)) => {
                    self.output_details(details);
                }
                ("cache_creation", Value::Object(parts)) => {
                    self.take(parts, "ephemeral_5m_input_tokens", Name::WriteShort);
                    self.take(parts, "ephemeral_1h_input_tokens", Name::WriteLong);
                }
                ("cacheDetails", Value::Array(parts)) => self.by_ttl(parts),
                ("promptTokensDetails", Value::Array(parts)) => self.audio(parts, Name::AudioInput),
                ("candidatesTokensDetails", Value::Array(parts)) => self.audio(parts, Name::AudioOutput),
                // Cohere: what the model saw and said. `billed_units` leaves some of it out.
                ("tokens", Value::Object(tokens)) => {
                    self.take(tokens, "input_tokens", Name::Input);
                    self.take(tokens, "output_tokens", Name::Output);
                }
                _ => {}
            }
        }
    }

    fn input_details(&mut self, details: &Map<String, Value>) {
        self.take(details, "cached_tokens", Name::CachedInside);
        self.take(details, "cache_write_tokens", Name::WriteInside);
        self.take(details, "audio_tokens", Name::AudioInput);
        if let Some(Value::Object(parts)) = details.get("cache_write_tokens_details") {
            self.take(parts, "ttl_30m_tokens", Name::WriteShort);
            self.take(parts, "ttl_12h_tokens", Name::WriteLong);
        }
    }

    fn output_details(&mut self, details: &Map<String, Value>) {
        self.take(details, "reasoning_tokens", Name::Reasoning);
        self.take(details, "thinking_tokens", Name::Reasoning);
        self.take(details, "audio_tokens", Name::AudioOutput);
    }

    fn by_ttl(&mut self, parts: &[Value]) {
        for part in parts.iter().filter_map(Value::as_object) {
            let long = part.get("ttl").and_then(Value::as_str).is_some_and(|ttl| ttl.ends_with('h'));
            self.take(part, "inputTokens", if long { Name::WriteLong } else { Name::WriteShort });
        }
    }

    fn audio(&mut self, parts: &[Value], name: Name) {
        for part in parts.iter().filter_map(Value::as_object) {
            if part.get("modality").and_then(Value::as_str) == Some("AUDIO") {
                self.take(part, "tokenCount", name);
            }
        }
    }

    fn take(&mut self, fields: &Map<String, Value>, key: &str, name: Name) {
        if let Some(value) = fields.get(key) {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: Name, value: &Value) {
        match count(value) {
            Ok(None) => {}
            Ok(said) => {
                if let Some(slot) = self.counts.get_mut(name as usize) {
                    *slot = said;
                }
            }
            Err(Nonsense) => self.anomalous = true,
        }
    }

    fn at(&self, name: Name) -> Option<u64> {
        self.counts.get(name as usize).copied().flatten()
    }
}

fn name(key: &str) -> Option<Name> {
    Some(match key {
        "prompt_tokens" => Name::Prompt,
        "completion_tokens" => Name::Completion,
        "input_tokens" | "inputTokens" => Name::Input,
        "output_tokens" | "outputTokens" => Name::Output,
        "promptTokenCount" => Name::GeminiPrompt,
        "candidatesTokenCount" | "responseTokenCount" => Name::GeminiCandidates,
        "thoughtsTokenCount" => Name::GeminiThoughts,
        "toolUsePromptTokenCount" => Name::GeminiToolUse,
        "total_tokens" | "totalTokens" | "totalTokenCount" => Name::Total,
        "prompt_cache_hit_tokens" | "cached_tokens" | "cachedContentTokenCount" => Name::CachedInside,
        "cache_read_input_tokens" | "cacheReadInputTokens" => Name::CachedBeside,
        "cache_creation_input_tokens" | "cacheWriteInputTokens" => Name::WriteBeside,
        _ => return None,
    })
}

struct Nonsense;

/// A count of tokens; none if nothing is said. Cohere writes whole numbers as floats.
fn count(value: &Value) -> Result<Option<u64>, Nonsense> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number,
        _ => return Err(Nonsense),
    };
    let whole = number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked on the same line"
        )]
        (float.fract() == 0.0 && (0.0..=1e12).contains(&float)).then_some(float as u64)
    });
    whole.filter(|&whole| whole < ABSURD).map(Some).ok_or(Nonsense)
}

fn has_part_above_whole(usage: &Usage) -> bool {
    let above = |parts: &[Option<u64>], whole: Option<u64>| {
        whole.is_some_and(|whole| parts.iter().flatten().sum::<u64>() > whole)
    };
    above(&[usage.cached, usage.cache_write, usage.cache_write_1h], usage.input)
        || above(&[usage.audio_input], usage.input)
        || above(&[usage.reasoning], usage.output)
        || above(&[usage.audio_output], usage.output)
}
