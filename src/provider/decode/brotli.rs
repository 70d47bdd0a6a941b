//! brotli.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Broken, Out};

const PIECE: usize = 16 * 1024;

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// Its window is what it holds: at most 16 MiB by its format, 4 MiB as servers set it.
pub(super) struct Brotli {
    state: Box<State>,
    piece: Vec<u8>,
    done: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        // Strict: no window larger than the format's own limit.
        let state = Box::new(BrotliState::new_strict(alloc(), alloc(), alloc()));
        Self { state, piece: vec![0; PIECE], done: false }
    }

    pub(super) fn feed(&mut self, frame: &[u8], out: Out<'_>) -> Result<(), Broken> {
        let (mut left, mut at, mut total) = (frame.len(), 0, 0);
        while !self.done {
            let (mut room, mut filled) = (PIECE, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                frame,
                &mut room,
                &mut filled,
                &mut self.piece,
                &mut total,
                &mut self.state,
            );
            let piece = self.piece.get(..filled).unwrap_or_default();
            if !piece.is_empty() && !out(piece) {
                return Err(Broken);
            }
            match result {
                // A full piece can have left some behind, also where the frame is used up.
                BrotliResult::NeedsMoreInput if room > 0 => break,
                BrotliResult::NeedsMoreOutput | BrotliResult::NeedsMoreInput => {}
                BrotliResult::ResultSuccess => self.done = true,
                BrotliResult::ResultFailure => return Err(Broken),
            }
        }
        Ok(())
    }
}
