//! Dynamic batching by weight, with hold; steps of embedding jobs.

use windtunnel_core::*;

use crate::world::*;

fn embedder(wait: u64) -> World {
    World::new(configuration(1, vec![model("embed", batch(32, wait), (1, 1), &[0])]))
}

fn texts(inputs: u32) -> Submission {
    Submission { kind: JobKind::Embedding, inputs, ..request(0, Class::Background) }
}

fn last_grant(world: &World) -> Vec<(u64, u32, u32)> {
    let grant = world.grants.values().last().expect("something should run");
    grant.steps.iter().map(|step| (step.job.0, step.step, step.weight)).collect()
}

#[test]
fn a_long_job_is_cut_into_steps_of_thirty_two_inputs() {
    let mut world = embedder(0);
    let job = world.submit(texts(70));
    for step in [(job, 0, 32), (job, 1, 32), (job, 2, 6)] {
        assert_eq!(last_grant(&world), [step]);
        world.finish(job);
    }
    assert_eq!(world.finished.get(&job), Some(&Outcome::Completed));
}

#[test]
fn small_requests_share_a_batch_while_their_weights_fit() {
    let mut world = embedder(0);
    let first = world.submit(texts(1));
    let jobs: Vec<u64> = [10, 20, 5, 1].map(|inputs| world.submit(texts(inputs))).to_vec();
    world.finish(first);
    assert_eq!(
        last_grant(&world),
        [(jobs[0], 0, 10), (jobs[1], 0, 20)],
        "the third does not fit, and nothing overtakes it"
    );
    world.finish(jobs[0]);
    assert_eq!(last_grant(&world), [(jobs[2], 0, 5), (jobs[3], 0, 1)]);
}

#[test]
fn a_batch_holds_one_class_only() {
    let mut world = embedder(0);
    let first = world.submit(texts(1));
    let batch = world.submit(Submission { class: Some(Class::Batch), ..texts(1) });
    let background = world.submit(texts(1));
    world.finish(first);
    assert_eq!(last_grant(&world), [(background, 0, 1)]);
    world.finish(background);
    assert_eq!(last_grant(&world), [(batch, 0, 1)]);
}

#[test]
fn an_under_full_batch_is_held_until_its_oldest_job_has_waited() {
    let mut world = embedder(10);
    let first = world.submit(texts(4));
    assert_eq!(world.why_waits(first), Some(WaitReason::BatchHeld { until: Time::from_nanos(10 * MS) }));
    world.at(6);
    let second = world.submit(texts(4));
    world.at(9);
    assert!(!world.runs(first));
    world.at(10);
    assert_eq!(last_grant(&world), [(first, 0, 4), (second, 0, 4)]);
}

#[test]
fn a_full_batch_is_not_held() {
    let mut world = embedder(10);
    let first = world.submit(texts(20));
    let second = world.submit(texts(12));
    assert_eq!(last_grant(&world), [(first, 0, 20), (second, 0, 12)]);
}

#[test]
fn a_deadline_shortens_the_hold_by_the_time_of_the_batch() {
    let mut world = embedder(10);
    let job = world.submit(Submission { deadline: Some(Span::from_millis(9)), ..texts(4) });
    assert_eq!(world.why_waits(job), Some(WaitReason::BatchHeld { until: Time::from_nanos(4 * MS) }));
    world.at(4);
    assert!(world.runs(job));
}

#[test]
fn lower_classes_do_not_use_a_held_instance() {
    let mut world = embedder(10);
    let held = world.submit(texts(4));
    let low = world.submit(Submission { class: Some(Class::Batch), ..texts(32) });
    assert!(!world.runs(low));
    world.at(10);
    assert!(world.runs(held));
}

#[test]
fn a_step_that_no_batch_could_take_is_refused() {
    let mut world = World::new(configuration(1, vec![model("rank", batch(8, 0), (1, 1), &[0])]));
    let rerank = Submission { kind: JobKind::Rerank, ..request(0, Class::Interactive) };
    let large = world.submit(Submission { inputs: 9, ..rerank });
    assert_eq!(world.finished.get(&large), Some(&Outcome::Refused(Refusal::TooLarge { limit: 8 })));
    let fits = world.submit(Submission { inputs: 8, ..rerank });
    assert!(world.runs(fits));
}

#[test]
fn steps_of_one_job_run_on_several_devices() {
    let mut world = World::new(configuration(2, vec![model("embed", batch(32, 0), (1, 1), &[0, 1])]));
    let job = world.submit(texts(96));
    assert_eq!(world.grants.len(), 2);
    world.finish(job);
    world.finish(job);
    world.finish(job);
    assert_eq!(world.finished.get(&job), Some(&Outcome::Completed));
}
