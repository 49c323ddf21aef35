//! A job's claim on the scheduler: from being brought to its end, whoever ends it.
//!
//! Clients leave at any moment, which drops whatever works for them. So what has to be said then is said by the claim when it is
//! dropped: that the client has gone, and, if a grant is under way, that the grant has come to nothing — but not before the
//! child's slot is free, because another request would be sent there.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windtunnel_core::{GrantFailure, JobId, Measured, Sent, Submission, Time};

use super::{
    leave::{Parting, is_given_up, part},
    record::Record,
};
use crate::{
    Endpoint, Running, Ticket, Told,
    dispatcher::{Listener, telling},
    gateway::{batches::Work, shared::Shared},
};

/// A job that was brought and has not ended.
pub(in crate::gateway) struct Claim {
    shared: Arc<Shared>,
    /// `None`: nothing more is to be heard or said.
    told: Option<Listener>,
    job: Option<JobId>,
    grant: Option<Granted>,
    /// What is told of the request at its end.
    pub(super) record: Box<Record>,
}

/// A grant under way.
struct Granted {
    running: Running,
    at: Time,
    first_byte: Option<Time>,
}

impl Claim {
    /// Brings a job.
    pub(in crate::gateway) fn submit(
        shared: &Arc<Shared>,
        submission: Submission,
        work: Option<Arc<Work>>,
        record: Box<Record>,
    ) -> Claim {
        let (tell, told) = telling();
        shared.desk.submit(submission, Ticket { tell, work });
        Claim { shared: Arc::clone(shared), told: Some(told), job: None, grant: None, record }
    }

    /// What is told next; `None`: the scheduler is gone.
    pub(in crate::gateway) async fn next(&mut self) -> Option<Told> {
        let told = self.told.as_mut()?.next().await;
        match &told {
            Some(Told::Taken(job)) => {
                self.job = Some(*job);
                self.record.job = Some(*job);
            }
            Some(Told::Finished(_)) | None => self.told = None,
            Some(Told::Waits(_) | Told::Granted(_)) => {}
        }
        told
    }

    /// The number of the job; `None`: the scheduler is gone.
    pub(in crate::gateway) async fn taken(&mut self) -> Option<JobId> {
        while self.job.is_none() {
            self.next().await?;
        }
        self.job
    }

    /// A grant begins.
    pub(super) fn begin(&mut self, running: Running) {
        self.shared.under_way.enter(&running);
        self.grant = Some(Granted { running, at: self.shared.desk.clock().now(), first_byte: None });
    }

    /// What goes off when the grant is to be broken off.
    pub(super) fn abort(&self) -> CancellationToken {
        self.grant.as_ref().map_or_else(CancellationToken::new, |grant| grant.running.abort.clone())
    }

    /// Where the grant runs.
    pub(super) fn endpoint(&self) -> Option<Arc<Endpoint>> {
        self.grant.as_ref().map(|grant| Arc::clone(&grant.running.endpoint))
    }

    /// What it means that the grant is to be broken off.
    pub(super) fn broken_off(&self) -> Parting {
        match &self.grant {
            Some(grant) if is_given_up(&grant.running) => Parting::Failed(GrantFailure::Wedged),
            Some(_) | None => Parting::BrokenOff,
        }
    }

    /// The client has bytes of an answer.
    pub(super) fn sends(&mut self) {
        if let Some(grant) = &mut self.grant
            && grant.first_byte.is_none()
        {
            grant.first_byte = Some(self.shared.desk.clock().now());
            self.record.first_byte();
        }
    }

    /// When the grant began and when its first byte came.
    pub(super) fn times(&self) -> Option<(Time, Option<Time>)> {
        self.grant.as_ref().map(|grant| (grant.at, grant.first_byte))
    }

    /// The grant came to its end, and with it the job.
    pub(super) fn finished(&mut self, measured: Measured) {
        if let Some(grant) = self.grant.take() {
            self.shared.under_way.leave(grant.running.attempt);
            self.shared.desk.finished(&grant.running, measured);
        }
        self.told = None;
    }

    /// The child answered with an error, which the client has: so the job ends.
    pub(super) fn rejected(&mut self) {
        self.failed(GrantFailure::Rejected, Sent::Something);
        self.told = None;
    }

    /// The grant came to nothing; what becomes of the job is told.
    pub(super) fn failed(&mut self, cause: GrantFailure, sent: Sent) {
        if let Some(grant) = self.grant.take() {
            self.shared.under_way.leave(grant.running.attempt);
            self.shared.desk.failed(&grant.running, cause, sent);
        }
    }

    /// The answer ends here and now, which is for others to deal with.
    pub(super) fn part(&mut self, parting: Parting) {
        let Some(told) = self.told.take() else { return };
        let grant = self.grant.take().map(|grant| {
            self.shared.under_way.leave(grant.running.attempt);
            let sent = if grant.first_byte.is_some() { Sent::Something } else { Sent::Nothing };
            (grant.running, sent)
        });
        part(&self.shared, parting, self.job, told, grant);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.part(Parting::Left);
    }
}
