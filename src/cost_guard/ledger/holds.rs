//! The reservations of one desk: found by identity, in place.

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
#[derive(Debug)]
pub(super) struct Holds {
    places: Vec<Hold>,
    /// As many a hold as there are budgets.
    legs: Vec<Leg>,
    books: usize,
}

/// A hold is in one of so many places.
const NEAR: usize = 4;
const AT_FIRST: usize = 64;

impl Holds {
    pub(super) fn new(books: usize) -> Self {
        let mut holds = Self { places: Vec::new(), legs: Vec::new(), books };
        holds.resize(AT_FIRST);
        holds
    }

    fn resize(&mut self, places: usize) {
        self.places = vec![Hold::default(); places];
        self.legs = vec![Leg::default(); places * self.books];
    }

    fn near(&self, id: HoldId) -> impl Iterator<Item = usize> + use<> {
        let (first, mask) = (id.sequence(), self.places.len() - 1);
        // Within bounds, whatever the number: the length is a power of two.
        (first..first.wrapping_add(NEAR)).map(move |place| place & mask)
    }

    /// Where this hold is.
    #[inline]
    pub(super) fn find(&self, id: HoldId) -> Option<usize> {
        self.near(id).find(|&place| self.places[place].id == id.get())
    }

    /// A place for a new hold, whose legs are then to be written, all of them.
    #[inline]
    pub(super) fn insert(&mut self, id: HoldId, amount: Usd) -> usize {
        let place = self.near(id).find(|&place| self.places[place].id == 0);
        let place = place.unwrap_or_else(|| self.grow(id));
        self.places[place] = Hold { id: id.get(), amount, closing: false };
        place
    }

    /// More places, until there is one for this hold.
    #[cold]
    fn grow(&mut self, id: HoldId) -> usize {
        let mut places = self.places.len();
        loop {
            places *= 2;
            let mut more = Self { places: Vec::new(), legs: Vec::new(), books: self.books };
            more.resize(places);
            let moved = self.places.iter().zip(0..).filter(|(hold, _)| hold.id != 0).all(|(hold, from)| {
                let near =
                    HoldId::known(hold.id).and_then(|id| more.near(id).find(|&to| more.places[to].id == 0));
                if let Some(to) = near {
                    more.places[to] = *hold;
                    let books = self.books;
                    let legs: &[Leg] = &self.legs[from * books..][..books];
                    more.legs[to * books..][..books].copy_from_slice(legs);
                }
                near.is_some()
            });
            let free = more.near(id).find(|&place| more.places[place].id == 0);
            if let Some(free) = free.filter(|_| moved) {
                *self = more;
                return free;
            }
        }
    }

    #[inline]
    pub(super) fn amount(&self, place: usize) -> Usd {
        self.places[place].amount
    }

    #[inline]
    pub(super) fn legs(&mut self, place: usize) -> &mut [Leg] {
        &mut self.legs[place * self.books..][..self.books]
    }

    /// To be settled by who asks: true the first time.
    #[inline]
    pub(super) fn close(&mut self, place: usize) -> bool {
        !std::mem::replace(&mut self.places[place].closing, true)
    }

    /// Forgets a hold.
    #[inline]
    pub(super) fn remove(&mut self, place: usize) {
        self.places[place].id = 0;
    }

    /// All holds, each with its legs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Usd, &[Leg])> {
        let books = self.books;
        let holds = self.places.iter().zip(0..).filter(|(hold, _)| hold.id != 0);
        holds.map(move |(hold, place)| (hold.amount, &self.legs[place * books..][..books]))
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
            let place = holds.insert(id, Usd::nanos(slot as u64));
            holds.legs(place)[1].slot = slot;
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
        holds.insert(stays, Usd::ZERO);
        for _ in 0..10_000 {
            let place = holds.insert(HoldId::fresh(), Usd::ZERO);
            holds.remove(place);
        }
        assert_eq!(holds.places.len(), AT_FIRST);
        assert!(holds.find(stays).is_some_and(|place| holds.close(place) && !holds.close(place)));
    }
}
