//! The bytes a child gets: those of the client, with the model's name put in and our own member left out.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

/// Bodies up to this size are put together; larger ones are sent in the pieces they already are.
const PUT_TOGETHER: usize = 16 * 1024;

/// A part of the body that a child gets otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Edit {
    /// Where.
    pub range: Range<usize>,
    /// What stands there instead.
    pub with: With,
}

/// What takes the place of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum With {
    /// Nothing.
    Nothing,
    /// The model's name in quotes.
    Model,
    /// The model's name, as it is.
    BareModel,
    /// A whole only member with the model's name.
    Member,
    /// A whole first member, and a comma.
    MemberAndComma,
    /// This.
    Text(Bytes),
}

impl With {
    fn text(&self, model: &str) -> Bytes {
        let quoted = || serde_json::Value::from(model).to_string();
        match self {
            With::Nothing => Bytes::new(),
            With::Model => quoted().into(),
            With::BareModel => Bytes::copy_from_slice(model.as_bytes()),
            With::Member => format!("\"model\":{}", quoted()).into(),
            With::MemberAndComma => format!("\"model\":{},", quoted()).into(),
            With::Text(text) => text.clone(),
        }
    }
}

/// `bytes` with every edit made for a model of that name, in one piece or several.
pub(in crate::gateway) fn edited(bytes: &Bytes, edits: &[Edit], model: &str) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(2 * edits.len() + 1);
    let mut at = 0;
    for edit in edits {
        pieces.push(bytes.slice(at..edit.range.start));
        pieces.push(edit.with.text(model));
        at = edit.range.end;
    }
    pieces.push(bytes.slice(at..));
    let size: usize = pieces.iter().map(Bytes::len).sum();
    if size > PUT_TOGETHER {
        pieces.retain(|piece| !piece.is_empty());
        return pieces;
    }
    let mut whole = BytesMut::with_capacity(size);
    pieces.iter().for_each(|piece| whole.put_slice(piece));
    vec![whole.freeze()]
}
