//! The scan against a plain reading of the parsed message.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::facts::Finish;
use super::*;

/// What a message says, read from its parsed form: the rules of `node.rs` once more, told by path.
#[derive(Debug, Default, PartialEq)]
struct Said {
    content: bool,
    finished: bool,
    failed: bool,
    usage: Vec<Value>,
    errors: Vec<Value>,
}

fn reference(message: &Map<String, Value>) -> Said {
    let mut said = Said::default();
    let field = |name: &str| message.get(name).unwrap_or(&Value::Null);
    // In the order of the keys: the map is sorted, and so is the text that is made of it.
    for (key, value) in message {
        match key.as_str() {
            "candidates" => value.as_array().into_iter().flatten().for_each(|one| said.candidate(one)),
            "choices" => value.as_array().into_iter().flatten().for_each(|one| said.choice(one)),
            "content" | "output" => said.answer(value),
            "delta" => said.delta(value),
            "error" => said.errors.extend(some(value)),
            "message" | "response" | "x_groq" => {
                said.errors.extend(value.get("error").and_then(some));
                said.usage.extend(value.get("usage").and_then(some));
            }
            "usage" | "usageMetadata" => said.usage.extend(some(value)),
            _ => {}
        }
    }
    said.finish(field("stop_reason"));
    said
}

fn some(value: &Value) -> Option<Value> {
    Some(value).filter(|value| !value.is_null()).cloned()
}

impl Said {
    fn choice(&mut self, choice: &Value) {
        for (key, value) in choice.as_object().into_iter().flatten() {
            match key.as_str() {
                "delta" | "message" => self.delta(value),
                "error" => self.errors.extend(some(value)),
                "finish_reason" => self.finish(value),
                "text" => self.answer(value),
                "usage" => self.usage.extend(some(value)),
                _ => {}
            }
        }
    }

    fn candidate(&mut self, candidate: &Value) {
        self.answer(candidate.get("content").unwrap_or(&Value::Null));
        for name in ["finishReason", "finish_reason"] {
            self.finish(candidate.get(name).unwrap_or(&Value::Null));
        }
    }

    fn delta(&mut self, delta: &Value) {
        let Value::Object(fields) = delta else {
            // As a text it is a part of the answer; anything else there has no meaning.
            self.content |= delta.as_str().is_some_and(|text| !text.is_empty());
            return;
        };
        for (key, value) in fields {
            match key.as_str() {
                "finish_reason" | "stop_reason" => self.finish(value),
                "usage" => self.usage.extend(some(value)),
                "role" | "type" | "id" | "index" => {}
                _ => self.answer(value),
            }
        }
    }

    fn answer(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.content |= !text.is_empty(),
            Value::Array(all) => all.iter().for_each(|one| self.answer(one)),
            Value::Object(fields) => fields
                .iter()
                .filter(|(key, value)| {
                    !(value.is_string() && ["role", "type", "id", "index"].contains(&key.as_str()))
                })
                .for_each(|(_, value)| self.answer(value)),
            _ => {}
        }
    }

    fn finish(&mut self, reason: &Value) {
        match reason.as_str() {
            None | Some("") => {}
            Some("error") => self.failed = true,
            Some(_) => self.finished = true,
        }
    }
}

fn scanned(text: &[u8], size: usize) -> Said {
    let (mut scan, mut kept) = (Scan::new(), Kept::new());
    let completed = text.chunks(size).filter(|part| scan.feed(part, &mut kept).1).count();
    assert_eq!(completed, 1, "{}", String::from_utf8_lossy(text));
    assert!(scan.is_done());
    let all = |tag| kept.all(tag).map(|raw| serde_json::from_slice(raw).unwrap()).collect();
    let failed = scan.facts.finish == Some(Finish::Failed);
    Said {
        content: scan.facts.content,
        finished: scan.facts.finish == Some(Finish::Proper),
        failed,
        usage: all(Tag::Usage),
        errors: all(Tag::Error),
    }
}

/// Some of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each = fields.into_iter().map(|(key, value)| (Just(key), proptest::option::weighted(0.4, value)));
    each.collect::<Vec<_>>()
        .prop_map(|all| {
            let said = all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Value::Object(said.collect())
        })
        .boxed()
}

fn array(element: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    proptest::collection::vec(element, 0..3).prop_map(Value::from).boxed()
}

/// Anything, and often what looks like something that matters elsewhere.
fn any_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        2 => Just(Value::Null),
        1 => Just(json!(7)),
        1 => Just(json!(true)),
        2 => Just(json!("")),
        3 => proptest::sample::select(vec!["x", "stop", "error", "\"usage\":{", "\\", "a\\\"", "{[", "größer", "}],"])
            .prop_map(Value::from),
    ];
    let keys = proptest::sample::select(vec![
        "choices",
        "delta",
        "usage",
        "error",
        "text",
        "role",
        "index",
        "id",
        "finish_reason",
        "a\"usage",
        "usage\\",
    ]);
    let deep = leaf.prop_recursive(3, 16, 4, move |inner| {
        let fields =
            proptest::collection::btree_map(keys.clone().prop_map(str::to_owned), inner.clone(), 0..4);
        prop_oneof![array(inner.boxed()), fields.prop_map(|all| Value::Object(all.into_iter().collect()))]
    });
    deep.boxed()
}

fn message() -> BoxedStrategy<Value> {
    let any = any_value;
    let delta = || {
        let fields = ["content", "role", "type", "usage", "stop_reason", "finish_reason", "tool_calls", "id"];
        prop_oneof![4 => object(fields.map(|key| (key, any())).to_vec()), 1 => any()].boxed()
    };
    let choice = object(vec![
        ("delta", delta()),
        ("message", delta()),
        ("text", any()),
        ("finish_reason", any()),
        ("usage", any()),
        ("error", any()),
        ("logprobs", any()),
    ]);
    let candidate = object(["content", "finishReason", "index"].map(|key| (key, any())).to_vec());
    let wrapper = || object(["usage", "error", "tools"].map(|key| (key, any())).to_vec());
    object(vec![
        ("choices", prop_oneof![3 => array(choice), 1 => any()].boxed()),
        ("candidates", prop_oneof![3 => array(candidate), 1 => any()].boxed()),
        ("delta", delta()),
        ("message", wrapper()),
        ("response", wrapper()),
        ("x_groq", wrapper()),
        ("usage", any()),
        ("usageMetadata", any()),
        ("error", any()),
        ("content", any()),
        ("stop_reason", any()),
        ("metadata", any()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_is_read_as_from_its_parsed_form(message in message(), pretty in any::<bool>(), size in 1..9_usize) {
        let text = if pretty { serde_json::to_vec_pretty(&message) } else { serde_json::to_vec(&message) }.unwrap();
        let mut expected = reference(message.as_object().unwrap());
        // A failure among the reasons to end outweighs the others; only so many parts are kept.
        expected.finished &= !expected.failed;
        prop_assert!(expected.usage.len() + expected.errors.len() < 16);
        prop_assert_eq!(&scanned(&text, text.len()), &expected);
        prop_assert_eq!(&scanned(&text, size), &expected);
    }
}
