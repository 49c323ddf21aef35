//! Where a model is loaded, where it may be on several devices.

use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

/// Two cards of 16 GiB for a busy model of 6 GiB and another one.
fn desk() -> Machine {
    let models = vec![model("busy", slots(1), (20_000, 0), &[0]), model("m", slots(1), (200, 0), &[0, 1])];
    let truths = vec![truth(6000, 1000, 20_000), truth(6000, 1000, 200)];
    Machine::new(&[16_384, 16_384], models, truths, |_| {})
}

fn device(machine: &Machine, of: u32) -> Option<u32> {
    let view = machine.world.scheduler.view();
    let mut at = view.devices.iter().filter(|device| device.instances.iter().any(|one| one.model == ModelId(of)));
    at.next().map(|device| device.device.0)
}

#[test]
fn the_least_busy_card_is_taken_although_another_one_answers_first() {
    // Both readings have grown old when the model is wanted; that of the busy card comes first.
    let mut machine = desk();
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(15_000, request(1, Class::Background));
    machine.run_until(16_500);
    assert_eq!((device(&machine, 0), device(&machine, 1)), (Some(0), Some(1)));
}

#[test]
fn a_card_that_does_not_answer_is_waited_for_no_longer_than_until_it_is_called_stale() {
    let mut machine = desk();
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(14_000);
    machine.silent = true;
    machine.submit_at(15_000, request(1, Class::Background));
    machine.run_until(15_000);
    assert_eq!(device(&machine, 1), None);
    let busy = machine.reading(DeviceId(0));
    machine.fact_at(15_100, Input::Snapshot(busy));
    machine.run_until(15_500);
    assert_eq!(device(&machine, 1), None, "the idle one may answer yet");
    assert_eq!(machine.world.why_waits(1), Some(WaitReason::MonitorStale { device: DeviceId(1) }));
    machine.run_until(16_000);
    assert_eq!(device(&machine, 1), Some(0), "it did not");
    let view = machine.world.scheduler.view();
    assert_eq!(view.devices[1].memory.monitor, MonitorHealth::Stale);
}

#[test]
fn a_monitor_that_says_nothing_can_be_seen_before_anybody_asks() {
    let mut machine = desk();
    machine.run_until(10_000);
    machine.input(Input::TimerDue);
    let silent = |machine: &Machine| machine.world.scheduler.view().devices[1].memory.silent_for;
    assert_eq!(silent(&machine), None);
    machine.run_until(25_000);
    machine.input(Input::TimerDue);
    assert_eq!(silent(&machine), Some(Span::from_secs(25)));
    let reading = machine.reading(DeviceId(1));
    machine.input(Input::Snapshot(reading));
    assert_eq!(silent(&machine), None);
}
