//! Whether a connection goes on after a request, and how to say so to hyper again.

use http::{HeaderMap, Version, header};

/// What of a request's head decides on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Keeps,
    Closes,
    KeepsOld,
    ClosesOld,
}

impl Manner {
    pub(super) fn of(version: Version, headers: &HeaderMap) -> Manner {
        let values = headers.get_all(header::CONNECTION);
        let says = |wanted: &str| {
            let mut words = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
            words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
        };
        match version {
            Version::HTTP_09 | Version::HTTP_10 if says("keep-alive") && !says("close") => Manner::KeepsOld,
            Version::HTTP_09 | Version::HTTP_10 => Manner::ClosesOld,
            _ if says("close") => Manner::Closes,
            _ => Manner::Keeps,
        }
    }

    /// The same for the last request of a connection.
    pub(super) fn closing(self) -> Manner {
        match self {
            Manner::Keeps | Manner::Closes => Manner::Closes,
            Manner::KeepsOld | Manner::ClosesOld => Manner::ClosesOld,
        }
    }

    /// The head of a request that is like this and has no body.
    pub(super) const fn head(self) -> &'static [u8] {
        match self {
            Manner::Keeps => b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
            Manner::Closes => b"POST / HTTP/1.1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            Manner::KeepsOld => b"POST / HTTP/1.0\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n",
            Manner::ClosesOld => b"POST / HTTP/1.0\r\ncontent-length: 0\r\n\r\n",
        }
    }
}
