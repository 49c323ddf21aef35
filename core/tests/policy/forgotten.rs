//! Instances that are gone are forgotten, and nobody who still speaks of them is answered otherwise for it.

use serde_json::{Value, json};
use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

/// Two chats on a card that holds one of their models push each other's out with every request.
fn restless() -> Machine {
    let models = vec![model("a", slots(1), (1, 0), &[0]), model("b", slots(1), (1, 0), &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![truth(9000, 5000, 1); 2], |set| {
        set.policy.interactive_turn = Span::ZERO;
        set.policy.interactive_idle = Span::ZERO;
    });
    machine.client(request(0, Class::Interactive), 0, 0);
    machine.client(request(1, Class::Interactive), 0, 0);
    machine
}

fn state(machine: &Machine) -> Value {
    serde_json::to_value(machine.world.scheduler.checkpoint()).expect("a state")
}

fn restored(state: &Value) -> Result<Scheduler, String> {
    let checkpoint = serde_json::from_value(state.clone()).map_err(|wrong| wrong.to_string())?;
    Scheduler::restore(checkpoint).map_err(|wrong| wrong.to_string())
}

fn run_until_loads(machine: &mut Machine, loads: usize) -> usize {
    let mut ms = machine.world.now / MS;
    while machine.loads.len() < loads {
        ms += 1000;
        machine.run_until(ms);
    }
    state(machine).to_string().len()
}

#[test]
fn thousands_of_loads_leave_nothing_behind() {
    let mut machine = restless();
    let early = run_until_loads(&mut machine, 200);
    let late = run_until_loads(&mut machine, 5000);
    assert!(late < early + 1000, "a state took {early} bytes after 200 loads and takes {late} after 5000");
    let state = state(&machine);
    let living = state["instances"]["living"].as_array().expect("a list").len();
    assert!(living <= 2, "{living} instances are held on a card that has room for one");
    assert_eq!(state["instances"]["next"], json!(machine.loads.len()), "each load had an id of its own");
}

/// A scheduler whose instance 0 has been loaded and is gone, and whose instance 1 is ready.
fn with_one_gone() -> Machine {
    let models = vec![model("a", slots(1), (1, 0), &[0]), model("b", slots(1), (1, 0), &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![truth(9000, 5, 1); 2], |_| {});
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(20, request(1, Class::Interactive));
    machine.run_until(2000);
    assert_eq!(machine.ready(), [1]);
    machine
}

/// What one more input leads to.
fn answer(machine: &mut Machine, input: Input) -> Vec<Effect<Vec<GrantedStep>>> {
    let before = machine.world.log.len();
    machine.world.input(input);
    machine.world.log[before..].to_vec()
}

#[test]
fn whoever_speaks_of_one_that_is_gone_is_told_so() {
    let mut machine = with_one_gone();
    let (attempt, instance) = (Attempt(0), InstanceId(0));
    let measured = Measured { first_token: None, output_tokens: 1 };
    let footprint = Some(Bytes::from_mib(9000));
    let (failed, sent) = (GrantFailure::Crashed, Sent::Nothing);
    for (input, cause) in [
        (Input::Exited { instance, cause: ExitCause::Signal(9) }, Nonsense::NoSuchInstance),
        (Input::Operator(Request::Unload { instance }), Nonsense::NoSuchInstance),
        (Input::Operator(Request::Renew { instance }), Nonsense::NoSuchInstance),
        (Input::LoadFinished { attempt, instance, footprint }, Nonsense::NoSuchAttempt),
        (Input::LoadFailed { attempt, instance, cause: LoadFailure::Crashed }, Nonsense::NoSuchAttempt),
        (Input::StopFinished { attempt, instance }, Nonsense::NoSuchAttempt),
        (Input::GrantFinished { attempt, instance, measured }, Nonsense::NoSuchAttempt),
        (Input::GrantFailed { attempt, instance, cause: failed, sent }, Nonsense::NoSuchAttempt),
        (Input::OutOfMemory { device: DeviceId(0), instance: InstanceId(2) }, Nonsense::NoSuchInstance),
    ] {
        assert_eq!(answer(&mut machine, input), [Effect::Note(Note::Ignored { cause })]);
    }
}

#[test]
fn a_reading_that_lists_a_process_that_is_gone_changes_nothing() {
    let mut machine = with_one_gone();
    let mut reading = machine.reading(DeviceId(0));
    let before = machine.world.scheduler.view().devices[0].memory;
    reading.processes.push(ProcessMemory { instance: InstanceId(0), used: Some(Bytes::from_mib(9000)) });
    assert_eq!(answer(&mut machine, Input::Snapshot(reading)), []);
    let after = machine.world.scheduler.view().devices[0].memory;
    assert_eq!((after.booked, after.foreign), (before.booked, before.foreign));
}

#[test]
fn memory_that_ran_out_for_one_that_is_gone_by_now_ran_out_all_the_same() {
    let mut machine = with_one_gone();
    let answers = answer(&mut machine, Input::OutOfMemory { device: DeviceId(0), instance: InstanceId(0) });
    let stops =
        |one: &Effect<_>| matches!(one, Effect::Stop { instance: InstanceId(1), cause: StopCause::OutOfMemory, .. });
    assert!(answers.iter().any(stops), "what was loaded last goes: {answers:?}");
}

#[test]
fn a_release_is_awaited_of_one_that_is_forgotten() {
    let mut machine = with_one_gone();
    machine.release_ms = 100_000;
    machine.submit_at(2001, request(0, Class::Interactive));
    machine.run_until(2500);
    let state = state(&machine);
    let leftovers = &state["devices"][0]["memory"]["leftovers"];
    let held = &state["instances"]["living"];
    assert_eq!((&leftovers[0]["instance"], held), (&json!(1), &json!([])), "it waits for the bytes of the gone");
    let twin = restored(&state).expect("it is sound");
    assert_eq!(serde_json::to_value(twin.checkpoint()).expect("a state"), state);
    machine.run_until(60_000);
    let overdue = |note: &Note| matches!(note, Note::ReleaseOverdue { instance: InstanceId(1), .. });
    assert!(machine.world.notes().any(|note| overdue(&note)));
}

/// The list in which checkpoints held instances once: those that are gone kept their places.
fn as_a_list(state: &Value) -> Value {
    let (next, living) = (&state["instances"]["next"], state["instances"]["living"].as_array().expect("a list"));
    let mut gone = living[0][1].clone();
    gone["slot"] = json!("Gone");
    let mut list = vec![gone; next.as_u64().expect("an id") as usize];
    for entry in living {
        list[entry[0].as_u64().expect("an id") as usize] = entry[1].clone();
    }
    json!(list)
}

#[test]
fn a_list_in_which_those_that_are_gone_keep_their_places_is_taken_up() {
    let mut machine = restless();
    run_until_loads(&mut machine, 300);
    machine.run_until(machine.world.now / MS + 30_000);
    let state = state(&machine);
    let mut old = state.clone();
    old["instances"] = as_a_list(&state);
    assert_eq!(old["instances"].as_array().map(Vec::len), Some(machine.loads.len()));
    let twin = restored(&old).expect("it is sound");
    assert_eq!(serde_json::to_value(twin.checkpoint()).expect("a state"), state);
    old["instances"][0]["slot"] = json!("Away");
    assert_eq!(restored(&old).err().as_deref(), Some("neither an instance nor one that is gone"));
}

#[test]
fn a_batch_that_nobody_holds_any_more_is_no_contradiction() {
    let mut set = configuration(1, vec![model("m", batch(8, 50), (10, 1), &[0])]);
    let mut world = World::new(set.clone());
    set.models[0].capacity = batch(8, 0);
    let (removed, estimates) = (Vec::new(), Vec::new());
    world.input(Input::Reconfigured(Box::new(Reconfiguration { configuration: set, removed, estimates })));
    world.input(Input::Exited { instance: InstanceId(0), cause: ExitCause::Signal(9) });
    let state = serde_json::to_value(world.scheduler.checkpoint()).expect("a state");
    assert_eq!((&state["holding"], &state["instances"]["living"]), (&json!("No"), &json!([])));
    let mut longer = state.clone();
    longer["holding"] = json!("Yes");
    for one in [&state, &longer] {
        let twin = restored(one).expect("it is sound");
        assert_eq!(serde_json::to_value(twin.checkpoint()).expect("a state"), state);
    }
}

#[test]
fn a_state_that_lies_about_who_lives_is_refused() {
    let machine = with_one_gone();
    let state = state(&machine);
    assert_eq!(state["instances"]["next"], json!(2));
    let one = &state["instances"]["living"][0][1];
    let chat = |next: u64, ids: &[u64]| {
        let living: Vec<Value> = ids.iter().map(|id| json!([id, one])).collect();
        json!({ "next": next, "living": living })
    };
    for (place, value, expected) in [
        ("/instances", chat(2, &[1, 1]), "instance 1 stands twice among those that live"),
        ("/instances", chat(2, &[2]), "instance 2 lives although instance 2 is the next"),
        ("/instances", chat(1 << 32, &[1]), "invalid value: integer `4294967296`, expected u32"),
        ("/instances", chat((1 << 32) - 1, &[1]), "instances.next: 4294967295 is not from 0 to 2147483648"),
        ("/instances", chat(2, &[0]), "targets.1.servers: it names an instance that is gone"),
        (
            "/instances",
            chat(2, &[0, 1]),
            "instances.0.lines: it takes twice from a line, or from one that it does not serve",
        ),
        ("/instances", json!({ "next": 2 }), "missing field `living`"),
        ("/instances", json!(7), "invalid type: integer `7`, expected the instances that live and the id of the next"),
        ("/devices/0/instances", json!([0, 1]), "devices.0.instances: they are not those that are on it"),
        ("/targets/1/servers", json!([1, 5]), "targets.1.servers: there is no number 5, only 2 from 0 on"),
        ("/targets/1/servers", json!([1, 0]), "targets.1.servers: it names an instance that is gone"),
        (
            "/devices/0/memory/leftovers",
            json!([{ "instance": 2, "bytes": 5, "since": 0, "read_next": 0 }]),
            "devices.0.memory.leftovers.0.instance: there is no number 2, only 2 from 0 on",
        ),
    ] {
        let mut wrong = state.clone();
        *wrong.pointer_mut(place).unwrap_or_else(|| panic!("there is no {place}")) = value.clone();
        assert_eq!(restored(&wrong).err().as_deref(), Some(expected), "{place} = {value}");
    }
}
