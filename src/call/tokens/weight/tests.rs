use proptest::prelude::*;

use super::*;

/// As it is told: characters have weights, and a block of 64 bytes that looks like base64 is data.
fn plain(text: &[u8]) -> u64 {
    let of = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(weight(*byte))).sum::<u64>();
    let is_data = |block: &[u8]| {
        let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
        let dense = block.iter().filter(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count();
        block.len() == 64 && block.iter().all(base64) && dense >= 24
    };
    text.chunks(64).map(|block| if is_data(block) { DATA_WEIGHT } else { of(block) }).sum()
}

/// The same of a JSON string: what stands between its escapes, and what they mean.
fn plain_json(mut raw: &[u8]) -> u64 {
    let mut total = 0;
    while let Some(found) = raw.iter().position(|byte| *byte == b'\\') {
        total += plain(&raw[..found]);
        let (meaning, length) = match json::escape(&raw[found..]) {
            Some((meaning, length)) => (meaning.to_string(), length),
            None => (String::new(), 1),
        };
        total += plain(meaning.as_bytes());
        raw = &raw[found + length..];
    }
    total + plain(raw)
}

/// Text in which all that matters changes often enough: words, capitals, numbers, marks, data, other scripts, escapes.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => "[ a-z]{0,40}",
        2 => "[ -~]{0,80}",
        2 => "[A-Za-z0-9+/]{0,200}",
        1 => "[A-Z0-9]{0,30}",
        1 => "[\\n\\t\u{7f}]{0,3}",
        1 => "\\PC{0,20}",
        1 => r#"(\\[nrtbf"/\\]|\\u[0-9a-f]{4}|\\u[0-9a-f]|\\){0,3}"#,
    ];
    prop_oneof![
        8 => proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..600),
    ]
}

proptest! {
    #[test]
    fn vectors_weigh_as_bytes_do(text in text()) {
        prop_assert_eq!(weigh(&text), plain(&text));
        prop_assert_eq!(weigh_json(&text, false), plain(&text));
    }

    #[test]
    fn escapes_weigh_what_they_mean(text in text()) {
        prop_assert_eq!(weigh_json(&text, true), plain_json(&text));
    }
}

#[test]
fn every_byte_weighs_alone_as_among_others() {
    for byte in 0..=u8::MAX {
        for length in [1, 15, 16, 63, 64, 65, 192, 193, 500] {
            let text = vec![byte; length];
            assert_eq!(weigh(&text), plain(&text), "{length} of {byte:#x}");
        }
    }
}

#[test]
fn data_between_escapes_is_found_wherever_it_stands() {
    // Half of what makes a block data is in one group, half in the next.
    for before in 0..260 {
        let text = [&"a".repeat(before), "\\n", &"b".repeat(20), &"0aB".repeat(15), &"c".repeat(90)].concat();
        assert_eq!(weigh_json(text.as_bytes(), true), plain_json(text.as_bytes()), "{before}");
    }
    let data = "0aB".repeat(22);
    assert!(plain(data.as_bytes()) > 2 * plain("words, and words and words of text".repeat(2).as_bytes()));
}
