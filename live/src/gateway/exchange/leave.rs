//! What is left to do after an answer has ended before its time.

use std::{sync::Arc, time::Duration};

use windtunnel_core::{ExitCause, GrantFailure, JobId, Request, Sent};

use crate::{
    Endpoint, Running, Told,
    dispatcher::Listener,
    gateway::{shared::Shared, upstream::until_free},
};

/// How an answer ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Parting {
    /// Its client has gone.
    Left,
    /// It was refused while it waited, because the daemon ends.
    TurnedAway,
    /// It was broken off.
    BrokenOff,
    /// The child failed.
    Failed(GrantFailure),
}

/// Looks after a job and its grant until both have ended.
pub(super) fn part(
    shared: &Arc<Shared>,
    parting: Parting,
    job: Option<JobId>,
    told: Listener,
    grant: Option<(Running, Sent)>,
) {
    if let Some(job) = job {
        tell_end(shared, parting, job);
    }
    if job.is_some() && grant.is_none() {
        // A grant that crosses with this comes back to the scheduler.
        told.leave().into_iter().for_each(|told| unheard(shared, parting, told));
        return;
    }
    let own = Arc::clone(shared);
    shared.runtime.spawn(async move {
        if let Some((running, sent)) = grant {
            let cause = settled(&own, parting, &running).await;
            own.desk.failed(&running, cause, sent);
        }
        see_off(&own, parting, told).await;
    });
}

/// A job whose answer ended while the scheduler holds it.
fn tell_end(shared: &Shared, parting: Parting, job: JobId) {
    match parting {
        Parting::Left => shared.desk.gone(job),
        Parting::TurnedAway => shared.desk.operate(Request::TurnAway { job }),
        Parting::BrokenOff | Parting::Failed(_) => {}
    }
}

/// Waits until a grant's end may be said, and says why it ended.
async fn settled(shared: &Shared, parting: Parting, running: &Running) -> GrantFailure {
    match parting {
        Parting::Left | Parting::TurnedAway | Parting::BrokenOff => {
            slot_free(shared, running).await;
            GrantFailure::Aborted
        }
        Parting::Failed(cause) => cause,
    }
}

/// Waits until the slot of a grant that was broken off is free.
pub(in crate::gateway) async fn slot_free(shared: &Shared, running: &Running) {
    let watch = shared.rules().settings.slot_watch;
    let others = || shared.under_way.on(running.instance);
    until_free(&running.endpoint, watch, others).await;
}

/// Why a connection to a child broke. Waits a little for the scheduler to hear that the process died: its end has to be said
/// before that of its grants, else the next grant would go to a dead process.
pub(in crate::gateway) async fn why_broken(limit: Duration, endpoint: Arc<Endpoint>) -> GrantFailure {
    match tokio::time::timeout(limit, endpoint.progress.ended()).await {
        Ok(Some(ExitCause::Wedged)) => GrantFailure::Wedged,
        Ok(Some(ExitCause::OutOfMemory)) => GrantFailure::OutOfMemory,
        Ok(Some(ExitCause::Code(_) | ExitCause::Signal(_))) => GrantFailure::Crashed,
        // The process lives or was asked to go, and only the connection broke.
        Ok(None) | Err(_) => GrantFailure::Disconnected,
    }
}

/// Whether a grant ends because its instance was given up, of which the scheduler knows.
pub(in crate::gateway) fn is_given_up(running: &Running) -> bool {
    running.endpoint.progress.given_up().is_cancelled()
}

/// A client that left can have crossed with the job's number, or with a grant; neither may be lost.
async fn see_off(shared: &Shared, parting: Parting, mut told: Listener) {
    while let Some(told) = told.next().await {
        let is_last = matches!(told, Told::Finished(_));
        unheard(shared, parting, told);
        if is_last {
            return;
        }
    }
}

/// Something was told to whom it no longer concerns.
fn unheard(shared: &Shared, parting: Parting, told: Told) {
    match told {
        Told::Taken(job) => tell_end(shared, parting, job),
        Told::Granted(order) => shared.desk.failed(&order.running, GrantFailure::Aborted, Sent::Nothing),
        Told::Finished(_) | Told::Waits(_) => {}
    }
}
