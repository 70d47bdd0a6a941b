//! The shapes of good answers, whole and in events.

use serde_json::{Value, json};

use super::asked::Api;
use super::shared::Shared;

/// An event that is no JSON.
pub(super) const MALFORMED: &str = "data: {\"choices\":[{\"delta\":{\"cont\n\n";

/// A good answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    id: usize,
    model: &'a str,
    input: u64,
    pub(super) tokens: u64,
    /// The bound on its output cut it short.
    short: bool,
    usage: bool,
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// The text of a token: `w0 `, `w1 ` …
fn word(index: u64) -> String {
    format!("w{index} ")
}

impl<'a> Answer<'a> {
    pub(super) fn new(id: usize, model: &'a str, input: u64, tokens: u64, short: bool, usage: bool) -> Self {
        Self { id, model, input, tokens, short, usage }
    }

    fn text(&self) -> String {
        (0..self.tokens).map(word).collect()
    }

    fn finish(&self) -> &'static str {
        if self.short { "length" } else { "stop" }
    }

    fn usage(&self, input: &str, output: &str) -> Value {
        if !self.usage {
            return Value::Null;
        }
        let mut usage = json!({input: self.input, output: self.tokens});
        if input != "input_tokens" || output != "output_tokens" {
            usage["total_tokens"] = (self.input + self.tokens).into();
        }
        usage
    }

    fn chat_usage(&self) -> Value {
        self.usage("prompt_tokens", "completion_tokens")
    }

    fn response(&self, status: &str, output: &Value, usage: &Value) -> Value {
        json!({
            "id": format!("resp_{}", self.id), "object": "response", "created_at": 0, "status": status,
            "model": self.model, "error": null, "output": output, "usage": usage
        })
    }

    fn message(&self, content: &Value, stop: Option<&str>, output: u64) -> Value {
        json!({
            "id": format!("msg_{}", self.id), "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": self.input, "output_tokens": output}
        })
    }

    fn stop_reason(&self) -> &'static str {
        if self.short { "max_tokens" } else { "end_turn" }
    }

    fn output(&self) -> Value {
        let content = json!([{"type": "output_text", "text": self.text(), "annotations": []}]);
        json!([{"id": "msg_0", "type": "message", "role": "assistant", "status": "completed", "content": content}])
    }

    fn chunk(&self, api: Api, choices: &Value, usage: Option<Value>) -> Value {
        let (id, object) = match api {
            Api::Chat => ("chatcmpl", "chat.completion.chunk"),
            _ => ("cmpl", "text_completion"),
        };
        let mut chunk = json!({
            "id": format!("{id}-{}", self.id), "object": object, "created": 0, "model": self.model, "choices": choices
        });
        if self.usage {
            chunk["usage"] = usage.into();
        }
        chunk
    }

    /// A chunk of chat or completions that carries this text, or the end.
    fn delta(api: Api, text: Option<&str>, finish: Option<&str>) -> Value {
        if api == Api::Chat {
            let delta = text.map_or_else(|| json!({}), |text| json!({"content": text}));
            json!([{"index": 0, "delta": delta, "finish_reason": finish}])
        } else {
            json!([{"index": 0, "text": text.unwrap_or_default(), "finish_reason": finish}])
        }
    }

    /// The whole answer; `items` are the inputs to embed.
    pub(super) fn whole(&self, api: Api, items: usize) -> String {
        let value = match api {
            Api::Chat => json!({
                "id": format!("chatcmpl-{}", self.id), "object": "chat.completion", "created": 0, "model": self.model,
                "choices": [{
                    "index": 0, "message": {"role": "assistant", "content": self.text()},
                    "finish_reason": self.finish()
                }],
                "usage": self.chat_usage()
            }),
            Api::Completions => json!({
                "id": format!("cmpl-{}", self.id), "object": "text_completion", "created": 0, "model": self.model,
                "choices": [{"index": 0, "text": self.text(), "finish_reason": self.finish()}],
                "usage": self.chat_usage()
            }),
            Api::Responses => {
                let status = if self.short { "incomplete" } else { "completed" };
                self.response(status, &self.output(), &self.response_usage())
            }
            Api::Messages => {
                let content = json!([{"type": "text", "text": self.text()}]);
                self.message(&content, Some(self.stop_reason()), self.tokens)
            }
            Api::Embeddings | Api::Models => {
                let item =
                    |index| json!({"object": "embedding", "index": index, "embedding": [0.25, -0.5, 0.125]});
                json!({
                    "object": "list", "model": self.model, "data": (0..items).map(item).collect::<Vec<_>>(),
                    "usage": {"prompt_tokens": self.input, "total_tokens": self.input}
                })
            }
        };
        value.to_string()
    }

    fn response_usage(&self) -> Value {
        let mut usage = self.usage("input_tokens", "output_tokens");
        if usage.is_object() {
            usage["total_tokens"] = (self.input + self.tokens).into();
        }
        usage
    }

    /// The events before the first token.
    pub(super) fn opening(&self, api: Api) -> Vec<String> {
        match api {
            Api::Chat => {
                let role = json!([{
                    "index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null
                }]);
                vec![data(&self.chunk(api, &role, None))]
            }
            Api::Responses => {
                let response = self.response("in_progress", &json!([]), &Value::Null);
                let created = json!({"type": "response.created", "sequence_number": 0, "response": response});
                vec![event("response.created", &created)]
            }
            Api::Messages => vec![
                event(
                    "message_start",
                    &json!({"type": "message_start", "message": self.message(&json!([]), None, 1)}),
                ),
                event(
                    "content_block_start",
                    &json!({
                        "type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}
                    }),
                ),
                event("ping", &json!({"type": "ping"})),
            ],
            Api::Completions | Api::Embeddings | Api::Models => Vec::new(),
        }
    }

    pub(super) fn token(&self, api: Api, index: u64) -> String {
        let text = word(index);
        match api {
            Api::Responses => event(
                "response.output_text.delta",
                &json!({
                    "type": "response.output_text.delta", "sequence_number": index + 1, "item_id": "msg_0",
                    "output_index": 0, "content_index": 0, "delta": text
                }),
            ),
            Api::Messages => event(
                "content_block_delta",
                &json!({
                    "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}
                }),
            ),
            _ => data(&self.chunk(api, &Self::delta(api, Some(&text), None), None)),
        }
    }

    /// The events after the last token, up to the terminal one.
    pub(super) fn closing(&self, api: Api) -> Vec<String> {
        match api {
            Api::Responses => Vec::new(),
            Api::Messages => {
                let mut delta = json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null}
                });
                delta["usage"] = json!({"output_tokens": self.tokens});
                let stop = json!({"type": "content_block_stop", "index": 0});
                vec![event("content_block_stop", &stop), event("message_delta", &delta)]
            }
            _ => {
                let end = self.chunk(api, &Self::delta(api, None, Some(self.finish())), None);
                let mut events = vec![data(&end)];
                if self.usage {
                    events.push(data(&self.chunk(api, &json!([]), Some(self.chat_usage()))));
                }
                events
            }
        }
    }

    /// The event that ends the stream.
    pub(super) fn terminal(&self, api: Api) -> String {
        match api {
            Api::Responses => {
                // Told without being asked for.
                let whole = Self { usage: true, ..*self };
                let status = if self.short { "incomplete" } else { "completed" };
                let name = format!("response.{status}");
                let response = whole.response(status, &whole.output(), &whole.response_usage());
                let end = json!({"type": name, "sequence_number": self.tokens + 1, "response": response});
                event(&name, &end)
            }
            Api::Messages => event("message_stop", &json!({"type": "message_stop"})),
            _ => "data: [DONE]\n\n".to_owned(),
        }
    }
}

/// An error in the midst of a stream.
pub(super) fn error_event(api: Api) -> String {
    match api {
        Api::Messages => event(
            "error",
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ),
        Api::Responses => event(
            "error",
            &json!({"type": "error", "code": "server_error", "message": "The server had an error.", "param": null}),
        ),
        _ => data(&json!({"error": {
            "message": "The server had an error.", "type": "server_error", "param": null, "code": "server_error"
        }})),
    }
}

/// The list of models, or the one that was asked for.
pub(super) fn models(shared: &Shared, one: &str) -> String {
    let model = |name: &str| json!({"id": name, "object": "model", "created": 0, "owned_by": shared.name});
    if !one.is_empty() {
        return model(one).to_string();
    }
    let mut names: Vec<_> = shared.settings.models.iter().flatten().collect();
    names.sort_unstable();
    let models: Vec<_> = names.into_iter().map(|name| model(name)).collect();
    json!({"object": "list", "data": models}).to_string()
}
