//! Whatever the frames, a compressed body unfolds to the same bytes, never to more than the limit.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use seawall::provider::{Decoder, Encoding};
use seawall_fuzz::Frames;

const LIMIT: usize = 1 << 16;

fn read<'a>(encoding: Encoding, frames: impl Iterator<Item = &'a [u8]>, limit: usize) -> (Vec<u8>, bool) {
    let mut decoder = Decoder::with_limit(encoding, limit);
    let mut out = Vec::new();
    for frame in frames {
        decoder.feed(frame, |piece| out.extend_from_slice(piece));
        assert!(out.len() <= limit);
    }
    (out, decoder.has_stopped())
}

/// One is the beginning of the other, and if both were read to the end they are the same.
fn assert_same(one: &(Vec<u8>, bool), other: &(Vec<u8>, bool)) {
    assert!(one.0.starts_with(&other.0) || other.0.starts_with(&one.0));
    assert_eq!(one.1, other.1, "stopped");
    assert!(one.1 || one.0.len() == other.0.len());
}

fn coded(encoding: Encoding, data: &[u8]) -> std::io::Result<Vec<u8>> {
    let level = Compression::fast();
    match encoding {
        Encoding::Gzip => {
            let mut coder = GzEncoder::new(Vec::new(), level);
            coder.write_all(data)?;
            coder.finish()
        }
        Encoding::Deflate if data.len().is_multiple_of(2) => {
            let mut coder = ZlibEncoder::new(Vec::new(), level);
            coder.write_all(data)?;
            coder.finish()
        }
        _ => {
            let mut coder = DeflateEncoder::new(Vec::new(), level);
            coder.write_all(data)?;
            coder.finish()
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let frames = Frames::read(input);
    let encodings = [Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd];
    let encoding = encodings[usize::from(frames.choice())];
    let whole = read(encoding, std::iter::once(frames.body), LIMIT);
    assert_same(&read(encoding, frames.cut(), LIMIT), &whole);
    assert_same(&read(encoding, frames.bytes(), LIMIT), &whole);
    let (short, stopped) = read(encoding, frames.cut(), whole.0.len() / 2);
    assert!(whole.0.starts_with(&short) && (stopped || whole.0.is_empty()));

    if frames.body.len() < 512 && matches!(encoding, Encoding::Gzip | Encoding::Deflate) {
        let packed = coded(encoding, frames.body).expect("memory does not fail");
        let mut again = input.to_vec();
        again.splice(..frames.body.len(), packed);
        let again = Frames::read(&again);
        assert_eq!(read(encoding, again.cut(), LIMIT), (frames.body.to_vec(), false));
    }
});
