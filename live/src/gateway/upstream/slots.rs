//! Whether a child's slot is free again after its client has gone: the child notices that late, and not at all while it
//! computes a prompt.

use std::time::{Duration, Instant};

use http::{Method, StatusCode, uri::PathAndQuery};
use serde::Deserialize;

use super::{
    call::{Purpose, Question, ask},
    headers::Forwarded,
};
use crate::{Endpoint, gateway::settings::SlotWatch};

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Slots may be listed with their prompts.
const MOST_BYTES: usize = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct Slot {
    #[serde(default)]
    is_processing: bool,
}

/// Waits until no more slots of a child work than `others` says have a reason to, or until it is no use to wait.
pub(in crate::gateway) async fn until_free(endpoint: &Endpoint, watch: SlotWatch, others: impl Fn() -> usize) {
    let started = Instant::now();
    let mut pause = watch.first;
    while started.elapsed() < watch.limit {
        // A request that was on its way is seen by the child a little later.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match tokio::time::timeout(watch.look, working(endpoint)).await {
            Ok(Some(working)) if working > others() => {}
            Ok(Some(_) | None) => return,
            // It computes a prompt and does not answer.
            Err(_) => {}
        }
    }
}

/// How many slots work; `None`: the child is gone, or does not say.
async fn working(endpoint: &Endpoint) -> Option<usize> {
    let path = PathAndQuery::from_static("/slots");
    let question = Question {
        method: Method::GET,
        path,
        headers: &Forwarded::default(),
        body: Vec::new(),
        purpose: Purpose::Look,
    };
    let (parts, body) = ask(endpoint, question, MOST_BYTES).await.ok()?;
    let slots: Vec<Slot> = (parts.status == StatusCode::OK).then(|| serde_json::from_slice(&body).ok()).flatten()?;
    Some(slots.iter().filter(|slot| slot.is_processing).count())
}
