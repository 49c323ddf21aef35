//! What passes between the scheduler and those who bring jobs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windtunnel_core::{Attempt, Class, DeviceId, Finish, Grant, GrantedStep, InstanceId, JobId, ModelId, WaitReason};

use super::telling::Teller;
use crate::Endpoint;

/// What whoever brought a job is told. Small, since a crowd may be told at once.
#[derive(Clone, Debug)]
pub enum Told {
    /// It is admitted, or about to be refused.
    Taken(JobId),
    /// Why it waits, when that changes.
    Waits(WaitReason),
    /// Its step may run: he runs it, and says through its [`Running`] what became of it.
    Granted(Box<Order>),
    /// It is over. The last that is told.
    Finished(Box<Finish>),
}

/// What a job leaves with the dispatcher.
#[derive(Debug)]
pub struct Ticket<W> {
    /// Who is told.
    pub tell: Teller,
    /// Its inputs, where steps of several jobs may run together; such grants go to whoever runs batches.
    pub work: Option<Arc<W>>,
}

/// A step that may run now.
#[derive(Clone, Debug)]
pub struct Order {
    /// The grant.
    pub running: Running,
    /// Its class.
    pub class: Class,
    /// The step.
    pub step: GrantedStep,
}

/// Steps that run together, with the inputs of their jobs.
#[derive(Debug)]
pub struct BatchOrder<W> {
    /// The grant.
    pub running: Running,
    /// Its class.
    pub class: Class,
    /// The steps in queue order, and what their jobs left.
    pub steps: Vec<(GrantedStep, Ticket<W>)>,
}

/// A grant under way.
#[derive(Clone, Debug)]
pub struct Running {
    /// The attempt.
    pub attempt: Attempt,
    /// Where it runs.
    pub instance: InstanceId,
    /// The instance's model.
    pub model: ModelId,
    /// The instance's device.
    pub device: DeviceId,
    /// Where the instance answers.
    pub endpoint: Arc<Endpoint>,
    /// Goes off when it is to be broken off, and when the instance is given up; it still has to end in its own fact.
    pub abort: CancellationToken,
}

impl<W> Clone for Ticket<W> {
    fn clone(&self) -> Ticket<W> {
        Ticket { tell: self.tell.clone(), work: self.work.clone() }
    }
}

impl Running {
    pub(super) fn of<S>(grant: &Grant<S>, endpoint: Arc<Endpoint>) -> Running {
        let &Grant { attempt, instance, model, device, .. } = grant;
        let abort = endpoint.progress.given_up().child_token();
        Running { attempt, instance, model, device, endpoint, abort }
    }
}
