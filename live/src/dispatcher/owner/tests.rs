use std::{path::Path, sync::Mutex};

use tokio::sync::mpsc::unbounded_channel;
use windtunnel_config::ScenarioFile;
use windtunnel_core::{
    Bytes, Checkpoint, Class, DeviceId, Estimate, Failure, Measured, Outcome, Snapshot, Span, Submission,
};
use windtunnel_reports::Recorder;

use super::*;
use crate::dispatcher::{Listener, telling};

#[path = "../../../tests/scheduled/header.rs"]
mod header;
#[path = "../../../tests/scheduled/job.rs"]
mod job;

use header::header;
use job::chat;

/// Writes nothing down.
struct Unwritten;

impl Recorder for Unwritten {
    fn begin(&mut self, _header: &Header) -> std::io::Result<()> {
        Ok(())
    }

    fn step(&mut self, _t: Time, _input: &Input, _effects: &Effects) -> std::io::Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self, _t: Time, _state: &Checkpoint) -> std::io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _end: &End) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log for Unwritten {
    fn wants_state(&mut self) -> bool {
        false
    }

    fn idle_at(&self) -> Option<Time> {
        None
    }

    fn idle(&mut self, _now: Time) {}
}

/// Does nothing but remember the last load.
#[derive(Clone, Default)]
struct Ordered(Arc<Mutex<Option<LoadOrder>>>);

impl Runtimes for Ordered {
    fn load(&mut self, order: LoadOrder) {
        *self.0.lock().unwrap() = Some(order);
    }

    fn stop(&mut self, _attempt: Attempt, _instance: InstanceId) {}

    fn abort_load(&mut self, _attempt: Attempt, _instance: InstanceId) {}

    fn read(&mut self, _device: DeviceId) {}
}

const CONFIGURATION: &str = r#"
devices = [{ name = "gpu", memory = "16GiB" }]
models.chat = { footprint = "10GiB", slots = 2, service = { kind = "slots", decode_alpha = "10ms" } }
workload = [{ name = "tests", model = "chat", arrivals = { process = "at", times = ["1s"] } }]
policy.interactive_idle = "100ms"
"#;

fn setting() -> Setting<(), Unwritten> {
    let file = ScenarioFile::parse(CONFIGURATION, Path::new("config.toml")).unwrap();
    let mut configuration = file.resolve(&[]).unwrap().configuration;
    configuration.labels = vec!["tests".to_owned()];
    let (model, device) = (ModelId(0), DeviceId(0));
    let estimates =
        vec![Estimate { model, device, footprint: Bytes::from_mib(10 << 10), load_time: Span::from_secs(1) }];
    Setting {
        header: header(""),
        started: Started { configuration, profiles: Vec::new(), estimates, residents: Vec::new() },
        recorder: Unwritten,
        learned: Box::new(|_| {}),
        batches: unbounded_channel().0,
        measured: Box::new(|_| {}),
        broken: Box::new(|violation| panic!("{violation}")),
    }
}

fn submit(owner: &mut Owner<(), Unwritten, Ordered>, class: Class) -> Listener {
    let (tell, told) = telling();
    let submission = Box::new(Submission { class: Some(class), ..chat(0) });
    owner.take(Message::Submit { submission, ticket: Ticket { tell, work: None } });
    told
}

/// The next grant, where one was told.
fn granted(told: &mut Listener) -> Option<Running> {
    std::iter::from_fn(|| told.heard()).find_map(|told| match told {
        Told::Granted(order) => Some(order.running),
        Told::Taken(_) | Told::Waits(_) | Told::Finished(_) => None,
    })
}

fn started(setting: Setting<(), Unwritten>) -> (Owner<(), Unwritten, Ordered>, Ordered) {
    let ordered = Ordered::default();
    let (ready, troubles) = (Arc::default(), Arc::default());
    let mut owner = Owner::new(Clock::start(), setting, ordered.clone(), ready, troubles);
    let started = Input::Started(Box::new(owner.setting.started.clone()));
    owner.step(&started);
    (owner, ordered)
}

/// Where nobody answers.
fn endpoint() -> Endpoint {
    Endpoint {
        address: ([127, 0, 0, 1], 9).into(),
        key: String::new(),
        requests_a_connection: None,
        progress: Arc::default(),
        lines: Arc::new(crate::Lines::new(1)),
    }
}

/// The load that is ordered once the memory was read.
fn load(owner: &mut Owner<(), Unwritten, Ordered>, ordered: &Ordered) -> LoadOrder {
    let (total, used) = (Some(Bytes::from_mib(16 << 10)), Some(Bytes::ZERO));
    owner.step(&Input::Snapshot(Snapshot { device: DeviceId(0), total, used, processes: Vec::new() }));
    ordered.0.lock().unwrap().expect("the model is loaded")
}

#[test]
fn a_step_given_to_a_process_in_the_moment_of_its_death_is_known_to_its_job() {
    let (mut owner, ordered) = started(setting());
    let mut chat = submit(&mut owner, Class::Interactive);
    let LoadOrder { attempt, instance, .. } = load(&mut owner, &ordered);
    owner.take(Message::Loaded { attempt, instance, footprint: None, endpoint: endpoint() });
    let running = granted(&mut chat).expect("the chat starts");
    let measured = Measured { first_token: None, output_tokens: 5 };
    owner.step(&Input::GrantFinished { attempt: running.attempt, instance, measured });
    let mut index = submit(&mut owner, Class::Background);
    assert!(granted(&mut index).is_none(), "the user may go on");
    // The window in which he may ends, and before that is noticed the process dies.
    std::thread::sleep(Duration::from_millis(200));
    owner.step(&Input::Exited { instance, cause: ExitCause::Signal(9) });
    let running = granted(&mut index).expect("its step is told, since the scheduler waits for its end");
    assert_eq!(running.instance, instance);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(running.endpoint.progress.ended()), Some(ExitCause::Signal(9)));
}

#[test]
fn a_step_that_is_to_run_where_nothing_answers_fails_and_that_is_said() {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&said);
    let broken = Box::new(move |violation: &str| heard.lock().unwrap().push(violation.to_owned()));
    let (mut owner, ordered) = started(Setting { broken, ..setting() });
    let mut chat = submit(&mut owner, Class::Interactive);
    let LoadOrder { attempt, instance, .. } = load(&mut owner, &ordered);
    // The load ends without a word of where the model answers.
    owner.step(&Input::LoadFinished { attempt, instance, footprint: None });
    let (_desk, inbox) = mpsc::channel();
    while !owner.own.is_empty() {
        let message = owner.next(&inbox).expect("its own word is next");
        owner.take(message);
    }
    let finish = std::iter::from_fn(|| chat.heard()).find_map(|told| match told {
        Told::Finished(finish) => Some(finish.outcome),
        Told::Taken(_) | Told::Waits(_) | Told::Granted(_) => None,
    });
    assert_eq!(finish, Some(Outcome::Failed(Failure::Step(GrantFailure::Disconnected))));
    let said = said.lock().unwrap();
    assert!(said.iter().all(|one| one.contains("of which nobody knows where it answers")), "{said:?}");
    assert_eq!((said.len(), owner.violations.len()), (2, 2), "it was tried twice");
}

#[test]
fn a_grant_that_crosses_with_its_client_leaving_comes_to_nothing_once_that_was_heard() {
    let (mut owner, ordered) = started(setting());
    let mut chat = submit(&mut owner, Class::Interactive);
    let Some(Told::Taken(job)) = chat.heard() else { panic!("it is taken first") };
    let (messages, inbox) = mpsc::channel();
    messages.send(Message::Gone { job }).unwrap();
    drop(chat.leave());
    let LoadOrder { attempt, instance, .. } = load(&mut owner, &ordered);
    owner.take(Message::Loaded { attempt, instance, footprint: None, endpoint: endpoint() });
    assert_eq!(owner.own.len(), 1, "nobody hears of the grant");
    assert!(matches!(owner.next(&inbox), Some(Message::Gone { .. })), "who left said so first");
    owner.take(Message::Gone { job });
    assert_eq!(owner.grants.len(), 1, "its step has not ended");
    let own = owner.next(&inbox).expect("its own word is next");
    owner.take(own);
    assert!(owner.grants.is_empty() && owner.own.is_empty());
}
