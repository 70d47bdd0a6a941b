//! The reservations of one desk: found by identity, in place.

use rustc_hash::FxHashMap;

use crate::cost_guard::ledger::HoldId;
use crate::cost_guard::window::Stamp;
use crate::money::Usd;

/// What a hold has in one account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leg {
    /// Whether it has anything: not every budget counts every call.
    pub(super) used: bool,
    pub(super) shard: u8,
    pub(super) slot: usize,
    /// The window that it was reserved in.
    pub(super) stamp: Stamp,
    /// The drawer whose money it is; lease 0 is the account's own.
    pub(super) drawer: usize,
    pub(super) lease: u64,
}

/// A hold, wherever its legs are.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// 0: the place is free.
    id: u64,
    amount: Usd,
    /// It is being settled: what is left of it belongs to who does that.
    closing: bool,
}

/// A table of few places to look at: identities come one after the other, so that the next place is nearly always free.
///
/// Holds that stay long, or threads that count in step, crowd some of it while the most of it is empty. What finds no place
/// near goes behind the table, and only when that is much the table grows: it is never much larger than what it holds.
#[derive(Debug)]
pub(super) struct Holds {
    /// The table, and behind it those that found no place there.
    places: Vec<Hold>,
    /// As many a hold as there are budgets. None of a free place is used.
    legs: Vec<Leg>,
    books: usize,
    /// The length of the table, a power of two.
    table: usize,
    /// Where those behind the table are.
    far: FxHashMap<u64, usize>,
    /// Places behind the table that are free.
    free: Vec<usize>,
}

/// A hold is in one of so many places, which lie together.
const NEAR: usize = 4;
const AT_FIRST: usize = 64;
/// The table grows once a part of so many would not go into it.
const FAR: usize = 8;

impl Holds {
    pub(super) fn new(books: usize) -> Self {
        Self::with_table(AT_FIRST, books)
    }

    fn with_table(table: usize, books: usize) -> Self {
        Self {
            places: vec![Hold::default(); table],
            legs: vec![Leg::default(); table * books],
            books,
            table,
            far: FxHashMap::default(),
            free: Vec::new(),
        }
    }

    /// The first of the places near, and all of them.
    #[inline]
    fn near(&mut self, id: HoldId) -> (usize, &mut [Hold; NEAR]) {
        let first = (id.sequence() * NEAR) & (self.table - 1);
        let near = self.places.get_mut(first..).and_then(<[Hold]>::first_chunk_mut);
        (first, near.expect("the table's length is a power of two, and above this one"))
    }

    /// Where this hold is.
    #[inline]
    pub(super) fn find(&mut self, id: HoldId) -> Option<usize> {
        let (first, near) = self.near(id);
        match near.iter().position(|hold| hold.id == id.get()) {
            Some(at) => Some(first + at),
            None => self.find_far(id),
        }
    }

    #[inline]
    fn find_far(&self, id: HoldId) -> Option<usize> {
        #[cold]
        fn look_up(far: &FxHashMap<u64, usize>, id: u64) -> Option<usize> {
            far.get(&id).copied()
        }
        if self.far.is_empty() { None } else { look_up(&self.far, id.get()) }
    }

    /// A place for a new hold, and its legs, of which none is used yet; `None` where there is such a hold.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each call comes here, and what it gets are three words")]
    pub(super) fn insert(&mut self, id: HoldId, amount: Usd) -> Option<(usize, &mut [Leg])> {
        let far = self.find_far(id);
        let (first, near) = self.near(id);
        if far.is_some() || near.iter().any(|hold| hold.id == id.get()) {
            return None;
        }
        let place = match near.iter().position(|hold| hold.id == 0) {
            Some(at) => first + at,
            None => self.elsewhere(id),
        };
        self.places[place] = Hold { id: id.get(), amount, closing: false };
        Some((place, self.legs(place)))
    }

    /// A place where none near is free.
    #[cold]
    fn elsewhere(&mut self, id: HoldId) -> usize {
        if self.far.len() >= self.table / FAR {
            self.grow();
            let (first, near) = self.near(id);
            if let Some(at) = near.iter().position(|hold| hold.id == 0) {
                return first + at;
            }
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Hold::default());
            self.legs.resize(self.places.len() * self.books, Leg::default());
            self.places.len() - 1
        });
        self.far.insert(id.get(), place);
        place
    }

    fn grow(&mut self) {
        let mut more = Self::with_table(self.table * 2, self.books);
        for (hold, legs) in self.holds() {
            let new = HoldId::known(hold.id).and_then(|id| more.insert(id, hold.amount));
            if let Some((place, new)) = new {
                new.copy_from_slice(legs);
                more.places[place] = *hold;
            }
        }
        *self = more;
    }

    #[cfg(any(test, feature = "file-ledger"))]
    pub(super) fn amount(&self, place: usize) -> Usd {
        self.places[place].amount
    }

    #[inline]
    pub(super) fn legs(&mut self, place: usize) -> &mut [Leg] {
        &mut self.legs[place * self.books..][..self.books]
    }

    /// To be settled by who asks, the first time: where the hold is, its amount and its legs.
    #[inline]
    pub(super) fn close(&mut self, id: HoldId) -> Option<(usize, Usd, &mut [Leg])> {
        let place = self.find(id)?;
        let hold = &mut self.places[place];
        let first = !std::mem::replace(&mut hold.closing, true);
        let amount = hold.amount;
        first.then(|| (place, amount, self.legs(place)))
    }

    /// Forgets a hold, of whose legs none is used any more.
    #[inline]
    pub(super) fn remove(&mut self, place: usize) {
        let id = std::mem::take(&mut self.places[place].id);
        if place >= self.table {
            self.forget_far(id, place);
        }
    }

    #[cold]
    fn forget_far(&mut self, id: u64, place: usize) {
        self.far.remove(&id);
        self.free.push(place);
    }

    /// All holds, each with its legs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Usd, &[Leg])> {
        self.holds().map(|(hold, legs)| (hold.amount, legs))
    }

    fn holds(&self) -> impl Iterator<Item = (&Hold, &[Leg])> {
        let books = self.books;
        let holds = self.places.iter().zip(0..).filter(|(hold, _)| hold.id != 0);
        holds.map(move |(hold, place)| (hold, &self.legs[place * books..][..books]))
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_come_are_found_until_they_are_removed() {
        let mut holds = Holds::new(2);
        let ids: Vec<HoldId> = (0..10_000).map(|_| HoldId::fresh()).collect();
        for (slot, &id) in ids.iter().enumerate() {
            let (_, legs) = holds.insert(id, Usd::nanos(slot as u64)).unwrap();
            legs[1].slot = slot;
            assert!(holds.insert(id, Usd::ZERO).is_none(), "it is known");
        }
        for (slot, &id) in ids.iter().enumerate().filter(|(slot, _)| slot % 3 != 0) {
            let place = holds.find(id).unwrap();
            assert_eq!((holds.amount(place), holds.legs(place)[1].slot), (Usd::nanos(slot as u64), slot));
            holds.remove(place);
            assert_eq!(holds.find(id), None);
        }
        assert_eq!(holds.iter().count(), 3_334);
    }

    #[test]
    fn one_that_stays_does_not_make_the_table_grow() {
        let mut holds = Holds::new(1);
        let stays = HoldId::fresh();
        assert!(holds.insert(stays, Usd::nanos(3)).is_some());
        for _ in 0..10_000 {
            let (place, _) = holds.insert(HoldId::fresh(), Usd::ZERO).unwrap();
            holds.remove(place);
        }
        assert_eq!(holds.places.len(), AT_FIRST);
        assert_eq!(holds.close(stays).map(|(_, amount, _)| amount), Some(Usd::nanos(3)));
        assert!(holds.close(stays).is_none(), "once");
    }

    #[test]
    fn the_table_is_never_much_larger_than_what_it_holds() {
        // Of many calls a few stay long, and lie wherever they happened to come.
        let (mut holds, mut rng) = (Holds::new(1), fastrand::Rng::with_seed(1));
        let mut stay = std::collections::VecDeque::new();
        for _ in 0..1_000_000 {
            let id = HoldId::fresh();
            let (place, _) = holds.insert(id, Usd::ZERO).unwrap();
            if rng.u32(0..100) > 0 {
                holds.remove(place);
                continue;
            }
            stay.push_back(id);
            if stay.len() > 1_000 {
                let place = stay.pop_front().and_then(|id| holds.find(id)).unwrap();
                holds.remove(place);
            }
        }
        assert!(stay.iter().all(|&id| holds.find(id).is_some()));
        assert_eq!(holds.iter().count(), 1_000);
        assert!(holds.places.len() <= 16_384, "{}", holds.places.len());
    }

    #[test]
    fn threads_that_count_in_step_find_places_too() {
        let mut holds = Holds::new(2);
        let ids = (1..=512_u64).flat_map(|thread| (0..4).map(move |at| (thread * 1_024 + at) << 6));
        let ids: Vec<HoldId> = ids.map(|id| HoldId::known(id).unwrap()).collect();
        for (slot, &id) in ids.iter().enumerate() {
            holds.insert(id, Usd::ZERO).unwrap().1[1].slot = slot;
        }
        assert!(holds.places.len() <= 32_768, "{}", holds.places.len());
        for (slot, &id) in ids.iter().enumerate() {
            let place = holds.find(id).unwrap();
            assert_eq!(holds.legs(place)[1].slot, slot);
            holds.remove(place);
            assert_eq!(holds.find(id), None);
        }
        assert_eq!((holds.iter().count(), holds.far.len()), (0, 0));
    }
}
