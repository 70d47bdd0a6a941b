use proptest::prelude::*;

use super::*;

type Event = (Vec<u8>, Vec<u8>, bool);

#[derive(Default)]
struct Collect {
    events: Vec<Event>,
    whole: usize,
    parts: Vec<u8>,
    stray: Vec<Vec<u8>>,
    line: Vec<u8>,
    alive: usize,
}

impl Sink for Collect {
    fn event(&mut self, name: &[u8], data: &[u8]) {
        assert!(self.parts.is_empty(), "an event in parts ends before another begins");
        self.whole += 1;
        self.events.push((name.to_vec(), data.to_vec(), true));
    }

    fn part(&mut self, _: &[u8], data: &[u8]) {
        assert!(!data.is_empty(), "nothing is no part");
        self.parts.extend_from_slice(data);
    }

    fn end(&mut self, name: &[u8], terminated: bool) {
        self.events.push((name.to_vec(), std::mem::take(&mut self.parts), terminated));
    }

    fn alive(&mut self) {
        self.alive += 1;
    }

    fn stray(&mut self, part: &[u8]) {
        self.line.extend_from_slice(part);
    }

    fn stray_end(&mut self) {
        self.stray.push(std::mem::take(&mut self.line));
    }
}

fn parse<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Collect {
    let (mut parser, mut sink) = (Parser::new(), Collect::default());
    frames.into_iter().for_each(|frame| parser.feed(frame, &mut sink));
    parser.finish(&mut sink);
    sink
}

fn events(text: &str) -> Vec<(String, String, bool)> {
    let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    parse([text.as_bytes()])
        .events
        .into_iter()
        .map(|(name, data, end)| (text_of(name), text_of(data), end))
        .collect()
}

/// The standard's own words, on the whole text at once. The last event counts without its blank line.
fn reference(text: &[u8]) -> Vec<Event> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), None::<String>);
    let mut lines: Vec<&str> = text.split('\n').collect();
    let last = lines.pop().unwrap();
    let mut line = |line: &str, is_last: bool| {
        if line.is_empty() && !is_last {
            let name = std::mem::take(&mut name);
            if let Some(data) = data.take() {
                events.push((name.into_bytes(), data.into_bytes(), true));
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data = Some(data.take().map_or_else(|| value.to_owned(), |before| before + "\n" + value));
            }
            "event" => name = value.to_owned(),
            _ => {}
        }
        if is_last && let Some(data) = data.take() {
            events.push((name.clone().into_bytes(), data.into_bytes(), false));
        }
    };
    for each in lines {
        line(each, false);
    }
    line(last, true);
    events
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        6 => "[a-zß😀\u{2028}: ]{0,12}".prop_map(|value| format!("data: {value}")),
        2 => "[a-z: ]{0,5}".prop_map(|value| format!("data:{value}")),
        2 => "[a-z.: ]{0,9}".prop_map(|value| format!("event:{value}")),
        1 => Just("data".to_owned()),
        1 => Just("event".to_owned()),
        1 => "[a-z ]{0,5}".prop_map(|value| format!(": {value}")),
        1 => Just("id: 7".to_owned()),
        1 => Just("retry: 10".to_owned()),
        2 => "[ a-z{}\"é:]{1,9}",
        6 => Just(String::new()),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let mixed = proptest::collection::vec((line, end.clone()), 0..24);
    (any::<bool>(), mixed, proptest::option::of(end), any::<bool>()).prop_map(|(bom, lines, same, cut)| {
        let mut text = if bom { "\u{FEFF}".to_owned() } else { String::new() };
        for (line, end) in lines {
            text += &line;
            text += same.unwrap_or(end);
        }
        if cut {
            let kept = text.trim_end_matches(['\r', '\n']).len();
            text.truncate(kept);
        }
        text.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn b146_any_line_ends_under_any_splits_equal_the_standard(
        text in stream(),
        splits in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let mut at: Vec<usize> = splits.iter().map(|index| index.index(text.len() + 1)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let frames = at.windows(2).map(|two| &text[two[0]..two[1]]);
        prop_assert_eq!(&parse(frames).events, &reference(&text));
        prop_assert_eq!(&parse(text.chunks(1)).events, &reference(&text));
    }
}

#[test]
fn an_event_that_lies_in_a_frame_is_a_slice_of_it() {
    struct Inside<'a>(&'a [u8], usize);
    impl Sink for Inside<'_> {
        fn event(&mut self, _: &[u8], data: &[u8]) {
            assert!(self.0.as_ptr_range().contains(&data.as_ptr()));
            self.1 += 1;
        }
        fn part(&mut self, _: &[u8], _: &[u8]) {
            panic!("nothing here is cut");
        }
        fn end(&mut self, _: &[u8], _: bool) {
            panic!("nothing here is cut");
        }
    }
    let frame = b"event: ping\ndata: {}\n\ndata: one\r\n\r\ndata:two\r\r";
    let mut inside = Inside(frame, 0);
    Parser::new().feed(frame, &mut inside);
    assert_eq!(inside.1, 3);
}

#[test]
fn a_cr_and_an_lf_in_two_frames_are_one_line_end() {
    let frames: [&[u8]; 2] = [b"data: a\r", b"\ndata: b\r\n\r\n"];
    assert_eq!(parse(frames).events, [(b"".to_vec(), b"a\nb".to_vec(), true)]);
}

#[test]
fn comments_and_blank_lines_and_other_fields_are_signs_of_life_and_no_event() {
    let seen = parse([&b": keep-alive\n\nid: 1\nretry: 3000\n\n"[..]]);
    assert!(seen.events.is_empty());
    assert_eq!(seen.alive, 5);
}

#[test]
fn a_comment_in_two_frames_is_one_sign_of_life() {
    let frames: [&[u8]; 3] = [b": keep", b"-alive", b"\n"];
    assert_eq!(parse(frames).alive, 1);
}

#[test]
fn a_line_that_is_no_field_is_handed_over_apart() {
    let seen = parse([&b"data: a\n\n{\n  \"error\": 1\n}\r\ndatax: 1\nData: 2\n"[..]]);
    assert_eq!(seen.events.len(), 1);
    assert_eq!(seen.stray, [&b"{"[..], b"  \"error\": 1", b"}", b"datax: 1", b"Data: 2"]);
}

#[test]
fn a_line_that_is_no_field_ends_with_the_stream_too() {
    assert_eq!(parse([&b"{\"error\""[..], b":1}"]).stray, [b"{\"error\":1}"]);
}

#[test]
fn of_a_long_event_name_the_first_64_bytes_are_kept() {
    let name = "n".repeat(100);
    for cut in [0, 60, 64, 70, 100] {
        let text = format!("event:{name}\ndata: x\n\n");
        let (first, second) = text.as_bytes().split_at("event:".len() + cut);
        assert_eq!(parse([first, second]).events, [(vec![b'n'; 64], b"x".to_vec(), true)], "{cut}");
    }
}

#[test]
fn b148_the_last_event_is_handed_over_with_and_without_its_blank_line() {
    let with = |end: bool| vec![(String::new(), "x".to_owned(), end)];
    assert_eq!(events("data: x"), with(false));
    assert_eq!(events("data: x\n"), with(false));
    assert_eq!(events("data: x\n\n"), with(true));
    assert_eq!(events("event: x\n"), []);
}

#[test]
fn what_only_begins_like_a_byte_order_mark_is_no_field() {
    let seen = parse([&b"\xEF"[..], b"\xBBdata: x\n\ndata: y\n\n"]);
    assert_eq!(seen.events, [(b"".to_vec(), b"y".to_vec(), true)]);
}

#[test]
fn an_event_name_without_data_does_not_name_the_next_event() {
    assert_eq!(events("event: a\n\ndata: x\n\n"), [(String::new(), "x".to_owned(), true)]);
}
