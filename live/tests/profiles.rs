//! What was learned of models, over restarts.

mod fixtures;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fixtures::Folder;
use windtunnel_config::{Backend, Daemon, DaemonFile, FoundDevice, Override};
use windtunnel_core::{Bytes, DeviceId, DeviceKind, ModelId, Ppm, Profile, Span};
use windtunnel_live::profiles::{FileIdentity, Profiles, Store, Subject, Subjects, known, subjects};

const MODEL: ModelId = ModelId(0);
const DEVICE: DeviceId = DeviceId(0);

/// A daemon of one model whose file has so many bytes.
fn daemon(folder: &Folder, bytes: usize, sets: &[&str]) -> Daemon {
    let path = folder.join("m.gguf");
    // Writing the same again would make it another file.
    if fs::metadata(&path).map_or(0, |about| about.len()) != bytes as u64 {
        fs::write(path, vec![0; bytes]).unwrap();
    }
    let text = "[models.m]\ngguf = 'm.gguf'\nctx = 4096\nslots = 2\n";
    let file = DaemonFile::parse(text, &folder.join("config.toml")).unwrap();
    let sets: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
    let card = FoundDevice {
        name: "gpu0".to_owned(),
        backend: Backend::Cuda,
        id: Some("GPU-1".to_owned()),
        kind: DeviceKind::Discrete,
        memory: None,
    };
    file.resolve(&sets, &[card]).unwrap_or_else(|error| panic!("{error}"))
}

fn subject(daemon: &Daemon) -> Subject {
    Subject::of(daemon, MODEL, DEVICE, None).unwrap()
}

fn profile(mebibytes: u64) -> Profile {
    Profile {
        model: MODEL,
        device: DEVICE,
        factor: Ppm::new(1_500_000),
        observations: 17,
        footprint: Some(Bytes::from_mib(mebibytes)),
        load_time: Some(Span::from_millis(2_500)),
    }
}

fn opened(folder: &Path) -> Store {
    let (store, remarks) = Store::open(folder).unwrap();
    assert_eq!(remarks, [""; 0]);
    store
}

fn names(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|one| one == extension)).collect()
}

#[test]
fn what_was_learned_is_there_after_a_restart() {
    let folder = Folder::new("restart");
    let state = folder.join("state/profiles");
    let daemon = daemon(&folder, 64, &[]);
    let all = subjects(&daemon, |_| None);
    assert_eq!(known(&opened(&state), &all), []);
    let profiles = Profiles::start(opened(&state), all.clone()).unwrap();
    let mut learner = profiles.learner();
    (1..=100).for_each(|size| learner(profile(size)));
    profiles.close();
    assert_eq!(known(&opened(&state), &all), [profile(100)]);
    assert!(names(&state, "part").is_empty());
}

#[test]
fn whatever_matters_makes_another_subject_and_nothing_else_does() {
    let folder = Folder::new("subjects");
    let plain = subject(&daemon(&folder, 64, &[])).key();
    let changed = |sets: &[&str]| subject(&daemon(&folder, 64, sets)).key();
    let same = subject(&daemon(&folder, 64, &[]));
    assert_eq!(same.key(), plain);
    let renamed = Subject { model: "other".to_owned(), ..same.clone() };
    assert_eq!(renamed.key(), same.key(), "a model's name says nothing");
    let moved = Subject {
        gguf: same.gguf.clone().map(|file| FileIdentity { path: "elsewhere".into(), ..file }),
        ..same.clone()
    };
    assert_eq!(moved.key(), same.key(), "nor does the place of its file");
    let keys = [
        plain,
        changed(&["models.m.ctx=8192"]),
        changed(&["models.m.slots=4"]),
        changed(&["models.m.args=['-fa', 'on']"]),
        changed(&["models.m.env.A=b"]),
        changed(&["devices=[{ name = 'cpu', backend = 'cpu' }]"]),
        subject(&daemon(&folder, 65, &[])).key(),
        Subject { runtime: same.gguf.clone(), ..same.clone() }.key(),
    ];
    let different: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
}

#[test]
fn a_damaged_profile_is_set_aside_and_said_and_nothing_else_is_lost() {
    let folder = Folder::new("damaged");
    let state = folder.join("profiles");
    let daemon = daemon(&folder, 64, &[]);
    let (mine, mut store) = (subject(&daemon), opened(&state));
    store.put(&mine, &profile(7)).unwrap();
    let good = fs::read_to_string(&names(&state, "json")[0]).unwrap();
    for (name, text) in [
        ("torn.json", &good[..good.len() / 2]),
        ("empty.json", ""),
        ("newer.json", &good.replacen("\"schema\": 1", "\"schema\": 2", 1)),
        ("zero.json", &good.replacen("1500000", "0", 1)),
        ("copy.json", &good),
    ] {
        fs::write(state.join(name), text).unwrap();
    }
    let (store, remarks) = Store::open(&state).unwrap();
    assert_eq!(remarks.len(), 5, "{remarks:#?}");
    assert!(
        remarks.iter().all(|remark| remark.contains("is not used: ") && remark.contains(".damaged")),
        "{remarks:#?}"
    );
    assert_eq!(store.get(&mine).map(|stored| stored.profile(MODEL, DEVICE)), Some(profile(7)));
    assert_eq!(names(&state, "damaged").len(), 5);
    assert_eq!(opened(&state).all().len(), 1);
}

#[test]
fn pruning_removes_what_is_about_files_that_are_gone() {
    let folder = Folder::new("prune");
    let state = folder.join("profiles");
    let daemon = daemon(&folder, 64, &[]);
    let mut store = opened(&state);
    let mine = subject(&daemon);
    store.put(&mine, &profile(7)).unwrap();
    fs::write(state.join("old.damaged"), "").unwrap();
    let pruned = store.prune().unwrap();
    assert_eq!(pruned.iter().map(|one| one.about.clone()).collect::<Vec<_>>(), [None]);
    assert_eq!(store.all().len(), 1);
    fs::remove_file(folder.join("m.gguf")).unwrap();
    let pruned = store.prune().unwrap();
    assert_eq!(pruned.iter().map(|one| one.about.clone()).collect::<Vec<_>>(), [Some(mine)]);
    assert_eq!((store.all().len(), names(&state, "json").len()), (0, 0));
}

#[test]
fn a_disk_that_takes_nothing_is_said_and_stops_nobody() {
    let folder = Folder::new("full");
    let daemon = daemon(&folder, 64, &[]);
    let blocked = folder.join("profiles");
    let profiles = Profiles::start(opened(&blocked), subjects(&daemon, |_| None)).unwrap();
    fs::write(&blocked, "a file stands where the folder should be made").unwrap();
    profiles.learner()(profile(1));
    let end = Instant::now() + Duration::from_secs(60);
    while profiles.trouble().is_none() {
        assert!(Instant::now() < end, "the trouble is never said");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::remove_file(&blocked).unwrap();
    profiles.learner()(profile(2));
    profiles.close();
    assert_eq!(known(&opened(&blocked), &subjects(&daemon, |_| None)), [profile(2)]);
}

#[test]
fn after_a_reload_what_is_learned_is_about_the_new_models() {
    let folder = Folder::new("reload");
    let state = folder.join("profiles");
    let before = subjects(&daemon(&folder, 64, &[]), |_| None);
    let after: Subjects = subjects(&daemon(&folder, 64, &["models.m.ctx=512"]), |_| None);
    let profiles = Profiles::start(opened(&state), before.clone()).unwrap();
    let mut learner = profiles.learner();
    learner(profile(1));
    profiles.replace(after.clone());
    learner(profile(2));
    learner(Profile { model: ModelId(9), ..profile(3) });
    profiles.close();
    let store = opened(&state);
    assert_eq!(known(&store, &before), [profile(1)]);
    assert_eq!(known(&store, &after), [profile(2)]);
}
