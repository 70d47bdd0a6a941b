//! Another model in a JSON body changes the name and no other byte, and every JSON reader sees just that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::call::rewrite_model;
use seawall_fuzz::Frames;
use serde_json::{Deserializer, Value};

const PLAIN: &str = "another/model-1";
const ODD: &str = "a\"b\\c\u{1}\r\né\u{1F600}";

/// Goes through both at once: `after` is `before` with JSON strings of their own in the place of the quoted name.
fn assert_only_names_changed(before: &[u8], after: &[u8], quoted: &[u8]) {
    let (mut before, mut after) = (before, after);
    let mut names = 0;
    loop {
        let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
        if same == before.len() && same == after.len() {
            break;
        }
        // The names may begin alike: back to the opening quote.
        let at = (0..=same).rev().find(|at| after[*at..].starts_with(quoted)).expect("a name begins here");
        let mut values = Deserializer::from_slice(&before[at..]).into_iter::<String>();
        let was = values.next();
        let length = match was {
            Some(Ok(_)) => values.byte_offset(),
            // Bad UTF-8, control characters and bad escapes are passed over: up to the closing quote then.
            _ => closing_quote(&before[at..]),
        };
        before = &before[at + length..];
        after = &after[at + quoted.len()..];
        names += 1;
    }
    assert!(names > 0 || before == after);
}

fn closing_quote(string: &[u8]) -> usize {
    assert_eq!(string.first(), Some(&b'"'));
    let mut at = 1;
    while string[at] != b'"' {
        at += 1 + usize::from(string[at] == b'\\');
    }
    at + 1
}

fuzz_target!(|input: &[u8]| {
    let Frames { body, .. } = Frames::read(input);
    let view = serde_json::from_slice::<Value>(body).ok();
    let named = view.as_ref().filter(|view| view.is_object()).and_then(|view| view.get("model"));
    let Some(plain) = rewrite_model(body, PLAIN) else {
        assert!(!named.is_some_and(Value::is_string), "it names a model");
        return;
    };
    assert_only_names_changed(body, &plain, format!("\"{PLAIN}\"").as_bytes());
    let odd = rewrite_model(body, ODD).expect("what can be rewritten once can be rewritten again");
    assert_eq!(rewrite_model(&plain, ODD).as_ref(), Some(&odd), "nothing is left of the first name");
    assert_eq!(rewrite_model(&odd, PLAIN).as_ref(), Some(&plain), "nothing is left of the odd name");

    let Some(mut view) = view else { return };
    assert!(named_in(&view), "{view}");
    for (name, body) in [(PLAIN, &plain), (ODD, &odd)] {
        view["model"] = Value::from(name);
        let after = serde_json::from_slice::<Value>(body).expect("it was JSON before");
        assert_eq!(after, view);
    }
});

fn named_in(view: &Value) -> bool {
    view.get("model").is_some_and(Value::is_string)
}
