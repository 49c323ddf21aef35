//! Values of the metadata.

use std::{
    fmt,
    io::{Read, Seek},
};

use super::{
    error::{Fault, GgufError},
    source::Source,
};

/// Longer texts (chat templates, mostly) are stepped over.
const TEXT_KEPT: u64 = 64 << 10;
/// No text of a header is longer, in bytes.
const TEXT_LIMIT: u64 = 64 << 20;
/// Longer arrays (tokens, scores, merges) are stepped over.
const ITEMS_KEPT: u64 = 4096;
/// No array of a header is longer, in elements: eight times the largest vocabulary with its merges.
const ITEMS_LIMIT: u64 = 1 << 24;
/// Arrays in arrays in arrays go no deeper; ggml itself accepts one level.
const DEPTH_LIMIT: u64 = 3;

/// A value of a header's metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer of an unsigned type.
    Unsigned(u64),
    /// An integer of a signed type.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(String),
    /// A text too long to keep.
    LongText {
        /// Its length in bytes.
        len: u64,
    },
    /// An array.
    List(List),
}

/// An array of the metadata. Short arrays of numbers and flags are kept, all others only counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// How many elements the array has in the file.
    pub len: u64,
    /// The elements; none if the array was stepped over.
    pub items: Vec<Value>,
}

/// The types that a value can have, by their numbers in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned(Width),
    Signed(Width),
    Float(Width),
    Flag,
    Text,
    List,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Value {
    /// The integer, if it is one and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            Value::Float(_) | Value::Flag(_) | Value::Text(_) | Value::LongText { .. } | Value::List(_) => None,
        }
    }

    /// The flag; of an integer, whether it is not zero.
    pub fn as_flag(&self) -> Option<bool> {
        match self {
            Value::Flag(flag) => Some(*flag),
            other => other.as_u64().map(|number| number != 0),
        }
    }

    /// The text, if it is one and was kept.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_)
            | Value::Flag(_)
            | Value::LongText { .. }
            | Value::List(_) => None,
        }
    }

    /// The array, if it is one.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Value::List(list) => Some(list),
            Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_)
            | Value::Flag(_)
            | Value::Text(_)
            | Value::LongText { .. } => None,
        }
    }

    /// Reads a value behind its type.
    pub(super) fn read<R: Read + Seek>(source: &mut Source<R>) -> Result<Value, GgufError> {
        let kind = Kind::read(source)?;
        Value::of_kind(source, kind, 0)
    }

    fn of_kind<R: Read + Seek>(source: &mut Source<R>, kind: Kind, depth: u64) -> Result<Value, GgufError> {
        Ok(match kind {
            Kind::Unsigned(width) => Value::Unsigned(integer(source, width)?),
            Kind::Signed(width) => Value::Signed(signed(integer(source, width)?, width)),
            Kind::Float(Width::Eight) => Value::Float(f64::from_le_bytes(source.number("a number")?)),
            Kind::Float(_) => Value::Float(f32::from_le_bytes(source.number("a number")?).into()),
            Kind::Flag => Value::Flag(source.bytes::<1>("a flag")? != [0]),
            Kind::Text => text(source)?,
            Kind::List => Value::List(List::read(source, depth)?),
        })
    }
}

impl List {
    fn read<R: Read + Seek>(source: &mut Source<R>, depth: u64) -> Result<List, GgufError> {
        source.limit("the nesting of an array", depth + 1, DEPTH_LIMIT)?;
        let kind = Kind::read(source)?;
        let len = source.count("the length of an array")?;
        source.limit("the length of an array", len, ITEMS_LIMIT)?;
        source.expect("an array", len.saturating_mul(kind.least(source.wide)))?;
        let keep = len <= ITEMS_KEPT && !matches!(kind, Kind::Text | Kind::List);
        let mut items = Vec::new();
        match kind {
            Kind::Text => (0..len).try_for_each(|_| skip_text(source))?,
            Kind::List => (0..len).try_for_each(|_| List::read(source, depth + 1).map(drop))?,
            _ if keep => {
                for _ in 0..len {
                    items.push(Value::of_kind(source, kind, depth)?);
                }
            }
            _ => source.skip("an array", len * kind.least(source.wide))?,
        }
        Ok(List { len, items })
    }
}

impl Kind {
    fn read<R: Read + Seek>(source: &mut Source<R>) -> Result<Kind, GgufError> {
        let before = source.at();
        let number = source.u32("the type of a value")?;
        Kind::numbered(number).ok_or_else(|| {
            let mut wrong = source.wrong(Fault::ValueType(number));
            wrong.offset = before;
            wrong
        })
    }

    fn numbered(number: u32) -> Option<Kind> {
        Some(match number {
            0 => Kind::Unsigned(Width::One),
            1 => Kind::Signed(Width::One),
            2 => Kind::Unsigned(Width::Two),
            3 => Kind::Signed(Width::Two),
            4 => Kind::Unsigned(Width::Four),
            5 => Kind::Signed(Width::Four),
            6 => Kind::Float(Width::Four),
            7 => Kind::Flag,
            8 => Kind::Text,
            9 => Kind::List,
            10 => Kind::Unsigned(Width::Eight),
            11 => Kind::Signed(Width::Eight),
            12 => Kind::Float(Width::Eight),
            _ => return None,
        })
    }

    /// The fewest bytes that a value of the type takes in a file; of a number, all that it takes.
    fn least(self, wide: bool) -> u64 {
        let count = if wide { 8 } else { 4 };
        match self {
            Kind::Unsigned(width) | Kind::Signed(width) | Kind::Float(width) => width.bytes(),
            Kind::Flag => 1,
            Kind::Text => count,
            Kind::List => 4 + count,
        }
    }
}

impl Width {
    fn bytes(self) -> u64 {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}

fn integer<R: Read + Seek>(source: &mut Source<R>, width: Width) -> Result<u64, GgufError> {
    Ok(match width {
        Width::One => source.number("a number").map(u8::from_le_bytes)?.into(),
        Width::Two => source.number("a number").map(u16::from_le_bytes)?.into(),
        Width::Four => source.u32("a number")?.into(),
        Width::Eight => source.u64("a number")?,
    })
}

/// The number that the lowest bytes of `bits` spell with a sign.
fn signed(bits: u64, width: Width) -> i64 {
    let unused = 64 - 8 * width.bytes();
    (bits << unused).cast_signed() >> unused
}

fn text<R: Read + Seek>(source: &mut Source<R>) -> Result<Value, GgufError> {
    let len = text_length(source)?;
    if len <= TEXT_KEPT {
        return source.plain_text("a text", len).map(Value::Text);
    }
    source.skip("a text", len)?;
    Ok(Value::LongText { len })
}

fn skip_text<R: Read + Seek>(source: &mut Source<R>) -> Result<(), GgufError> {
    let len = text_length(source)?;
    source.skip("a text", len)
}

fn text_length<R: Read + Seek>(source: &mut Source<R>) -> Result<u64, GgufError> {
    let len = source.count("the length of a text")?;
    source.limit("the length of a text", len, TEXT_LIMIT)?;
    Ok(len)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(number) => write!(f, "{number}"),
            Value::Signed(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Text(text) => write!(f, "\"{text}\""),
            Value::LongText { len } => write!(f, "a text of {len} bytes"),
            Value::List(list) => write!(f, "an array of {}", list.len),
        }
    }
}
