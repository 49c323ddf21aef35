//! Runtimes: what loads models and runs them. The dispatcher gives orders and goes on; what becomes of them comes back
//! through the [`Desk`](crate::Desk) as facts.

use std::{net::SocketAddr, sync::Arc};

use windtunnel_core::{Attempt, Bytes, DeviceId, InstanceId, ModelId};

use crate::{Lines, Progress};

/// Where an instance answers.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its listener, on loopback.
    pub address: SocketAddr,
    /// The key without which it answers nobody.
    pub key: String,
    /// Requests that one connection may carry; `None`: it did not say.
    pub requests_a_connection: Option<u32>,
    /// Where those who ask it say how it gets on. Runtimes that watch nobody leave it as it is.
    pub progress: Arc<Progress>,
    /// Connections to it that wait for the next request.
    pub lines: Arc<Lines>,
}

/// A model that is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOrder {
    /// The attempt; ends in [`Desk::loaded`](crate::Desk::loaded) or [`Desk::load_failed`](crate::Desk::load_failed).
    pub attempt: Attempt,
    /// What it becomes.
    pub instance: InstanceId,
    /// The model.
    pub model: ModelId,
    /// Where.
    pub device: DeviceId,
    /// The memory set aside for it.
    pub reservation: Bytes,
}

/// Carries out what the scheduler wants of processes and monitors. No method may wait: it is called by the thread that owns
/// the scheduler.
pub trait Runtimes: Send {
    /// Starts a model.
    fn load(&mut self, order: LoadOrder);

    /// Stops an instance, which runs nothing; ends in [`Desk::stopped`](crate::Desk::stopped).
    fn stop(&mut self, attempt: Attempt, instance: InstanceId);

    /// Breaks a load off; it still ends in its own fact.
    fn abort_load(&mut self, attempt: Attempt, instance: InstanceId);

    /// Reads the memory of a device soon; ends in [`Desk::snapshot`](crate::Desk::snapshot).
    fn read(&mut self, device: DeviceId);
}

impl<T: Runtimes + ?Sized> Runtimes for Box<T> {
    fn load(&mut self, order: LoadOrder) {
        (**self).load(order);
    }

    fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        (**self).stop(attempt, instance);
    }

    fn abort_load(&mut self, attempt: Attempt, instance: InstanceId) {
        (**self).abort_load(attempt, instance);
    }

    fn read(&mut self, device: DeviceId) {
        (**self).read(device);
    }
}

/// Who reads the memory of devices, as those who start processes need him. No method but [`Watcher::footprint`] may wait.
pub trait Watcher: Send + Sync {
    /// Reads a device soon; ends in [`Desk::snapshot`](crate::Desk::snapshot).
    fn read(&self, device: DeviceId);

    /// A process serves an instance from now on.
    fn started(&self, instance: InstanceId, device: DeviceId, pid: u32);

    /// The process of an instance is gone.
    fn ended(&self, instance: InstanceId);

    /// What an instance takes of its device now; `None`: it cannot be told. May take a second.
    fn footprint(&self, instance: InstanceId) -> Option<Bytes>;
}
