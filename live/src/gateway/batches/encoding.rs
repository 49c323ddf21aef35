//! Vectors as lists of numbers, and as base64 of their 32-bit floats, least byte first.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::gateway::body::Sort;

/// How a client wants its vectors written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Encoding {
    Float,
    Base64,
}

/// A vector in the other form than it has; `None`: it has the right one, or is none.
pub(super) fn written_as(wanted: Encoding, sort: Sort, vector: &[u8]) -> Option<Vec<u8>> {
    match (wanted, sort) {
        (Encoding::Base64, Sort::Array) => {
            let numbers: Vec<f32> = serde_json::from_slice(vector).ok()?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            Some(format!("\"{}\"", STANDARD.encode(bytes)).into_bytes())
        }
        (Encoding::Float, Sort::String) => {
            let text: String = serde_json::from_slice(vector).ok()?;
            let bytes = STANDARD.decode(text).ok()?;
            let (numbers, []) = bytes.as_chunks::<4>() else { return None };
            let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            serde_json::to_vec(&numbers).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_go_there_and_back() {
        let numbers = b"[0.1,-2.5,3e-8]";
        let packed = written_as(Encoding::Base64, Sort::Array, numbers).unwrap();
        assert_eq!(packed, br#""zczMPQAAIMBZ2QAz""#);
        assert_eq!(written_as(Encoding::Float, Sort::String, &packed).unwrap(), b"[0.1,-2.5,3e-8]");
        assert_eq!(written_as(Encoding::Float, Sort::Array, numbers), None);
        assert_eq!(written_as(Encoding::Float, Sort::String, br#""AAA=""#), None);
    }
}
