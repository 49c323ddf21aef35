//! Figures that are states, set from a picture of the scheduler.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use std::sync::atomic::AtomicU64;
use windtunnel_core::{Bytes, Configuration, DeviceView, Mode, MonitorHealth, PressureLevel, QueueView, View};

use super::Labels;

type Bytewise = Family<Labels, Gauge>;
type Seconds = Family<Labels, Gauge<f64, AtomicU64>>;

/// The gauges.
#[derive(Debug)]
pub(super) struct Picture {
    depth: Bytewise,
    age: Seconds,
    memory: Bytewise,
    instances: Bytewise,
    budget: Bytewise,
    booked: Bytewise,
    coming: Bytewise,
    foreign: Bytewise,
    owed: Bytewise,
    read_age: Seconds,
    stale: Bytewise,
    pressure: Bytewise,
    interactive: Bytewise,
}

impl Picture {
    pub fn register(registry: &mut Registry) -> Picture {
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let family = Bytewise::default();
            registry.register(name, help, family.clone());
            family
        };
        let seconds = |registry: &mut Registry, name: &str, help: &str| {
            let family = Seconds::default();
            registry.register(name, help, family.clone());
            family
        };
        Picture {
            depth: gauge(registry, "queued", "Requests that wait, by class and by the model that is first for them"),
            age: seconds(registry, "queue_age_seconds", "How long the first in a queue has been without progress"),
            memory: gauge(registry, "model_memory_bytes", "Memory that the instances of a model are believed to hold"),
            instances: gauge(registry, "instances", "Instances of a model in every state of their life"),
            budget: gauge(registry, "memory_budget_bytes", "Memory of a device that may be used"),
            booked: gauge(registry, "memory_booked_bytes", "Memory of a device that our instances hold"),
            coming: gauge(registry, "memory_coming_bytes", "What of the booked memory is about to become free"),
            foreign: gauge(
                registry,
                "memory_foreign_bytes",
                "Memory of a device that other programs are believed to use",
            ),
            owed: gauge(registry, "memory_owed_bytes", "Memory that is promised to loads which wait for it"),
            read_age: seconds(
                registry,
                "memory_reading_age_seconds",
                "Time since the memory of a device was last read",
            ),
            stale: gauge(registry, "monitor_stale", "1 where the memory of a device was not read for too long"),
            pressure: gauge(registry, "memory_pressure", "How scarce memory is: 0 normal, 1 warn, 2 critical"),
            interactive: gauge(registry, "interactive_mode", "1 while a device belongs to interactive work"),
        }
    }

    /// Replaces everything by what `view` shows.
    pub fn take(&self, view: &View, names: &Configuration) {
        for family in [&self.depth, &self.memory, &self.instances] {
            family.clear();
        }
        self.age.clear();
        for device in &view.devices {
            self.device(device, view, names);
        }
        for queue in &view.queues {
            self.queue(queue, names);
        }
    }

    fn device(&self, device: &DeviceView, view: &View, names: &Configuration) {
        let name = names.devices.get(device.device.index()).map_or("", |one| &one.name);
        let labels: Labels = vec![("device", name.to_owned())];
        let memory = &device.memory;
        let figures = [
            (&self.booked, Some(memory.booked)),
            (&self.coming, Some(memory.coming)),
            (&self.foreign, Some(memory.foreign)),
            (&self.owed, Some(memory.owed)),
            (&self.budget, memory.budget),
        ];
        for (family, bytes) in figures {
            if let Some(bytes) = bytes {
                family.get_or_create(&labels).set(signed(bytes));
            }
        }
        if let Some(read) = memory.read_at {
            self.read_age.get_or_create(&labels).set(view.now.since(read).as_nanos() as f64 / 1e9);
        }
        self.stale.get_or_create(&labels).set(i64::from(memory.monitor == MonitorHealth::Stale));
        self.pressure.get_or_create(&labels).set(level(memory.pressure));
        self.interactive.get_or_create(&labels).set(i64::from(device.mode == Mode::Interactive));
        for instance in &device.instances {
            let model = names.models.get(instance.model.index()).map_or("", |one| &one.name);
            let labels: Labels = vec![("device", name.to_owned()), ("model", model.to_owned())];
            self.memory.get_or_create(&labels).inc_by(signed(instance.booked));
            self.instances.get_or_create(&labels).inc();
        }
    }

    fn queue(&self, queue: &QueueView, names: &Configuration) {
        let model = queue.variants.first().and_then(|model| names.models.get(model.index()));
        let name = model.map_or("", |model| &model.name);
        let labels: Labels = vec![("class", queue.class.name().to_owned()), ("model", name.to_owned())];
        self.depth.get_or_create(&labels).inc_by(i64::try_from(queue.jobs).unwrap_or(i64::MAX));
        let waits = queue.without_progress.as_nanos() as f64 / 1e9;
        let age = self.age.get_or_create(&labels);
        age.set(age.get().max(waits));
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

const fn level(pressure: PressureLevel) -> i64 {
    match pressure {
        PressureLevel::Normal => 0,
        PressureLevel::Warn => 1,
        PressureLevel::Critical => 2,
    }
}
