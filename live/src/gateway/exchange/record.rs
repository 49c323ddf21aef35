//! What is remembered of a request until it is over, and then told.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::StatusCode;
use windtunnel_core::{Class, JobId, LabelId, ModelId};

use crate::gateway::{
    access::Caller,
    operations::Answered,
    refuse::{Reason, Refusal},
    shared::Shared,
};

/// Tells of its request when it is dropped.
pub(in crate::gateway) struct Record {
    shared: Arc<Shared>,
    arrived: Instant,
    /// Among whose requests it counts until it is over.
    caller: Option<Caller>,
    pub(super) class: Option<Class>,
    pub(super) job: Option<JobId>,
    pub(super) model: Option<ModelId>,
    pub(super) status: u16,
    pub(super) reason: &'static str,
    queued: Option<Duration>,
    first_byte: Option<Duration>,
}

impl Record {
    /// It lies elsewhere, since it is passed on and everybody who waits has one.
    pub(in crate::gateway) fn new(shared: &Arc<Shared>) -> Box<Record> {
        Box::new(Record {
            shared: Arc::clone(shared),
            arrived: Instant::now(),
            caller: None,
            class: None,
            job: None,
            model: None,
            status: 0,
            reason: "left",
            queued: None,
            first_byte: None,
        })
    }

    /// Who sent it.
    pub(super) fn comes_from(&mut self, caller: Caller) -> &Caller {
        self.caller.insert(caller)
    }

    pub(super) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// A model took it up; how long it waited for that the first time.
    pub(super) fn granted(&mut self, model: ModelId) -> Duration {
        self.model = Some(model);
        *self.queued.get_or_insert(self.arrived.elapsed())
    }

    pub(super) fn first_byte(&mut self) {
        self.first_byte.get_or_insert_with(|| self.arrived.elapsed());
    }

    /// A child's answer goes to the client as a whole.
    pub(super) fn served(&mut self, status: StatusCode, model: Option<(ModelId, Duration)>) {
        self.status = status.as_u16();
        self.reason = if status.is_success() { "ok" } else { Reason::RuntimeRejected.word() };
        self.model = model.map(|(model, _)| model);
        self.queued = model.map(|(_, queued)| queued);
        self.first_byte();
    }

    /// It is not served.
    pub(in crate::gateway) fn refused(&mut self, refusal: &Refusal) {
        self.status = refusal.reason.status().as_u16();
        self.reason = refusal.reason.word();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.shared.operations.answered(&Answered {
            job: self.job,
            label: self.caller.as_ref().map_or(LabelId(0), |caller| caller.label),
            class: self.class,
            model: self.model,
            status: self.status,
            reason: self.reason,
            queued: self.queued,
            first_byte: self.first_byte,
            total: self.arrived.elapsed(),
        });
    }
}
