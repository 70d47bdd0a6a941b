//! Structured fields, as far as the drafts of `RateLimit` headers use them.

use std::time::Duration;

use super::{Dimension, Limit, Limits, Reset};

/// Longer fields are no information.
const LONGEST_FIELD: usize = 4_096;
/// Members beyond these are not read.
const MOST_MEMBERS: usize = 16;

/// A member of a list: `"name";q=50;w=60`, `100;w=60` or, in the older grammar, `limit=100`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Member<'a> {
    name: &'a str,
    /// The number behind `=` of a dictionary's member.
    value: Option<u64>,
    quota: Option<u64>,
    window: Option<u64>,
    remaining: Option<u64>,
    reset: Option<u64>,
    unit: Option<&'a str>,
}

/// The members of one field over all its lines; empty if any of it is malformed.
#[derive(Debug, Default)]
struct Members<'a> {
    all: [Member<'a>; MOST_MEMBERS],
    count: usize,
}

impl<'a> Members<'a> {
    fn read(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut members = Self::default();
        for line in lines {
            if members.add(line).is_none() {
                return Self::default();
            }
        }
        members
    }

    fn add(&mut self, line: &'a [u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok().filter(|line| line.len() <= LONGEST_FIELD)?;
        for text in Split::new(line, b',') {
            let member = member(text)?;
            if let Some(slot) = self.all.get_mut(self.count) {
                *slot = member;
                self.count += 1;
            }
        }
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.all.iter().take(self.count)
    }
}

/// Adds what `RateLimit` and `RateLimit-Policy` say: the drafts up to 07 name the numbers, later ones the policies.
pub(super) fn read<'a>(
    limits: &mut Limits,
    now: impl Iterator<Item = &'a [u8]>,
    policies: impl Iterator<Item = &'a [u8]>,
) {
    let (now, policies) = (Members::read(now), Members::read(policies));
    if now.iter().any(|member| member.value.is_some()) {
        let number = |name| now.iter().find(|member| member.name == name).and_then(|member| member.value);
        let limit = number("limit");
        limits.add(Limit {
            dimension: Dimension::Requests,
            window: limit.and_then(|limit| window_of(&policies, limit)),
            limit,
            remaining: number("remaining"),
            reset: number("reset").map(|seconds| Reset::Window(Duration::from_secs(seconds))),
        });
        return;
    }
    for member in now.iter() {
        let policy = policies.iter().find(|policy| policy.name == member.name).copied().unwrap_or_default();
        add(limits, &policy, member.remaining, member.reset);
    }
    for policy in policies.iter().filter(|policy| now.iter().all(|member| member.name != policy.name)) {
        add(limits, policy, None, None);
    }
}

/// Reads the limit of a draft-03 field: `100`, or `10, 10;w=1, 50;w=60`, where the first number is the limit that ends
/// next, and the others say the windows.
pub(super) fn limit_with_policies(value: &[u8]) -> Option<(u64, Option<Duration>)> {
    if let Some(limit) = std::str::from_utf8(value).ok().and_then(integer) {
        return Some((limit, None));
    }
    let members = Members::read(std::iter::once(value));
    let limit = members.iter().next()?.name.parse().ok()?;
    Some((limit, window_of(&members, limit)))
}

fn add(limits: &mut Limits, policy: &Member<'_>, remaining: Option<u64>, reset: Option<u64>) {
    let dimension = match policy.unit {
        None | Some("requests") => Dimension::Requests,
        Some("tokens") => Dimension::Tokens,
        // Bytes and requests at once are no dimension of a rate.
        Some(_) => return,
    };
    // A policy of the older grammar has its quota where the name stands.
    let limit = policy.quota.or_else(|| policy.name.parse().ok());
    limits.add(Limit {
        dimension,
        window: policy.window.filter(|window| *window > 0).map(Duration::from_secs),
        limit,
        remaining,
        reset: reset.map(|seconds| Reset::Window(Duration::from_secs(seconds))),
    });
}

fn window_of(policies: &Members<'_>, limit: u64) -> Option<Duration> {
    let same = policies.iter().find(|policy| policy.window.is_some() && policy.name.parse() == Ok(limit))?;
    same.window.filter(|window| *window > 0).map(Duration::from_secs)
}

fn member(text: &str) -> Option<Member<'_>> {
    let mut parts = Split::new(text, b';');
    let head = parts.next()?.trim_matches([' ', '\t']);
    let mut member = Member::default();
    if let Some(quoted) = head.strip_prefix('"') {
        member.name = quoted.strip_suffix('"')?;
    } else if let Some((name, value)) = head.split_once('=') {
        member.name = token(name)?;
        member.value = Some(integer(value)?);
    } else {
        member.name = token(head)?;
    }
    for part in parts {
        let (name, value) = part.trim_matches([' ', '\t']).split_once('=').unwrap_or((part, "?1"));
        match token(name.trim_matches([' ', '\t']))? {
            "q" => member.quota = Some(integer(value)?),
            "w" | "window" => member.window = Some(integer(value)?),
            "r" => member.remaining = Some(integer(value)?),
            "t" => member.reset = Some(integer(value)?),
            "qu" => member.unit = Some(value.trim_matches('"')),
            _ => {}
        }
    }
    Some(member)
}

fn token(text: &str) -> Option<&str> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*:/".contains(&byte);
    (!text.is_empty() && text.bytes().all(valid)).then_some(text)
}

/// An integer of a structured field has at most 15 digits; none of these is negative.
fn integer(text: &str) -> Option<u64> {
    let valid = text.len() <= 15 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

/// The parts of a text between separators, those inside quoted strings left alone.
#[derive(Debug)]
struct Split<'a> {
    rest: Option<&'a str>,
    separator: u8,
}

impl<'a> Split<'a> {
    fn new(text: &'a str, separator: u8) -> Self {
        Self { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (mut quoted, mut escaped) = (false, false);
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if byte == self.separator && !quoted => {
                    self.rest = rest.get(at + 1..);
                    return rest.get(..at);
                }
                _ => {}
            }
        }
        self.rest = None;
        Some(rest)
    }
}
