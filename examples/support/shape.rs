//! What an answer says: words, JSON of a schema that was asked for, or a call of a tool.

use serde_json::{Map, Value, json};

/// How deep a schema is followed.
const DEEPEST: usize = 16;

/// What an answer is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// The tool that is called, if one is.
    pub(super) tool: Option<String>,
    /// The answer, or the arguments of the tool, token by token. Words where there are none.
    pub(super) pieces: Vec<String>,
}

impl Content {
    /// A call of the first tool that may be called, unless a result of one is there already; else an answer in the form that
    /// was asked for; else words.
    pub(super) fn of(body: &Value) -> Self {
        if let Some((name, schema)) = tool(body) {
            return Self { tool: Some(name.to_owned()), pieces: pieces(&sample(schema, schema, 0)) };
        }
        let schema =
            ["/response_format/json_schema/schema", "/text/format/schema", "/output_config/format/schema"];
        if let Some(schema) = schema.iter().find_map(|path| body.pointer(path)) {
            return Self { tool: None, pieces: pieces(&sample(schema, schema, 0)) };
        }
        if body.pointer("/response_format/type").and_then(Value::as_str) == Some("json_object") {
            return Self { tool: None, pieces: pieces(&json!({"answer": "w0"})) };
        }
        Self::default()
    }
}

/// The name and the schema of the tool to call.
fn tool(body: &Value) -> Option<(&str, &Value)> {
    let choice = body.get("tool_choice");
    let kind = choice.and_then(|choice| choice.as_str().or_else(|| choice.get("type")?.as_str()));
    if kind == Some("none") || has_result(body) {
        return None;
    }
    let named =
        choice.and_then(|choice| choice.get("name").or_else(|| choice.pointer("/function/name"))?.as_str());
    // Chat puts what a tool is one level deeper than the others do.
    let tools = body.get("tools")?.as_array()?.iter().map(|tool| tool.get("function").unwrap_or(tool));
    let named_so = |tool: &&Value| named.is_none() || tool.get("name").and_then(Value::as_str) == named;
    let tool = tools.into_iter().find(named_so)?;
    let schema = tool.get("parameters").or_else(|| tool.get("input_schema")).unwrap_or(&Value::Null);
    Some((tool.get("name")?.as_str()?, schema))
}

/// Whether the last message is what a tool answered.
fn has_result(body: &Value) -> bool {
    let messages = body.get("messages").or_else(|| body.get("input")).and_then(Value::as_array);
    let Some(last) = messages.and_then(|messages| messages.last()) else { return false };
    let is = |value: &Value, name: &str, text: &str| value.get(name).and_then(Value::as_str) == Some(text);
    let parts = last.get("content").and_then(Value::as_array);
    is(last, "role", "tool")
        || is(last, "type", "function_call_output")
        || parts.is_some_and(|parts| parts.iter().any(|part| is(part, "type", "tool_result")))
}

/// The smallest thing that a schema allows, with all properties; of a choice, its first.
fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let within = |schema: &Value| sample(schema, root, depth + 1);
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        return root.pointer(path.trim_start_matches('#')).map_or(Value::Null, within);
    }
    let first = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|all| all.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(schema) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return within(schema);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind {
        Some("string") => json!("w0"),
        Some("integer") => json!(1),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => json!([schema.get("items").map_or(Value::Null, within)]),
        _ => {
            let members = schema.get("properties").and_then(Value::as_object);
            let each = members.into_iter().flatten().map(|(name, schema)| (name.clone(), within(schema)));
            Value::Object(each.collect::<Map<_, _>>())
        }
    }
}

/// Text in tokens of four characters.
fn pieces(value: &Value) -> Vec<String> {
    let text: Vec<char> = value.to_string().chars().collect();
    text.chunks(4).map(|piece| piece.iter().collect()).collect()
}
