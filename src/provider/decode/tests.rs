use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::call::Usage;
use crate::provider::fixtures;
use crate::provider::{BodyReader, StreamReader};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn encoded(file: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoded");
    std::fs::read(folder.join(file)).unwrap()
}

fn body() -> Vec<u8> {
    fixtures::load("anthropic-stream-cache.http").body
}

/// One body in every coding and in several shapes of it.
fn all() -> Vec<(&'static str, Encoding, Vec<u8>)> {
    let body = body();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(&body).unwrap();
    let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
    bare.write_all(&body).unwrap();
    let (one, two) = body.split_at(700);
    let members = [gzip(one), gzip(two)].concat();
    let skippable =
        [&[0x51, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &encoded("anthropic-stream-cache.zst")];
    vec![
        ("gzip", Encoding::Gzip, gzip(&body)),
        ("gzip, two members", Encoding::Gzip, members),
        ("zlib", Encoding::Deflate, zlib.finish().unwrap()),
        ("bare deflate", Encoding::Deflate, bare.finish().unwrap()),
        ("br", Encoding::Brotli, encoded("anthropic-stream-cache.br")),
        ("br, flushed", Encoding::Brotli, encoded("anthropic-stream-cache-flushed.br")),
        ("zstd", Encoding::Zstd, encoded("anthropic-stream-cache.zst")),
        ("zstd, other encoder", Encoding::Zstd, compress_to_vec(body.as_slice(), CompressionLevel::Fastest)),
        ("zstd behind a skippable frame", Encoding::Zstd, skippable.concat()),
        (
            "zstd, two frames",
            Encoding::Zstd,
            [one, two].map(|half| compress_to_vec(half, CompressionLevel::Fastest)).concat(),
        ),
    ]
}

fn decode<'a>(encoding: Encoding, frames: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let (mut decoder, mut out) = (Decoder::new(encoding), Vec::new());
    for frame in frames {
        decoder.feed(frame, |piece| out.extend_from_slice(piece));
    }
    (out, decoder.has_stopped())
}

fn usage<'a>(encoding: Encoding, frames: impl IntoIterator<Item = &'a [u8]>) -> Usage {
    let (mut decoder, mut reader) = (Decoder::new(encoding), StreamReader::new());
    for frame in frames {
        decoder.feed(frame, |piece| {
            reader.feed(piece);
        });
    }
    reader.usage()
}

#[test]
fn b139_every_coding_yields_the_body_and_its_usage_cut_at_any_byte() {
    let body = body();
    let mut plain = StreamReader::new();
    plain.feed(&body);
    for (name, encoding, bytes) in all() {
        assert_eq!(decode(encoding, [bytes.as_slice()]), (body.clone(), false), "{name}");
        assert_eq!(decode(encoding, bytes.chunks(1)), (body.clone(), false), "{name} byte by byte");
        for at in 0..bytes.len() {
            let (one, two) = bytes.split_at(at);
            assert_eq!(usage(encoding, [one, two]), plain.usage(), "{name} cut at {at}");
        }
    }
}

#[test]
fn what_a_frame_holds_is_there_when_it_has_passed() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"data: first\n\n").unwrap();
    encoder.flush().unwrap();
    let gzip = std::mem::take(encoder.get_mut());
    assert_eq!(decode(Encoding::Gzip, [gzip.as_slice()]).0, b"data: first\n\n");

    let flushed = encoded("anthropic-stream-cache-flushed.br");
    let (so_far, _) = decode(Encoding::Brotli, [&flushed[..flushed.len() / 2]]);
    assert!(so_far.starts_with(b"event: message_start\n"), "a stream is read while it runs");
}

#[test]
fn b140_a_bomb_is_stopped_at_the_decoded_limit() {
    let large = vec![b'y'; 25 * 1024 * 1024 + 1];
    let gzip = gzip(&large);
    assert!(gzip.len() < 30_000);
    for (encoding, bomb) in [
        (Encoding::Gzip, gzip),
        (Encoding::Brotli, encoded("bomb.br")),
        (Encoding::Zstd, encoded("bomb.zst")),
    ] {
        let mut decoder = Decoder::new(encoding);
        let (mut total, mut largest, mut reader) = (0, 0, BodyReader::new());
        for frame in bomb.chunks(1024) {
            decoder.feed(frame, |piece| {
                total += piece.len();
                largest = largest.max(piece.len());
                reader.feed(piece);
            });
        }
        assert!(decoder.has_stopped(), "{encoding:?}");
        assert!(total <= DEFAULT_LIMIT, "{encoding:?} {total}");
        assert!(largest <= 300 * 1024, "{encoding:?} {largest}");
        assert!(reader.usage().is_empty());
    }
}

#[test]
fn broken_bytes_yield_nothing_more_and_no_error() {
    for (name, encoding, mut bytes) in all() {
        let at = bytes.len() / 2;
        bytes[at..].fill(0xFF);
        let (decoded, _) = decode(encoding, bytes.chunks(7));
        assert!(decoded.len() <= DEFAULT_LIMIT, "{name}");
        // Bare deflate has no mark by which to tell it from anything else.
        let plain = decode(encoding, [&b"{\"not\": \"compressed\"}"[..]]).0;
        assert!(plain.is_empty() || encoding == Encoding::Deflate, "{name}");
        assert_eq!(decode(encoding, [&b""[..]]), (Vec::new(), false), "{name}");
    }
}

#[test]
fn only_one_known_coding_is_read() {
    let of = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        ContentEncoding::of(&headers)
    };
    assert_eq!(of(&[]), ContentEncoding::Identity);
    assert_eq!(of(&["identity"]), ContentEncoding::Identity);
    assert_eq!(of(&["GZip"]), ContentEncoding::One(Encoding::Gzip));
    assert_eq!(of(&["identity, br"]), ContentEncoding::One(Encoding::Brotli));
    assert_eq!(of(&["zstd"]), ContentEncoding::One(Encoding::Zstd));
    assert_eq!(of(&["gzip, br"]), ContentEncoding::Unknown);
    assert_eq!(of(&["gzip", "gzip"]), ContentEncoding::Unknown);
    assert_eq!(of(&["compress"]), ContentEncoding::Unknown);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), magic in 0..3_usize) {
        let start: &[u8] = [&b""[..], &[0x28, 0xB5, 0x2F, 0xFD], &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]][magic];
        let bytes = [start, &bytes].concat();
        for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd] {
            let _ = decode(encoding, bytes.chunks(11));
        }
    }
}

#[test]
fn all_that_a_flushed_frame_holds_is_handed_over_with_it() {
    // 40 000 bytes, flushed, no end. What lay beyond the first 16 KiB waited for the next frame.
    let flushed = [0x83, 0x1f, 0x4e, 0xf8, 0xa5, 0xc2, 0xc4, 0xe2, 0xb2, 0x30, 0x00, 0x7f, 0x12, 0x40, 0x03];
    let (whole, stopped) = decode(Encoding::Brotli, [&flushed[..]]);
    assert!(whole == b"ab".repeat(20_000) && !stopped, "{}", whole.len());
    assert_eq!(decode(Encoding::Brotli, flushed.chunks(1)), (whole, false));
}
