//! `windtunnel fuzz`: random worlds are searched for a broken rule; what is found is written as a scenario.

mod watchdog;

use std::{
    panic,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde_json::json;
use windtunnel_config::{Override, ScenarioFile, parse_span};
use windtunnel_core::Class;
use windtunnel_sim::fuzz::{Find, Findings, Frozen, Ground, Progress, Pulses, Search, Tally, as_it_stands};

use crate::{
    args::{Format, FuzzArgs},
    failure::Failure,
    imagined::{Imagined, imagined},
    output::{Folder, print},
    session::Session,
};

/// How long a search lasts if nothing is said.
const USUAL: Duration = Duration::from_secs(30);

/// When it is enough.
struct Budget {
    started: Instant,
    lasting: Option<Duration>,
    steps: Option<u64>,
    worlds: Option<u64>,
    /// How many broken rules are enough.
    finds: Option<u64>,
    /// The millionths of it that are over.
    over: Arc<AtomicU64>,
}

pub fn run(args: &FuzzArgs, session: &Session) -> Result<(), Failure> {
    // A scheduler that panics is a find; its message stands in it.
    panic::set_hook(Box::new(|_| {}));
    let file = args.config.as_deref().map(|path| Ok::<_, Failure>((path, session.load(path)?))).transpose()?;
    if let (true, Some((path, file))) = (args.as_is, &file) {
        return once(path, file, &args.out, session);
    }
    let (ground, assumed) = match file {
        Some((path, file)) => ground(path, &file, session)?,
        None => (None, Vec::new()),
    };
    let seed = session.seed.unwrap_or_else(fresh_seed);
    let budget = Budget::new(args)?;
    let progress = session.searching("searching", &budget.over);
    let (search, pulses) = (Search { seed, ground }, Pulses::new(rayon::current_num_threads()));
    let about = About { seed, assumed: &assumed, started: budget.started };
    let format = session.format;
    let stuck = |findings: &Findings| end_stuck(deliver(about, findings, &args.out, format));
    let findings =
        watchdog::watched(&pulses, stuck, || search.run(&session.control, &pulses, |so_far| budget.allows(so_far)))?;
    drop(progress);
    deliver(about, &findings, &args.out, format)?;
    if !findings.finds.is_empty() {
        return Err(Failure::Unmet);
    }
    session.unless_interrupted(&format!("{} worlds were searched and nothing was found", findings.worlds))
}

/// What was searched.
#[derive(Clone, Copy)]
struct About<'a> {
    seed: u64,
    /// What the user's configuration does not say.
    assumed: &'a [String],
    started: Instant,
}

/// What worlds are variations of, and what was assumed to make it.
fn ground(path: &Path, file: &ScenarioFile, session: &Session) -> Result<(Option<Ground>, Vec<String>), Failure> {
    let overrides = own_overrides(session);
    if !file.is_configuration() {
        return Ok((Some(Ground::new(file, path, &overrides)?), Vec::new()));
    }
    let Imagined { file, assumed } = imagined(path, &overrides, session)?;
    Ok((Some(Ground::new(&file, path, &[])?), assumed))
}

/// Writes and says what was found.
fn deliver(about: About<'_>, findings: &Findings, out: &Path, format: Format) -> Result<(), Failure> {
    let files = write(out, findings)?;
    print(&match format {
        Format::Table => table(about, findings, &files),
        Format::Json => format!("{}\n", as_json(about, findings, &files)),
        Format::Csv => csv(findings, &files),
    })
}

/// The program ends although a thread of it does not.
fn end_stuck(delivered: Result<(), Failure>) {
    if let Err(wrong) = delivered {
        anstream::eprintln!("a step of the scheduler does not return, and that cannot be written down: {wrong}");
    }
    process::exit(1);
}

/// Those of the user; the seed chooses worlds and is no setting of one.
fn own_overrides(session: &Session) -> Vec<Override> {
    let seed = session.seed.map(|seed| format!("run.seed={seed}"));
    session.overrides.iter().filter(|one| Some(one.text()) != seed.as_deref()).cloned().collect()
}

fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

impl Budget {
    fn new(args: &FuzzArgs) -> Result<Budget, Failure> {
        let given = args.lasting.as_deref().map(|text| {
            let span = parse_span(text).map_err(|wrong| Failure::BadInput(format!("--for {text}: {wrong}")))?;
            Ok::<_, Failure>(Duration::from_nanos(span.as_nanos()))
        });
        let usual = (args.steps.is_none() && args.worlds.is_none()).then_some(USUAL);
        let lasting = given.transpose()?.or(usual);
        let over = Arc::new(AtomicU64::new(0));
        let finds = args.first.then_some(1);
        Ok(Budget { started: Instant::now(), lasting, steps: args.steps, worlds: args.worlds, finds, over })
    }

    fn allows(&self, so_far: Progress) -> bool {
        let of_time = self.lasting.map(|all| self.started.elapsed().as_secs_f64() / all.as_secs_f64());
        let of_steps = self.steps.map(|all| so_far.steps as f64 / all as f64);
        let of_worlds = self.worlds.map(|all| so_far.worlds as f64 / all as f64);
        let of_finds = self.finds.map(|all| so_far.finds as f64 / all as f64);
        let over = [of_time, of_steps, of_worlds, of_finds].into_iter().flatten().fold(0.0, f64::max);
        self.over.store((over.min(1.0) * 1e6) as u64, Ordering::Relaxed);
        over < 1.0
    }
}

fn once(path: &Path, file: &ScenarioFile, out: &Path, session: &Session) -> Result<(), Failure> {
    let (pulses, format, started) = (Pulses::new(1), session.format, Instant::now());
    let seed = session.seed.unwrap_or_default();
    let about = About { seed, assumed: &[], started };
    let stuck = |findings: &Findings| end_stuck(deliver(about, findings, out, format));
    let (tally, found) =
        watchdog::watched(&pulses, stuck, || as_it_stands(file, path, &session.overrides, &pulses, &session.control))?;
    let (rule, message) = found.clone().unwrap_or_default();
    print(&match session.format {
        Format::Json => format!("{}\n", json!({ "steps": tally.steps, "rule": rule, "message": message })),
        Format::Csv => format!("steps,rule,message\n{},{},{}\n", tally.steps, quoted(&rule), quoted(&message)),
        Format::Table if found.is_some() => format!("broken: {rule}\n  {message}\n"),
        Format::Table => format!("{} steps, every rule holds\n", tally.steps),
    })?;
    if found.is_some() { Err(Failure::Unmet) } else { Ok(()) }
}

/// Writes one scenario for each find; their names.
fn write(out: &Path, findings: &Findings) -> Result<Vec<PathBuf>, Failure> {
    if findings.finds.is_empty() {
        return Ok(Vec::new());
    }
    let folder = Folder::create(out)?;
    findings
        .finds
        .iter()
        .enumerate()
        .map(|(number, find)| {
            let same = findings.finds[..number].iter().filter(|other| other.seed == find.seed).count();
            let suffix = if same == 0 { String::new() } else { format!("-{same}") };
            let name = format!("fuzz-{}{suffix}.toml", find.seed);
            folder.write(&name, &scenario(find, &folder.path().join(&name)))?;
            Ok(folder.path().join(name))
        })
        .collect()
}

fn scenario(find: &Find, path: &Path) -> String {
    let frozen = match find.frozen {
        Frozen::Fully => "Every request and its sizes are written down.",
        Frozen::ButNoise => "Every request and its sizes are written down; services vary as the seed says.",
        Frozen::No => "It fails only as it was drawn; what is drawn depends on the seed.",
    };
    let message = find.message.replace('\n', " ");
    format!(
        "# Broken rule: {}\n# At {}: {message}\n# Found in the world of seed {}. {frozen}\n# Look again: windtunnel fuzz --as-is {}\n{}",
        find.rule,
        find.at,
        find.seed,
        path.display(),
        find.scenario
    )
}

fn rate(tally: &Tally, took: Duration) -> f64 {
    tally.steps as f64 / took.as_secs_f64().max(1e-3)
}

fn table(about: About<'_>, findings: &Findings, files: &[PathBuf]) -> String {
    let (tally, took) = (&findings.tally, about.started.elapsed());
    let mut text: String = about.assumed.iter().map(|what| format!("assumed: {what}\n")).collect();
    text.push_str(&format!(
        "{} worlds from seed {}, {} checked steps in {:.1} s ({:.0} a second)\n",
        findings.worlds,
        about.seed,
        tally.steps,
        took.as_secs_f64(),
        rate(tally, took)
    ));
    text.push_str(&format!(
        "{} jobs completed, {} ended otherwise; {} grants ({} of the guard, {} in turns), {} loads, {} evictions, {} stops, {} steps requeued, {} breakers opened\n",
        tally.completed,
        tally.otherwise,
        tally.grants,
        tally.guarded,
        tally.turns,
        tally.loads,
        tally.evictions,
        tally.stops,
        tally.requeued,
        tally.broken
    ));
    let waits = Class::ALL.map(|class| format!("{} {}", class.name(), tally.longest[class.index()]));
    text.push_str(&format!("longest without progress: {}\n", waits.join(", ")));
    if tally.scarce > 0 {
        let why = "lower work was left waiting: idle models alone kept unified memory scarce";
        text.push_str(&format!("in {} worlds {why}\n", tally.scarce));
    }
    for (find, file) in findings.finds.iter().zip(files) {
        text.push_str(&format!(
            "\u{1b}[1;31mBROKEN\u{1b}[0m {} (seed {}, {} times)\n       {}\n       after {} worlds and {} steps; {}\n",
            find.rule,
            find.seed,
            find.seen,
            find.message,
            find.after.worlds,
            find.after.steps,
            file.display()
        ));
    }
    if findings.finds.is_empty() {
        text.push_str("every rule holds\n");
    }
    text
}

fn as_json(about: About<'_>, findings: &Findings, files: &[PathBuf]) -> serde_json::Value {
    let (tally, took) = (&findings.tally, about.started.elapsed());
    let finds: Vec<_> = findings
        .finds
        .iter()
        .zip(files)
        .map(|(find, file)| {
            json!({
                "rule": find.rule,
                "message": find.message,
                "at": find.at,
                "seed": find.seed,
                "seen": find.seen,
                "after_worlds": find.after.worlds,
                "after_steps": find.after.steps,
                "file": file,
            })
        })
        .collect();
    json!({
        "seed": about.seed,
        "assumed": about.assumed,
        "worlds": findings.worlds,
        "steps": tally.steps,
        "seconds": took.as_secs_f64(),
        "steps_per_second": rate(tally, took),
        "completed": tally.completed,
        "ended_otherwise": tally.otherwise,
        "grants": tally.grants,
        "guard_grants": tally.guarded,
        "turn_grants": tally.turns,
        "loads": tally.loads,
        "evictions": tally.evictions,
        "stops": tally.stops,
        "requeued": tally.requeued,
        "breakers_opened": tally.broken,
        "left_waiting_while_memory_was_scarce": tally.scarce,
        "longest_without_progress": Class::ALL.map(|class| json!({ "class": class, "for": tally.longest[class.index()] })),
        "found": finds,
    })
}

fn csv(findings: &Findings, files: &[PathBuf]) -> String {
    let mut text = String::from("rule,seed,seen,after_worlds,after_steps,file\n");
    for (find, file) in findings.finds.iter().zip(files) {
        let Progress { worlds, steps, .. } = find.after;
        let (rule, file) = (quoted(&find.rule), quoted(&file.display().to_string()));
        text.push_str(&format!("{rule},{},{},{worlds},{steps},{file}\n", find.seed, find.seen));
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
