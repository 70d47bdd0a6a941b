//! Where in a message something stands, as far as that matters: a small automaton over keys.

/// A place in a message. Its children are decided by key, or for an array by being an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// The whole text: an object, or an array of them.
    Root,
    /// The message.
    Top,
    /// Something that is of no interest.
    Other,
    /// An object that wraps others: `response`, `message`, `x_groq`.
    Wrapper,
    /// The top level's `message`, which is a wrapper for some and the text of an error for others.
    Message,
    Choices,
    Choice,
    Candidates,
    Candidate,
    /// What an event adds to the answer, with some fields around it that add nothing.
    Delta,
    /// A part of the answer, however deep.
    Content,
    Feedback,
    /// Why the prompt was blocked.
    Block,
    /// Why the answer ended.
    Finish,
    /// The type of the event.
    Kind,
    /// The type of the object.
    Object,
    Usage,
    Error,
    Code,
}

impl Node {
    /// What stands in this object under this key.
    pub(super) fn child(self, key: &[u8]) -> Self {
        match self {
            Self::Top => top(key),
            Self::Wrapper | Self::Message => match key {
                b"usage" => Self::Usage,
                b"error" => Self::Error,
                _ => Self::Other,
            },
            Self::Choice => match key {
                b"delta" | b"message" => Self::Delta,
                b"text" => Self::Content,
                b"finish_reason" => Self::Finish,
                b"error" => Self::Error,
                b"usage" => Self::Usage,
                _ => Self::Other,
            },
            Self::Delta => match key {
                b"stop_reason" | b"finish_reason" => Self::Finish,
                b"usage" => Self::Usage,
                b"stop_sequence" => Self::Other,
                _ if adds_nothing(key) => Self::Other,
                _ => Self::Content,
            },
            Self::Candidate => match key {
                b"content" => Self::Content,
                b"finishReason" | b"finish_reason" => Self::Finish,
                _ => Self::Other,
            },
            Self::Feedback => match key {
                b"blockReason" | b"block_reason" => Self::Block,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// What an element of this array is; none if this is no array worth looking into.
    pub(super) fn element(self) -> Option<Self> {
        match self {
            Self::Root => Some(Self::Top),
            Self::Choices => Some(Self::Choice),
            Self::Candidates => Some(Self::Candidate),
            _ => None,
        }
    }

    /// Whether this is an object whose keys matter.
    pub(super) fn has_keys(self) -> bool {
        matches!(
            self,
            Self::Top
                | Self::Wrapper
                | Self::Message
                | Self::Choice
                | Self::Candidate
                | Self::Delta
                | Self::Feedback
        )
    }

    /// Whether a text here is compared, not kept.
    pub(super) fn is_word(self) -> bool {
        matches!(self, Self::Kind | Self::Object | Self::Finish | Self::Block)
    }

    /// Whether an API that is known here tells itself by having this.
    pub(super) fn tells_api(self) -> bool {
        matches!(
            self,
            Self::Choices | Self::Candidates | Self::Usage | Self::Delta | Self::Wrapper | Self::Feedback
        )
    }
}

fn top(key: &[u8]) -> Node {
    match key {
        b"choices" => Node::Choices,
        b"candidates" => Node::Candidates,
        b"usage" | b"usageMetadata" | b"usage_metadata" => Node::Usage,
        b"type" => Node::Kind,
        b"object" => Node::Object,
        b"delta" | b"content_block" => Node::Delta,
        b"message" => Node::Message,
        b"response" | b"x_groq" => Node::Wrapper,
        b"error" => Node::Error,
        b"code" => Node::Code,
        b"promptFeedback" | b"prompt_feedback" => Node::Feedback,
        b"content" | b"output" | b"completion" | b"partial_image_b64" => Node::Content,
        b"stop_reason" => Node::Finish,
        _ => Node::Other,
    }
}

/// Keys inside an answer whose texts are names and numbers, not a part of what was asked for.
pub(super) fn adds_nothing(key: &[u8]) -> bool {
    matches!(key, b"role" | b"type" | b"id" | b"index" | b"object" | b"status")
}
