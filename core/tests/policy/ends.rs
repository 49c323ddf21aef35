//! The ways in which a job ends without having run: bounds, waits, deadlines, clients that go.

use windtunnel_core::*;

use crate::{
    machine::{Machine, truth},
    world::*,
};

fn one_slot(change: impl FnOnce(&mut Policy)) -> World {
    let mut set = configuration(1, vec![model("m", slots(1), (10, 0), &[0])]);
    change(&mut set.policy);
    World::new(set)
}

fn chat() -> Submission {
    request(0, Class::Interactive)
}

#[test]
fn a_full_queue_refuses_with_its_limit() {
    let mut world = one_slot(|policy| policy.classes[0].max_queued = Some(1));
    let jobs: Vec<u64> = (0..3).map(|_| world.submit(chat())).collect();
    assert_eq!(world.finished.get(&jobs[2]), Some(&Outcome::Refused(Refusal::QueueFull { limit: 1 })));
    world.finish(jobs[0]);
    assert!(world.runs(jobs[1]));
}

#[test]
fn no_places_to_wait_still_lets_a_free_slot_be_used() {
    let mut world = one_slot(|policy| policy.classes[0].max_queued = Some(0));
    let first = world.submit(chat());
    let second = world.submit(chat());
    assert!(world.runs(first));
    assert_eq!(world.finished.get(&second), Some(&Outcome::Refused(Refusal::QueueFull { limit: 0 })));
}

#[test]
fn bodies_that_wait_are_bounded_in_bytes() {
    let limit = Bytes::new(100);
    let mut world = one_slot(|policy| policy.classes[0].max_queued_bytes = limit);
    world.submit(chat());
    let big = Submission { body: Bytes::new(60), ..chat() };
    let (kept, refused) = (world.submit(big), world.submit(big));
    assert_eq!(world.finished.get(&kept), None);
    assert_eq!(world.finished.get(&refused), Some(&Outcome::Refused(Refusal::QueueBytesFull { limit })));
}

#[test]
fn a_wait_ends_exactly_when_it_may_last_no_longer() {
    let mut world = one_slot(|_| ());
    world.submit(chat());
    let job = world.submit(Submission { max_wait: Some(Span::from_millis(30)), ..chat() });
    world.until(30 * MS - 1);
    assert_eq!(world.finished.get(&job), None);
    world.at(30);
    assert_eq!(world.finished.get(&job), Some(&Outcome::TimedOut(Overdue::MaxWait)));
}

#[test]
fn a_job_with_a_running_step_does_not_time_out_but_between_its_steps_it_may() {
    let mut world = World::new(configuration(1, vec![model("m", batch(32, 0), (10, 0), &[0])]));
    let texts = Submission { kind: JobKind::Embedding, inputs: 64, ..request(0, Class::Background) };
    let job = world.submit(Submission { max_wait: Some(Span::from_millis(30)), ..texts });
    world.at(100);
    assert_eq!(world.finished.get(&job), None);
    let urgent = world.submit(chat());
    world.finish(job);
    assert!(world.runs(urgent));
    world.at(130);
    assert_eq!(world.finished.get(&job), Some(&Outcome::TimedOut(Overdue::MaxWait)));
}

#[test]
fn a_late_job_is_kept_unless_it_is_to_be_dropped() {
    let mut world = one_slot(|_| ());
    world.submit(chat());
    let kept = world.submit(Submission { deadline: Some(Span::from_millis(25)), ..chat() });
    let dropped =
        world.submit(Submission { deadline: Some(Span::from_millis(25)), drop_hopeless: Some(true), ..chat() });
    world.at(15);
    assert_eq!(world.finished.get(&dropped), None, "ten milliseconds of service still fit");
    world.at(16);
    assert_eq!(world.finished.get(&dropped), Some(&Outcome::TimedOut(Overdue::Hopeless)));
    world.at(1_000);
    assert_eq!(world.finished.get(&kept), None);
}

#[test]
fn a_job_that_is_hopeless_on_arrival_never_takes_a_slot() {
    let mut world = one_slot(|policy| policy.classes[0].drop_hopeless = true);
    let job = world.submit(Submission { deadline: Some(Span::from_millis(9)), ..chat() });
    assert_eq!(world.finished.get(&job), Some(&Outcome::TimedOut(Overdue::Hopeless)));
}

#[test]
fn a_cancelled_wait_ends_at_once_and_a_running_grant_is_broken_off() {
    let mut world = one_slot(|_| ());
    let running = world.submit(chat());
    let waiting = world.submit(chat());
    let third = world.submit(chat());
    world.cancel(waiting);
    world.cancel(running);
    for job in [running, waiting] {
        assert_eq!(world.finished.get(&job), Some(&Outcome::Cancelled));
    }
    let abort = Effect::Abort { attempt: Attempt(0), instance: InstanceId(0), cause: AbortCause::Cancelled };
    assert_eq!(world.log.last(), Some(&abort));
    assert!(!world.runs(third), "the slot is free when the runtime says so");
    world.fail(running, GrantFailure::Aborted, Sent::Something);
    assert!(world.runs(third));
}

#[test]
fn a_batch_goes_on_while_anybody_waits_for_it() {
    let mut world = World::new(configuration(1, vec![model("m", batch(8, 0), (10, 0), &[0])]));
    let first = world.submit(chat());
    let (one, two) = (world.submit(chat()), world.submit(chat()));
    world.finish(first);
    world.cancel(one);
    assert!(!world.log.iter().any(|effect| matches!(effect, Effect::Abort { .. })));
    world.cancel(two);
    assert!(matches!(world.log.last(), Some(Effect::Abort { .. })));
}

#[test]
fn what_makes_no_sense_is_noted_and_ignored() {
    let mut world = one_slot(|_| ());
    world.cancel(7);
    world.input(Input::Submitted { job: JobId(5), submission: chat() });
    let measured = Measured { first_token: None, output_tokens: 0 };
    world.input(Input::GrantFinished { attempt: Attempt(9), instance: InstanceId(0), measured });
    world.input(Input::StopFinished { attempt: Attempt(9), instance: InstanceId(8) });
    let causes: Vec<Note> = world.notes().collect();
    let ignored = |cause| Note::Ignored { cause };
    assert_eq!(
        causes,
        [
            ignored(Nonsense::NoSuchJob),
            ignored(Nonsense::JobOutOfOrder),
            ignored(Nonsense::NoSuchAttempt),
            ignored(Nonsense::NoSuchAttempt)
        ]
    );
}

/// A configuration with one thing wrong.
fn unsound(change: fn(&mut Configuration)) -> Box<Configuration> {
    let mut set = configuration(1, vec![model("m", batch(8, 0), (10, 0), &[0])]);
    change(&mut set);
    Box::new(set)
}

#[test]
fn a_configuration_that_contradicts_itself_is_noted_and_ignored() {
    let ignored = Effect::Note(Note::Ignored { cause: Nonsense::UnsoundConfiguration });
    let changes: [fn(&mut Configuration); 6] = [
        |set| set.models[0].placements[0].device = DeviceId(1),
        |set| set.models[0].capacity = batch(0, 0),
        |set| set.models[0].capacity = slots(u32::MAX),
        |set| {
            let variants = vec![Variant { model: ModelId(1), quality: Quality::Balanced }];
            set.families.push(Family { name: "f".into(), aliases: Vec::new(), variants });
        },
        |set| set.models.clear(),
        |set| {
            set.devices.clear();
            set.models[0].placements.clear();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (mut scheduler, mut effects) = (Scheduler::new(), Effects::new());
        let configuration = *unsound(change);
        if number < 4 {
            let (profiles, estimates, residents) = (Vec::new(), Vec::new(), Vec::new());
            let started = Started { configuration: configuration.clone(), profiles, estimates, residents };
            scheduler.step(Time::ZERO, &Input::Started(Box::new(started)), &mut effects);
            assert!(effects.iter().eq([&ignored]), "{number}");
        }
        let mut world = one_slot(|_| ());
        let change = Reconfiguration { configuration, removed: Vec::new(), estimates: Vec::new() };
        world.input(Input::Reconfigured(Box::new(change)));
        assert_eq!(world.notes().last(), Some(Note::Ignored { cause: Nonsense::UnsoundConfiguration }), "{number}");
        let job = world.submit(chat());
        assert!(world.runs(job), "{number}: the old one goes on");
    }
}

#[test]
fn unknown_models_and_missing_capabilities_are_refused() {
    let mut set = configuration(1, vec![model("m", slots(1), (10, 0), &[0])]);
    set.models[0].capabilities = vec![Capability::Chat];
    let mut world = World::new(set);
    let unknown = world.submit(request(7, Class::Interactive));
    let blind = world.submit(Submission { needs: Needs::NONE.with(Capability::Vision), ..chat() });
    let empty = world.submit(Submission { inputs: 0, ..chat() });
    assert_eq!(world.finished.get(&unknown), Some(&Outcome::Refused(Refusal::UnknownModel)));
    assert_eq!(world.finished.get(&blind), Some(&Outcome::Refused(Refusal::NoSuchVariant)));
    assert_eq!(world.finished.get(&empty), Some(&Outcome::Refused(Refusal::Malformed)));
}

#[test]
fn a_slot_that_becomes_free_too_late_is_not_wasted_on_a_hopeless_job() {
    let mut world = one_slot(|_| ());
    let first = world.submit(chat());
    let deadline = Some(Span::from_nanos(25 * MS));
    let lost = world.submit(Submission { deadline, drop_hopeless: Some(true), ..chat() });
    let next = world.submit(chat());
    world.now = 15 * MS + 1;
    world.finish(first);
    assert_eq!(world.finished.get(&lost), Some(&Outcome::TimedOut(Overdue::Hopeless)));
    assert!(world.runs(next));
}

#[test]
fn a_job_that_became_hopeless_while_its_model_was_loaded_does_not_start() {
    let models = vec![model("m", slots(1), (200, 0), &[0])];
    let mut machine = Machine::new(&[16_384], models, vec![truth(8000, 1000, 200)], |_| {});
    let due = |ms| Submission { deadline: Some(Span::from_millis(ms)), drop_hopeless: Some(true), ..chat() };
    machine.submit_at(0, due(1199));
    machine.submit_at(0, due(1200));
    machine.run_until(1000);
    assert_eq!(machine.world.finished.get(&0), Some(&Outcome::TimedOut(Overdue::Hopeless)));
    assert!(machine.world.runs(1));
    machine.run_until(1200);
    assert_eq!(machine.world.finished.get(&1), Some(&Outcome::Completed));
}
