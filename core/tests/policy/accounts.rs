//! Accounts that nobody could tell from what they are kept of: the bytes owed to pending loads and the guard's share.

use serde_json::{Value, json};
use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

fn state(world: &World) -> Value {
    serde_json::to_value(world.scheduler.checkpoint()).expect("a state")
}

/// What is said of a state in which this place has another value.
fn said(state: &Value, place: &str, value: Value) -> String {
    let mut wrong = state.clone();
    *wrong.pointer_mut(place).unwrap_or_else(|| panic!("there is no {place}")) = value;
    let checkpoint = serde_json::from_value(wrong).expect("a state");
    Scheduler::restore(checkpoint).expect_err("it is wrong").to_string()
}

/// A card that one model fills, busy for long, and a chat that waits for another.
fn waiting_for_memory() -> Machine {
    let models = vec![
        model("busy", slots(1), (60_000, 0), &[0]),
        model("wanted", slots(1), (1, 0), &[0]),
        model("other", slots(1), (1, 0), &[0]),
    ];
    let mut machine = Machine::new(&[16_384], models, vec![truth(9000, 5, 60_000); 3], |_| {});
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(20, request(1, Class::Interactive));
    machine.run_until(1000);
    machine
}

#[test]
fn what_is_owed_to_a_load_is_what_its_model_needs_and_owed_once() {
    let state = state(&waiting_for_memory().world);
    let pending = state["devices"][0]["pending"].clone();
    assert_eq!((pending[0]["model"].clone(), pending[0]["needs"].clone()), (json!(1), json!(9000_u64 << 20)));
    let checkpoint = serde_json::from_value(state.clone()).expect("a state");
    Scheduler::restore(checkpoint).expect("it is sound as it is");
    assert_eq!(
        said(&state, "/devices/0/pending/0/needs", json!(5)),
        "the state: bytes owed to a load: 5 kept, 9437184000 counted"
    );
    assert_eq!(
        said(&state, "/devices/0/pending/0/model", json!(0)),
        "the state: model 0 waits for memory of device 0, where it has some already"
    );
    let twice = json!([pending[0], pending[0]]);
    assert_eq!(said(&state, "/devices/0/pending", twice), "devices.0.pending.1: its model is pending twice");
}

#[test]
fn a_new_estimate_is_owed_at_once_even_while_loads_are_paused() {
    let mut machine = waiting_for_memory();
    let configuration = machine.world.scheduler.configuration().clone();
    let (model, device, load_time) = (ModelId(1), DeviceId(0), Span::from_millis(5));
    let estimates = vec![Estimate { model, device, footprint: Bytes::from_mib(7000), load_time }];
    machine.silent = true;
    machine.run_until(20_000);
    let removed = Vec::new();
    machine.input(Input::Reconfigured(Box::new(Reconfiguration { configuration, removed, estimates })));
    assert_eq!(state(&machine.world)["devices"][0]["pending"][0]["needs"], json!(7000_u64 << 20));
}

#[test]
fn a_guard_grant_under_way_began_when_the_account_allowed_it() {
    let mut set =
        configuration(1, vec![model("chat", slots(2), (10, 0), &[0]), model("lower", slots(1), (1, 0), &[0])]);
    set.policy.background_max_starvation = Span::from_millis(100);
    let mut world = World::new(set);
    let talk = world.submit(request(0, Class::Interactive));
    let first = world.submit(request(1, Class::Background));
    let second = world.submit(request(1, Class::Background));
    world.at(100);
    assert!(world.runs(talk) && world.runs(first), "the guard has come to it");
    world.at(110);
    world.finish(first);
    world.at(120);
    assert!(world.runs(second), "ten milliseconds at half of the time are paid back");
    let state = state(&world);
    assert_eq!(state["devices"][0]["guard_next"], json!(120 * MS));
    assert_eq!(
        said(&state, "/devices/0/guard_next", json!(121 * MS)),
        "the state: the guard's account of device 0 has its next grant at 0.121s, but one began at 0.12s"
    );
}
