//! gzip and deflate.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::{Broken, Out};

/// Compressed bytes that are decoded at a time: deflate unfolds to at most 1032 times as much, so what is held at once
/// stays below 300 KiB.
const STEP: usize = 256;

pub(super) enum Flate {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Bare(Box<DeflateDecoder<Vec<u8>>>),
    /// Before the first two bytes, which tell zlib from bare deflate.
    Untold(Option<u8>),
}

impl Flate {
    pub(super) fn gzip() -> Self {
        Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
    }

    pub(super) fn deflate() -> Self {
        Self::Untold(None)
    }

    pub(super) fn feed(&mut self, frame: &[u8], out: Out<'_>) -> Result<(), Broken> {
        let mut frame = frame;
        if let Self::Untold(first) = *self {
            let mut bytes = first.iter().chain(frame).copied();
            let (Some(one), two) = (bytes.next(), bytes.next()) else { return Ok(()) };
            let Some(two) = two else {
                *self = Self::Untold(Some(one));
                return Ok(());
            };
            *self = if is_zlib(one, two) {
                Self::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
            } else {
                Self::Bare(Box::new(DeflateDecoder::new(Vec::new())))
            };
            if first.is_some() {
                self.step(&[one, two], out)?;
                frame = frame.get(1..).unwrap_or_default();
            }
        }
        frame.chunks(STEP).try_for_each(|step| self.step(step, out))
    }

    fn step(&mut self, step: &[u8], out: Out<'_>) -> Result<(), Broken> {
        match self {
            Self::Gzip(decoder) => {
                push(&mut **decoder, step)?;
                drain(decoder.get_mut(), out)
            }
            Self::Zlib(decoder) => {
                push(&mut **decoder, step)?;
                drain(decoder.get_mut(), out)
            }
            Self::Bare(decoder) => {
                push(&mut **decoder, step)?;
                drain(decoder.get_mut(), out)
            }
            Self::Untold(_) => Ok(()),
        }
    }
}

fn push(decoder: &mut impl Write, step: &[u8]) -> Result<(), Broken> {
    decoder.write_all(step).and_then(|()| decoder.flush()).map_err(|_| Broken)
}

fn drain(decoded: &mut Vec<u8>, out: Out<'_>) -> Result<(), Broken> {
    let wanted = decoded.is_empty() || out(decoded);
    decoded.clear();
    if wanted { Ok(()) } else { Err(Broken) }
}

/// The first two bytes of zlib: deflate with a window of at most 32 KiB, and a checksum over both.
fn is_zlib(one: u8, two: u8) -> bool {
    one & 0x0F == 8 && one >> 4 <= 7 && (u16::from(one) << 8 | u16::from(two)) % 31 == 0
}
