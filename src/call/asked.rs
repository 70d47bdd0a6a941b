//! What a JSON body asks for: one pass, no value built.
//!
//! The members are those of the chat, responses, completions, embeddings and image APIs that providers offer, and of
//! Anthropic's, Gemini's, Bedrock's and Ollama's own. What is not known counts as input: an amount that decides about
//! money must not be too low.

mod member;

use crate::call::json::{Lexer, Malformed, Text, Token};
use crate::call::model::{Found, Place};
use crate::call::{Call, Estimate, Key, tokens};
use member::{Member, Nested};

/// What a JSON body asks for, or `None` where it is not an object, not JSON, or nested more than 128 deep.
///
/// Fills in model, stream, output bound, choices, service tier, estimate and whether the model can be rewritten; everything else of the
/// [`Call`] is as by default. For own request types that keep their JSON; over HTTP the
/// [intake layer](crate::call::intake) does it.
///
/// ```
/// let body = br#"{"model":"m","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let call = seawall::call::read_json(body).unwrap();
/// assert_eq!(call.model.unwrap().as_str(), "m");
/// assert!(call.stream);
/// assert_eq!(call.output_bound, Some(100));
/// assert_eq!(call.choices, None);
/// ```
#[must_use]
pub fn read_json(body: &[u8]) -> Option<Call> {
    let asked = Asked::read(body)?;
    let mut call = Call::default();
    asked.write(&mut call);
    Some(call)
}

/// What was read from a body.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) model: Option<Key>,
    pub(crate) place: Option<Place>,
    pub(crate) stream: bool,
    pub(crate) output_bound: Option<u64>,
    pub(crate) choices: Option<u32>,
    pub(crate) service_tier: Option<Key>,
    pub(crate) estimate: Estimate,
}

impl Asked {
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        Reader::new(body).read().ok()
    }

    pub(crate) fn write(self, call: &mut Call) {
        call.model = self.model.or(call.model.take());
        call.stream |= self.stream;
        call.output_bound = self.output_bound;
        call.choices = self.choices;
        call.service_tier = self.service_tier.or(call.service_tier.take());
        // Whoever described the call before knows more than its bytes tell.
        call.estimate = call.estimate.or(Some(self.estimate));
        call.rewritable = self.place.is_some();
    }
}

/// The most tokens that the models in use make of one image, whatever its bytes.
const IMAGE_BOUND: u64 = 4_784;
/// What a usual image makes.
const IMAGE_TOKENS: u64 = 1_600;
/// What a message adds to its text, and what the start of the answer adds.
const FRAMING_TOKENS: u64 = 3;
/// Base64 characters of sound or of a document for one token, roughly.
const MEDIA_BYTES_A_TOKEN: u64 = 24;

#[derive(Debug)]
struct Reader<'a> {
    body: &'a [u8],
    /// The top-level member that is being read, and where its value starts.
    member: Member,
    value_start: usize,
    /// The member inside it.
    nested: Nested,
    /// The depth at which a part starts whose names are the caller's own: a schema, a tool's arguments. 0 is none.
    foreign: u32,
    model: Found,
    stream: bool,
    output_bound: u64,
    choices: u32,
    service_tier: Option<Text>,
    prompts: u32,
    weight: u64,
    input_bytes: u64,
    /// Of those, the bytes of images, and how many images there are.
    image_bytes: u64,
    images: u64,
    messages: u64,
    by_reference: bool,
}

impl<'a> Reader<'a> {
    fn new(body: &'a [u8]) -> Self {
        Self {
            body,
            member: Member::Silent,
            value_start: 0,
            nested: Nested::Words,
            foreign: 0,
            model: Found::default(),
            stream: false,
            output_bound: 0,
            choices: 0,
            service_tier: None,
            prompts: 0,
            weight: 0,
            input_bytes: 0,
            image_bytes: 0,
            images: 0,
            messages: 0,
            by_reference: false,
        }
    }

    fn read(mut self) -> Result<Asked, Malformed> {
        let mut lexer = Lexer::new(self.body);
        if !matches!(lexer.next()?, Some(Token::Open { object: true, .. })) {
            return Err(Malformed);
        }
        while let Some(token) = lexer.next()? {
            let depth = lexer.depth();
            match token {
                Token::Key(key) if depth == 1 => self.top_key(key),
                Token::Key(key) => self.nested_key(key, depth),
                Token::Open { object, .. } => self.open(object, depth),
                Token::Close { end } => self.close(end, depth),
                Token::String(text) => self.string(text, depth),
                Token::Scalar { start, end } => self.scalar(start, end, depth),
            }
        }
        Ok(self.finish())
    }

    fn finish(self) -> Asked {
        let framing = (self.messages + u64::from(self.messages > 0)) * FRAMING_TOKENS;
        let bytes =
            self.input_bytes.saturating_sub(self.image_bytes).saturating_add(self.images * IMAGE_BOUND);
        let mut estimate = Estimate::new(tokens::to_tokens(self.weight) + framing, bytes);
        estimate.by_reference = self.by_reference;
        let choices = self.choices.max(1).saturating_mul(self.prompts.max(1));
        let name = |text: Text| {
            let name = text.meant(self.body);
            let name = std::str::from_utf8(&name).ok()?;
            (!name.is_empty()).then(|| Key::from(name))
        };
        Asked {
            place: self.model.place(),
            model: self.model.last().and_then(name),
            service_tier: self.service_tier.and_then(name),
            stream: self.stream,
            output_bound: (self.output_bound > 0).then_some(self.output_bound),
            choices: (choices > 1 || self.choices > 0).then_some(choices),
            estimate,
        }
    }

    fn top_key(&mut self, key: Text) {
        let name = key.meant(self.body);
        self.member = Member::of(&name);
        self.value_start = key.end + 1;
        self.nested =
            if self.member == Member::Input { Nested::of(&name, self.member, 1) } else { Nested::Words };
        self.foreign = 0;
    }

    fn nested_key(&mut self, key: Text, depth: u32) {
        if !self.member.is_input() && self.member != Member::Config {
            return;
        }
        if self.in_foreign() {
            self.weight += tokens::weigh(key.raw(self.body)) + tokens::TOKEN;
            return;
        }
        self.nested = Nested::of(&key.meant(self.body), self.member, depth);
        match self.nested {
            Nested::Role => self.messages += 1,
            // A tool that the provider itself runs, named by a member instead of by its kind.
            Nested::ByReference if self.member == Member::Tools => self.by_reference = true,
            _ => {}
        }
    }

    fn in_foreign(&self) -> bool {
        self.foreign > 0
    }

    fn open(&mut self, object: bool, depth: u32) {
        if self.in_foreign() || !self.member.is_input() {
            if depth == 2 && self.member == Member::Model {
                self.model.see(None);
            }
            return;
        }
        let prompt = self.member == Member::Prompt;
        if depth == 2 && object && (prompt || self.member == Member::Stored) {
            // `{"id": …}` of a prompt or a conversation that is kept at the provider.
            self.by_reference = true;
        } else if prompt && depth == 3 && !object {
            // A prompt as an array of token numbers, in an array of prompts.
            self.prompts = self.prompts.saturating_add(1);
        }
        if self.nested == Nested::Foreign {
            self.foreign = depth;
        } else if object {
            self.nested = Nested::Words;
        }
    }

    fn close(&mut self, end: usize, depth: u32) {
        if depth < self.foreign {
            self.foreign = 0;
        }
        if !self.in_foreign() {
            self.nested = Nested::Words;
        }
        if depth == 1 {
            self.end_of_member(end);
        }
    }

    fn end_of_member(&mut self, end: usize) {
        if self.member.is_input() {
            self.input_bytes = self.input_bytes.saturating_add((end - self.value_start) as u64);
        }
    }

    fn string(&mut self, text: Text, depth: u32) {
        if depth == 1 {
            if self.member == Member::Model {
                self.model.see(Some(text));
            } else if self.member == Member::ServiceTier {
                self.service_tier = Some(text);
            } else if self.member == Member::Stored {
                self.by_reference = true;
            }
            self.end_of_member(text.end + 1);
        }
        if !self.member.is_input() {
            return;
        }
        if self.member == Member::Prompt && depth == 2 {
            self.prompts = self.prompts.saturating_add(1);
        }
        if self.in_foreign() {
            self.weight += tokens::TOKEN;
            self.words(text);
            return;
        }
        let raw = text.raw(self.body);
        match self.nested {
            Nested::Role | Nested::Quiet | Nested::OutputBound | Nested::Choices => {}
            Nested::Kind => self.by_reference |= self.member == Member::Tools && member::is_hosted_tool(raw),
            Nested::ByReference => self.by_reference = true,
            Nested::Link if raw.starts_with(b"data:") => self.media(raw),
            Nested::Link if memchr::memmem::find(raw, b":/").is_some() || text.escaped => {
                self.by_reference = true;
            }
            Nested::Media if member::is_base64(raw) || raw.starts_with(b"data:") => self.media(raw),
            Nested::Words | Nested::Foreign | Nested::Link | Nested::Media => self.words(text),
        }
    }

    fn words(&mut self, text: Text) {
        self.weight += tokens::weigh_json(text.raw(self.body), text.escaped);
    }

    /// A file inside the body. An image costs by its size in pixels, not in bytes; what a document costs its bytes do
    /// not tell.
    fn media(&mut self, raw: &[u8]) {
        if member::is_image(raw) {
            self.weight += IMAGE_TOKENS * tokens::TOKEN;
            self.images += 1;
            self.image_bytes += raw.len() as u64;
        } else {
            self.weight += raw.len() as u64 / MEDIA_BYTES_A_TOKEN * tokens::TOKEN;
            self.by_reference = true;
        }
    }

    fn scalar(&mut self, start: usize, end: usize, depth: u32) {
        let text = self.body.get(start..end).unwrap_or_default();
        if depth == 1 {
            match self.member {
                Member::Model => self.model.see(None),
                Member::Stream => self.stream = text == b"true",
                Member::OutputBound => self.output_bound = self.output_bound.max(count(text)),
                Member::Choices => self.see_choices(text),
                Member::ServiceTier => self.service_tier = None,
                _ => self.end_of_member(end),
            }
            return;
        }
        match self.member {
            Member::Config => match self.nested {
                Nested::OutputBound => self.output_bound = self.output_bound.max(count(text)),
                Nested::Choices => self.see_choices(text),
                _ => {}
            },
            _ if self.in_foreign() => self.weight += tokens::weigh(text) + tokens::TOKEN,
            // A token by its number, not a member of some object.
            Member::Prompt | Member::Texts if self.nested == Nested::Words => self.weight += tokens::TOKEN,
            _ => {}
        }
    }

    fn see_choices(&mut self, text: &[u8]) {
        self.choices = self.choices.max(u32::try_from(count(text)).unwrap_or(u32::MAX));
    }
}

/// A number that is a count; anything else (null, negative, nothing) is 0, which asks for nothing.
fn count(text: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(text) else { return 0 };
    if let Ok(whole) = text.parse() {
        return whole;
    }
    match text.parse::<f64>() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates; never negative"
        )]
        Ok(number) if number > 0.0 => number.ceil() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
