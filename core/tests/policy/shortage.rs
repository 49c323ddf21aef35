//! Loads that run out of memory: what is believed of the model afterwards, and what its jobs are told.

use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

/// One card of 16 GiB.
fn desk(mib: &[u64]) -> Machine {
    let models = (0..mib.len()).map(|number| model(&format!("m{number}"), slots(1), (200, 0), &[0])).collect();
    Machine::new(&[16_384], models, mib.iter().map(|&mib| truth(mib, 2000, 200)).collect(), |_| {})
}

fn reserved(machine: &Machine) -> Vec<u64> {
    let loads = machine.world.log.iter().filter_map(|effect| match effect {
        Effect::Load { reservation, .. } => Some(reservation.get() >> 20),
        _other => None,
    });
    loads.collect()
}

#[test]
fn a_game_that_took_the_memory_unseen_is_no_fault_of_the_model() {
    let mut machine = desk(&[8000]);
    machine.submit_at(1000, request(0, Class::Interactive));
    // It starts while the model loads: of its 10 GiB only 2 are beyond what is booked.
    machine.foreign_at(2000, 0, 10_000);
    machine.run_until(4000);
    let failed = machine.world.scheduler.view().devices[0].memory.foreign;
    assert_eq!((failed, machine.loads.len()), (Bytes::from_mib(2000), 1), "the load has run out");
    machine.run_until(30_000);
    let waits = WaitReason::ForeignMemory { device: DeviceId(0), used: Bytes::from_mib(10_000) };
    assert_eq!(machine.world.why_waits(0), Some(waits));
    // 8384 MiB become free: enough for what the model was measured to need, not for more than there seemed to be.
    machine.foreign_at(31_000, 0, 8000);
    machine.run_until(34_000);
    assert_eq!((reserved(&machine), machine.clients[0].answers), (vec![8000, 8000], 1));
}

#[test]
fn a_load_that_ran_out_beside_nobody_new_is_believed_to_need_more() {
    let mut machine = desk(&[4000]);
    machine.truth[0].mib = 18_000;
    machine.submit_at(1000, request(0, Class::Interactive));
    machine.run_until(60_000);
    assert!(reserved(&machine).iter().skip(1).all(|&mib| mib == 16_384), "{:?}", reserved(&machine));
    // A game that comes much later does not explain it.
    machine.foreign_at(61_000, 0, 15_000);
    machine.foreign_at(70_000, 0, 0);
    machine.truth[0].mib = 4000;
    machine.submit_at(200_000, request(0, Class::Interactive));
    machine.run_until(300_000);
    assert_eq!(reserved(&machine).last(), Some(&16_384));
    assert_eq!(machine.clients[1].answers, 1, "and it has been loaded in the end");
}

#[test]
fn nobody_is_asked_to_wait_for_what_a_desktop_will_never_give_back() {
    // Others hold 1 GiB all the time. One load runs out for no reason to be seen: all that can be had is tried next.
    let mut machine = desk(&[8000]);
    machine.foreign_at(0, 0, 1000);
    machine.truth[0].mib = 16_000;
    machine.submit_at(1000, request(0, Class::Interactive));
    machine.run_until(3000);
    machine.truth[0].mib = 8000;
    machine.run_until(10_000);
    assert_eq!((reserved(&machine), machine.clients[0].answers), (vec![8000, 15_384], 1));
}
