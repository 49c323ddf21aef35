//! Interactive mode, its window, and the slot that is kept free.

use windtunnel_core::*;

use crate::world::*;

const CHAT: u32 = 0;
const INDEX: u32 = 1;

/// A chat model with two slots and an embedder on one card.
fn desk() -> World {
    World::new(configuration(
        1,
        vec![model("chat", slots(2), (100, 0), &[0]), model("index", batch(32, 0), (10, 1), &[0])],
    ))
}

fn modes(world: &World) -> Vec<Mode> {
    world.notes().filter_map(|note| if let Note::Mode { mode, .. } = note { Some(mode) } else { None }).collect()
}

#[test]
fn background_waits_until_two_seconds_after_the_last_answer() {
    let mut world = desk();
    let chat = world.submit(request(CHAT, Class::Interactive));
    let index = world.submit(request(INDEX, Class::Background));
    assert_eq!(
        world.why_waits(index),
        Some(WaitReason::InteractiveMode { device: DeviceId(0), guard_at: Some(Time::from_nanos(3_000 * MS)) })
    );
    world.at(800);
    world.finish(chat);
    world.at(2_799);
    assert!(!world.runs(index));
    world.at(2_800);
    assert!(world.runs(index));
    assert_eq!(modes(&world), [Mode::Interactive, Mode::Idle]);
}

#[test]
fn a_chat_starts_beside_background_that_runs_already() {
    let mut world = desk();
    let index = world.submit(request(INDEX, Class::Background));
    world.at(300);
    let chat = world.submit(request(CHAT, Class::Interactive));
    assert!(world.runs(index) && world.runs(chat));
}

#[test]
fn an_interactive_job_that_waits_for_a_slot_makes_the_device_interactive() {
    let mut world = desk();
    let running: Vec<u64> = (0..2).map(|_| world.submit(request(CHAT, Class::Background))).collect();
    let chat = world.submit(request(CHAT, Class::Interactive));
    let index = world.submit(request(INDEX, Class::Background));
    assert_eq!(world.why_waits(chat), Some(WaitReason::SlotsBusy));
    assert!(!world.runs(index));
    world.at(10);
    world.finish(running[0]);
    assert!(world.runs(chat));
}

#[test]
fn a_cancelled_wait_ends_interactive_mode_at_once() {
    let mut world = desk();
    let _running: Vec<u64> = (0..2).map(|_| world.submit(request(CHAT, Class::Background))).collect();
    let chat = world.submit(request(CHAT, Class::Interactive));
    let index = world.submit(request(INDEX, Class::Background));
    world.at(1);
    world.cancel(chat);
    assert!(world.runs(index));
}

#[test]
fn without_a_window_background_follows_at_the_same_instant() {
    let mut set = desk().scheduler.configuration().clone();
    set.policy.interactive_idle = Span::ZERO;
    let mut world = World::new(set);
    let chat = world.submit(request(CHAT, Class::Interactive));
    let index = world.submit(request(INDEX, Class::Background));
    world.at(50);
    world.finish(chat);
    assert!(world.runs(index));
}

#[test]
fn the_last_slot_of_a_model_in_use_is_kept_for_interactive_work() {
    let mut world = desk();
    let chat = world.submit(request(CHAT, Class::Interactive));
    world.at(10);
    world.finish(chat);
    world.at(2_010);
    let one = world.submit(request(CHAT, Class::Background));
    let two = world.submit(request(CHAT, Class::Background));
    assert!(world.runs(one) && !world.runs(two));
    assert_eq!(world.why_waits(two), Some(WaitReason::SlotsReserved));
    world.at(300_009);
    assert!(!world.runs(two));
    world.at(300_010);
    assert!(world.runs(two), "the model is no longer hot");
}

#[test]
fn a_model_that_nobody_chats_with_gives_all_its_slots() {
    let mut world = desk();
    let one = world.submit(request(CHAT, Class::Background));
    let two = world.submit(request(CHAT, Class::Background));
    assert!(world.runs(one) && world.runs(two));
}

#[test]
fn modes_are_kept_per_device() {
    let mut world = World::new(configuration(
        2,
        vec![model("chat", slots(1), (100, 0), &[0]), model("index", batch(32, 0), (10, 1), &[1])],
    ));
    world.submit(request(CHAT, Class::Interactive));
    let index = world.submit(request(INDEX, Class::Background));
    assert!(world.runs(index));
}

#[test]
fn the_second_slot_of_a_model_that_loaded_faster_than_expected_is_not_for_batch_work() {
    let mut desk = configuration(1, vec![model("chat", slots(2), (100, 0), &[0])]);
    desk.policy.reserve_interactive_slots = 0;
    let mut world = World::empty();
    let (model, device, footprint) = (ModelId(CHAT), DeviceId(0), Bytes::from_mib(1));
    let estimates = vec![Estimate { model, device, footprint, load_time: Span::from_secs(10) }];
    let (profiles, residents) = (Vec::new(), Vec::new());
    world.input(Input::Started(Box::new(Started { configuration: desk, profiles, estimates, residents })));
    let chat = world.submit(request(CHAT, Class::Interactive));
    let work = world.submit(request(CHAT, Class::Batch));
    let load = world.log.iter().find_map(|effect| match effect {
        Effect::Load { attempt, instance, .. } => Some((*attempt, *instance)),
        _ => None,
    });
    let (attempt, instance) = load.expect("the model is loaded for the chat");
    world.at(500);
    world.input(Input::LoadFinished { attempt, instance, footprint: None });
    assert!(world.runs(chat) && !world.runs(work));
    assert_eq!(world.scheduler.check(), Ok(()));
}
