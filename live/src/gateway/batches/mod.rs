//! Texts to be embedded: jobs of several steps, granted in batches that may hold steps of several clients.
//!
//! A batch is one request to the child for each kind of request in it (same path, same fields but the texts). Its answer is cut
//! into vectors, and every job takes its own; once all of its steps have ended, its answer is put together in the order of its
//! inputs. A job that fits into one step and runs alone is sent as it came, and its answer goes back untouched.

mod assembly;
mod encoding;
mod split;
mod work;

pub(super) use encoding::Encoding;
pub(super) use work::Reply;
pub use work::Work;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, response::Parts};
use tokio::sync::mpsc::UnboundedReceiver;
use windtunnel_core::{GrantFailure, GrantedStep, Measured, Sent};

use super::{
    exchange::{is_given_up, slot_free, why_broken},
    shared::Shared,
    upstream::{Broken, Purpose, Question, ask, says_out_of_memory},
};
use crate::{BatchOrder, Running};
use split::Pieces;

/// The most bytes of an answer: a few thousand long vectors as text.
const MOST: usize = 256 * 1024 * 1024;

/// A step and the job it belongs to.
type Part = (GrantedStep, Arc<Work>);

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Somebody has vectors of it.
    Fine,
    /// The child had only errors for everybody, who have them.
    Rejected,
    /// The connection broke.
    Broken,
    OutOfMemory,
    BrokenOff,
}

/// Runs every batch that is granted, each beside the others.
pub(super) async fn run(shared: Arc<Shared>, mut orders: UnboundedReceiver<BatchOrder<Work>>) {
    while let Some(order) = orders.recv().await {
        tokio::spawn(batch(Arc::clone(&shared), order));
    }
}

async fn batch(shared: Arc<Shared>, order: BatchOrder<Work>) {
    let BatchOrder { running, steps, .. } = order;
    let parts: Vec<Part> = steps.into_iter().filter_map(|(step, ticket)| Some((step, ticket.work?))).collect();
    parts.iter().for_each(|(_, work)| work.start(running.model));
    shared.under_way.enter(&running);
    let end = tokio::select! {
        biased;
        () = running.abort.cancelled() => End::BrokenOff,
        end = serve(&shared, &running, parts) => end,
    };
    shared.under_way.leave(running.attempt);
    match end {
        End::Fine => shared.desk.finished(&running, Measured { first_token: None, output_tokens: 0 }),
        End::Rejected => shared.desk.failed(&running, GrantFailure::Rejected, Sent::Something),
        End::BrokenOff if is_given_up(&running) => {
            shared.desk.failed(&running, GrantFailure::Wedged, Sent::Nothing);
        }
        End::BrokenOff => {
            slot_free(&shared, &running).await;
            shared.desk.failed(&running, GrantFailure::Aborted, Sent::Nothing);
        }
        End::OutOfMemory => {
            shared.desk.out_of_memory(running.device, running.instance);
            shared.desk.failed(&running, GrantFailure::OutOfMemory, Sent::Nothing);
        }
        End::Broken => {
            let limit = shared.rules().settings.death_notice;
            let cause = why_broken(limit, Arc::clone(&running.endpoint)).await;
            shared.desk.failed(&running, cause, Sent::Nothing);
        }
    }
}

/// One request for each kind of request among the steps.
async fn serve(shared: &Shared, running: &Running, parts: Vec<Part>) -> End {
    let rules = shared.rules();
    let model = rules.catalogue.model(running.model);
    let mut groups: Vec<Vec<Part>> = Vec::new();
    for part in parts {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| first.1.is_like(&part.1))) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    let mut end = End::Rejected;
    for group in &groups {
        match together(running, model, group).await {
            End::Fine => end = End::Fine,
            End::Rejected => {}
            other @ (End::Broken | End::OutOfMemory | End::BrokenOff) => return other,
        }
    }
    end
}

/// Steps that fit into one request. If the child refuses it, each is asked alone, so that nobody pays for another's mistake.
async fn together(running: &Running, model: &str, group: &[Part]) -> End {
    match (request(running, model, group).await, group) {
        (Err(end), _) => end,
        (Ok(Taken::All), _) => End::Fine,
        (Ok(Taken::Error(parts, bytes)), [(_, work)]) => {
            work.refuse(*parts, bytes);
            End::Rejected
        }
        (Ok(Taken::Error(..)), _) => {
            let mut end = End::Rejected;
            for part in group {
                match request(running, model, std::slice::from_ref(part)).await {
                    Err(failed) => return failed,
                    Ok(Taken::All) => end = End::Fine,
                    Ok(Taken::Error(parts, bytes)) => part.1.refuse(*parts, bytes),
                }
            }
            end
        }
    }
}

/// What came of one request.
enum Taken {
    /// Every step has its vectors.
    All,
    /// The child answered with an error, or with something that is no answer.
    Error(Box<Parts>, Bytes),
}

async fn request(running: &Running, model: &str, group: &[Part]) -> Result<Taken, End> {
    let Some((_, first)) = group.first() else { return Ok(Taken::All) };
    let body = assembly::body(model, group);
    let question = Question {
        method: Method::POST,
        path: first.path.clone(),
        headers: &first.headers,
        body,
        purpose: Purpose::Work,
    };
    let answer = ask(&running.endpoint, question, MOST).await;
    let (parts, bytes) = answer.map_err(|Broken| End::Broken)?;
    if parts.status.is_server_error() && says_out_of_memory(&bytes) {
        return Err(End::OutOfMemory);
    }
    if !parts.status.is_success() {
        return Ok(Taken::Error(Box::new(parts), bytes));
    }
    if let [(step, work)] = group
        && step.of == 1
        && work.suits(&bytes)
    {
        work.take_whole(parts, bytes);
        return Ok(Taken::All);
    }
    let wanted: usize = group.iter().map(|(step, _)| step.weight as usize).sum();
    let Some(pieces) = Pieces::of(bytes.clone()).filter(|pieces| pieces.elements.len() == wanted) else {
        return Ok(Taken::Error(Box::new(split::nonsense(parts)), split::NONSENSE));
    };
    hand_out(&parts, &pieces, group);
    Ok(Taken::All)
}

/// Gives every step its vectors, in order, and its share of what was counted.
fn hand_out(parts: &Parts, pieces: &Pieces, group: &[Part]) {
    let texts: Vec<u64> = group.iter().map(|(step, work)| work.text_of(step)).collect();
    let shares = assembly::shares(&pieces.usage, &texts);
    let mut at = 0;
    for ((step, work), usage) in group.iter().zip(shares) {
        let end = at + step.weight as usize;
        work.take_piece(step, parts, pieces, at..end, usage);
        at = end;
    }
}
