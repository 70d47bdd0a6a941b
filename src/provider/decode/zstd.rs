//! zstd.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{Broken, Out};

/// The largest window that HTTP allows (RFC 9659).
const WINDOW: u64 = 8 * 1024 * 1024;
/// The largest block of the format.
const BLOCK: usize = 128 * 1024;
const BLOCK_HEADER: usize = 3;
const MAGIC: u32 = 0xFD2F_B528;
/// The first of sixteen magic numbers of frames that carry nothing.
const SKIPPABLE: u32 = 0x184D_2A50;
const PIECE: usize = 16 * 1024;

/// Feeds the decoder one block at a time, so that a frame of many tiny blocks that unfold to much is bounded too.
pub(super) struct Zstd {
    frame: FrameDecoder,
    /// The header or block in progress.
    pending: Vec<u8>,
    at: At,
    piece: Vec<u8>,
}

#[derive(Clone, Copy)]
enum At {
    /// Before a frame.
    Frame,
    /// In a frame, before a block; `summed` says that a checksum follows the last one.
    Block { summed: bool },
    /// In a frame that is to be skipped, with the bytes that are left of it.
    Skip(u64),
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW);
        Self { frame, pending: Vec::new(), at: At::Frame, piece: vec![0; PIECE] }
    }

    pub(super) fn feed(&mut self, frame: &[u8], out: Out<'_>) -> Result<(), Broken> {
        let mut rest = frame;
        while !rest.is_empty() {
            if let At::Skip(left) = self.at {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                rest = rest.get(take..).unwrap_or_default();
                let left = left - take as u64;
                self.at = if left == 0 { At::Frame } else { At::Skip(left) };
                continue;
            }
            let take = self.lacks()?.min(rest.len());
            let (now, later) = rest.split_at_checked(take).ok_or(Broken)?;
            self.pending.extend_from_slice(now);
            rest = later;
            if self.lacks()? == 0 {
                self.complete(out)?;
            }
        }
        Ok(())
    }

    /// How many bytes the header or block in progress still lacks, as far as can be told.
    fn lacks(&self) -> Result<usize, Broken> {
        let whole = match self.at {
            At::Frame => frame_header(&self.pending)?,
            At::Block { summed } => block(&self.pending, summed)?,
            At::Skip(_) => 0,
        };
        Ok(whole.saturating_sub(self.pending.len()))
    }

    fn complete(&mut self, out: Out<'_>) -> Result<(), Broken> {
        let pending = std::mem::take(&mut self.pending);
        match self.at {
            At::Frame => match skippable(&pending) {
                Some(0) => {}
                Some(length) => self.at = At::Skip(length),
                None => {
                    self.frame.reset(pending.as_slice()).map_err(|_| Broken)?;
                    let summed = pending.get(4).is_some_and(|descriptor| descriptor >> 2 & 1 == 1);
                    self.at = At::Block { summed };
                }
            },
            At::Block { .. } => self.decode(&pending, out)?,
            At::Skip(_) => {}
        }
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    fn decode(&mut self, block: &[u8], out: Out<'_>) -> Result<(), Broken> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        if self.frame.decode_blocks(block, one).map_err(|_| Broken)? {
            self.at = At::Frame;
        }
        loop {
            let filled = self.frame.read(&mut self.piece).map_err(|_| Broken)?;
            match self.piece.get(..filled) {
                None | Some([]) => return Ok(()),
                Some(piece) if out(piece) => {}
                Some(_) => return Err(Broken),
            }
        }
    }
}

/// The length of the header that these bytes begin, as far as they tell.
fn frame_header(bytes: &[u8]) -> Result<usize, Broken> {
    if skippable(bytes).is_some() || is_skippable(bytes) {
        return Ok(8);
    }
    let Some((magic, rest)) = bytes.split_first_chunk() else { return Ok(5) };
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err(Broken);
    }
    let Some(&descriptor) = rest.first() else { return Ok(5) };
    let single = descriptor >> 5 & 1 == 1;
    let dictionary = match descriptor & 3 {
        3 => 4,
        length => usize::from(length),
    };
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        power => 1 << power,
    };
    Ok(5 + usize::from(!single) + dictionary + content)
}

/// The length of the block that these bytes begin, as far as they tell.
fn block(bytes: &[u8], summed: bool) -> Result<usize, Broken> {
    let &[first, second, third, ..] = bytes else { return Ok(BLOCK_HEADER) };
    let header = u32::from_le_bytes([first, second, third, 0]);
    let size = (header >> 3) as usize;
    let content = match header >> 1 & 3 {
        _ if size > BLOCK => return Err(Broken),
        1 => 1,
        3 => return Err(Broken),
        _ => size,
    };
    let sum = if summed && header & 1 == 1 { 4 } else { 0 };
    Ok(BLOCK_HEADER + content + sum)
}

fn is_skippable(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| u32::from_le_bytes(*magic) & !0xF == SKIPPABLE)
}

/// The length of the content of a frame that is to be skipped.
fn skippable(bytes: &[u8]) -> Option<u64> {
    let length = is_skippable(bytes).then(|| bytes.get(4..)?.first_chunk()).flatten()?;
    Some(u64::from(u32::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_tiny_blocks_that_unfold_to_much_is_decoded_block_by_block() {
        // Four bytes each, 128 KiB each: a run of one byte.
        let mut bomb = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50];
        let run = ((128 * 1024) << 3) | (1_u32 << 1);
        for _ in 0..1000 {
            bomb.extend_from_slice(&run.to_le_bytes()[..3]);
            bomb.push(b'x');
        }
        let (mut total, mut largest) = (0, 0);
        let mut out = |piece: &[u8]| {
            total += piece.len();
            largest = largest.max(piece.len());
            total < 10 * BLOCK
        };
        assert!(Zstd::new().feed(&bomb, &mut out).is_err(), "the limit stopped it");
        assert!(total <= 10 * BLOCK + PIECE, "{total}");
        assert!(largest <= PIECE);
    }
}
