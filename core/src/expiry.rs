//! When waiting jobs run out of time: one index for waits and deadlines, with removal.

use alloc::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    JobId, Overdue, Span, Time,
    job::{Hopeless, Job},
};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Expiry {
    due: BTreeSet<(Time, JobId)>,
}

impl Expiry {
    #[inline]
    pub fn first(&self) -> Option<Time> {
        self.due.first().map(|entry| entry.0)
    }

    /// The first job that was due by `until`.
    pub fn pop_due(&mut self, until: Time) -> Option<JobId> {
        let &(due, job) = self.due.first()?;
        (due <= until).then(|| {
            self.due.pop_first();
            job
        })
    }

    pub fn insert(&mut self, due: Time, job: JobId) {
        self.due.insert((due, job));
    }

    pub fn remove(&mut self, due: Time, job: JobId) {
        self.due.remove(&(due, job));
    }

    pub fn holds(&self, due: Time, job: JobId) -> bool {
        self.due.contains(&(due, job))
    }

    pub fn len(&self) -> usize {
        self.due.len()
    }
}

impl Job {
    /// When it runs out of time if it goes on waiting, and of which; `shortest` is the least its service can take.
    pub fn runs_out(&self, shortest: Span) -> Option<(Time, Overdue)> {
        let waited = self.max_wait().map(|most| (self.progress.after(most), Overdue::MaxWait));
        let hopeless = match (self.hopeless, self.deadline()) {
            (Hopeless::Dropped, Some(deadline)) => Some((hopeless_from(deadline, shortest), Overdue::Hopeless)),
            (Hopeless::Dropped, None) | (Hopeless::Kept, _) => None,
        };
        match (waited, hopeless) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// The first moment at which a start would end after the deadline.
fn hopeless_from(deadline: Time, shortest: Span) -> Time {
    deadline.before(shortest).after(Span::from_nanos(1))
}
