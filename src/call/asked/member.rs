//! The names that mean something in a request.

/// A top-level member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Model,
    Stream,
    OutputBound,
    Choices,
    /// At which service tier to answer.
    ServiceTier,
    /// An object that holds bounds and choices.
    Config,
    /// What completions continue: one text or several, or numbers of tokens. Each makes its own answers.
    Prompt,
    /// The same of other APIs, or messages.
    Texts,
    /// Definitions of tools and of the answer's form: names and structure are input too.
    Tools,
    /// Names something that is kept at the provider and becomes input.
    Stored,
    /// Says how to answer and is no input.
    Silent,
    /// Input: messages, instructions, and whatever is not known.
    Input,
}

impl Member {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"model" => Self::Model,
            b"stream" => Self::Stream,
            b"max_tokens"
            | b"max_completion_tokens"
            | b"max_output_tokens"
            | b"max_new_tokens"
            | b"max_tokens_to_sample"
            | b"maxOutputTokens"
            | b"maxTokens"
            | b"n_predict"
            | b"max_gen_len" => Self::OutputBound,
            b"n" | b"best_of" | b"candidateCount" | b"candidate_count" | b"num_generations" => Self::Choices,
            b"service_tier" => Self::ServiceTier,
            b"generationConfig" | b"generation_config" | b"inferenceConfig" | b"options" | b"parameters" => {
                Self::Config
            }
            b"prompt" => Self::Prompt,
            b"input" | b"inputs" => Self::Texts,
            b"tools" | b"functions" | b"response_format" | b"text" | b"text_format" | b"toolConfig"
            | b"output_config" | b"output_format" | b"mcp_servers" => Self::Tools,
            b"previous_response_id"
            | b"conversation"
            | b"cachedContent"
            | b"cached_content"
            | b"thread_id"
            | b"assistant_id"
            | b"container"
            | b"input_file_id" => Self::Stored,
            b"stream_options"
            | b"user"
            | b"metadata"
            | b"stop"
            | b"stop_sequences"
            | b"temperature"
            | b"top_p"
            | b"top_k"
            | b"seed"
            | b"frequency_penalty"
            | b"presence_penalty"
            | b"logit_bias"
            | b"logprobs"
            | b"top_logprobs"
            | b"store"
            | b"parallel_tool_calls"
            | b"reasoning_effort"
            | b"reasoning"
            | b"thinking"
            | b"safety_identifier"
            | b"prompt_cache_key"
            | b"safetySettings"
            | b"include"
            | b"truncation"
            | b"verbosity"
            | b"modalities"
            | b"keep_alive"
            | b"encoding_format"
            | b"dimensions" => Self::Silent,
            _ => Self::Input,
        }
    }

    /// Whether its value becomes input of the model.
    pub(super) fn is_input(self) -> bool {
        matches!(self, Self::Prompt | Self::Texts | Self::Tools | Self::Input | Self::Stored)
    }
}

/// A member further inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nested {
    /// Text, or what is not known.
    Words,
    /// Starts a message.
    Role,
    /// A word of the API itself.
    Quiet,
    /// What kind of a part or tool this is.
    Kind,
    /// A file, as base64.
    Media,
    /// A file, as a URL: of `data:` or of somewhere else.
    Link,
    /// A file or a text that is kept elsewhere.
    ByReference,
    /// Its members are named by the caller: a schema, a tool's arguments, citations.
    Foreign,
    OutputBound,
    Choices,
}

impl Nested {
    pub(super) fn of(name: &[u8], member: Member, depth: u32) -> Self {
        if member == Member::Config {
            return match name {
                _ if depth > 2 => Self::Quiet,
                b"num_predict" => Self::OutputBound,
                _ => match Member::of(name) {
                    Member::OutputBound => Self::OutputBound,
                    Member::Choices => Self::Choices,
                    _ => Self::Quiet,
                },
            };
        }
        match name {
            b"role" => Self::Role,
            b"type" if depth <= 3 => Self::Kind,
            b"type" | b"id" | b"call_id" | b"tool_call_id" | b"tool_use_id" | b"media_type"
            | b"mime_type" | b"mimeType" | b"detail" | b"format" | b"status" | b"signature"
            | b"thoughtSignature" | b"encrypted_content" | b"cache_control" => Self::Quiet,
            b"data" | b"bytes" | b"b64_json" | b"file_data" | b"image" | b"images" => Self::Media,
            b"url" | b"uri" | b"image_url" | b"file_url" | b"video_url" | b"audio_url" | b"fileUri"
            | b"file_uri" | b"server_url" => Self::Link,
            b"file_id"
            | b"file_ids"
            | b"vector_store_ids"
            | b"container_id"
            | b"googleSearch"
            | b"google_search"
            | b"googleSearchRetrieval"
            | b"url_context"
            | b"urlContext"
            | b"codeExecution"
            | b"fileSearch" => Self::ByReference,
            b"parameters" | b"input_schema" | b"inputSchema" | b"json_schema" | b"schema"
            | b"responseSchema" | b"arguments" | b"args" | b"input" | b"response" | b"annotations"
            | b"citations" => Self::Foreign,
            _ => Self::Words,
        }
    }
}

/// Whether a tool of this kind runs at the provider and adds what it finds to the input.
pub(super) fn is_hosted_tool(kind: &[u8]) -> bool {
    const HOSTED: [&[u8]; 8] = [
        b"web_search",
        b"web_fetch",
        b"file_search",
        b"mcp",
        b"code_interpreter",
        b"code_execution",
        b"x_search",
        b"retrieval",
    ];
    HOSTED.iter().any(|name| kind.starts_with(name))
}

/// Whether this is a file and not a word: long, and of base64's alphabet as far as its start tells.
pub(super) fn is_base64(raw: &[u8]) -> bool {
    const ENOUGH: usize = 64;
    raw.get(..ENOUGH).is_some_and(|start| {
        start
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\\'))
    })
}

/// Whether this base64 text or `data:` URL is an image: by its first bytes, since what it says of itself may be wrong.
pub(super) fn is_image(raw: &[u8]) -> bool {
    const PNG_JPEG_GIF: [&[u8]; 4] = [b"iVBORw0KGgo", b"/9j/", b"\\/9j\\/", b"R0lGOD"];
    let data = match raw.strip_prefix(b"data:") {
        Some(url) => {
            let head = url.get(..128).unwrap_or(url);
            memchr::memchr(b',', head).and_then(|comma| url.get(comma + 1..)).unwrap_or_default()
        }
        None => raw,
    };
    // `RIFF` is sound as well; four bytes of length follow, then `WEBP`.
    let webp = data.starts_with(b"UklGR") && data.get(12..16) == Some(b"RUJQ");
    webp || PNG_JPEG_GIF.iter().any(|magic| data.starts_with(magic))
}
