//! Deadline admission, with numbers worked out by hand.

use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

/// Cards of T(B) = 1 ms + 0.5 ms * B rounded to whole: alpha 1, beta 1, at most 4 inputs: T(4) = 5 ms.
fn cards(count: u32) -> World {
    let devices: Vec<u32> = (0..count).collect();
    let mut set = configuration(count as usize, vec![model("m", batch(4, 0), (1, 1), &devices)]);
    for class in &mut set.policy.classes {
        class.admission = Admission::Deadline;
    }
    World::new(set)
}

fn due(ms: u64) -> Submission {
    Submission { deadline: Some(Span::from_millis(ms)), ..request(0, Class::Interactive) }
}

fn predicted(world: &World, job: u64) -> Option<u64> {
    match world.finished.get(&job)? {
        Outcome::Refused(Refusal::DeadlineUnreachable { predicted, .. }) => Some(predicted.as_nanos() / MS),
        Outcome::Refused(_) | Outcome::Completed | Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled => {
            None
        }
    }
}

#[test]
fn an_idle_card_promises_one_full_batch() {
    let mut world = cards(1);
    let late = world.submit(due(4));
    assert_eq!(predicted(&world, late), Some(5));
    let fits = world.submit(due(5));
    assert!(world.runs(fits));
}

#[test]
fn the_batch_in_service_and_the_queue_are_counted() {
    let mut world = cards(1);
    world.submit(due(100));
    world.at(1);
    for _ in 0..5 {
        world.submit(due(100));
    }
    let late = world.submit(due(15));
    assert_eq!(predicted(&world, late), Some(2 + 2 * 5 + 5), "1 ms of the running batch, two batches, its own");
    let fits = world.submit(due(16));
    assert_eq!(world.finished.get(&fits), None);
}

#[test]
fn several_cards_share_the_queue_between_them() {
    let mut world = cards(2);
    world.submit(due(100));
    world.submit(due(100));
    for _ in 0..9 {
        world.submit(due(100));
    }
    let late = world.submit(due(16));
    assert_eq!(
        predicted(&world, late),
        Some(2 + 2 * 5 + 5),
        "nine waiting make three batches, two rounds of two cards"
    );
}

#[test]
fn unequal_cards_are_averaged_by_their_rates() {
    let mut set = configuration(2, vec![model("m", batch(4, 0), (1, 1), &[0, 1])]);
    set.policy.classes[0].admission = Admission::Deadline;
    set.models[0].placements[1].predicted =
        ServiceTimes::Batch { alpha: Span::from_millis(3), beta: Span::from_millis(3) };
    let mut world = World::new(set);
    let late = world.submit(due(7));
    assert_eq!(predicted(&world, late), Some(7), "2 / (1/5 + 1/15) = 7.5 ms");
    let fits = world.submit(due(8));
    assert!(world.runs(fits));
}

#[test]
fn higher_classes_are_ahead_and_lower_ones_are_not() {
    let mut world = cards(1);
    world.submit(due(100));
    for _ in 0..4 {
        world.submit(due(100));
        world.submit(Submission { class: Some(Class::Batch), ..due(100) });
    }
    let late = world.submit(Submission { class: Some(Class::Background), ..due(11) });
    assert_eq!(predicted(&world, late), Some(2 + 5 + 5));
}

#[test]
fn under_edf_only_earlier_deadlines_are_ahead() {
    let mut world = cards(1);
    let mut set = world.scheduler.configuration().clone();
    set.policy.classes[0].order = Order::Edf;
    world = World::new(set);
    for _ in 0..9 {
        world.submit(due(100));
    }
    let fits = world.submit(due(7));
    assert_eq!(world.finished.get(&fits), None);
    let late = world.submit(due(11));
    assert_eq!(predicted(&world, late), Some(2 + 5 + 5), "only the one due in 7 ms is before it");
}

#[test]
fn slots_are_counted_by_their_releases() {
    let mut set = configuration(1, vec![model("m", slots(2), (10, 0), &[0])]);
    set.policy.classes[0].admission = Admission::Deadline;
    let mut world = World::new(set);
    world.submit(due(100));
    world.at(4);
    world.submit(due(100));
    let first = world.submit(due(15));
    assert_eq!(predicted(&world, first), Some(20), "the first release is at 10");
    world.submit(due(16));
    let second = world.submit(due(19));
    assert_eq!(predicted(&world, second), Some(24), "one waits already: the second release is at 14");
    world.submit(due(100));
    let third = world.submit(due(25));
    assert_eq!(predicted(&world, third), Some(30), "two wait: one round of ten later");
}

fn texts(inputs: u32, ms: u64) -> Submission {
    Submission { kind: JobKind::Embedding, inputs, ..due(ms) }
}

/// Slots on which a step takes 10 ms and 1 ms an input.
fn slots_for_texts(order: Order) -> World {
    let mut set = configuration(1, vec![model("m", slots(1), (10, 1), &[0])]);
    set.policy.classes[0].admission = Admission::Deadline;
    set.policy.classes[0].order = order;
    World::new(set)
}

#[test]
fn texts_before_a_job_on_slots_are_counted_in_steps() {
    for order in [Order::Fifo, Order::Edf] {
        let mut world = slots_for_texts(order);
        for _ in 0..3 {
            world.submit(texts(32, 1000));
        }
        let late = world.submit(texts(32, 167));
        assert_eq!(predicted(&world, late), (order == Order::Fifo).then_some(42 * 4), "one runs and two wait");
        let short = world.submit(texts(1, 1000));
        assert_eq!(world.finished.get(&short), None);
    }
}

#[test]
fn a_short_text_behind_long_ones_waits_for_steps_of_their_length() {
    let mut world = slots_for_texts(Order::Fifo);
    for _ in 0..3 {
        world.submit(texts(32, 1000));
    }
    let late = world.submit(texts(1, 136));
    assert_eq!(predicted(&world, late), Some(42 * 3 + 11));
    let fits = world.submit(texts(1, 137));
    assert_eq!(world.finished.get(&fits), None);
}

#[test]
fn a_job_of_many_steps_is_counted_with_all_of_them() {
    let mut world = slots_for_texts(Order::Fifo);
    world.submit(texts(96, 1000));
    let late = world.submit(texts(64, 209));
    assert_eq!(predicted(&world, late), Some(42 * 3 + 42 * 2), "one of three steps runs");
}

#[test]
fn without_an_instance_everything_is_admitted() {
    let mut set = cards(1).scheduler.configuration().clone();
    set.models[0].placements.clear();
    let mut world = World::new(set);
    let job = world.submit(due(1));
    assert_eq!(world.why_waits(job), Some(WaitReason::NotLoaded));
}

/// Five wait for a load of 2 s, then one comes who has a millisecond too little and one who has enough.
fn behind_a_load(capacity: Capacity, times: (u64, u64)) {
    let promise = |set: &mut Configuration| set.policy.classes[0].admission = Admission::Deadline;
    let models = vec![model("m", capacity, times, &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![truth(8000, 2000, 200)], promise);
    for _ in 0..5 {
        machine.submit_at(0, request(0, Class::Interactive));
    }
    machine.submit_at(100, due(2499));
    machine.submit_at(100, due(2500));
    machine.run_until(200);
    assert_eq!(predicted(&machine.world, 5), Some(2600));
    assert_eq!(machine.world.finished.get(&6), None);
}

#[test]
fn those_who_wait_for_a_load_are_counted() {
    // Two slots: two rounds of two go first, then one beside whom there is room.
    behind_a_load(slots(2), (200, 0));
    // Five make two batches of 200 ms, before that of whoever comes.
    behind_a_load(batch(4, 0), (40, 40));
}

#[test]
fn a_batch_that_outlasts_its_prediction_is_not_taken_for_a_free_card() {
    let mut world = cards(1);
    world.submit(due(100));
    for _ in 0..8 {
        world.submit(due(100));
    }
    world.at(50);
    let late = world.submit(due(14));
    assert_eq!(predicted(&world, late), Some(50 + 2 * 5 + 5), "no rest is left of the batch, but two are queued");
}

#[test]
fn lower_classes_wait_until_more_slots_are_free_than_are_reserved() {
    let mut set = configuration(1, vec![model("m", slots(3), (10, 0), &[0])]);
    set.policy.classes[1].admission = Admission::Deadline;
    set.policy.reserve_interactive_slots = 1;
    set.policy.interactive_idle = Span::ZERO;
    let mut world = World::new(set);
    let chat = world.submit(request(0, Class::Interactive));
    world.finish(chat);
    let low = |ms| Submission { class: Some(Class::Background), ..due(ms) };
    world.submit(low(100));
    world.at(4);
    world.submit(low(100));
    let late = world.submit(low(15));
    assert_eq!(predicted(&world, late), Some(20), "of three slots one is free and stays so: the next is at 10");
    let fits = world.submit(low(16));
    assert_eq!(world.finished.get(&fits), None);
    let second = world.submit(low(19));
    assert_eq!(predicted(&world, second), Some(24), "one waits already: the one after that is at 14");
}

#[test]
fn a_card_that_still_loads_does_not_help_a_job_that_was_bound_to_another() {
    let mut set = configuration(2, vec![model("m", batch(1, 0), (10, 0), &[0, 1])]);
    set.policy.classes[0].admission = Admission::Deadline;
    set.policy.routing = Routing::RoundRobin;
    let mut world = World::new(set);
    world.input(Input::Operator(Request::Unload { instance: InstanceId(1) }));
    let attempt = world.log.iter().find_map(|effect| match effect {
        Effect::Stop { attempt, .. } => Some(*attempt),
        _ => None,
    });
    world.input(Input::StopFinished { attempt: attempt.expect("it is stopped"), instance: InstanceId(1) });
    world.input(Input::Operator(Request::Load { model: ModelId(0), device: DeviceId(1) }));
    for _ in 0..3 {
        world.submit(due(100));
    }
    let late = world.submit(due(39));
    assert_eq!(predicted(&world, late), Some(40), "one runs and two wait on the first card");
    let fits = world.submit(due(40));
    assert_eq!(world.finished.get(&fits), None);
}

/// One slot in which a token takes 10 ms, and an answer of 101 tokens that has just ended.
fn answered(change: impl FnOnce(&mut Configuration, &mut Vec<Profile>)) -> World {
    let mut set = configuration(1, vec![model("m", slots(1), (1, 0), &[0])]);
    set.policy.classes.iter_mut().for_each(|class| class.admission = Admission::Deadline);
    set.models[0].placements[0].predicted = ServiceTimes::Slots {
        prefill_fixed: Span::ZERO,
        prefill_per_token: Span::ZERO,
        decode_alpha: Span::from_millis(10),
        decode_beta: Span::ZERO,
        prefill_slice: Span::ZERO,
    };
    let mut profiles = Vec::new();
    change(&mut set, &mut profiles);
    let mut world = World::empty();
    let residents = vec![Resident { model: ModelId(0), device: DeviceId(0) }];
    let started = Started { configuration: set, profiles, estimates: Vec::new(), residents };
    world.input(Input::Started(Box::new(started)));
    answer(&mut world, 101);
    world
}

/// A question is asked and answered with so many tokens.
fn answer(world: &mut World, output_tokens: u32) {
    let job = world.submit(due(1_000_000));
    world.now += 1000 * MS;
    let grant = world.attempt_of(job).and_then(|attempt| world.grants.remove(&attempt)).expect("the card is free");
    let measured = Measured { first_token: None, output_tokens };
    world.input(Input::GrantFinished { attempt: grant.attempt, instance: grant.instance, measured });
}

fn takes(world: &mut World, submission: Submission) -> Option<u64> {
    let late = world.submit(Submission { deadline: Some(Span::ZERO), ..submission });
    predicted(world, late).map(|end| end - world.now / MS)
}

#[test]
fn answers_are_as_long_as_those_before_them_and_no_longer_than_asked_for() {
    let mut world = answered(|_, _| {});
    let chat = request(0, Class::Interactive);
    assert_eq!(takes(&mut world, chat), Some(1000));
    assert_eq!(takes(&mut world, Submission { max_tokens: Some(51), ..chat }), Some(500));
    assert_eq!(takes(&mut world, Submission { max_tokens: Some(201), ..chat }), Some(1000));
    answer(&mut world, 261);
    assert_eq!(takes(&mut world, chat), Some(1100), "a sixteenth of 160 tokens more");
    let index = request(0, Class::Background);
    assert_eq!(takes(&mut world, index), Some(1270), "nobody has answered in the background: 128 tokens");
}

#[test]
fn what_an_earlier_run_has_learned_counts_where_predictions_are_learned() {
    for (prediction, takes_ms) in [(Prediction::Learned, 1468), (Prediction::Configured, 1000)] {
        let mut world = answered(|set, profiles| {
            set.models[0].prediction = prediction;
            let (model, device, factor) = (ModelId(0), DeviceId(0), Ppm::new(1_500_000));
            profiles.push(Profile { model, device, factor, observations: 9, footprint: None, load_time: None });
        });
        // The answer took what was configured: 1.5 - 0.5/16.
        assert_eq!(takes(&mut world, request(0, Class::Interactive)), Some(takes_ms));
    }
}
