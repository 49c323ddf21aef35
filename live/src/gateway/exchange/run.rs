//! A job from its claim to the head of an answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, response::Parts, uri::PathAndQuery};
use windtunnel_core::{Finish, GrantFailure, ModelId, Sent, WaitReason, Wanted};

use super::{
    claim::Claim,
    leave::{Parting, is_given_up, slot_free, why_broken},
    relay::{Relay, Shape, Verdict},
    wish::Wish,
};
use crate::{
    Order, Running, Told,
    gateway::{
        body::{Edit, edited},
        connections::Lull,
        refuse::{Beside, Reason, Refusal, of_finish, sentence_of_wait},
        routes::Dialect,
        shared::{Rules, Shared},
        upstream::{Broken, Flow, Forwarded, Purpose, Question, call, copy_answer, gather, says_out_of_memory},
    },
};

/// So much of an error is searched for signs that memory ran out.
const SEARCHED: usize = 64 * 1024;

/// A job on its way.
pub(super) struct Run {
    shared: Arc<Shared>,
    rules: Arc<Rules>,
    errand: Errand,
    pub claim: Claim,
    /// Is told when the job waits.
    lull: Lull,
}

/// What is left to be known of a request that was brought: all that whoever waits keeps of it.
struct Errand {
    path: PathAndQuery,
    headers: Forwarded,
    body: Bytes,
    edits: Vec<Edit>,
    wanted: Wanted,
    dialect: Dialect,
    request_id: HeaderValue,
}

/// A child has begun to answer.
pub(super) struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub relay: Relay,
    pub model: ModelId,
    pub queued: Duration,
}

/// How a grant came to nothing before the client had a byte of it.
enum Fruitless {
    /// The connection broke.
    Broken,
    OutOfMemory,
    BrokenOff,
    /// The child was given up.
    Wedged,
}

impl Run {
    /// A request that was brought under `claim`.
    pub(super) fn new(shared: Arc<Shared>, rules: Arc<Rules>, wish: Box<Wish>, claim: Claim, lull: Lull) -> Run {
        let (wanted, dialect) = (wish.named.wanted, wish.errand.dialect);
        let Wish { path, headers, body, request_id, .. } = *wish;
        let errand = Errand { path, headers, body: body.bytes, edits: body.edits, wanted, dialect, request_id };
        Run { shared, rules, errand, claim, lull }
    }

    /// Waits for a grant and for the head of an answer. A grant that comes to nothing before that is given back, and the job
    /// waits again, if the scheduler says so.
    pub(super) async fn go(mut self: Box<Run>) -> Result<Opened, Refusal> {
        let mut waits = None;
        let refusal = loop {
            let told = tokio::select! {
                biased;
                told = self.claim.next() => told,
                () = self.shared.draining.cancelled() => break draining(),
            };
            match told {
                None if self.shared.draining.is_cancelled() => break draining(),
                None => break stopped(),
                Some(Told::Taken(_)) => {}
                Some(Told::Waits(reason)) => {
                    waits = Some(reason);
                    self.lull.begins();
                }
                Some(Told::Finished(finish)) => break self.ended(&finish, waits),
                Some(Told::Granted(order)) => {
                    self.lull.ends();
                    let Order { running, .. } = *order;
                    // Elsewhere, so that who waits for a grant keeps no room for what follows.
                    if let Some((parts, flow)) = Box::pin(self.attempt(&running)).await {
                        return Ok(self.opened(running.model, parts, flow));
                    }
                }
            }
        };
        self.claim.record.refused(&refusal);
        if refusal.reason == Reason::Draining {
            self.claim.part(Parting::TurnedAway);
        }
        Err(refusal)
    }

    fn ended(&self, finish: &Finish, waits: Option<WaitReason>) -> Refusal {
        let now = self.shared.desk.clock().now();
        let waits = waits.map(|reason| sentence_of_wait(reason, &self.rules.catalogue, now));
        let trouble = self.shared.trouble(&self.rules, self.errand.wanted);
        of_finish(finish, &Beside { waits, trouble, now })
    }

    /// One grant; `None`: it came to nothing, which was said.
    async fn attempt(&mut self, running: &Running) -> Option<(Parts, Flow)> {
        self.claim.record.granted(running.model);
        self.claim.begin(running.clone());
        let answer = tokio::select! {
            biased;
            () = running.abort.cancelled() => Err(if is_given_up(running) { Fruitless::Wedged } else { Fruitless::BrokenOff }),
            answer = ask(&self.rules, &self.errand, running) => answer,
        };
        match answer {
            Ok(answer) => return Some(answer),
            // Nobody waits for a slot when all ends.
            Err(Fruitless::BrokenOff) if self.shared.draining.is_cancelled() => self.claim.part(Parting::BrokenOff),
            Err(Fruitless::BrokenOff) => {
                slot_free(&self.shared, running).await;
                self.claim.failed(GrantFailure::Aborted, Sent::Nothing);
            }
            Err(Fruitless::Wedged) => self.claim.failed(GrantFailure::Wedged, Sent::Nothing),
            Err(Fruitless::OutOfMemory) => {
                self.shared.desk.out_of_memory(running.device, running.instance);
                self.claim.failed(GrantFailure::OutOfMemory, Sent::Nothing);
            }
            Err(Fruitless::Broken) => {
                let limit = self.rules.settings.death_notice;
                let cause = why_broken(limit, Arc::clone(&running.endpoint)).await;
                self.claim.failed(cause, Sent::Nothing);
            }
        }
        None
    }

    fn opened(mut self: Box<Run>, model: ModelId, parts: Parts, flow: Flow) -> Opened {
        let queued = self.claim.record.granted(model);
        self.claim.record.status = parts.status.as_u16();
        let verdict = if parts.status.is_client_error() || parts.status.is_server_error() {
            Verdict::Rejected
        } else {
            Verdict::Fine
        };
        let shape = if is_events(&parts.headers) {
            Shape::Events(self.errand.dialect, self.errand.request_id.clone())
        } else {
            Shape::Text
        };
        let mut headers = HeaderMap::with_capacity(parts.headers.len() + 8);
        copy_answer(parts.headers, &mut headers);
        let relay = Relay::new(flow, self.claim, shape, verdict, self.rules.settings.death_notice);
        Opened { status: parts.status, headers, relay, model, queued }
    }
}

/// Asks the child. An error that says that memory ran out is nobody's answer: the job may run again once there is some.
async fn ask(rules: &Rules, errand: &Errand, running: &Running) -> Result<(Parts, Flow), Fruitless> {
    let broken = |Broken| Fruitless::Broken;
    let body = edited(&errand.body, &errand.edits, rules.catalogue.model(running.model));
    let question = Question {
        method: Method::POST,
        path: errand.path.clone(),
        headers: &errand.headers,
        body,
        purpose: Purpose::Work,
    };
    let (parts, mut flow) = call(&running.endpoint, question).await.map_err(broken)?;
    if parts.status.is_server_error() {
        let (bytes, _) = gather(&mut flow, SEARCHED).await.map_err(broken)?;
        if says_out_of_memory(&bytes) {
            return Err(Fruitless::OutOfMemory);
        }
        flow.put_back(bytes);
    }
    Ok((parts, flow))
}

fn is_events(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// What is answered while the daemon ends.
pub(in crate::gateway) fn draining() -> Refusal {
    Refusal::new(Reason::Draining, "the daemon is ending").after(Duration::from_secs(5))
}

/// What is answered when there is no scheduler.
pub(in crate::gateway) fn stopped() -> Refusal {
    Refusal::new(Reason::Stopped, "the scheduler has ended")
}
