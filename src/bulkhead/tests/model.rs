//! The slots against the plainest model there is: a list of who runs and a list of who waits.

use std::task::Waker;

use proptest::prelude::*;

use super::*;
use crate::bulkhead::slots::{Entry, Fate, Slots, Ticket};
use crate::time::{self, Instant};

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter {
        level: u8,
        wait: Option<u64>,
    },
    GiveBack,
    /// The waiter's timer fires, or its caller leaves: in both cases it gives up its place.
    Leave(usize),
    See(usize),
    Resize(u32),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..Priority::LEVELS, proptest::option::of(0..20_u64))
            .prop_map(|(level, wait)| Step::Enter { level, wait }),
        4 => Just(Step::GiveBack),
        2 => any::<usize>().prop_map(Step::Leave),
        2 => any::<usize>().prop_map(Step::See),
        1 => (0..6_u32).prop_map(Step::Resize),
        2 => (1..10_u64).prop_map(Step::Advance),
    ]
}

/// Those that wait, in the order they came, and what became of those that do no more.
struct Naive {
    limit: u32,
    queue: Option<u32>,
    running: u32,
    waiting: Vec<(u64, u8, Option<Instant>)>,
    fates: std::collections::HashMap<u64, Fate>,
    next: u64,
}

impl Naive {
    fn enter(&mut self, level: u8, by: Option<Instant>) -> Option<u64> {
        if self.limit == 0 || self.waiting.len() >= self.queue.unwrap_or(self.limit) as usize {
            return None;
        }
        self.next += 1;
        self.waiting.push((self.next, level, by));
        self.fates.insert(self.next, Fate::Waiting);
        Some(self.next)
    }

    fn serve(&mut self, now: Instant) {
        while self.running < self.limit && !self.waiting.is_empty() {
            let best = (0..self.waiting.len()).min_by_key(|&i| (7 - self.waiting[i].1, self.waiting[i].0));
            let (id, _, by) = self.waiting.remove(best.expect("somebody waits"));
            let late = by.is_some_and(|by| by <= now);
            self.fates.insert(id, if late { Fate::Late } else { Fate::Granted });
            self.running += u32::from(!late);
        }
    }

    fn resize(&mut self, limit: u32, now: Instant) {
        self.limit = limit;
        if limit == 0 {
            for (id, ..) in self.waiting.drain(..) {
                self.fates.insert(id, Fate::Closed);
            }
        }
        self.serve(now);
    }
}

struct Both {
    real: Slots,
    naive: Naive,
    tickets: Vec<(Ticket, u64)>,
    /// How many slots are in hand, seen by their owners.
    slots: u32,
    now: Instant,
}

impl Both {
    fn run(&mut self, step: Step) {
        match step {
            Step::Enter { level, wait } => self.enter(level, wait),
            Step::GiveBack if self.slots > 0 => {
                self.slots -= 1;
                self.give_back();
            }
            Step::Leave(which) if !self.tickets.is_empty() => {
                let (ticket, id) = self.tickets.swap_remove(which % self.tickets.len());
                let fate = self.real.leave(&ticket);
                assert_eq!(fate, self.naive.fates[&id]);
                self.naive.waiting.retain(|(waiting, ..)| *waiting != id);
                if fate == Fate::Granted {
                    self.give_back();
                }
            }
            Step::See(which) if !self.tickets.is_empty() => {
                let which = which % self.tickets.len();
                let fate = self.real.poll(&self.tickets[which].0, Waker::noop());
                assert_eq!(fate, self.naive.fates[&self.tickets[which].1]);
                if fate != Fate::Waiting {
                    self.tickets.swap_remove(which);
                    self.slots += u32::from(fate == Fate::Granted);
                }
            }
            Step::Resize(limit) => {
                self.real.set_limit(limit, || self.now);
                self.naive.resize(limit, self.now);
            }
            Step::Advance(seconds) => self.now += Duration::from_secs(seconds),
            Step::GiveBack | Step::Leave(_) | Step::See(_) => {}
        }
        assert_eq!(self.real.in_flight(), self.naive.running);
        assert_eq!(self.real.queued() as usize, self.naive.waiting.len());
    }

    fn enter(&mut self, level: u8, wait: Option<u64>) {
        let by = wait.map(|wait| self.now + Duration::from_secs(wait));
        let room = self.naive.waiting.is_empty() && self.naive.running < self.naive.limit;
        assert_eq!(self.real.try_take(), room);
        if room {
            self.naive.running += 1;
            self.slots += 1;
            return;
        }
        let place = self.naive.enter(level, by);
        assert_eq!(self.real.is_full(), place.is_none());
        match (self.real.enter(Priority::new(level).expect("a level that there is"), by), place) {
            (Entry::Queued(ticket), Some(id)) => self.tickets.push((ticket, id)),
            (Entry::Full, None) => {}
            _ => panic!("they disagree on whether there is a place"),
        }
    }

    fn give_back(&mut self) {
        self.real.give_back(|| self.now);
        self.naive.running -= 1;
        self.naive.serve(self.now);
    }
}

proptest! {
    #[test]
    fn the_slots_do_what_two_lists_do(
        limit in 0..5_u32,
        queue in proptest::option::of(0..5_u32),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let naive = Naive {
            limit, queue, running: 0, waiting: Vec::new(), fates: std::collections::HashMap::new(), next: 0,
        };
        let mut both =
            Both { real: Slots::new(limit, queue), naive, tickets: Vec::new(), slots: 0, now: time::now() };
        for step in steps {
            both.run(step);
        }
        // Whoever is left gives back what it has: nothing is lost.
        while !both.tickets.is_empty() {
            both.run(Step::Leave(0));
        }
        while both.slots > 0 {
            both.run(Step::GiveBack);
        }
        prop_assert_eq!((both.real.in_flight(), both.real.queued()), (0, 0));
    }
}
