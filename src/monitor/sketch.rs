//! How long things took, in little memory: a histogram whose buckets are those of `HdrHistogram` with three significant digits
//! (1 024 a doubling, in microseconds), but which keeps only the buckets that are in use.
//!
//! Twelve dense histograms a target would be a megabyte. Here the interval that runs counts in pages that exist where
//! values fall ([`Live`]); an interval that is over is a row of bytes, a gap and a count for each bucket in use
//! ([`Closed`]). A row that grows too long is made coarser, twice as wide buckets at a time.

/// Values below this many microseconds have a bucket each.
const EXACT: u32 = 2048;
const HALF_BITS: u32 = 10;
const EXACT_BITS: u32 = 11;
/// One more than the number of the last bucket, that of 71 minutes and all above.
pub(super) const BUCKETS: usize = (21 << HALF_BITS) + EXACT as usize;

/// The bucket of a value in microseconds.
#[inline]
pub(super) fn bucket(micros: u32) -> u16 {
    let shift = (u32::BITS - micros.leading_zeros()).saturating_sub(EXACT_BITS);
    let number = (shift << HALF_BITS) + (micros >> shift);
    u16::try_from(number).expect("the last bucket of 32 bits is 23 551")
}

/// The largest value of a bucket.
pub(super) fn top(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < u64::from(EXACT) {
        return bucket;
    }
    let shift = (bucket >> HALF_BITS) - 1;
    let mantissa = bucket - (shift << HALF_BITS);
    ((mantissa + 1) << shift) - 1
}

const PAGE_BITS: usize = 6;
const PAGE: usize = 1 << PAGE_BITS;
const PAGES: usize = BUCKETS.div_ceil(PAGE);
const NO_PAGE: u16 = u16::MAX;

/// The values of the interval that runs. Recording allocates only where no value has fallen before.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pages: Box<[u16; PAGES]>,
    counts: Vec<[u16; PAGE]>,
    /// What no longer fits into the counts: very much within one interval.
    spilled: Vec<(u16, u64)>,
    count: u64,
    sum: u64,
}

impl Default for Live {
    fn default() -> Self {
        let pages = Box::new([NO_PAGE; PAGES]);
        Self { pages, counts: Vec::new(), spilled: Vec::new(), count: 0, sum: 0 }
    }
}

impl Live {
    /// Counts a value in microseconds.
    #[inline]
    pub(super) fn record(&mut self, micros: u32) {
        let bucket = usize::from(bucket(micros));
        let page = &mut self.pages[bucket >> PAGE_BITS];
        if *page == NO_PAGE {
            *page = u16::try_from(self.counts.len()).expect("there are 368 pages");
            self.counts.reserve_exact(1);
            self.counts.push([0; PAGE]);
        }
        let slot = &mut self.counts[usize::from(*page)][bucket & (PAGE - 1)];
        match slot.checked_add(1) {
            Some(more) => *slot = more,
            None => self.spill(bucket),
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(u64::from(micros));
    }

    /// Moves a full count aside, and counts one more.
    #[cold]
    fn spill(&mut self, bucket: usize) {
        let page = usize::from(self.pages[bucket >> PAGE_BITS]);
        let slot = &mut self.counts[page][bucket & (PAGE - 1)];
        let full = u64::from(std::mem::replace(slot, 1));
        let bucket = u16::try_from(bucket).expect("below the number of buckets");
        match self.spilled.iter_mut().find(|(known, _)| *known == bucket) {
            Some((_, count)) => *count += full,
            None => self.spilled.push((bucket, full)),
        }
    }

    fn spilled(&self, bucket: u16) -> u64 {
        self.spilled.iter().find(|(known, _)| *known == bucket).map_or(0, |(_, count)| *count)
    }

    /// Each bucket in use, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let pages = self.pages.iter().enumerate().filter(|(_, page)| **page != NO_PAGE);
        pages.flat_map(move |(at, &page)| {
            let counts = self.counts[usize::from(page)].iter().enumerate();
            counts.filter(|(_, count)| **count > 0).map(move |(slot, &count)| {
                let bucket = u16::try_from(at * PAGE + slot).expect("below the number of buckets");
                (bucket, u64::from(count) + self.spilled(bucket))
            })
        })
    }

    pub(super) fn totals(&self) -> (u64, u64) {
        (self.count, self.sum)
    }

    /// Moves all into `closed` and is empty then; its pages stay.
    pub(super) fn close_into(&mut self, closed: &mut Closed, scratch: &mut Vec<(u16, u64)>) {
        if self.count == 0 {
            return;
        }
        closed.add(self.entries(), self.count, self.sum, scratch);
        for page in &mut self.counts {
            page.fill(0);
        }
        self.spilled.clear();
        (self.count, self.sum) = (0, 0);
    }
}

/// The values of an interval that is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    /// A gap and a count for each bucket in use, as numbers of seven bits a byte.
    row: Vec<u8>,
    /// By how many bits buckets are coarser.
    coarse: u8,
    /// How many bytes the row may have.
    most: u16,
    count: u64,
    sum: u64,
}

/// No coarser than this: 32 buckets a doubling, so that nothing is told longer by more than a 32nd, or by 31 µs.
const COARSEST: u8 = 5;

impl Closed {
    /// Empty, with room for a row of this many bytes.
    #[cfg(test)]
    pub(super) fn with_room(most: u16) -> Self {
        Self { most, ..Self::default() }
    }

    /// Empty again; what was allocated stays.
    pub(super) fn clear(&mut self, most: u16) {
        self.row.clear();
        (self.coarse, self.most, self.count, self.sum) = (0, most, 0, 0);
    }

    pub(super) fn totals(&self) -> (u64, u64) {
        (self.count, self.sum)
    }

    /// Each bucket in use, in order, as the last one of those that it stands for.
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries { row: &self.row, at: 0, coarse: self.coarse }
    }

    /// Takes over what another has; that one stays as it is.
    pub(super) fn merge(&mut self, other: &Self, scratch: &mut Vec<(u16, u64)>) {
        scratch.clear();
        union(self.entries(), other.entries(), scratch);
        self.coarse = self.coarse.max(other.coarse);
        self.fit(other.count, other.sum, scratch);
    }

    /// Counts one value in microseconds. Slow: for what comes late.
    pub(super) fn record(&mut self, micros: u32, scratch: &mut Vec<(u16, u64)>) {
        self.add(std::iter::once((bucket(micros), 1)), 1, u64::from(micros), scratch);
    }

    fn add(
        &mut self,
        entries: impl Iterator<Item = (u16, u64)>,
        count: u64,
        sum: u64,
        scratch: &mut Vec<(u16, u64)>,
    ) {
        scratch.clear();
        union(self.entries(), entries, scratch);
        self.fit(count, sum, scratch);
    }

    /// Writes the row, as fine as it may be.
    fn fit(&mut self, count: u64, sum: u64, entries: &[(u16, u64)]) {
        self.count += count;
        self.sum = self.sum.saturating_add(sum);
        // Sized before it is written: a row that was once too long would keep its room.
        let mut length = self.each(entries, |_, _| ());
        while length > usize::from(self.most) && self.coarse < COARSEST {
            self.coarse += 1;
            length = self.each(entries, |_, _| ());
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.reserve_exact(length.max(usize::from(self.most)));
        self.each(entries, |gap, count| {
            push(&mut row, gap);
            push(&mut row, count);
        });
        self.row = row;
    }

    /// Walks the row as it is to be at the coarseness that is set; how many bytes it has.
    fn each(&self, entries: &[(u16, u64)], mut tell: impl FnMut(u64, u64)) -> usize {
        let (mut next, mut length) = (0, 0);
        let mut entries = entries.iter().peekable();
        while let Some(&(bucket, mut count)) = entries.next() {
            let number = bucket >> self.coarse;
            while let Some((_, more)) = entries.next_if(|(bucket, _)| bucket >> self.coarse == number) {
                count += more;
            }
            let gap = u64::from(number - next);
            length += bytes(gap) + bytes(count);
            tell(gap, count);
            next = number + 1;
        }
        length
    }
}

/// How many bytes of seven bits a number takes.
fn bytes(number: u64) -> usize {
    let bits = u64::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// Two rows in order, as one.
fn union(
    old: impl Iterator<Item = (u16, u64)>,
    new: impl Iterator<Item = (u16, u64)>,
    into: &mut Vec<(u16, u64)>,
) {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    loop {
        let entry = match (old.peek(), new.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => old.next(),
            (_, Some(_)) => new.next(),
            (Some(_), None) => old.next(),
            (None, None) => return,
        };
        let Some((bucket, count)) = entry else { return };
        match into.last_mut() {
            Some(last) if last.0 == bucket => last.1 += count,
            _ => into.push((bucket, count)),
        }
    }
}

fn push(row: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        row.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    row.push(u8::try_from(number).expect("below 128"));
}

/// See [`Closed::entries`].
pub(super) struct Entries<'a> {
    row: &'a [u8],
    at: u16,
    coarse: u8,
}

impl Entries<'_> {
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.row.split_first()?;
            self.row = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = (u16, u64);

    fn next(&mut self) -> Option<(u16, u64)> {
        let gap = self.number()?;
        let count = self.number()?;
        let number = self.at + u16::try_from(gap).expect("a gap between buckets is below their number");
        self.at = number + 1;
        // The last of the buckets that it stands for, so that no percentile is told too short.
        let last = (number << self.coarse) | ((1 << self.coarse) - 1);
        Some((last, count))
    }
}

/// Adds up many rows, to find percentiles. One serves all: it is large.
#[derive(Debug)]
pub(super) struct Sum {
    counts: Vec<u64>,
    low: usize,
    high: usize,
    count: u64,
    micros: u64,
}

impl Default for Sum {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS + (1 << COARSEST)], low: usize::MAX, high: 0, count: 0, micros: 0 }
    }
}

impl Sum {
    pub(super) fn add(&mut self, entries: impl Iterator<Item = (u16, u64)>, totals: (u64, u64)) {
        for (bucket, count) in entries {
            let bucket = usize::from(bucket);
            self.counts[bucket] += count;
            self.low = self.low.min(bucket);
            self.high = self.high.max(bucket);
        }
        self.count += totals.0;
        self.micros = self.micros.saturating_add(totals.1);
    }

    pub(super) fn totals(&self) -> (u64, u64) {
        (self.count, self.micros)
    }

    /// The values, in microseconds, that these shares (in thousandths, rising) do not exceed, and the largest one.
    pub(super) fn percentiles<const N: usize>(&self, shares: [u64; N]) -> ([u64; N], u64) {
        let mut found = [0; N];
        if self.count == 0 {
            return (found, 0);
        }
        let (mut seen, mut at) = (0, 0);
        for bucket in self.low..=self.high {
            seen += self.counts[bucket];
            while at < N && seen * 1000 >= self.count * shares[at] && seen > 0 {
                found[at] = value(bucket);
                at += 1;
            }
        }
        (found, value(self.high))
    }

    pub(super) fn clear(&mut self) {
        if self.low <= self.high {
            self.counts[self.low..=self.high].fill(0);
        }
        (self.low, self.high, self.count, self.micros) = (usize::MAX, 0, 0, 0);
    }
}

fn value(bucket: usize) -> u64 {
    u16::try_from(bucket).map_or(u64::MAX, top)
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
