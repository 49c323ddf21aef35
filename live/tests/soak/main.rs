//! A daemon under everything at once: clients that leave at any moment, processes that are killed, stopped and misbehave,
//! orders and new configurations. Afterwards every model still answers, nothing is left open, booked or running, and the
//! journal replays.
//!
//! Twenty seconds by default; `WINDTUNNEL_SOAK=600 cargo test -p windtunnel-live --test soak -- --nocapture` takes ten minutes.

mod callers;
mod configuration;
mod daemon;
#[path = "../fixtures/mod.rs"]
mod fixtures;
mod http;
mod trouble;

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;
use windtunnel_replay::{Rules, replay};

use callers::Tally;
use configuration::{MODELS, Size};
use daemon::{Daemon, Held};

/// Clients that ask at the same time.
const CLIENTS: u64 = 24;
/// Nothing takes longer, however busy the machine is.
const LONG: Duration = Duration::from_secs(90);
/// What a daemon may keep beyond what it had before: room in allocators and maps that were once larger.
const KEPT: u64 = 48 << 20;

#[test]
fn nothing_is_left_behind() {
    if let Some(folder) = std::env::var_os(daemon::FOLDER) {
        return daemon::be(Path::new(&folder));
    }
    let seconds = std::env::var("WINDTUNNEL_SOAK").map_or(Ok(20), |text| text.parse());
    let seconds = seconds.expect("WINDTUNNEL_SOAK is a number of seconds");
    let seed = std::env::var("WINDTUNNEL_SEED").map_or(1, |text| text.parse().expect("WINDTUNNEL_SEED is a number"));
    println!("seed {seed}, {seconds} s");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(soak(seed, Duration::from_secs(seconds)));
}

async fn soak(seed: u64, time: Duration) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("soak");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    configuration::write(&folder, Size::Ample, &[]);
    let daemon = Arc::new(Daemon::start(&folder));
    every_model_answers(&daemon).await;
    at_rest(&daemon).await;
    let before = daemon.holds();

    let tally = Arc::new(Tally::default());
    let until = Instant::now() + time;
    let mut random = Random::seed_from_u64(seed);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let random = Random::seed_from_u64(random.random());
        all.spawn(callers::call(daemon.address, random, Arc::clone(&tally), until));
    }
    all.spawn(trouble::make(Arc::clone(&daemon), folder.clone(), random, until));
    while let Some(one) = all.join_next().await {
        one.expect("nothing went wrong");
    }

    configuration::write(&folder, Size::Ample, &[]);
    daemon.reload();
    // Models whose processes failed too often are not waited for.
    for model in MODELS {
        daemon.order(model, "reset").await;
    }
    every_model_answers(&daemon).await;
    at_rest(&daemon).await;
    let after = holds_no_more_than(&daemon, &before).await;
    println!("{tally}\nbefore {before}\nafter  {after}");
    assert!(tally.whole.load(Ordering::Relaxed) > 0 && tally.left.load(Ordering::Relaxed) > 0, "{tally}");
    let broken = daemon.metric("windtunnel_invariants_broken_total").await;
    assert_eq!(broken, Some(0.0), "invariants hold");
    assert!(after.files <= before.files && after.threads <= before.threads, "{before} before, {after} after");
    assert!(after.memory < before.memory + KEPT, "{before} before, {after} after");

    let (code, children) = Arc::into_inner(daemon).expect("nobody else has it").end();
    assert_eq!(code, Some(0));
    assert!(children.is_empty(), "these still run: {children:?}");
    replays(&folder);
}

/// Each of the models answers in the end, whatever became of it before.
async fn every_model_answers(daemon: &Daemon) {
    for model in MODELS {
        let started = Instant::now();
        loop {
            let answer = http::ask(daemon.address, &callers::plain(model), LONG).await.expect("it answers");
            if answer.status == 200 {
                break;
            }
            assert!(started.elapsed() < LONG, "{model}: {}", String::from_utf8_lossy(&answer.body));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Has everything unloaded and waits until nothing is under way.
async fn at_rest(daemon: &Daemon) {
    let started = Instant::now();
    loop {
        let rests = daemon.rests().await;
        if rests.is_none() && daemon.children().is_empty() {
            return;
        }
        assert!(started.elapsed() < LONG, "it never rests: {}", rests.unwrap_or_default());
        for model in MODELS {
            daemon.order(model, "unload").await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Connections of clients that left are closed, and threads for what blocks end, after a moment.
async fn holds_no_more_than(daemon: &Daemon, before: &Held) -> Held {
    let started = Instant::now();
    loop {
        let held = daemon.holds();
        if (held.files <= before.files && held.threads <= before.threads) || started.elapsed() > LONG {
            return held;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// All files of the journal together, in their order.
fn replays(folder: &Path) {
    let listed = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    // `run.0002.jsonl` sorts before `run.jsonl`, which is the first.
    files.sort_by_key(|path| (path.file_stem().is_none_or(|stem| stem != "run"), path.clone()));
    let bytes: u64 = files.iter().map(|path| std::fs::metadata(path).map_or(0, |about| about.len())).sum();
    let open = |path: &PathBuf| BufReader::new(File::open(path).expect("it can be read"));
    let outcome = replay(files.iter().map(open), Rules::default()).expect("it is a journal");
    println!("journal: {} files, {} MiB\n{outcome}", files.len(), bytes >> 20);
    assert!(outcome.equal, "{outcome}");
}
