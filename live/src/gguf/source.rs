//! Numbers and text from a file whose lengths are not to be believed.

use std::{
    io::{BufReader, Read, Seek},
    path::{Path, PathBuf},
};

use super::error::{Fault, GgufError};

/// A file, how far it has been read, and how its numbers are written.
pub(super) struct Source<R> {
    path: PathBuf,
    reader: BufReader<R>,
    at: u64,
    len: u64,
    /// The most significant byte comes first.
    pub big_endian: bool,
    /// Counts and lengths take eight bytes (since version 2) and not four.
    pub wide: bool,
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(path: &Path, mut reader: R) -> Result<Source<R>, GgufError> {
        let length = reader.seek(std::io::SeekFrom::End(0)).and_then(|len| reader.rewind().map(|()| len));
        let len = length.map_err(|wrong| GgufError::io(path, 0, &wrong))?;
        let reader = BufReader::with_capacity(1 << 16, reader);
        Ok(Source { path: path.to_owned(), reader, at: 0, len, big_endian: false, wide: true })
    }

    /// Bytes from the start of the file to the next one that will be read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The length of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes that are still to come.
    pub(super) fn left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    pub(super) fn wrong(&self, fault: Fault) -> GgufError {
        GgufError::new(&self.path, self.at, fault)
    }

    /// Complains unless `wanted` more bytes exist.
    pub(super) fn expect(&self, what: &'static str, wanted: u64) -> Result<(), GgufError> {
        let left = self.left();
        if wanted <= left { Ok(()) } else { Err(self.wrong(Fault::Truncated { what, wanted, left })) }
    }

    /// Complains if `found` is more than `limit`.
    pub(super) fn limit(&self, what: &'static str, found: u64, limit: u64) -> Result<(), GgufError> {
        if found <= limit { Ok(()) } else { Err(self.wrong(Fault::TooLarge { what, found, limit })) }
    }

    pub(super) fn bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        self.expect(what, N as u64)?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A number of `N` bytes, as bytes with the least significant one first.
    pub(super) fn number<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        let mut bytes = self.bytes(what)?;
        if self.big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, GgufError> {
        self.number(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, GgufError> {
        self.number(what).map(u64::from_le_bytes)
    }

    /// A count or a length, as wide as the version of the file has them.
    pub(super) fn count(&mut self, what: &'static str) -> Result<u64, GgufError> {
        if self.wide { self.u64(what) } else { self.u32(what).map(u64::from) }
    }

    /// Text of at most `limit` bytes behind its length.
    pub(super) fn text(&mut self, what: &'static str, length: &'static str, limit: u64) -> Result<String, GgufError> {
        let len = self.count(length)?;
        self.limit(length, len, limit)?;
        self.plain_text(what, len)
    }

    /// Text of `len` bytes, which has been compared with a limit.
    pub(super) fn plain_text(&mut self, what: &'static str, len: u64) -> Result<String, GgufError> {
        self.expect(what, len)?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let before = self.at;
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| GgufError::new(&self.path, before, Fault::Text(what)))
    }

    /// Steps over `count` bytes without reading them, where the file has them.
    pub(super) fn skip(&mut self, what: &'static str, count: u64) -> Result<(), GgufError> {
        self.expect(what, count)?;
        let step = i64::try_from(count).unwrap_or(i64::MAX);
        self.reader.seek_relative(step).map_err(|wrong| GgufError::io(&self.path, self.at, &wrong))?;
        self.at += count;
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        self.reader.read_exact(bytes).map_err(|wrong| GgufError::io(&self.path, self.at, &wrong))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
