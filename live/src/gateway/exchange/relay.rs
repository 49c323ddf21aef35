//! A child's answer on its way to the client: every byte as it comes, and at the end the scheduler is told.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderValue;
use tokio_util::sync::WaitForCancellationFutureOwned;
use windtunnel_core::{GrantFailure, Measured, Span, Time};

use super::{
    claim::Claim,
    leave::{Parting, why_broken},
};
use crate::gateway::{
    refuse::{Reason, Refusal, in_stream, of_broken_grant},
    routes::Dialect,
    upstream::{Broken, Flow, Meter},
};

/// An answer under way.
pub(in crate::gateway) struct Relay {
    /// First, so that the connection goes before the claim.
    stage: Stage,
    claim: Claim,
    meter: Meter,
    pieces: u32,
    abort: Pin<Box<WaitForCancellationFutureOwned>>,
    shape: Shape,
    verdict: Verdict,
    /// How long it may take to hear that a process died.
    death_notice: Duration,
}

/// How far an answer is.
enum Stage {
    Flows(Flow),
    /// The connection broke, and it is to be told why.
    Broken(Pin<Box<dyn Future<Output = GrantFailure> + Send>>),
    Over,
}

/// How an answer comes.
#[derive(Clone, Debug)]
pub(in crate::gateway) enum Shape {
    /// As one text.
    Text,
    /// As events, among which errors are said like this.
    Events(Dialect, HeaderValue),
}

/// What the child's status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Verdict {
    /// It is an answer.
    Fine,
    /// It is an error.
    Rejected,
}

impl Relay {
    pub(super) fn new(flow: Flow, claim: Claim, shape: Shape, verdict: Verdict, death_notice: Duration) -> Relay {
        let abort = Box::pin(claim.abort().cancelled_owned());
        let (stage, meter) = (Stage::Flows(flow), Meter::default());
        Relay { stage, claim, meter, pieces: 0, abort, shape, verdict, death_notice }
    }

    /// Whether it is made of events and no error.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.shape, Shape::Events(..)) && self.verdict == Verdict::Fine
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// How long it will be, where that is known and may be said.
    pub(in crate::gateway) fn length(&self) -> Option<u64> {
        match self.shape {
            Shape::Text => match &self.stage {
                Stage::Flows(flow) => flow.length(),
                Stage::Broken(_) => None,
                Stage::Over => Some(0),
            },
            Shape::Events(..) => None,
        }
    }

    /// The next bytes for the client.
    pub(in crate::gateway) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let flow = match &mut self.stage {
            Stage::Over => return Poll::Ready(None),
            Stage::Broken(why) => {
                let cause = ready!(why.as_mut().poll(cx));
                return Poll::Ready(self.end_early(Parting::Failed(cause)));
            }
            Stage::Flows(flow) => flow,
        };
        if self.abort.as_mut().poll(cx).is_ready() {
            let parting = self.claim.broken_off();
            return Poll::Ready(self.end_early(parting));
        }
        match ready!(flow.poll_data(cx)) {
            Some(Ok(piece)) => {
                self.claim.sends();
                self.meter.pass(&piece);
                self.pieces = self.pieces.saturating_add(1);
                // Who knows the length does not ask again after the last byte.
                if flow.is_over() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(piece)))
            }
            None => {
                self.finish();
                Poll::Ready(None)
            }
            Some(Err(Broken)) => {
                self.stage = match self.claim.endpoint() {
                    Some(endpoint) => Stage::Broken(Box::pin(why_broken(self.death_notice, endpoint))),
                    None => Stage::Over,
                };
                self.poll_data(cx)
            }
        }
    }

    fn finish(&mut self) {
        self.stage = Stage::Over;
        match self.verdict {
            Verdict::Fine => {
                self.claim.record.reason = "ok";
                let measured = self.measured();
                self.claim.finished(measured);
            }
            Verdict::Rejected => {
                self.claim.record.reason = Reason::RuntimeRejected.word();
                self.claim.rejected();
            }
        }
    }

    fn measured(&self) -> Measured {
        let streams = matches!(self.shape, Shape::Events(..));
        let prompt = |at: Time| {
            let prompt = self.meter.prompt()?;
            Some(at.after(Span::from_nanos(u64::try_from(prompt.as_nanos()).ok()?)))
        };
        let first_token = self.claim.times().and_then(|(at, first)| if streams { first } else { prompt(at) });
        // A runtime that counts nothing gives about a token an event.
        let counted = if streams { self.pieces } else { 0 };
        Measured { first_token, output_tokens: self.meter.tokens().unwrap_or(counted) }
    }

    /// The client is told in the stream, or sees its connection end.
    fn end_early(&mut self, parting: Parting) -> Option<Result<Bytes, Broken>> {
        self.stage = Stage::Over;
        let refusal = match parting {
            Parting::Failed(cause) => of_broken_grant(cause),
            Parting::BrokenOff | Parting::TurnedAway | Parting::Left => {
                Refusal::new(Reason::Aborted, "the answer was broken off")
            }
        };
        self.claim.record.reason = refusal.reason.word();
        self.claim.part(parting);
        match &self.shape {
            Shape::Text => Some(Err(Broken)),
            Shape::Events(dialect, request_id) => {
                let event = in_stream(&refusal, *dialect, request_id);
                let gap: &[u8] = if self.meter.is_between_events() { b"" } else { b"\n\n" };
                Some(Ok([gap, &event].concat().into()))
            }
        }
    }
}
