//! What an instance is booked with when it is seen to hold less than before.

use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

/// A card of 16 GiB on which a model of 9 GiB has been loaded.
fn loaded() -> Machine {
    let models = vec![model("m", slots(1), (200, 0), &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![truth(9000, 1000, 200)], |_| {});
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(2000);
    assert_eq!(booked(&machine), 9000);
    machine
}

fn booked(machine: &Machine) -> u64 {
    let view = machine.world.scheduler.view();
    view.devices[0].instances.first().map_or(0, |one| one.booked.get() >> 20)
}

/// It holds so many MiB, which is read at this moment.
fn falls_to(machine: &mut Machine, ms: u64, mib: u64) {
    machine.run_until(ms);
    machine.grow(0, 0, mib);
}

#[test]
fn a_process_that_holds_less_is_believed_after_ten_seconds_though_nothing_is_read_any_more() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 7000);
    machine.run_until(12_999);
    assert_eq!(booked(&machine), 9000);
    machine.run_until(13_000);
    assert_eq!(booked(&machine), 7000);
}

#[test]
fn one_reading_as_high_as_before_begins_the_ten_seconds_anew() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 7000);
    falls_to(&mut machine, 8000, 9000);
    falls_to(&mut machine, 9000, 7000);
    machine.run_until(18_999);
    assert_eq!(booked(&machine), 9000);
    machine.run_until(19_000);
    assert_eq!(booked(&machine), 7000);
}

#[test]
fn the_most_that_it_held_meanwhile_is_what_is_believed() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 7000);
    falls_to(&mut machine, 5000, 8000);
    falls_to(&mut machine, 6000, 7000);
    machine.run_until(13_000);
    assert_eq!(booked(&machine), 8000);
}

#[test]
fn one_that_falls_twice_is_booked_with_the_less_in_the_end() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 7000);
    falls_to(&mut machine, 8000, 6000);
    machine.run_until(17_999);
    assert_eq!(booked(&machine), 7000, "six are read for the first time at 8 s");
    machine.run_until(18_000);
    assert_eq!(booked(&machine), 6000);
}

/// What is kept over restarts of the model's memory, in the order in which it was learned.
fn learned(machine: &Machine) -> Vec<u64> {
    let profiles = machine.world.log.iter().filter_map(|effect| match effect {
        Effect::Learned(profile) => profile.footprint,
        _other_effect => None,
    });
    profiles.map(|bytes| bytes.get() >> 20).collect()
}

#[test]
fn what_it_had_grown_is_not_reserved_for_the_next_load_once_it_has_stayed_lower() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 12_000);
    assert_eq!((booked(&machine), learned(&machine)), (12_000, vec![12_000]));
    falls_to(&mut machine, 4000, 10_000);
    machine.run_until(13_999);
    assert_eq!(learned(&machine), [12_000]);
    machine.run_until(14_000);
    assert_eq!((booked(&machine), learned(&machine)), (10_000, vec![12_000, 10_000]));
}

#[test]
fn the_next_load_reserves_no_less_than_the_last_one_took() {
    let mut machine = loaded();
    falls_to(&mut machine, 3000, 12_000);
    falls_to(&mut machine, 4000, 7000);
    machine.run_until(14_000);
    assert_eq!((booked(&machine), learned(&machine)), (7000, vec![12_000, 9000]));
    machine.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    machine.submit_at(20_000, request(0, Class::Background));
    machine.run_until(21_000);
    let reserved =
        |effect: &Effect<_>| matches!(effect, Effect::Load { reservation, .. } if reservation.get() >> 20 == 9000);
    assert_eq!(machine.world.log.iter().filter(|effect| reserved(effect)).count(), 2);
}
