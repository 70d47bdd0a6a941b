//! The shapes of good answers, whole and in events.

use serde_json::{Value, json};

use super::asked::Api;
use super::shape::Content;
use super::shared::Shared;

/// An event that is no JSON.
pub(super) const MALFORMED: &str = "data: {\"choices\":[{\"delta\":{\"cont\n\n";

/// A good answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    id: usize,
    model: &'a str,
    content: &'a Content,
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
    /// `tokens` are those of the input and of the output.
    pub(super) fn new(
        id: usize,
        model: &'a str,
        content: &'a Content,
        tokens: (u64, u64),
        short: bool,
        usage: bool,
    ) -> Self {
        let (input, tokens) = tokens;
        Self { id, model, content, input, tokens, short, usage }
    }

    fn piece(&self, index: u64) -> String {
        let piece = usize::try_from(index).ok().and_then(|index| self.content.pieces.get(index));
        piece.cloned().unwrap_or_else(|| word(index))
    }

    fn text(&self) -> String {
        (0..self.tokens).map(|index| self.piece(index)).collect()
    }

    fn tool(&self) -> Option<&'a str> {
        self.content.tool.as_deref()
    }

    fn finish(&self) -> &'static str {
        match self.tool() {
            _ if self.short => "length",
            Some(_) => "tool_calls",
            None => "stop",
        }
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
        match self.tool() {
            _ if self.short => "max_tokens",
            Some(_) => "tool_use",
            None => "end_turn",
        }
    }

    /// The one item of a response's output, as it is at its beginning or its end.
    fn item(&self, status: &str, text: Option<&str>) -> Value {
        if let Some(tool) = self.tool() {
            return json!({
                "id": "fc_0", "type": "function_call", "status": status, "call_id": format!("call_{}", self.id),
                "name": tool, "arguments": text.unwrap_or_default()
            });
        }
        let content: Vec<_> = text.map(output_text).into_iter().collect();
        json!({"id": "msg_0", "type": "message", "role": "assistant", "status": status, "content": content})
    }

    fn output(&self) -> Value {
        json!([self.item("completed", Some(&self.text()))])
    }

    /// What a chat says: text, or the call of a tool.
    fn said(&self) -> Value {
        let Some(tool) = self.tool() else {
            return json!({"role": "assistant", "content": self.text()});
        };
        let function = json!({"name": tool, "arguments": self.text()});
        let call = json!({"id": format!("call_{}", self.id), "type": "function", "function": function});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    }

    /// A block of a message, with its content or at its beginning.
    fn block(&self, text: &str) -> Value {
        let Some(tool) = self.tool() else { return json!({"type": "text", "text": text}) };
        let input: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": format!("toolu_{}", self.id), "name": tool, "input": input})
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
    pub(super) fn whole(&self, api: Api, items: usize, base64: bool) -> String {
        let value = match api {
            Api::Chat => json!({
                "id": format!("chatcmpl-{}", self.id), "object": "chat.completion", "created": 0, "model": self.model,
                "choices": [{"index": 0, "message": self.said(), "finish_reason": self.finish()}],
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
                let content = json!([self.block(&self.text())]);
                self.message(&content, Some(self.stop_reason()), self.tokens)
            }
            Api::Embeddings | Api::Models => {
                let vector = if base64 { json!("AACAPgAAAL8AAAA+") } else { json!([0.25, -0.5, 0.125]) };
                let item = |index| json!({"object": "embedding", "index": index, "embedding": vector});
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
                let mut events = vec![data(&self.chunk(api, &role, None))];
                if let Some(tool) = self.tool() {
                    let call = json!({
                        "index": 0, "id": format!("call_{}", self.id), "type": "function",
                        "function": {"name": tool, "arguments": ""}
                    });
                    events.push(data(&self.chunk(api, &tool_calls(&call), None)));
                }
                events
            }
            Api::Responses => {
                let response = self.response("in_progress", &json!([]), &Value::Null);
                let created = json!({"type": "response.created", "sequence_number": 0, "response": response});
                let added = json!({
                    "type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
                    "item": self.item("in_progress", None)
                });
                let mut events =
                    vec![event("response.created", &created), event("response.output_item.added", &added)];
                if self.tool().is_none() {
                    let part = json!({
                        "type": "response.content_part.added", "sequence_number": 2, "item_id": "msg_0",
                        "output_index": 0, "content_index": 0, "part": output_text("")
                    });
                    events.push(event("response.content_part.added", &part));
                }
                events
            }
            Api::Messages => vec![
                event(
                    "message_start",
                    &json!({"type": "message_start", "message": self.message(&json!([]), None, 1)}),
                ),
                event(
                    "content_block_start",
                    &json!({"type": "content_block_start", "index": 0, "content_block": self.block("")}),
                ),
                event("ping", &json!({"type": "ping"})),
            ],
            Api::Completions | Api::Embeddings | Api::Models => Vec::new(),
        }
    }

    pub(super) fn token(&self, api: Api, index: u64) -> String {
        let text = self.piece(index);
        match api {
            Api::Responses if self.tool().is_some() => event(
                "response.function_call_arguments.delta",
                &json!({
                    "type": "response.function_call_arguments.delta", "sequence_number": index + 3,
                    "item_id": "fc_0", "output_index": 0, "delta": text
                }),
            ),
            Api::Responses => event(
                "response.output_text.delta",
                &json!({
                    "type": "response.output_text.delta", "sequence_number": index + 3, "item_id": "msg_0",
                    "output_index": 0, "content_index": 0, "delta": text
                }),
            ),
            Api::Messages => {
                let delta = match self.tool() {
                    Some(_) => json!({"type": "input_json_delta", "partial_json": text}),
                    None => json!({"type": "text_delta", "text": text}),
                };
                event(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                )
            }
            Api::Chat if self.tool().is_some() => {
                let call = json!({"index": 0, "function": {"arguments": text}});
                data(&self.chunk(api, &tool_calls(&call), None))
            }
            _ => data(&self.chunk(api, &Self::delta(api, Some(&text), None), None)),
        }
    }

    /// The events after the last token, up to the terminal one.
    pub(super) fn closing(&self, api: Api) -> Vec<String> {
        match api {
            Api::Responses => self.done(),
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

    /// The events of a response that close its one item.
    fn done(&self) -> Vec<String> {
        let (text, at) = (self.text(), self.tokens + 3);
        let item = json!({
            "type": "response.output_item.done", "sequence_number": at + 2, "output_index": 0,
            "item": self.item("completed", Some(&text))
        });
        let item = event("response.output_item.done", &item);
        if self.tool().is_some() {
            let done = json!({
                "type": "response.function_call_arguments.done", "sequence_number": at, "item_id": "fc_0",
                "output_index": 0, "arguments": text
            });
            return vec![event("response.function_call_arguments.done", &done), item];
        }
        let done = json!({
            "type": "response.output_text.done", "sequence_number": at, "item_id": "msg_0",
            "output_index": 0, "content_index": 0, "text": text
        });
        let part = json!({
            "type": "response.content_part.done", "sequence_number": at + 1, "item_id": "msg_0",
            "output_index": 0, "content_index": 0, "part": output_text(&text)
        });
        vec![event("response.output_text.done", &done), event("response.content_part.done", &part), item]
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
                let end = json!({"type": name, "sequence_number": self.tokens + 6, "response": response});
                event(&name, &end)
            }
            Api::Messages => event("message_stop", &json!({"type": "message_stop"})),
            _ => "data: [DONE]\n\n".to_owned(),
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn tool_calls(call: &Value) -> Value {
    json!([{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}])
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
