//! An answer token by token, as frames of events.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;

use super::{
    dialects::{Dialect, Names},
    generation::Generation,
    server::Inner,
    settings::{AnswerFault, Death, Frames},
};

/// A stream under way.
pub struct Stream {
    dialect: Dialect,
    names: Names,
    /// `None`: all that is left is in `frames`.
    generation: Option<Generation>,
    frames: VecDeque<Bytes>,
    end: End,
    cut: Frames,
    /// Halves of a frame that was cut.
    halves: VecDeque<Bytes>,
    sent: Sent,
}

/// The connection broke under a stream.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke under a stream")]
pub struct Broken;

/// How a stream ends.
enum End {
    Well,
    Breaks {
        after: u32,
    },
    Dies {
        after: u32,
        death: Death,
        inner: Arc<Inner>,
    },
    /// Now that what came before is sent.
    Now(Option<(Death, Arc<Inner>)>),
}

/// Whether what was given out has been sent, where frames are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    NotYet,
    Surely,
}

impl Stream {
    /// A stream of `generation`, which may come to a bad end.
    pub fn new(
        dialect: Dialect,
        names: Names,
        generation: Generation,
        fault: Option<AnswerFault>,
        inner: &Arc<Inner>,
    ) -> Stream {
        let end = match fault {
            Some(AnswerFault::Broken { after }) => End::Breaks { after },
            Some(AnswerFault::Dies { after, death }) => End::Dies { after, death, inner: Arc::clone(inner) },
            Some(
                AnswerFault::Mute
                | AnswerFault::Busy { .. }
                | AnswerFault::Closed
                | AnswerFault::Garbage
                | AnswerFault::OutOfMemory,
            )
            | None => End::Well,
        };
        let cut = inner.settings.faults.frames;
        let frames = dialect.opening(&names, &generation.question).into();
        Stream {
            dialect,
            names,
            generation: Some(generation),
            frames,
            end,
            cut,
            halves: VecDeque::new(),
            sent: Sent::Surely,
        }
    }

    /// The next bytes.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.halves.is_empty() {
            let frame = match self.poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match self.cut {
                Frames::Whole => return Poll::Ready(Some(Ok(frame))),
                Frames::Split => self.halves = halves(frame),
            }
        }
        // What waits is sent before there is more of it.
        if self.sent == Sent::NotYet {
            self.sent = Sent::Surely;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.sent = Sent::NotYet;
        Poll::Ready(self.halves.pop_front().map(Ok))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let End::Now(death) = &self.end {
            if let Some((death, inner)) = death {
                inner.process.die(*death);
            }
            return Poll::Ready(Some(Err(Broken)));
        }
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(generation) = &mut self.generation else { return Poll::Ready(None) };
        match generation.poll_token(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(place)) => match self.end.at(place) {
                None => Poll::Ready(Some(Ok(self.dialect.token(&self.names, &generation.question, place)))),
                Some(now) => {
                    self.end = now;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            },
            Poll::Ready(None) => {
                let closing = self.dialect.closing(&self.names, &generation.outcome());
                self.generation = None;
                self.frames = closing.into();
                Poll::Ready(self.frames.pop_front().map(Ok))
            }
        }
    }
}

impl End {
    /// What comes instead of the `place`th token; `None`: it gets out.
    fn at(&self, place: u32) -> Option<End> {
        match self {
            End::Breaks { after } if place >= *after => Some(End::Now(None)),
            End::Dies { after, death, inner } if place >= *after => Some(End::Now(Some((*death, Arc::clone(inner))))),
            End::Well | End::Breaks { .. } | End::Dies { .. } | End::Now(_) => None,
        }
    }
}

/// A frame in two, inside its first long character or else before its last byte.
fn halves(frame: Bytes) -> VecDeque<Bytes> {
    let long = frame.iter().position(|byte| *byte >= 0xc0).map(|place| place + 1);
    let place = long.unwrap_or(frame.len().saturating_sub(1));
    [frame.slice(..place), frame.slice(place..)].into()
}
