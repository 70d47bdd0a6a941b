//! The prices that a thread found last.
//!
//! What is noted is true for ever: in the table of this number, this model has this price. So nothing here is to be told
//! when a table is replaced; its successor has another number.

use std::cell::RefCell;

use super::PriceTable;
use crate::call::{Key, same_text};
use crate::cost_guard::price::Short;

#[derive(Clone, Copy)]
struct Noted {
    /// 0: nothing is noted.
    table: u64,
    /// Whether it has the same price at every upstream.
    anywhere: bool,
    upstream: Name,
    model: Name,
    short: Short,
}

/// The name of something, or that it has none. In place, so that a thread's notes are nothing to be dropped, and are found
/// without a look at whether they were yet.
#[derive(Clone, Copy)]
struct Name {
    is_some: bool,
    length: u8,
    text: [u8; LONGEST],
}

/// A power of two.
const PLACES: usize = 8;
/// Longer names are looked up in the table.
const LONGEST: usize = 40;

impl Noted {
    const NOTHING: Self =
        Self { table: 0, anywhere: false, upstream: Name::NONE, model: Name::NONE, short: Short::FREE };

    fn is_of(&self, table: u64, upstream: Option<&Key>, model: Option<&Key>) -> bool {
        self.table == table && self.model.is(model) && (self.anywhere || self.upstream.is(upstream))
    }
}

thread_local! {
    static NOTED: RefCell<[Noted; PLACES]> = const { RefCell::new([Noted::NOTHING; PLACES]) };
}

/// The price of a model at an upstream in the table of this number, if this thread has found it lately.
pub(super) fn find(table: u64, upstream: Option<&Key>, model: Option<&Key>) -> Option<Short> {
    let place = place(model);
    // Written once, to where it is asked for. No thread is too near its end for this: nothing here is ever dropped.
    let mut found = None;
    let _ = NOTED.try_with(|all| {
        let noted = &all.borrow()[place];
        if noted.is_of(table, upstream, model) {
            found = Some(noted.short);
        }
    });
    found
}

/// Notes a price.
pub(super) fn note(table: &PriceTable, upstream: Option<&Key>, model: Option<&Key>, short: Short) {
    if let (Some(upstream), Some(name)) = (Name::of(upstream), Name::of(model)) {
        let noted =
            Noted { table: table.number, anywhere: table.is_same_at_all(), upstream, model: name, short };
        let _ = NOTED.try_with(|all| all.borrow_mut()[place(model)] = noted);
    }
}

impl Name {
    const NONE: Self = Self { is_some: false, length: 0, text: [0; LONGEST] };

    /// `None` where it is too long.
    fn of(key: Option<&Key>) -> Option<Self> {
        let Some(key) = key else { return Some(Self::NONE) };
        let (name, mut text) = (key.as_str().as_bytes(), [0; LONGEST]);
        text.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { is_some: true, length: u8::try_from(name.len()).ok()?, text })
    }

    #[inline]
    fn is(&self, key: Option<&Key>) -> bool {
        let Some(key) = key else { return !self.is_some };
        let text = self.text.get(..usize::from(self.length)).unwrap_or_default();
        self.is_some && same_text(text, key.as_str().as_bytes())
    }
}

/// Models of one family differ in length or in their last letters.
#[inline]
fn place(model: Option<&Key>) -> usize {
    let name = model.map_or(&[][..], |model| model.as_str().as_bytes());
    (name.len() + usize::from(name.last().copied().unwrap_or(0))) % PLACES
}
