//! Instances: loading, ready, draining, stopping, gone; and a new configuration.

use windtunnel_core::*;

use crate::world::*;

fn desk() -> World {
    World::new(configuration(1, vec![model("m", slots(2), (10, 0), &[0]), model("other", slots(1), (10, 0), &[0])]))
}

fn stages(world: &World) -> Vec<Stage> {
    world.scheduler.view().devices[0].instances.iter().map(|instance| instance.stage).collect()
}

#[test]
fn an_instance_is_stopped_only_after_its_last_step() {
    let mut world = desk();
    let (one, two) = (world.submit(request(0, Class::Interactive)), world.submit(request(0, Class::Interactive)));
    world.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    let late = world.submit(request(0, Class::Interactive));
    assert_eq!(world.why_waits(late), Some(WaitReason::Draining { instance: InstanceId(0) }));
    world.finish(one);
    assert_eq!(stages(&world), [Stage::Draining, Stage::Ready]);
    world.finish(two);
    let stop = Effect::Stop { attempt: Attempt(2), instance: InstanceId(0), cause: StopCause::Operator };
    assert!(world.log.contains(&stop));
    world.input(Input::StopFinished { attempt: Attempt(2), instance: InstanceId(0) });
    assert_eq!(stages(&world), [Stage::Ready, Stage::Loading], "draining is final: a fresh one is loaded");
    assert!(!world.runs(late));
}

#[test]
fn a_changed_configuration_is_no_operator_and_an_ending_daemon_no_client_that_left() {
    let mut world = desk();
    let runs = world.submit(request(1, Class::Interactive));
    let waits = world.submit(request(1, Class::Interactive));
    world.input(Input::Operator(Request::TurnAway { job: JobId(waits) }));
    assert_eq!(world.finished.get(&waits), Some(&Outcome::Failed(Failure::Draining)));
    world.input(Input::Operator(Request::TurnAway { job: JobId(waits) }));
    assert!(world.notes().any(|note| note == Note::Ignored { cause: Nonsense::NoSuchJob }));
    world.input(Input::Operator(Request::Renew { instance: InstanceId(1) }));
    let is_stop = |effect: &&Effect<Vec<GrantedStep>>| matches!(effect, Effect::Stop { .. });
    assert_eq!(world.log.iter().find(is_stop), None, "what runs is not broken off");
    world.finish(runs);
    let cause = world.log.iter().find_map(|effect| match effect {
        Effect::Stop { cause, .. } => Some(*cause),
        _ => None,
    });
    assert_eq!(cause, Some(StopCause::Changed));
}

#[test]
fn a_loaded_instance_takes_what_waited_for_it() {
    let mut world = desk();
    world.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    world.input(Input::StopFinished { attempt: Attempt(0), instance: InstanceId(0) });
    let job = world.submit(request(0, Class::Interactive));
    assert_eq!(world.why_waits(job), Some(WaitReason::Loading { instance: InstanceId(2) }));
    let later = world.submit(request(0, Class::Background));
    assert_eq!(world.why_waits(later), Some(WaitReason::Loading { instance: InstanceId(2) }));
    world.input(Input::LoadFinished { attempt: Attempt(1), instance: InstanceId(2), footprint: None });
    assert!(world.runs(job));
}

#[test]
fn a_load_that_is_called_off_is_stopped_once_it_is_ready() {
    let mut world = desk();
    world.input(Input::Operator(Request::Unload { instance: InstanceId(0) }));
    world.input(Input::StopFinished { attempt: Attempt(0), instance: InstanceId(0) });
    world.input(Input::Operator(Request::Load { model: ModelId(0), device: DeviceId(0) }));
    world.input(Input::Operator(Request::Unload { instance: InstanceId(2) }));
    world.input(Input::LoadFinished { attempt: Attempt(1), instance: InstanceId(2), footprint: None });
    assert_eq!(stages(&world), [Stage::Ready, Stage::Stopping]);
}

#[test]
fn nothing_is_granted_on_an_instance_whose_process_is_gone() {
    let mut world = desk();
    let jobs: Vec<u64> = (0..3).map(|_| world.submit(request(0, Class::Interactive))).collect();
    world.input(Input::Exited { instance: InstanceId(0), cause: ExitCause::Signal(9) });
    world.fail(jobs[0], GrantFailure::Crashed, Sent::Nothing);
    world.fail(jobs[1], GrantFailure::Crashed, Sent::Something);
    assert!(world.grants.is_empty());
    assert_eq!(world.finished.get(&jobs[0]), None, "it waits for the next instance");
    assert_eq!(world.finished.get(&jobs[1]), Some(&Outcome::Failed(Failure::Step(GrantFailure::Crashed))));
    assert_eq!(stages(&world), [Stage::Ready, Stage::Loading]);
}

#[test]
fn jobs_of_a_removed_model_fail_and_others_go_on() {
    let mut world = desk();
    let running = world.submit(request(0, Class::Interactive));
    let fill = world.submit(request(0, Class::Interactive));
    let waiting = world.submit(request(0, Class::Interactive));
    let other = world.submit(request(1, Class::Interactive));
    let configuration = world.scheduler.configuration().clone();
    let removed = vec![ModelId(0)];
    world.input(Input::Reconfigured(Box::new(Reconfiguration { configuration, removed, estimates: Vec::new() })));
    assert_eq!(world.finished.get(&waiting), Some(&Outcome::Failed(Failure::ModelRemoved)));
    world.finish(running);
    world.finish(fill);
    world.finish(other);
    assert!([running, fill, other].iter().all(|job| world.finished.get(job) == Some(&Outcome::Completed)));
    assert_eq!(stages(&world), [Stage::Stopping, Stage::Ready]);
    let refused = world.submit(request(0, Class::Interactive));
    assert_eq!(world.finished.get(&refused), Some(&Outcome::Refused(Refusal::UnknownModel)));
}

#[test]
fn a_new_order_sorts_what_waits_already() {
    let mut world = World::new(configuration(1, vec![model("m", slots(1), (10, 0), &[0])]));
    let first = world.submit(request(0, Class::Interactive));
    let _calm = world.submit(request(0, Class::Interactive));
    let urgent = world.submit(Submission { deadline: Some(Span::from_millis(50)), ..request(0, Class::Interactive) });
    let mut configuration = world.scheduler.configuration().clone();
    configuration.policy.classes[0].order = Order::Edf;
    world.input(Input::Reconfigured(Box::new(Reconfiguration {
        configuration,
        removed: Vec::new(),
        estimates: Vec::new(),
    })));
    world.finish(first);
    assert!(world.runs(urgent));
}

#[test]
fn interactive_work_of_a_family_takes_the_best_variant_there_is_and_background_avoids_one_in_use() {
    let mut set =
        configuration(1, vec![model("big", slots(2), (10, 0), &[0]), model("small", slots(1), (10, 0), &[0])]);
    let variant = |model, quality| Variant { model: ModelId(model), quality };
    let variants = vec![variant(0, Quality::Preferred), variant(1, Quality::Compact)];
    set.families.push(Family { name: "f".into(), aliases: Vec::new(), variants });
    set.policy.interactive_idle = Span::ZERO;
    let mut world = World::new(set);
    let family = |class| Submission { wanted: Wanted::Family(FamilyId(0)), ..request(0, class) };
    let chats = [world.submit(family(Class::Interactive)), world.submit(family(Class::Interactive))];
    let third = world.submit(family(Class::Interactive));
    assert_eq!(world.why_waits(third), Some(WaitReason::SlotsBusy), "it does not fall back while the best is there");
    chats.iter().chain([&third]).for_each(|&job| world.finish(job));
    let background = world.submit(family(Class::Background));
    let grant = world.grants.values().next().expect("background runs");
    assert_eq!((grant.steps[0].job.0, grant.model), (background, ModelId(1)));
    let choice = Note::Variant { job: JobId(background), model: ModelId(1), choice: Choice::BetterBusy };
    assert!(world.notes().any(|note| note == choice));
}

#[test]
fn a_failed_step_whose_model_was_removed_meanwhile_does_not_wait_for_it() {
    let mut world = desk();
    let job = world.submit(request(0, Class::Interactive));
    let configuration = world.scheduler.configuration().clone();
    let removed = vec![ModelId(0)];
    world.input(Input::Reconfigured(Box::new(Reconfiguration { configuration, removed, estimates: Vec::new() })));
    world.fail(job, GrantFailure::Disconnected, Sent::Nothing);
    assert_eq!(world.finished.get(&job), Some(&Outcome::Failed(Failure::ModelRemoved)));
}

#[test]
fn a_job_that_runs_finds_its_family_again_when_models_are_added() {
    let mut set =
        configuration(1, vec![model("big", slots(1), (10, 0), &[0]), model("small", slots(1), (10, 0), &[0])]);
    let variants = [(0, Quality::Preferred), (1, Quality::Compact)];
    let variants = variants.map(|(model, quality)| Variant { model: ModelId(model), quality }).to_vec();
    set.families.push(Family { name: "f".into(), aliases: Vec::new(), variants });
    let mut world = World::new(set.clone());
    let family = Submission { wanted: Wanted::Family(FamilyId(0)), ..request(0, Class::Interactive) };
    let job = world.submit(family);
    set.models.push(model("new", slots(1), (10, 0), &[0]));
    world.input(Input::Reconfigured(Box::new(Reconfiguration {
        configuration: set,
        removed: Vec::new(),
        estimates: Vec::new(),
    })));
    world.fail(job, GrantFailure::Disconnected, Sent::Nothing);
    assert!(world.runs(job), "it goes back to the queue of its family, not to that of the new model");
}
