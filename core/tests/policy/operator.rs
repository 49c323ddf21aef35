//! What an operator asks for: it is done at once and asks nobody, but no step in flight is broken off for it.

use windtunnel_core::*;

use crate::{
    machine::{Machine, Truth, truth},
    world::*,
};

/// One card of 16 GiB and models of 10 GiB that load in a second.
fn desk(change: impl FnOnce(&mut Configuration)) -> Machine {
    let models = (0..2).map(|number| model(&format!("m{number}"), slots(1), (200, 0), &[0])).collect();
    Machine::new(&[16_384], models, vec![truth(10_000, 1000, 200); 2], change)
}

fn ask(machine: &mut Machine, request: Request) {
    machine.input(Input::Operator(request));
}

fn load(model: u32) -> Request {
    Request::Load { model: ModelId(model), device: DeviceId(0) }
}

#[test]
fn a_load_needs_nobody_who_waits_and_reserves_its_memory() {
    let mut machine = desk(|_| {});
    ask(&mut machine, load(0));
    let booked = |machine: &Machine| machine.world.scheduler.view().devices[0].memory.booked;
    assert_eq!(booked(&machine), Bytes::from_mib(10_000));
    machine.run_until(1000);
    assert_eq!(machine.ready(), [0]);
    machine.submit_at(2000, request(0, Class::Interactive));
    machine.run_until(2200);
    assert_eq!((machine.loads.len(), machine.clients[0].answers), (1, 1));
}

#[test]
fn a_load_does_not_ask_whether_there_is_memory_and_a_second_one_of_a_model_is_none() {
    let mut machine = desk(|_| {});
    ask(&mut machine, load(0));
    ask(&mut machine, load(0));
    let ignored = Note::Ignored { cause: Nonsense::AlreadyThere };
    assert!(machine.world.notes().any(|note| note == ignored));
    ask(&mut machine, load(1));
    assert_eq!((machine.loads.len(), machine.evictions()), (2, 0), "20 of 16 GiB are reserved, and nobody has to go");
}

#[test]
fn what_is_pinned_is_unloaded_when_its_work_is_done_and_stays_away_until_somebody_asks() {
    let mut machine = desk(|all| all.models[0].pinned = true);
    machine.submit_at(0, request(0, Class::Interactive));
    machine.run_until(1100);
    ask(&mut machine, Request::Unload { instance: InstanceId(0) });
    let stop = |log: &[Effect<Vec<GrantedStep>>]| log.iter().any(|one| matches!(one, Effect::Stop { .. }));
    assert!(!stop(&machine.world.log), "an answer is under way");
    machine.run_until(1200);
    assert!(stop(&machine.world.log) && machine.clients[0].answers == 1);
    machine.run_until(10_000);
    assert_eq!((machine.ready(), machine.loads.len()), (vec![], 1));
    machine.submit_at(10_000, request(0, Class::Interactive));
    machine.run_until(12_000);
    assert_eq!((machine.loads.len(), machine.clients[1].answers), (2, 1));
}

#[test]
fn a_model_that_is_pinned_from_now_on_is_no_victim_from_now_on() {
    let mut machine = desk(|_| {});
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(40_000);
    let mut configuration = machine.world.scheduler.configuration().clone();
    configuration.models[0].pinned = true;
    machine.input(Input::Reconfigured(Box::new(Reconfiguration {
        configuration,
        removed: Vec::new(),
        estimates: Vec::new(),
    })));
    machine.submit_at(41_000, request(1, Class::Interactive));
    machine.run_until(50_000);
    let cannot = Refusal::CannotFit { needs: Bytes::from_mib(10_000), room: Bytes::from_mib(6384) };
    assert_eq!(machine.world.finished.get(&1), Some(&Outcome::Refused(cannot)));
    let mut configuration = machine.world.scheduler.configuration().clone();
    configuration.models[0].pinned = false;
    machine.input(Input::Reconfigured(Box::new(Reconfiguration {
        configuration,
        removed: Vec::new(),
        estimates: Vec::new(),
    })));
    machine.submit_at(51_000, request(1, Class::Interactive));
    machine.run_until(60_000);
    assert_eq!((machine.evictions(), machine.clients[2].answers), (1, 1));
}

#[test]
fn a_reset_closes_the_breaker_at_once() {
    let failing = Truth { failing: 3, ..truth(4000, 500, 200) };
    let models = vec![model("m", slots(1), (200, 0), &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![failing], |_| {});
    machine.submit_at(0, request(0, Class::Interactive));
    machine.submit_at(6000, request(0, Class::Interactive));
    machine.run_until(7000);
    let broken = Some(Outcome::Refused(Refusal::Broken { retry_after: Span::from_millis(58_500) }));
    assert_eq!(machine.world.finished.get(&1).copied(), broken);
    ask(&mut machine, Request::Reset { model: ModelId(0) });
    machine.submit_at(8000, request(0, Class::Interactive));
    machine.run_until(9000);
    assert_eq!((machine.loads.len(), machine.clients[2].answers), (4, 1));
}
