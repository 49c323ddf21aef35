//! First in, first out, and earliest deadline first.

use windtunnel_core::*;

use crate::world::*;

fn run_order(order: Order, deadlines: &[Option<u64>]) -> Vec<u64> {
    let mut set = configuration(1, vec![model("m", slots(1), (10, 0), &[0])]);
    set.policy.classes[0].order = order;
    let mut world = World::new(set);
    let first = world.submit(request(0, Class::Interactive));
    for deadline in deadlines {
        world.submit(Submission { deadline: deadline.map(Span::from_millis), ..request(0, Class::Interactive) });
    }
    let mut ran = Vec::new();
    world.finish(first);
    while let Some(grant) = world.grants.values().next() {
        let job = grant.steps[0].job.0;
        ran.push(job);
        world.finish(job);
    }
    ran
}

#[test]
fn fifo_goes_by_arrival() {
    assert_eq!(run_order(Order::Fifo, &[Some(9), None, Some(5)]), [1, 2, 3]);
}

#[test]
fn edf_goes_by_deadline_and_those_without_come_last() {
    assert_eq!(run_order(Order::Edf, &[None, Some(900), Some(500), Some(900), None]), [3, 2, 4, 1, 5]);
}

#[test]
fn a_failed_step_brings_its_job_back_to_its_old_place_once() {
    let mut world = World::new(configuration(1, vec![model("m", slots(1), (10, 0), &[0])]));
    let first = world.submit(request(0, Class::Interactive));
    let second = world.submit(request(0, Class::Interactive));
    world.fail(first, GrantFailure::Disconnected, Sent::Nothing);
    assert!(world.runs(first) && !world.runs(second));
    world.fail(first, GrantFailure::Disconnected, Sent::Nothing);
    assert_eq!(world.finished.get(&first), Some(&Outcome::Failed(Failure::Step(GrantFailure::Disconnected))));
    assert!(world.runs(second));
}

#[test]
fn a_step_that_has_sent_something_is_not_repeated() {
    let mut world = World::new(configuration(1, vec![model("m", slots(1), (10, 0), &[0])]));
    let job = world.submit(request(0, Class::Interactive));
    world.fail(job, GrantFailure::Crashed, Sent::Something);
    assert_eq!(world.finished.get(&job), Some(&Outcome::Failed(Failure::Step(GrantFailure::Crashed))));
}
