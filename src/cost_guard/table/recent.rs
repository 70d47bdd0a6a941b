//! The prices that a thread found last.
//!
//! What is noted is true for ever: in the table of this number, this model has this price. So nothing here is to be told
//! when a table is replaced; its successor has another number.

use std::cell::RefCell;

use super::PriceTable;
use crate::call::Key;
use crate::cost_guard::price::Short;

struct Noted {
    table: u64,
    /// Whether it has the same price at every upstream.
    anywhere: bool,
    upstream: Option<Key>,
    model: Option<Key>,
    short: Short,
}

/// A power of two.
const PLACES: usize = 8;
/// Longer names are looked up in the table: a note of them would be allocated.
const LONGEST: usize = 24;

thread_local! {
    static NOTED: RefCell<[Option<Noted>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// The price of a model at an upstream in the table of this number, if this thread has found it lately.
#[inline]
pub(super) fn find(table: u64, upstream: Option<&Key>, model: Option<&Key>) -> Option<Short> {
    let place = place(model);
    // A thread that is ending has no notes.
    NOTED
        .try_with(|all| {
            let all = all.borrow();
            let noted = all[place].as_ref()?;
            let found = noted.table == table
                && same(noted.model.as_ref(), model)
                && (noted.anywhere || same(noted.upstream.as_ref(), upstream));
            found.then_some(noted.short)
        })
        .ok()
        .flatten()
}

/// Notes a price.
pub(super) fn note(table: &PriceTable, upstream: Option<&Key>, model: Option<&Key>, short: Short) {
    if [upstream, model].into_iter().flatten().any(|key| key.as_str().len() > LONGEST) {
        return;
    }
    let noted = Noted {
        table: table.number,
        anywhere: table.is_same_at_all(),
        upstream: upstream.cloned(),
        model: model.cloned(),
        short,
    };
    let _ = NOTED.try_with(|all| all.borrow_mut()[place(model)] = Some(noted));
}

#[inline]
fn same(one: Option<&Key>, other: Option<&Key>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let (one, other) = (one.as_str(), other.as_str());
            one.len() == other.len() && (one.is_empty() || one == other)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Models of one family differ in length or in their last letters.
#[inline]
fn place(model: Option<&Key>) -> usize {
    let name = model.map_or(&[][..], |model| model.as_str().as_bytes());
    (name.len() + usize::from(name.last().copied().unwrap_or(0))) % PLACES
}
