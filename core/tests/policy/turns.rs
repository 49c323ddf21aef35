//! Idle mode: background before batch, and the turn of a batch job that waits for long.

use windtunnel_core::*;

use crate::world::*;

fn card() -> World {
    World::new(configuration(1, vec![model("m", slots(1), (100, 0), &[0])]))
}

#[test]
fn background_goes_before_batch() {
    let mut world = card();
    let running = world.submit(request(0, Class::Background));
    let batch = world.submit(request(0, Class::Batch));
    let background = world.submit(request(0, Class::Background));
    world.at(100);
    world.finish(running);
    assert!(world.runs(background) && !world.runs(batch));
    world.at(200);
    world.finish(background);
    assert!(world.runs(batch));
}

#[test]
fn an_overdue_batch_job_gets_a_turn_even_while_background_is_queued() {
    let mut world = card();
    let mut background: Vec<u64> = (0..80).map(|_| world.submit(request(0, Class::Background))).collect();
    let batch: Vec<u64> = (0..4).map(|_| world.submit(request(0, Class::Batch))).collect();
    for second in 1..=119 {
        world.at(second * 1_000);
        if second % 2 == 0 {
            world.finish(background.remove(0));
        }
    }
    assert!(!world.runs(batch[0]));
    world.at(120_000);
    world.finish(background.remove(0));
    assert!(world.runs(batch[0]), "two minutes without progress");
    world.at(122_000);
    world.finish(batch[0]);
    world.at(124_000);
    world.finish(batch[1]);
    assert!(world.runs(batch[2]), "the turn lasts five seconds");
    world.at(126_000);
    world.finish(batch[2]);
    assert!(world.runs(background[0]) && !world.runs(batch[3]));
    let turns: Vec<Note> =
        world.notes().filter(|note| matches!(note, Note::TurnBegan { .. } | Note::TurnEnded { .. })).collect();
    let (device, model) = (DeviceId(0), ModelId(0));
    let until = Time::from_nanos(125_000 * MS);
    assert_eq!(turns, [Note::TurnBegan { device, model, until }, Note::TurnEnded { device, model }]);
}

#[test]
fn a_turn_ends_when_nothing_is_left_for_it() {
    let mut world = card();
    let first = world.submit(request(0, Class::Background));
    let batch = world.submit(request(0, Class::Batch));
    let second = world.submit(request(0, Class::Background));
    world.at(130_000);
    world.finish(first);
    assert!(world.runs(batch));
    world.at(130_100);
    world.finish(batch);
    assert!(world.runs(second));
    assert!(world.notes().any(|note| matches!(note, Note::TurnEnded { .. })));
}

#[test]
fn turns_can_be_switched_off() {
    let mut set = card().scheduler.configuration().clone();
    set.policy.batch_max_starvation = Span::ZERO;
    let mut world = World::new(set);
    let first = world.submit(request(0, Class::Background));
    let batch = world.submit(request(0, Class::Batch));
    let second = world.submit(request(0, Class::Background));
    world.at(1_000_000);
    world.finish(first);
    assert!(world.runs(second) && !world.runs(batch));
}
