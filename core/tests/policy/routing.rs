//! Many devices: one shared queue, and the other ways.

use windtunnel_core::*;

use crate::world::*;

fn cards(routing: Routing, times: &[u64]) -> World {
    let devices: Vec<u32> = (0..times.len() as u32).collect();
    let mut set = configuration(times.len(), vec![model("m", slots(1), (1, 0), &devices)]);
    set.policy.routing = routing;
    for (place, &time) in set.models[0].placements.iter_mut().zip(times) {
        place.predicted = ServiceTimes::Batch { alpha: Span::from_millis(time), beta: Span::ZERO };
    }
    World::new(set)
}

fn places(world: &mut World, jobs: usize) -> Vec<u32> {
    for _ in 0..jobs {
        world.submit(request(0, Class::Interactive));
    }
    let mut placed: Vec<(u64, u32)> =
        world.grants.values().map(|grant| (grant.steps[0].job.0, grant.device.0)).collect();
    placed.sort_unstable();
    placed.into_iter().map(|(_, device)| device).collect()
}

#[test]
fn the_shared_queue_takes_the_free_card_that_ends_first() {
    assert_eq!(places(&mut cards(Routing::Shared, &[30, 10, 20]), 5), [1, 2, 0]);
    assert_eq!(places(&mut cards(Routing::Shared, &[10, 10, 10]), 3), [0, 1, 2]);
}

#[test]
fn round_robin_goes_in_turn_even_to_busy_cards() {
    let mut world = cards(Routing::RoundRobin, &[10, 10]);
    assert_eq!(places(&mut world, 2), [0, 1]);
    let third = world.submit(request(0, Class::Interactive));
    world.finish(1);
    assert!(!world.runs(third), "it was bound to the first card");
    world.finish(0);
    assert!(world.runs(third));
}

#[test]
fn join_shortest_goes_where_least_work_waits() {
    let mut world = cards(Routing::JoinShortest, &[10, 30]);
    for _ in 0..4 {
        world.submit(request(0, Class::Interactive));
    }
    let bound: Vec<usize> = world.scheduler.view().queues.iter().map(|queue| queue.jobs).collect();
    assert_eq!(world.grants.len(), 2);
    assert_eq!(bound, [2], "two more on the fast card are done before one more on the slow one");
}

#[test]
fn power_of_two_spreads_over_the_cards() {
    let mut world = cards(Routing::PowerOfTwo, &[10; 4]);
    for _ in 0..400 {
        world.submit(request(0, Class::Interactive));
    }
    let lengths: Vec<usize> = world.scheduler.view().queues.iter().map(|queue| queue.jobs).collect();
    assert_eq!(lengths.len(), 4);
    assert!(lengths.iter().all(|length| (90..110).contains(length)), "{lengths:?}");
}

#[test]
fn jobs_bound_to_an_instance_that_leaves_are_routed_again_in_order() {
    let mut world = cards(Routing::RoundRobin, &[10, 10]);
    let jobs: Vec<u64> = (0..6).map(|_| world.submit(request(0, Class::Interactive))).collect();
    world.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    let mut ran = Vec::new();
    for _ in 0..5 {
        let grant = world.grants.values().find(|grant| grant.device == DeviceId(1)).expect("the second card works on");
        let job = grant.steps[0].job.0;
        ran.push(job);
        world.finish(job);
    }
    assert_eq!(ran, [jobs[1], jobs[2], jobs[3], jobs[4], jobs[5]]);
}

/// Two cards of four slots where a token takes 10 ms, and as much again for everyone who generates beside.
fn generating(routing: Routing, slots: u32) -> World {
    let mut set = configuration(2, vec![model("m", Capacity::Slots { slots }, (1, 0), &[0, 1])]);
    set.policy.routing = routing;
    for place in &mut set.models[0].placements {
        place.predicted = ServiceTimes::Slots {
            prefill_fixed: Span::ZERO,
            prefill_per_token: Span::ZERO,
            decode_alpha: Span::from_millis(10),
            decode_beta: Span::from_millis(10),
            prefill_slice: Span::ZERO,
        };
    }
    World::new(set)
}

#[test]
fn generations_go_where_fewer_are_under_way() {
    assert_eq!(places(&mut generating(Routing::Shared, 4), 4), [0, 1, 0, 1]);
    let mut world = generating(Routing::Shared, 4);
    for _ in 0..3 {
        world.submit(request(0, Class::Background));
    }
    let mut placed: Vec<u32> = world.grants.values().map(|grant| grant.device.0).collect();
    placed.sort_unstable();
    assert_eq!(placed, [0, 0, 1]);
    assert_eq!(places(&mut generating(Routing::JoinShortest, 4), 4), [0, 1, 0, 1]);
}

#[test]
fn join_shortest_counts_what_waits_for_a_slot_as_generations() {
    let mut world = generating(Routing::JoinShortest, 1);
    world.submit(request(0, Class::Interactive));
    world.at(100);
    for _ in 0..5 {
        world.submit(request(0, Class::Interactive));
    }
    let mut bound: Vec<usize> = world.scheduler.view().queues.iter().map(|queue| queue.jobs).collect();
    bound.sort_unstable();
    assert_eq!(bound, [2, 2]);
}

#[test]
fn the_most_urgent_of_a_queue_is_routed_again_first() {
    let mut set = cards(Routing::RoundRobin, &[10, 10, 10]).scheduler.configuration().clone();
    set.policy.classes[0].order = Order::Edf;
    let mut world = World::new(set);
    let due = |ms: u64| Submission { deadline: Some(Span::from_millis(ms)), ..request(0, Class::Interactive) };
    let jobs: Vec<u64> = [900, 900, 900, 300, 800, 800, 100].map(|ms| world.submit(due(ms))).to_vec();
    world.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    world.finish(jobs[2]);
    assert!(world.runs(jobs[6]), "after seven jobs it is the turn of the third card");
    world.finish(jobs[1]);
    assert!(world.runs(jobs[3]), "then of the second");
}
