//! How much may wait: jobs, and the bytes of their bodies.

use windtunnel_core::*;

use crate::world::*;

/// One slot, and 100 bytes of background bodies may wait.
fn narrow() -> World {
    let mut set = configuration(1, vec![model("m", slots(1), (10, 0), &[0])]);
    set.policy.classes[Class::Background.index()].max_queued_bytes = Bytes::new(100);
    World::new(set)
}

fn holding(class: Class, bytes: u64) -> Submission {
    Submission { body: Bytes::new(bytes), ..request(0, class) }
}

const FULL: Outcome = Outcome::Refused(Refusal::QueueBytesFull { limit: Bytes::new(100) });

#[test]
fn bodies_that_wait_are_bounded_by_their_bytes() {
    let mut world = narrow();
    let running = world.submit(holding(Class::Background, 90));
    assert!(world.runs(running), "what runs holds nothing of the queue");
    let first = world.submit(holding(Class::Background, 60));
    let second = world.submit(holding(Class::Background, 41));
    assert_eq!(world.finished.get(&second), Some(&FULL), "101 bytes");
    let third = world.submit(holding(Class::Background, 40));
    assert!([first, third].iter().all(|job| !world.finished.contains_key(job)), "100 bytes are not beyond it");
    let chat = world.submit(holding(Class::Interactive, 1000));
    assert_eq!(world.finished.get(&chat), None, "another class has a bound of its own");
}

#[test]
fn bytes_are_given_back_by_who_starts_or_goes_away() {
    let mut world = narrow();
    let running = world.submit(holding(Class::Background, 1));
    let first = world.submit(holding(Class::Background, 100));
    let refused = world.submit(holding(Class::Background, 1));
    assert_eq!(world.finished.get(&refused), Some(&FULL));
    world.finish(running);
    assert!(world.runs(first));
    let second = world.submit(holding(Class::Background, 100));
    world.cancel(second);
    let third = world.submit(holding(Class::Background, 100));
    assert_eq!(world.finished.get(&third), None);
}

#[test]
fn a_step_that_waits_again_holds_its_body_again() {
    let mut world = narrow();
    let failed = world.submit(holding(Class::Background, 100));
    let other = world.submit(holding(Class::Background, 0));
    world.fail(failed, GrantFailure::Disconnected, Sent::Nothing);
    assert!(world.runs(failed), "it is the oldest");
    world.fail(failed, GrantFailure::Disconnected, Sent::Nothing);
    assert!(world.runs(other));
}
