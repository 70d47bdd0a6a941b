//! An input read as a body and the ways to cut it into frames.

/// A body, and the lengths of the frames in which it comes: the last four bytes of an input, used in turn.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    /// The whole body.
    pub body: &'a [u8],
    cuts: [u8; 4],
}

impl<'a> Frames<'a> {
    /// Reads an input; one that is shorter than the lengths comes whole.
    #[must_use]
    pub fn read(input: &'a [u8]) -> Self {
        match input.split_last_chunk() {
            Some((body, cuts)) => Self { body, cuts: *cuts },
            None => Self { body: input, cuts: [u8::MAX; 4] },
        }
    }

    /// Another body, cut the same way.
    #[must_use]
    pub fn of(self, body: &[u8]) -> Frames<'_> {
        Frames { body, cuts: self.cuts }
    }

    /// The frames, among them empty ones. Some lengths being zero, the body still comes to its end.
    pub fn cut(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.body;
        let lengths = if self.cuts == [0; 4] { [1; 4] } else { self.cuts };
        lengths.into_iter().cycle().map_while(move |length| {
            if rest.is_empty() {
                return None;
            }
            let (frame, tail) = rest.split_at(rest.len().min(usize::from(length)));
            rest = tail;
            Some(frame)
        })
    }

    /// A byte at a time.
    pub fn bytes(self) -> impl Iterator<Item = &'a [u8]> {
        self.body.chunks(1)
    }

    /// What the lengths say beside that: a choice of four.
    #[must_use]
    pub fn choice(self) -> u8 {
        self.cuts[3] & 3
    }
}
