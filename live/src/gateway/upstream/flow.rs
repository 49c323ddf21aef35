//! The bytes of a child's answer as they come.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Incoming};

use super::call::Broken;
use crate::{
    Flight,
    lines::{Line, Lines, Terms},
};

/// An answer under way. Dropping it before its end drops the connection; at its end the connection waits for the next request.
#[derive(Debug)]
pub(in crate::gateway) struct Flow {
    /// `None`: it has ended, and so does the body.
    line: Option<Box<Line>>,
    body: Incoming,
    /// What was read already.
    ahead: VecDeque<Bytes>,
    flight: Option<Flight>,
    lines: Arc<Lines>,
    terms: Terms,
}

impl Flow {
    /// An answer whose head has come over `line`, which goes back to `lines`.
    pub(super) fn new(
        line: Box<Line>,
        body: Incoming,
        lines: Arc<Lines>,
        terms: Terms,
        flight: Option<Flight>,
    ) -> Flow {
        let mut flow = Flow { line: Some(line), body, ahead: VecDeque::new(), flight, lines, terms };
        flow.give_back_at_end();
        flow
    }

    /// The next bytes, `None` at the end.
    pub(in crate::gateway) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(piece) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        let next = self.poll_body(cx);
        if let Some(flight) = &mut self.flight {
            match next {
                Poll::Pending => flight.wait(),
                Poll::Ready(_) => flight.touch(),
            }
        }
        next
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        // Frames come by driving the line and in no other way, so nobody has to be woken for them.
        let nobody = &mut Context::from_waker(Waker::noop());
        loop {
            let mut next = Pin::new(&mut self.body).poll_frame(nobody);
            if next.is_pending()
                && let Some(line) = &mut self.line
            {
                line.drive(cx);
                next = Pin::new(&mut self.body).poll_frame(nobody);
            }
            match ready!(next) {
                None => {
                    self.give_back();
                    return Poll::Ready(None);
                }
                Some(Err(_)) => return Poll::Ready(Some(Err(Broken))),
                Some(Ok(frame)) => {
                    self.give_back_at_end();
                    // Trailers are for whoever asked for them, and we did not.
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
            }
        }
    }

    /// Who knows the length does not ask again after the last byte.
    fn give_back_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.give_back();
        }
    }

    /// The answer has come whole.
    fn give_back(&mut self) {
        if let Some(line) = self.line.take() {
            self.lines.put(line, self.terms);
        }
    }

    /// Puts bytes back in front.
    pub(in crate::gateway) fn put_back(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ahead.push_front(bytes);
        }
    }

    /// Whether all has come.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        self.ahead.is_empty() && self.body.is_end_stream()
    }

    /// How many bytes are to come, where the child said so.
    pub(in crate::gateway) fn length(&self) -> Option<u64> {
        let ahead: u64 = self.ahead.iter().map(|piece| piece.len() as u64).sum();
        self.body.size_hint().exact().map(|rest| rest + ahead)
    }
}
