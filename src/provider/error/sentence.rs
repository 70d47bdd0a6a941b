//! What is told by a sentence alone.
//!
//! A sentence can quote what the user wrote, so none is searched: the provider's own beginning is compared, and only
//! under the code that the provider gives to it.

use http::StatusCode;

use super::Said;
use crate::verdict::{Class, Reason, Verdict};

pub(super) fn verdict(
    said: &Said<'_>,
    status: Option<StatusCode>,
    errortype: Option<&str>,
) -> Option<Verdict> {
    let message = said.message();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|each| message.starts_with(each));
    let unfit = |reason| Some(Verdict::new(Class::Unfit).with_reason(reason));
    if said.has("type", "invalid_request_error") {
        if begins(&["prompt is too long"]) {
            return unfit(Reason::Context);
        }
        // A limit that the account's owner set: "… API usage limits", "… workspace API usage limits".
        if begins(&["You have reached your specified "]) {
            return Some(Verdict::new(Class::Exhausted));
        }
        if begins(&["Output blocked by content filtering policy"]) {
            return Some(Verdict::new(Class::Invalid).with_reason(Reason::Policy));
        }
    }
    if said.has("code", "rate_limit_exceeded") && begins(&["Request too large"]) && exceeds_limit(message) {
        return unfit(Reason::Limit);
    }
    if said.has("status", "INVALID_ARGUMENT") && begins(&["The input token count"]) {
        return unfit(Reason::Context);
    }
    let too_long = ["Input is too long", "Too many input tokens", "too many input tokens"];
    if errortype == Some("ValidationException") && begins(&too_long) {
        return unfit(Reason::Context);
    }
    // A spent credit has the code of a limit that passes.
    let is_limit = status == Some(StatusCode::TOO_MANY_REQUESTS);
    if is_limit && said.is_text_with_code() && begins(&["Your "]) && message.contains("credits") {
        return Some(Verdict::new(Class::Exhausted));
    }
    None
}

/// `… Limit 30000, Requested 34307. …`, and nothing used: no wait makes it fit.
fn exceeds_limit(message: &str) -> bool {
    let number = |name: &str| {
        let (_, rest) = message.split_once(name)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse::<u64>().ok()
    };
    let (limit, requested) = (number("Limit "), number(", Requested "));
    number(", Used ").is_none() && limit.zip(requested).is_some_and(|(limit, requested)| requested > limit)
}
