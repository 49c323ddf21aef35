//! Unpacking, up to a limit: a few kilobytes can hold gigabytes.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

/// Why a body cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoiled {
    TooLarge,
    Damaged,
}

/// The window a zstd frame may ask for: what RFC 8878 recommends every decoder to support.
const WINDOW: u64 = 8 * 1024 * 1024;

/// Unpacks `packed` into at most `limit` bytes.
pub(super) fn unpack(packing: Packing, packed: &[u8], limit: usize) -> Result<Bytes, Spoiled> {
    match packing {
        Packing::Gzip => drain(MultiGzDecoder::new(packed), limit),
        Packing::Zstd => frames(packed, limit),
    }
}

/// One frame after another.
fn frames(mut packed: &[u8], limit: usize) -> Result<Bytes, Spoiled> {
    let mut all = Vec::new();
    while !packed.is_empty() {
        if let Some(rest) = behind_skippable(packed)? {
            packed = rest;
            continue;
        }
        let decoder = StreamingDecoder::new_with_max_window_size(&mut packed, WINDOW);
        let frame = drain(decoder.map_err(|_| Spoiled::Damaged)?, limit - all.len())?;
        all.extend_from_slice(&frame);
    }
    Ok(all.into())
}

/// What comes after a frame that holds nothing for us (RFC 8878, section 3.1.2), if there is one.
fn behind_skippable(packed: &[u8]) -> Result<Option<&[u8]>, Spoiled> {
    let Some((head, rest)) = packed.split_at_checked(8) else { return Ok(None) };
    let [low, 0x2a, 0x4d, 0x18, length @ ..] = head else { return Ok(None) };
    if low & 0xf0 != 0x50 {
        return Ok(None);
    }
    let length = length.try_into().map(u32::from_le_bytes).map_err(|_| Spoiled::Damaged)?;
    rest.get(length as usize..).map(Some).ok_or(Spoiled::Damaged)
}

fn drain(decoder: impl Read, limit: usize) -> Result<Bytes, Spoiled> {
    let mut all = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut all).map_err(|_| Spoiled::Damaged)?;
    if all.len() > limit { Err(Spoiled::TooLarge) } else { Ok(all.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn what_was_packed_comes_out_and_several_frames_follow_one_another() {
        for (packing, pack) in [(Packing::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Packing::Zstd, zstd)] {
            let packed = [pack(b"hello "), pack(b"world")].concat();
            assert_eq!(unpack(packing, &packed, 11).unwrap(), "hello world");
            assert_eq!(unpack(packing, &packed, 10), Err(Spoiled::TooLarge));
            assert_eq!(unpack(packing, &packed[..packed.len() - 3], 100), Err(Spoiled::Damaged));
            assert_eq!(unpack(packing, b"{}", 100), Err(Spoiled::Damaged));
        }
    }

    #[test]
    fn frames_that_are_to_be_skipped_are() {
        let skippable = |length: u8| [&[0x5a, 0x2a, 0x4d, 0x18, length, 0, 0, 0], &b"abcd"[..]].concat();
        let packed = [skippable(4), zstd(b"hello"), skippable(4)].concat();
        assert_eq!(unpack(Packing::Zstd, &packed, 100).unwrap(), "hello");
        assert_eq!(unpack(Packing::Zstd, &skippable(5), 100), Err(Spoiled::Damaged));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0; 50_000_000];
        for (packing, pack) in [(Packing::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Packing::Zstd, zstd)] {
            let packed = pack(&zeros);
            assert!(packed.len() < 200_000);
            assert_eq!(unpack(packing, &packed, 1_000_000), Err(Spoiled::TooLarge));
        }
    }
}
