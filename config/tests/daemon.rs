//! A daemon's configuration: what comes out of a file, on which machine, and what is said of one that is wrong.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use windtunnel_config::{
    Backend, Daemon, DaemonFile, DeviceSource, FoundDevice, Launch, Override, ScenarioFile, Secret, Server,
};
use windtunnel_core::{Bytes, Capacity, Class, DeviceKind, Prediction, Replicas, ServiceTimes, Span};

const TEXT: &str = include_str!("files/daemon.toml");

fn card(number: u32) -> FoundDevice {
    FoundDevice {
        name: format!("gpu{number}"),
        backend: Backend::Cuda,
        id: Some(format!("GPU-{number}")),
        kind: DeviceKind::Discrete,
        memory: Some(Bytes::from_mib(16 << 10)),
    }
}

fn processor() -> FoundDevice {
    let (kind, memory) = (DeviceKind::Unified, Some(Bytes::from_mib(8 << 10)));
    FoundDevice { name: "cpu".to_owned(), backend: Backend::Cpu, id: None, kind, memory }
}

fn tried(text: &str, overrides: &[&str], found: &[FoundDevice]) -> Result<Daemon, String> {
    let file = DaemonFile::parse(text, Path::new("/etc/w.toml")).map_err(|error| error.to_string())?;
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    file.resolve(&overrides, found).map_err(|error| error.to_string())
}

fn daemon(text: &str, found: &[FoundDevice]) -> Daemon {
    tried(text, &[], found).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_key_of_a_daemon_comes_out() {
    let daemon = daemon(TEXT, &[card(0)]);
    let expected = Server {
        listen: SocketAddr::from(([127, 0, 0, 1], 9000)),
        public: true,
        hosts: vec!["house.example".to_owned()],
        cors: vec!["https://chat.example".to_owned()],
        body_limit: Bytes::new(10_000_000),
        body_time: Span::from_secs(90),
        keepalive_after: Span::from_secs(5),
        keepalive_every: Span::from_secs(6),
        drain: Span::from_secs(30),
        llama_server: PathBuf::from("/etc/bin/llama-server"),
        state_dir: Some(PathBuf::from("/etc/state")),
        journal: Some(PathBuf::from("/etc/journal.jsonl")),
        journal_limit: Bytes::from_mib(64),
        start_stall: Span::from_secs(20),
        start_limit: Span::from_secs(600),
        wedged_after: Span::from_secs(60),
        stop_grace: Span::from_secs(5),
    };
    assert_eq!(daemon.server, expected);
    let [phone, indexer, owner] = &daemon.keys[..] else { panic!("{:?}", daemon.keys) };
    assert_eq!((phone.secret.clone(), phone.class), (Secret::Environment("PHONE_KEY".into()), Some(Class::Background)));
    assert_eq!((phone.classes.len(), phone.max_in_flight, phone.admin), (2, Some(4), false));
    assert_eq!(indexer.secret, Secret::File(PathBuf::from("/etc/indexer.key")));
    assert_eq!((owner.secret.read(), owner.admin, owner.classes.len()), (Ok("a long secret".to_owned()), true, 0));
    assert_eq!(daemon.configuration.labels, ["anonymous", "phone", "indexer", "owner"]);
    let chat = Launch {
        gguf: Some(PathBuf::from("/etc/models/chat.gguf")),
        mmproj: Some(PathBuf::from("/models/eyes.gguf")),
        ctx: Some(16384),
        args: ["-fa", "on", "-ctk", "q8_0"].map(str::to_owned).into(),
        env: vec![("GGML_LOG".to_owned(), "1".to_owned())],
        runtime: Some(PathBuf::from("other-server")),
    };
    assert_eq!(daemon.launches[0], chat);
    let arguments = chat.arguments(Capacity::Slots { slots: 2 }).join(" ");
    assert_eq!(
        arguments,
        "--model /etc/models/chat.gguf --ctx-size 16384 --parallel 2 --mmproj /models/eyes.gguf -fa on -ctk q8_0"
    );
    let batches = chat.arguments(Capacity::Batch { max: 100, wait: Span::ZERO }).join(" ");
    assert!(batches.contains("--parallel 64 ") && batches.contains("--kv-unified -fa on"), "{batches}");
}

#[test]
fn what_nobody_says_is_learned_and_nothing_is_there_at_the_start() {
    let daemon = daemon(TEXT, &[card(0)]);
    let [chat, embedder] = &daemon.configuration.models[..] else { panic!("two models") };
    assert_eq!((chat.prediction, chat.replicas), (Prediction::Learned, Replicas::Count(1)));
    assert_eq!(chat.capacity, Capacity::Slots { slots: 2 });
    assert!(matches!(chat.placements[0].predicted, ServiceTimes::Slots { .. }));
    assert_eq!(embedder.capacity, Capacity::Batch { max: 32, wait: Span::from_millis(2) });
    assert!(matches!(embedder.placements[0].predicted, ServiceTimes::Batch { .. }));
    let known = TEXT.replace("slots = 2", "slots = 2\npredicted = { decode_alpha = \"9ms\" }");
    let known = tried(&known, &[], &[card(0)]).unwrap();
    assert_eq!(known.configuration.models[0].prediction, Prediction::Configured);
    let ServiceTimes::Slots { decode_alpha, prefill_per_token, .. } =
        known.configuration.models[0].placements[0].predicted
    else {
        panic!("slots");
    };
    assert_eq!(decode_alpha, Span::from_millis(9));
    assert!(!prefill_per_token.is_zero());
}

#[test]
fn what_is_left_out_is_as_the_server_has_it() {
    let daemon = daemon("[models.m]\ngguf = \"m.gguf\"\n", &[processor()]);
    assert_eq!(daemon.server, Server::default());
    assert!(daemon.keys.is_empty());
    assert_eq!(daemon.configuration.labels, ["anonymous"]);
}

#[test]
fn a_file_that_names_no_devices_is_served_from_those_that_were_found() {
    let text = "[models.m]\ngguf = \"m.gguf\"\n[policy]\nheadroom = \"2GiB\"\n";
    let names = |daemon: &Daemon| {
        let devices = daemon.configuration.devices.iter();
        devices.map(|device| format!("{} {:?}", device.name, device.kind)).collect::<Vec<_>>()
    };
    assert_eq!(names(&daemon(text, &[processor()])), ["cpu Unified"]);
    let daemon = daemon(text, &[card(0), card(1), processor()]);
    assert_eq!(names(&daemon), ["gpu0 Discrete", "gpu1 Discrete"]);
    assert_eq!(daemon.configuration.devices[1].headroom, Bytes::from_mib(2048));
    assert_eq!(daemon.configuration.models[0].placements.len(), 2);
    let gpu = DeviceSource { backend: Some(Backend::Cuda), id: Some("GPU-0".to_owned()), found: true };
    assert_eq!(daemon.sources[0], gpu);
    let error = tried(text, &[], &[]).unwrap_err();
    assert!(error.contains("`devices` is missing, and no device was found"), "{error}");
}

#[test]
fn configured_devices_are_found_by_backend_number_and_uuid() {
    let found = [card(0), card(1), processor()];
    let model = "[models.m]\ngguf = \"m.gguf\"\n";
    let sources = |devices: &str| {
        let daemon = tried(&format!("{devices}{model}"), &[], &found).unwrap_or_else(|error| panic!("{error}"));
        let devices = daemon.configuration.devices.iter().zip(&daemon.sources);
        let one = devices.map(|(device, source)| {
            let backend = source.backend.map_or("none", Backend::name);
            format!("{} {backend} {} {:?}", device.name, source.id.as_deref().unwrap_or("-"), device.memory)
        });
        one.collect::<Vec<_>>()
    };
    let gib = |count: u64| format!("Some(Bytes({}))", count << 30);
    let (sixteen, eight) = (gib(16), gib(8));
    assert_eq!(
        sources("[[devices]]\nname = 'a'\ncount = 2\n"),
        [format!("a0 cuda GPU-0 {sixteen}"), format!("a1 cuda GPU-1 {sixteen}")]
    );
    assert_eq!(sources("[[devices]]\nname = 'a'\nbackend = 'cpu'\n"), [format!("a0 cpu - {eight}")]);
    assert_eq!(
        sources("[[devices]]\nname = 'a'\nid = 'GPU-1'\n[[devices]]\nname = 'b'\n"),
        [format!("a0 cuda GPU-1 {sixteen}"), format!("b0 cuda GPU-0 {sixteen}")]
    );
    assert_eq!(
        sources("[[devices]]\nname = 'a'\nbackend = 'cuda'\nid = 1\nmemory = '8GiB'\n"),
        [format!("a0 cuda GPU-1 {eight}")]
    );
    // Two names for one card would count its memory twice.
    let twice = "[[devices]]\nname = 'a'\nid = 'GPU-1'\n[[devices]]\nname = 'b'\nid = 'GPU-1'\n";
    let twice = tried(&format!("{twice}{model}"), &[], &found).unwrap();
    assert_eq!((twice.sources[0].found, twice.sources[1].found), (true, false));
}

#[test]
fn a_simulated_device_needs_no_model_file() {
    let text = "[[devices]]\nname = 'toy'\nbackend = 'simulated'\nmemory = '8GiB'\n[models.m]\nfootprint = '1GiB'\n";
    let daemon = daemon(text, &[]);
    assert_eq!(daemon.sources[0].backend, Some(Backend::Simulated));
    assert_eq!(daemon.footprints[0].truth, Some(Bytes::from_mib(1024)));
    assert!(daemon.services[0][0].is_some());
}

#[test]
fn overrides_reach_every_section() {
    let overrides =
        ["server.listen=127.0.0.1:0", "keys.phone.class=interactive", "models.chat.env.A=b", "models.chat.ctx=4096"];
    let daemon = tried(TEXT, &overrides, &[card(0)]).unwrap();
    assert_eq!(daemon.server.listen.port(), 0);
    assert_eq!(daemon.keys[0].class, Some(Class::Interactive));
    assert_eq!(daemon.launches[0].env, [("GGML_LOG", "1"), ("A", "b")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(daemon.launches[0].ctx, Some(4096));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let found = [card(0)];
    let changes: &[(&str, &str)] = &[
        ("[server]", "[serve]"),
        ("body_limit", "body_limits"),
        ("\"127.0.0.1:9000\"", "\"127.0.0.1\""),
        ("\"127.0.0.1:9000\"", "8080"),
        ("journal_limit = \"64MiB\"", "journal_limit = \"1KiB\""),
        ("body_limit = \"10MB\"", "body_limit = \"0B\""),
        ("env = \"PHONE_KEY\"\n", ""),
        ("env = \"PHONE_KEY\"", "env = \"PHONE_KEY\"\nfile = \"phone.key\""),
        ("class = \"background\"", "class = \"batch\""),
        ("name = \"indexer\"", "name = \"phone\""),
        ("name = \"indexer\"", "name = \"anonymous\""),
        ("file = \"indexer.key\"", "env = \"PHONE_KEY\""),
        ("classes = [\"batch\"]", "classes = []"),
        ("gguf = \"models/embedder.gguf\"\n", ""),
        ("id = 0", "id = 0\ncount = 2"),
        ("backend = \"cuda\"", "backend = \"cude\""),
        ("env = { GGML_LOG = \"1\" }", "env = { GGML_LOG = 1 }"),
        ("args = [\"--embedding\"]", "args = \"--embedding\""),
        ("[models.chat]", "[run]\nhorizon = \"1s\"\n[models.chat]"),
    ];
    let mut told = String::new();
    for (from, to) in changes {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        let error = tried(&text, &[], &found).err().unwrap_or_else(|| "nothing is wrong".to_owned());
        told.push_str(&format!("{from:?} -> {to:?}\n{error}\n\n"));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn others_are_let_in_only_if_that_is_said_twice() {
    let model = "[models.m]\ngguf = \"m.gguf\"\n";
    let key = "[[keys]]\nname = 'k'\nkey = 's'\n";
    let open = "[server]\nlisten = \"0.0.0.0:8080\"\n";
    let error = tried(&format!("{open}{model}"), &[], &[card(0)]).unwrap_err();
    assert!(error.starts_with("/etc/w.toml:2:10: `server.listen` is 0.0.0.0:8080, which others can reach"), "{error}");
    assert!(tried(&format!("{open}public = true\n{model}"), &[], &[card(0)]).is_ok());
    assert!(tried(&format!("{open}{key}{model}"), &[], &[card(0)]).is_ok());
    assert!(tried(model, &["server.listen='[::]:80'"], &[card(0)]).is_err());
    assert!(tried(model, &["server.listen='[::1]:80'"], &[card(0)]).is_ok());
}

#[test]
fn a_key_never_shows() {
    let daemon = daemon(TEXT, &[card(0)]);
    assert!(!format!("{daemon:?}").contains("a long secret"));
    let missing = Secret::File(PathBuf::from("no/such.key")).read().unwrap_err();
    assert_eq!(missing, "needs no/such.key, which does not exist");
    let unset = Secret::Environment("WINDTUNNEL_NO_SUCH_VARIABLE".to_owned()).read().unwrap_err();
    assert_eq!(unset, "needs the environment variable WINDTUNNEL_NO_SUCH_VARIABLE, which is not set");
}

#[test]
fn a_scenario_may_start_from_a_daemons_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let text = "base = 'daemon.toml'\n[run]\nhorizon = '1s'\n\
        [models.chat]\nfootprint = '1GiB'\nenv.MORE = '2'\nservice = { kind = 'slots', decode_alpha = '9ms' }\n\
        [models.embedder]\nfootprint = '1GiB'\nservice = { kind = 'batch', alpha = '1ms' }\n\
        [[workload]]\nname = 'w'\nmodel = 'gpt-4o'\narrivals = { process = 'poisson', rate = 1 }\n";
    let scenario = ScenarioFile::parse(text, &folder.join("over.toml")).unwrap().resolve(&[]).unwrap();
    assert_eq!(scenario.configuration.models.len(), 2);
    let wrong = text.replace("[run]", "[server]\nlisten = '127.0.0.1:1'\n[run]");
    let error = ScenarioFile::parse(&wrong, &folder.join("over.toml")).unwrap().resolve(&[]).unwrap_err();
    assert!(error.to_string().contains("unknown key `server`"), "{error}");
}

/// Whatever stands in a file, something is said of it, at a place of that file.
fn survives(text: &str) {
    if let Ok(file) = DaemonFile::parse(text, Path::new("/etc/w.toml"))
        && let Err(error) = file.resolve(&[], &[card(0), processor()])
    {
        let problems = error.problems();
        assert!(!problems.is_empty() && problems.iter().all(|one| one.position.is_some()), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_or_torn_is_refused_and_nothing_worse() {
    for at in (0..TEXT.len()).filter(|at| TEXT.is_char_boundary(*at)) {
        survives(&TEXT[..at]);
        survives(&TEXT[at..]);
    }
    let lines: Vec<&str> = TEXT.lines().collect();
    for at in 0..lines.len() {
        let rest = || lines[..at].iter().chain(&lines[at + 1..]).copied();
        survives(&rest().collect::<Vec<_>>().join("\n"));
        let Some((key, _)) = lines[at].split_once(" = ") else { continue };
        for value in
            ["0", "-1", "1e400", "true", "\"\"", "\"x\"", "[]", "[1]", "[\"\"]", "{}", "{ a = 1 }", "1979-05-27"]
        {
            let mut lines = lines.clone();
            let line = format!("{key} = {value}");
            lines[at] = &line;
            survives(&lines.join("\n"));
        }
    }
}
