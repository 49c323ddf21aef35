//! One pass over JSON bytes: every value is checked and skipped, none is built.
//!
//! The bytes a client sent are the bytes a child gets, so the gateway only needs to know *where* things are. Long strings (images)
//! are searched for their end, not walked through.

use std::ops::Range;

use memchr::memchr2;

/// Arrays and objects within one another, at most.
const DEEPEST: u32 = 128;

/// Where bytes stop being JSON, and what would have been right there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Wrong {
    /// How many bytes are before it.
    pub at: usize,
    /// What would have been right.
    pub wanted: &'static str,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Sort {
    String,
    Number,
    True,
    False,
    Null,
    Array,
    Object,
}

/// A string as it is written: the bytes between its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Written {
    /// Between the quotes.
    pub inside: Range<usize>,
    /// Whether it has escapes.
    pub escapes: Escapes,
}

impl Written {
    /// The string that stands at `range`, quotes included.
    pub(in crate::gateway) fn of(bytes: &[u8], range: Range<usize>) -> Written {
        let inside = range.start + 1..range.end.saturating_sub(1).max(range.start + 1);
        let escaped = bytes.get(inside.clone()).is_some_and(|inside| memchr::memchr(b'\\', inside).is_some());
        Written { inside, escapes: if escaped { Escapes::Some } else { Escapes::None } }
    }
}

/// Whether a string has to be read to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Escapes {
    None,
    Some,
}

/// What stands where in a prompt, gathered on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Seen {
    /// Bytes of text; a number counts as a token of four.
    pub text: u64,
    /// Whether there are images.
    pub images: Found,
    /// Whether there is sound.
    pub sound: Found,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) enum Found {
    #[default]
    No,
    Yes,
}

/// What a key says of the string behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    /// Text.
    Text,
    /// The name of a kind of content.
    Type,
    /// An address or encoded bytes.
    Data,
}

/// A place in JSON bytes.
#[derive(Debug)]
pub(in crate::gateway) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(in crate::gateway) fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner { bytes, at: 0 }
    }

    pub(in crate::gateway) fn at(&self) -> usize {
        self.at
    }

    /// The next byte behind white space, which stays.
    pub(in crate::gateway) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                other => return Some(*other),
            }
        }
        None
    }

    /// Takes `byte` if it is next behind white space.
    pub(in crate::gateway) fn takes(&mut self, byte: u8) -> Option<usize> {
        (self.peek() == Some(byte)).then(|| {
            self.at += 1;
            self.at - 1
        })
    }

    pub(in crate::gateway) fn expect(&mut self, byte: u8, wanted: &'static str) -> Result<usize, Wrong> {
        self.takes(byte).ok_or(Wrong { at: self.at, wanted })
    }

    /// Nothing but white space may follow.
    pub(in crate::gateway) fn end(&mut self) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Wrong { at: self.at, wanted: "the end of the body" }),
        }
    }

    /// A key and its colon.
    pub(in crate::gateway) fn key(&mut self) -> Result<Written, Wrong> {
        if self.peek() != Some(b'"') {
            return Err(Wrong { at: self.at, wanted: "a key in quotes" });
        }
        let key = self.string()?;
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    /// The text of a string; `None` for one whose escapes stand for no text.
    pub(in crate::gateway) fn text(&self, written: &Written) -> Option<std::borrow::Cow<'a, str>> {
        let inside = self.bytes.get(written.inside.clone())?;
        match written.escapes {
            Escapes::None => std::str::from_utf8(inside).ok().map(std::borrow::Cow::Borrowed),
            Escapes::Some => {
                let quoted = self.bytes.get(written.inside.start.checked_sub(1)?..written.inside.end + 1)?;
                serde_json::from_slice::<String>(quoted).ok().map(std::borrow::Cow::Owned)
            }
        }
    }

    /// Skips a value and says what and where it was. `depth` arrays and objects are open around it.
    pub(in crate::gateway) fn value(&mut self, depth: u32, seen: &mut Seen) -> Result<(Sort, Range<usize>), Wrong> {
        self.peek();
        let start = self.at;
        let sort = self.any(depth, Under::Text, seen)?;
        Ok((sort, start..self.at))
    }

    fn any(&mut self, depth: u32, under: Under, seen: &mut Seen) -> Result<Sort, Wrong> {
        match self.peek() {
            Some(b'"') => {
                let written = self.string()?;
                self.note(&written, under, seen);
                Ok(Sort::String)
            }
            Some(b'{') => self.object(depth, seen),
            Some(b'[') => self.array(depth, under, seen),
            Some(b'-' | b'0'..=b'9') => {
                seen.text += 4;
                self.number().map(|()| Sort::Number)
            }
            Some(b't') => self.word(b"true", Sort::True),
            Some(b'f') => self.word(b"false", Sort::False),
            Some(b'n') => self.word(b"null", Sort::Null),
            Some(_) | None => Err(Wrong { at: self.at, wanted: "a value" }),
        }
    }

    fn object(&mut self, depth: u32, seen: &mut Seen) -> Result<Sort, Wrong> {
        self.open(depth)?;
        if self.takes(b'}').is_some() {
            return Ok(Sort::Object);
        }
        loop {
            let key = self.key()?;
            let under = self.under(&key);
            self.any(depth + 1, under, seen)?;
            if self.takes(b'}').is_some() {
                return Ok(Sort::Object);
            }
            self.expect(b',', "`,` or `}`")?;
        }
    }

    fn array(&mut self, depth: u32, under: Under, seen: &mut Seen) -> Result<Sort, Wrong> {
        self.open(depth)?;
        if self.takes(b']').is_some() {
            return Ok(Sort::Array);
        }
        loop {
            self.any(depth + 1, under, seen)?;
            if self.takes(b']').is_some() {
                return Ok(Sort::Array);
            }
            self.expect(b',', "`,` or `]`")?;
        }
    }

    /// Takes an opening bracket.
    pub(in crate::gateway) fn open(&mut self, depth: u32) -> Result<(), Wrong> {
        if depth >= DEEPEST {
            return Err(Wrong { at: self.at, wanted: "fewer arrays and objects within one another" });
        }
        self.at += 1;
        Ok(())
    }

    fn under(&self, key: &Written) -> Under {
        match self.bytes.get(key.inside.clone()) {
            Some(b"type") => Under::Type,
            Some(b"url" | b"data" | b"image_url" | b"file_data") => Under::Data,
            Some(_) | None => Under::Text,
        }
    }

    fn note(&self, written: &Written, under: Under, seen: &mut Seen) {
        match under {
            Under::Text => seen.text += written.inside.len() as u64,
            Under::Data => {}
            Under::Type => match self.bytes.get(written.inside.clone()) {
                Some(b"image_url" | b"input_image" | b"image") => seen.images = Found::Yes,
                Some(b"input_audio" | b"audio") => seen.sound = Found::Yes,
                Some(_) | None => {}
            },
        }
    }

    /// A string, from its first quote on.
    fn string(&mut self) -> Result<Written, Wrong> {
        self.at += 1;
        let start = self.at;
        let mut escapes = Escapes::None;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let run = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            self.no_control(run)?;
            self.at += run;
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Written { inside: start..self.at - 1, escapes });
                }
                Some(_) => {
                    escapes = Escapes::Some;
                    self.escape()?;
                }
                None => return Err(Wrong { at: self.at, wanted: "the end of a string" }),
            }
        }
    }

    /// Control characters have to be escaped. All bytes are looked at, without a branch each.
    fn no_control(&self, run: usize) -> Result<(), Wrong> {
        let run = self.bytes.get(self.at..self.at + run).unwrap_or_default();
        if run.iter().fold(false, |bad, byte| bad | (*byte < 0x20)) {
            let first = run.iter().position(|byte| *byte < 0x20).unwrap_or_default();
            return Err(Wrong { at: self.at + first, wanted: "an escaped control character" });
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Wrong> {
        let wrong = Wrong { at: self.at, wanted: "an escape sequence of JSON" };
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).ok_or(wrong)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(wrong);
                }
                self.at += 6;
            }
            Some(_) | None => return Err(wrong),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Wrong> {
        self.step(b'-');
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.step(b'.') {
            self.digits()?;
        }
        if self.step(b'e') || self.step(b'E') {
            let _ = self.step(b'+') || self.step(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> bool {
        let there = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(there);
        there
    }

    fn digits(&mut self) -> Result<(), Wrong> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(Wrong { at: self.at, wanted: "a digit" });
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self, word: &'static [u8], sort: Sort) -> Result<Sort, Wrong> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(Wrong { at: self.at, wanted: "a value" });
        }
        self.at += word.len();
        Ok(sort)
    }
}

impl Wrong {
    /// Where it is for people: line and column, from 1.
    pub(in crate::gateway) fn place(self, bytes: &[u8]) -> (usize, usize) {
        let before = bytes.get(..self.at).unwrap_or(bytes);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1) + 1;
        (line, column)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Scanner, Seen};

    /// Whether `bytes` are one value of JSON.
    pub(in super::super) fn is_json(bytes: &[u8]) -> bool {
        let mut scanner = Scanner::new(bytes);
        std::str::from_utf8(bytes).is_ok() && scanner.value(0, &mut Seen::default()).is_ok() && scanner.end().is_ok()
    }
}
