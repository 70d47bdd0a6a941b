//! The slots of the probes: so many at once, each with a lease.

/// A probe that is out.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Which one, never zero.
    serial: u32,
    /// When its slot is given to another.
    until: u64,
}

/// Which probes are out.
///
/// 1. Never more than `most` live probes.
/// 2. A serial is live from its taking to its giving back, to the end of its lease, or to the next `clear`, whichever
///    comes first. Only a live probe has a vote.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    out: Vec<Probe>,
    last: u32,
}

impl Probes {
    /// Takes a slot, also one whose lease is over; says the probe's serial.
    pub(super) fn take(&mut self, now: u64, most: u32, lease: u64) -> Option<u32> {
        if self.out.len() >= most as usize {
            self.out.retain(|probe| now < probe.until);
        }
        if self.out.len() >= most as usize {
            return None;
        }
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.out.push(Probe { serial: self.last, until: now.saturating_add(lease) });
        Some(self.last)
    }

    /// Gives a slot back, and says whether the probe was still live.
    pub(super) fn give_back(&mut self, now: u64, serial: u32) -> bool {
        let Some(place) = self.out.iter().position(|probe| probe.serial == serial) else { return false };
        now < self.out.swap_remove(place).until
    }

    /// How many are live.
    pub(super) fn live(&self, now: u64) -> usize {
        self.out.iter().filter(|probe| now < probe.until).count()
    }

    /// Forgets all: their answers come too late.
    pub(super) fn clear(&mut self) {
        self.out.clear();
    }
}
