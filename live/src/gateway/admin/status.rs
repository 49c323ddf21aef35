//! The scheduler's picture of the moment, with names, as JSON. Times are milliseconds, memory is bytes; the cost of
//! an eviction is milliseconds of a load times the demand for it.

use serde_json::{Value, json};
use windtunnel_core::{Bytes, DeviceView, InstanceView, MonitorHealth, QueueView, Span, Stage, Time, View};

use crate::gateway::{
    catalogue::Catalogue,
    operations::Phase,
    refuse::{reason_of_wait, sentence_of_wait},
    shared::Rules,
};

/// Everything an operator sees.
pub(super) fn status(view: &View, rules: &Rules, phase: Phase) -> Value {
    let names = &rules.catalogue;
    json!({
        "phase": phase.name(),
        "now_ms": millis(view.now.since(Time::ZERO)),
        "devices": view.devices.iter().map(|one| device(one, view.now, names)).collect::<Vec<Value>>(),
        "queues": view.queues.iter().map(|one| queue(one, view.now, names)).collect::<Vec<Value>>(),
    })
}

/// The devices whose memory cannot be read.
pub(in crate::gateway) fn stale<'a>(view: &View, names: &'a Catalogue) -> Vec<&'a str> {
    let stale = view.devices.iter().filter(|device| device.memory.monitor == MonitorHealth::Stale);
    stale.map(|device| names.device(device.device)).collect()
}

fn device(view: &DeviceView, now: Time, names: &Catalogue) -> Value {
    let memory = &view.memory;
    json!({
        "device": names.device(view.device),
        "mode": view.mode,
        "guard_in_ms": millis(view.guard_next.since(now)),
        "batch_turn": view.turn.map(|model| names.model(model)),
        "memory": {
            "budget": memory.budget.map(Bytes::get),
            "booked": memory.booked.get(),
            "coming": memory.coming.get(),
            "foreign": memory.foreign.get(),
            "owed": memory.owed.get(),
            "read_ms_ago": memory.read_at.map(|at| millis(now.since(at))),
            "monitor": memory.monitor,
            "pressure": memory.pressure,
        },
        "residents": view.instances.iter().map(|one| resident(one, names)).collect::<Vec<Value>>(),
    })
}

fn resident(view: &InstanceView, names: &Catalogue) -> Value {
    json!({
        "instance": view.instance.0,
        "model": names.model(view.model),
        "stage": stage(view.stage),
        "tier": view.tier,
        "booked": view.booked.get(),
        "eviction_cost": millis(view.cost),
        "running": view.running,
        "free": view.free,
    })
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Loading => "loading",
        Stage::Ready => "ready",
        Stage::Draining => "draining",
        Stage::Stopping => "stopping",
    }
}

fn queue(view: &QueueView, now: Time, names: &Catalogue) -> Value {
    json!({
        "variants": view.variants.iter().map(|model| names.model(*model)).collect::<Vec<&str>>(),
        "bound_to": view.bound_to.map(|instance| instance.0),
        "class": view.class,
        "jobs": view.jobs,
        "inputs": view.weight,
        "head": view.head.0,
        "without_progress_ms": millis(view.without_progress),
        "reason": reason_of_wait(view.reason),
        "why": sentence_of_wait(view.reason, names, now),
    })
}

fn millis(span: Span) -> u64 {
    span.as_nanos() / 1_000_000
}
