//! What a job leaves with the scheduler: its texts, and a place for its vectors.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, response::Parts, uri::PathAndQuery};
use tokio::sync::Notify;
use windtunnel_core::{GrantedStep, ModelId};

use super::{
    encoding::{Encoding, written_as},
    split::{Count, Pieces},
};
use crate::gateway::{
    body::Request,
    upstream::{Forwarded, copy_answer},
};

/// The texts of one client's request.
#[derive(Debug)]
pub struct Work {
    pub(super) path: PathAndQuery,
    pub(super) headers: Forwarded,
    pub(super) body: Request,
    /// The body without its texts and its model.
    rest: Vec<u8>,
    gathered: Mutex<Gathered>,
    /// Who took it up first, and when.
    started: OnceLock<(ModelId, Instant)>,
    /// Rings when the child has refused it.
    refused: Notify,
}

/// The answer of a child to one request, as the client is to have it.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

#[derive(Debug, Default)]
struct Gathered {
    /// The answer, where one request gave all of it.
    whole: Option<Reply>,
    /// An error of the child.
    error: Option<Reply>,
    /// By input.
    vectors: Vec<Option<Vector>>,
    frame: Option<Frame>,
}

/// A vector with what is around it, in bytes it shares with those of the same request.
#[derive(Clone, Debug)]
struct Vector {
    before_index: Bytes,
    after_index: Bytes,
}

/// What is around the list.
#[derive(Clone, Debug)]
struct Frame {
    headers: HeaderMap,
    bytes: Bytes,
    list: Range<usize>,
    usage: Vec<Count>,
}

impl Work {
    pub(in crate::gateway) fn new(path: PathAndQuery, headers: Forwarded, body: Request) -> Work {
        let mut cut: Vec<Range<usize>> = body.edits.iter().map(|edit| edit.range.clone()).collect();
        cut.push(body.inputs.whole.clone());
        cut.sort_by_key(|range| range.start);
        let (mut rest, mut at) = (Vec::new(), 0);
        for range in cut {
            rest.extend_from_slice(body.bytes.get(at..range.start).unwrap_or_default());
            at = range.end;
        }
        rest.extend_from_slice(body.bytes.get(at..).unwrap_or_default());
        let gathered = Gathered { vectors: vec![None; body.inputs.each.len()], ..Gathered::default() };
        Work {
            path,
            headers,
            body,
            rest,
            gathered: Mutex::new(gathered),
            started: OnceLock::new(),
            refused: Notify::new(),
        }
    }

    /// Whether one request can carry texts of both.
    pub(super) fn is_like(&self, other: &Work) -> bool {
        self.path == other.path && self.rest == other.rest && self.headers == other.headers
    }

    /// Which inputs a step has. All steps but the last weigh the same.
    pub(super) fn inputs_of(&self, step: &GrantedStep) -> Range<usize> {
        let (all, weight) = (self.body.inputs.each.len(), step.weight as usize);
        let start = if step.step + 1 == step.of { all.saturating_sub(weight) } else { step.step as usize * weight };
        start.min(all)..(start + weight).min(all)
    }

    /// How many bytes the texts of a step have.
    pub(super) fn text_of(&self, step: &GrantedStep) -> u64 {
        let texts = self.body.inputs.each.get(self.inputs_of(step)).unwrap_or_default();
        texts.iter().map(|text| text.len() as u64).sum()
    }

    /// Whether an answer is written the way the client wants its vectors.
    pub(super) fn suits(&self, answer: &[u8]) -> bool {
        let Some(wanted) = self.body.encoding else { return true };
        let key = b"\"embedding\"";
        let Some(at) = memchr::memmem::find(answer, key) else { return false };
        let behind = answer.get(at + key.len()..).unwrap_or_default().trim_ascii_start();
        let value = behind.strip_prefix(b":").unwrap_or_default().trim_ascii_start();
        match wanted {
            Encoding::Base64 => value.starts_with(b"\""),
            Encoding::Float => value.starts_with(b"["),
        }
    }

    pub(super) fn take_whole(&self, parts: Parts, bytes: Bytes) {
        self.gathered().whole = Some(reply(parts, bytes));
    }

    /// The child refused it: its client need not wait for the rest.
    pub(super) fn refuse(&self, parts: Parts, bytes: Bytes) {
        self.gathered().error = Some(reply(parts, bytes));
        self.refused.notify_one();
    }

    pub(super) fn start(&self, model: ModelId) {
        self.started.get_or_init(|| (model, Instant::now()));
    }

    /// Whether a step of it ran.
    pub(in crate::gateway) fn is_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// Which model took it up first, and when.
    pub(in crate::gateway) fn started(&self) -> Option<(ModelId, Instant)> {
        self.started.get().copied()
    }

    /// Waits until the child has refused it.
    pub(in crate::gateway) async fn refused(&self) {
        self.refused.notified().await;
    }

    /// Takes the vectors of a step, which are these elements of an answer, and its share of what was counted.
    pub(super) fn take_piece(
        &self,
        step: &GrantedStep,
        parts: &Parts,
        pieces: &Pieces,
        elements: Range<usize>,
        usage: Vec<u64>,
    ) {
        let mut gathered = self.gathered();
        let places = self.inputs_of(step);
        let elements = pieces.elements.get(elements).unwrap_or_default();
        for (place, element) in places.zip(elements) {
            let Some((index, (sort, vector))) = element.index.clone().zip(element.vector.clone()) else { continue };
            let slice = |range: Range<usize>| {
                let plain = || pieces.bytes.slice(range.clone());
                if !(range.start <= vector.start && vector.end <= range.end) {
                    return plain();
                }
                let converted =
                    self.body.encoding.and_then(|wanted| written_as(wanted, sort, pieces.bytes.get(vector.clone())?));
                converted.map_or_else(plain, |converted| {
                    let before = pieces.bytes.get(range.start..vector.start).unwrap_or_default();
                    let after = pieces.bytes.get(vector.end..range.end).unwrap_or_default();
                    [before, &converted, after].concat().into()
                })
            };
            let vector = Vector {
                before_index: slice(element.whole.start..index.start),
                after_index: slice(index.end..element.whole.end),
            };
            if let Some(slot) = gathered.vectors.get_mut(place) {
                *slot = Some(vector);
            }
        }
        gathered.count(parts, pieces, &usage);
    }

    /// The answer, once every step has ended, or an error before; `None`: there is neither.
    pub(in crate::gateway) fn reply(&self) -> Option<Reply> {
        let gathered = self.gathered();
        gathered.error.clone().or_else(|| gathered.whole.clone()).or_else(|| gathered.together())
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathered {
    /// The first answer is the frame; what others counted is added to it.
    fn count(&mut self, parts: &Parts, pieces: &Pieces, usage: &[u64]) {
        let frame = self.frame.get_or_insert_with(|| {
            let mut headers = HeaderMap::new();
            copy_answer(parts.headers.clone(), &mut headers);
            let usage = pieces.usage.iter().map(|count| Count { at: count.at.clone(), count: 0 }).collect();
            Frame { headers, bytes: pieces.bytes.clone(), list: pieces.list.clone(), usage }
        });
        for (count, more) in frame.usage.iter_mut().zip(usage) {
            count.count = count.count.saturating_add(*more);
        }
    }

    fn together(&self) -> Option<Reply> {
        let frame = self.frame.as_ref()?;
        let vectors: Option<Vec<&Vector>> = self.vectors.iter().map(Option::as_ref).collect();
        let mut list = Vec::new();
        for (place, vector) in vectors?.into_iter().enumerate() {
            if place > 0 {
                list.push(b',');
            }
            list.extend_from_slice(&vector.before_index);
            list.extend_from_slice(place.to_string().as_bytes());
            list.extend_from_slice(&vector.after_index);
        }
        let mut changes: Vec<(Range<usize>, Vec<u8>)> =
            frame.usage.iter().map(|count| (count.at.clone(), count.count.to_string().into_bytes())).collect();
        changes.push((frame.list.clone(), list));
        changes.sort_by_key(|(range, _)| range.start);
        let (mut bytes, mut at) = (Vec::new(), 0);
        for (range, with) in changes {
            bytes.extend_from_slice(frame.bytes.get(at..range.start)?);
            bytes.extend_from_slice(&with);
            at = range.end;
        }
        bytes.extend_from_slice(frame.bytes.get(at..)?);
        Some(Reply { status: StatusCode::OK, headers: frame.headers.clone(), bytes: bytes.into() })
    }
}

fn reply(parts: Parts, bytes: Bytes) -> Reply {
    let mut headers = HeaderMap::new();
    copy_answer(parts.headers, &mut headers);
    Reply { status: parts.status, headers, bytes }
}
