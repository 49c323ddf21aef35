//! The way to the scheduler for everybody else. Nothing here waits, and nothing is lost while the dispatcher lives.

use std::sync::{Arc, mpsc::Sender};

use tokio::sync::oneshot;
use windtunnel_core::{
    Attempt, Bytes, DeviceId, ExitCause, GrantFailure, Input, InstanceId, JobId, LoadFailure, Measured, ModelId,
    PressureLevel, Reconfiguration, Request, Sent, Snapshot, Submission, View,
};

use super::{
    orders::{Running, Ticket},
    ready::Ready,
    troubles::{Trouble, Troubles},
};
use crate::{Clock, Endpoint};

/// What the dispatcher is told.
pub(super) enum Message<W> {
    Submit { submission: Box<Submission>, ticket: Ticket<W> },
    Gone { job: JobId },
    Fact(Input),
    Loaded { attempt: Attempt, instance: InstanceId, footprint: Option<Bytes>, endpoint: Endpoint },
    View(oneshot::Sender<View>),
    Checkpoint,
    Close,
}

/// A handle that can be given to everybody.
#[derive(Debug)]
pub struct Desk<W> {
    pub(super) messages: Sender<Message<W>>,
    pub(super) clock: Clock,
    pub(super) ready: Arc<Ready>,
    pub(super) troubles: Arc<Troubles>,
}

impl<W> Clone for Desk<W> {
    fn clone(&self) -> Desk<W> {
        Desk {
            messages: self.messages.clone(),
            clock: self.clock,
            ready: Arc::clone(&self.ready),
            troubles: Arc::clone(&self.troubles),
        }
    }
}

impl<W> Desk<W> {
    /// The clock of the run.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where models answer.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Why a model fails again and again, if it does.
    pub fn trouble(&self, model: ModelId) -> Option<Trouble> {
        self.troubles.of(model)
    }

    /// Brings a job. Whoever is named in the ticket hears of it from now on.
    pub fn submit(&self, submission: Submission, ticket: Ticket<W>) {
        self.say(Message::Submit { submission: Box::new(submission), ticket });
    }

    /// The client of a job went away.
    pub fn gone(&self, job: JobId) {
        self.say(Message::Gone { job });
    }

    /// A grant came to its end.
    pub fn finished(&self, grant: &Running, measured: Measured) {
        let &Running { attempt, instance, .. } = grant;
        self.fact(Input::GrantFinished { attempt, instance, measured });
    }

    /// A grant came to nothing.
    pub fn failed(&self, grant: &Running, cause: GrantFailure, sent: Sent) {
        let &Running { attempt, instance, .. } = grant;
        self.fact(Input::GrantFailed { attempt, instance, cause, sent });
    }

    /// A model is loaded and answers at `endpoint`.
    pub fn loaded(&self, attempt: Attempt, instance: InstanceId, footprint: Option<Bytes>, endpoint: Endpoint) {
        self.say(Message::Loaded { attempt, instance, footprint, endpoint });
    }

    /// A load came to nothing and its process is gone.
    pub fn load_failed(&self, attempt: Attempt, instance: InstanceId, cause: LoadFailure) {
        self.fact(Input::LoadFailed { attempt, instance, cause });
    }

    /// A process ended without having been asked.
    pub fn exited(&self, instance: InstanceId, cause: ExitCause) {
        self.fact(Input::Exited { instance, cause });
    }

    /// A process that was asked to stop is gone.
    pub fn stopped(&self, attempt: Attempt, instance: InstanceId) {
        self.fact(Input::StopFinished { attempt, instance });
    }

    /// The memory of a device was read.
    pub fn snapshot(&self, snapshot: Snapshot) {
        self.fact(Input::Snapshot(snapshot));
    }

    /// The memory of a device could not be read.
    pub fn snapshot_failed(&self, device: DeviceId) {
        self.fact(Input::SnapshotFailed { device });
    }

    /// A device reports how scarce its memory is.
    pub fn pressure(&self, device: DeviceId, level: PressureLevel) {
        self.fact(Input::Pressure { device, level });
    }

    /// An instance said that memory ran out.
    pub fn out_of_memory(&self, device: DeviceId, instance: InstanceId) {
        self.fact(Input::OutOfMemory { device, instance });
    }

    /// An operator asks for something.
    pub fn operate(&self, request: Request) {
        self.fact(Input::Operator(request));
    }

    /// The configuration is replaced.
    pub fn reconfigure(&self, reconfiguration: Reconfiguration) {
        self.fact(Input::Reconfigured(Box::new(reconfiguration)));
    }

    /// A picture of the moment; `None` once the dispatcher has ended.
    pub async fn view(&self) -> Option<View> {
        let (answer, picture) = oneshot::channel();
        self.say(Message::View(answer));
        picture.await.ok()
    }

    /// Has the whole state written to the journal.
    pub fn checkpoint(&self) {
        self.say(Message::Checkpoint);
    }

    /// Ends the dispatcher once everything said before has been dealt with.
    pub fn close(&self) {
        self.say(Message::Close);
    }

    fn fact(&self, input: Input) {
        self.say(Message::Fact(input));
    }

    /// After the dispatcher has ended nobody is there to hear, and nothing is left to be decided.
    fn say(&self, message: Message<W>) {
        drop(self.messages.send(message));
    }
}
