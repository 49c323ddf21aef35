//! States that were tampered with are not taken up, and the error says where they are wrong.

use crate::world::*;
use serde_json::{Value, json};
use windtunnel_core::*;

/// Two cards with a model of two slots and one of batches; two jobs run and two wait.
fn busy() -> Value {
    let models = vec![
        model("chat", slots(2), (10, 0), &[0, 1]),
        model("embed", batch(8, 0), (10, 1), &[0]),
        model("large", slots(1), (10, 0), &[1]),
    ];
    let mut set = configuration(2, models);
    set.policy.classes[0].order = Order::Edf;
    let mut world = World::new(set);
    for number in 0..7 {
        world.submit(Submission { deadline: Some(Span::from_millis(900 - number)), ..request(0, Class::Interactive) });
    }
    world.submit(Submission { kind: JobKind::Embedding, inputs: 80, ..request(1, Class::Background) });
    serde_json::to_value(world.scheduler.checkpoint()).expect("a state")
}

/// What is said of the state with the value at this place replaced.
fn said(place: &str, value: &Value) -> String {
    let mut state = busy();
    let pointer = format!("/{}", place.replace('.', "/"));
    let found = state.pointer_mut(&pointer).unwrap_or_else(|| panic!("there is no {place}"));
    assert_ne!(found, value, "{place} is so already");
    *found = value.clone();
    match serde_json::from_value(state) {
        Ok(checkpoint) => match Scheduler::restore(checkpoint) {
            Ok(_) => panic!("{place} = {value} is accepted"),
            Err(wrong) => wrong.to_string(),
        },
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn a_state_as_it_was_written_is_taken_up() {
    let restored = Scheduler::restore(serde_json::from_value(busy()).expect("a state")).expect("it is sound");
    assert_eq!(serde_json::to_value(restored.checkpoint()).expect("a state"), busy());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let again = busy()["jobs"][0].clone();
    let mut wrong = Vec::new();
    let job = |number: usize| busy()["jobs"][number].clone();
    for (place, value, expected) in [
        (
            "configuration.models.0.placements.1.device",
            json!(7),
            "configuration.models.0.placements.1.device: there is no number 7, only 2 from 0 on",
        ),
        (
            "configuration.models.1.capacity",
            json!({"batch": {"max": 0, "wait": 0}}),
            "configuration.models.1.capacity: 0 is not from 1 to 1000000",
        ),
        ("models", json!([]), "models: 0 where 3 follows from the rest"),
        ("next_job", json!(3), "instances.1.slot: there is no number 3, only 3 from 0 on"),
        ("next_job", json!(u64::MAX), "next_job: 18446744073709551615 is not from 0 to 4611686018427387904"),
        ("next_attempt", json!(1), "instances.0.slot: there is no number 1, only 1 from 0 on"),
        ("phase", json!("Waiting"), "phase: a run that has not begun holds something"),
        ("jobs", json!([again.clone(), again]), "the id 0 stands twice"),
        (
            "jobs",
            json!([job(0), job(1), job(2), job(3), job(5)]),
            "lines.0.classes.0: its order or weights are not those of its jobs",
        ),
        ("jobs.4.1.target", json!(99), "jobs.4.target: there is no number 99, only 3 from 0 on"),
        ("jobs.4.1.line", json!(1), "jobs.4.target: 0 where 1 follows from the rest"),
        ("jobs.4.1.steps", json!(9), "jobs.4.steps: 9 where 1 follows from the rest"),
        ("jobs.4.1.running", json!(1), "jobs.4.granted: 0 where 1 follows from the rest"),
        ("jobs.0.1.model", Value::Null, "jobs.0: it has begun on no model"),
        ("lines.2.target", json!(8), "lines.2.target: there is no number 8, only 3 from 0 on"),
        ("spare_lines", json!([0]), "lines.0: it is not either spare or served"),
        (
            "lines.0.classes.0.Edf.leaves.0.entries.0.1",
            json!(5),
            "lines.0.classes.0: its order or weights are not those of its jobs",
        ),
        (
            "lines.0.classes.0.Edf.tree.0",
            json!(u64::MAX),
            "lines.0.classes.0: its order or weights are not those of its jobs",
        ),
        (
            "lines.0.classes.0",
            json!({"Fifo": {"jobs": [], "gone": [1], "weight": 0}}),
            "lines.0.classes.0: its order is not that of the class",
        ),
        (
            "lines.0.classes.1",
            json!({"Fifo": {"jobs": [], "gone": [1], "weight": 0}}),
            "lines.0.classes.1: its order or weights are not those of its jobs",
        ),
        ("targets.1.variants", json!([0]), "targets.1.variants: they are not those of the model of that number"),
        ("targets.1.shared", json!(0), "lines.1: it is not either spare or served"),
        (
            "targets.0.servers",
            json!([0]),
            "instances.1.lines: it takes twice from a line, or from one that it does not serve",
        ),
        ("instances.living.0.1.device", json!(2), "instances.0.device: there is no number 2, only 2 from 0 on"),
        (
            "instances.living.0.1.lines",
            json!([0, 0]),
            "instances.0.lines: it takes twice from a line, or from one that it does not serve",
        ),
        (
            "instances.living.0.1.slot.Ready.running.0.steps.0.weight",
            json!(4),
            "instances.0.slot.running.0.weight: 1 where 4 follows from the rest",
        ),
        (
            "instances.living.0.1.slot.Ready.running.0.attempt",
            json!(1),
            "instances.0.slot: an attempt is under way twice",
        ),
        ("devices.0.instances", json!([]), "devices.0.instances: they are not those that are on it"),
        ("devices.0.interactive", json!(0), "the state: interactive grants of a device: 0 kept, 2 counted"),
        ("models.0.open", json!(5), "the state: open instances of a model: 5 kept, 0 counted"),
        ("models.0.demand.period", json!(1), "models.0.demand: it was counted in the future, or too often"),
        ("queued.0.jobs", json!(u64::MAX), "queued.0.jobs: 18446744073709551615 where 3 follows from the rest"),
        ("queued.1.bytes", json!(7), "queued.1.bytes: 7 where 0 follows from the rest"),
        ("margins.0.integral", json!(0), "margins.0: it is beyond its bounds"),
        ("touched.heads", json!([[3, "interactive"]]), "touched.heads.0: there is no number 3, only 3 from 0 on"),
        ("wake", json!(1), "wake: it is not when something is due next"),
        ("unengaged", json!(2), "the state: devices that are not engaged: 2 kept, 0 counted"),
    ] {
        let said = said(place, &value);
        if !said.starts_with(expected) {
            wrong.push(format!("{place}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
