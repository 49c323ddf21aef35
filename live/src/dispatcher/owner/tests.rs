use std::{path::Path, sync::Mutex};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use windtunnel_config::ScenarioFile;
use windtunnel_core::{
    Bytes, Checkpoint, Class, DeviceId, Estimate, JobKind, LabelId, Measured, Needs, Snapshot, Span, Submission, Wanted,
};
use windtunnel_reports::{
    Recorder,
    journal::{SCHEMA, Source, WarmupRule},
};

use super::*;

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
        header: Header {
            schema: SCHEMA,
            program: String::new(),
            source: Source::Live,
            title: String::new(),
            seed: 0,
            replication: 0,
            horizon: None,
            jobs: None,
            warmup: WarmupRule::Auto,
            wall_clock: None,
            devices: Vec::new(),
            models: Vec::new(),
            workloads: Vec::new(),
            remarks: BTreeMap::new(),
        },
        started: Started { configuration, profiles: Vec::new(), estimates, residents: Vec::new() },
        recorder: Unwritten,
        learned: Box::new(|_| {}),
        batches: unbounded_channel().0,
        measured: Box::new(|_| {}),
        broken: Box::new(|violation| panic!("{violation}")),
    }
}

fn submit(owner: &mut Owner<(), Unwritten, Ordered>, class: Class) -> UnboundedReceiver<Told> {
    let (tell, told) = unbounded_channel();
    let submission = Submission {
        label: LabelId(0),
        wanted: Wanted::Model(ModelId(0)),
        class: Some(class),
        kind: JobKind::Chat,
        inputs: 1,
        prompt_tokens: 10,
        max_tokens: None,
        deadline: None,
        max_wait: None,
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: Bytes::ZERO,
        client: None,
        affinity: None,
    };
    owner.take(Message::Submit { submission: Box::new(submission), ticket: Ticket { tell, work: None } });
    told
}

/// The next grant, where one was told.
fn granted(told: &mut UnboundedReceiver<Told>) -> Option<Running> {
    std::iter::from_fn(|| told.try_recv().ok()).find_map(|told| match told {
        Told::Granted(order) => Some(order.running),
        Told::Taken(_) | Told::Waits(_) | Told::Finished(_) => None,
    })
}

#[test]
fn a_step_given_to_a_process_in_the_moment_of_its_death_is_known_to_its_job() {
    let ordered = Ordered::default();
    let (ready, troubles) = (Arc::default(), Arc::default());
    let mut owner = Owner::new(Clock::start(), setting(), ordered.clone(), ready, troubles);
    let started = Input::Started(Box::new(owner.setting.started.clone()));
    owner.step(&started);
    let mut chat = submit(&mut owner, Class::Interactive);
    let (total, used) = (Some(Bytes::from_mib(16 << 10)), Some(Bytes::ZERO));
    owner.step(&Input::Snapshot(Snapshot { device: DeviceId(0), total, used, processes: Vec::new() }));
    let LoadOrder { attempt, instance, .. } = ordered.0.lock().unwrap().expect("the model is loaded");
    let endpoint = Endpoint {
        address: ([127, 0, 0, 1], 9).into(),
        key: String::new(),
        requests_a_connection: None,
        progress: Arc::default(),
        lines: Arc::new(crate::Lines::new(1)),
    };
    owner.take(Message::Loaded { attempt, instance, footprint: None, endpoint });
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
