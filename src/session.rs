//! What all subcommands share: the common options, threads, Ctrl-C, and reading scenarios.

use std::{
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use windtunnel_config::{Override, Scenario, ScenarioFile};
use windtunnel_live::{load::Gauge, model_files::ModelFiles};
use windtunnel_sim::Control;

use crate::{
    args::{Common, Format},
    embedded,
    failure::Failure,
    imagined::completed,
    progress::{Progress, Work},
    reading::Reading,
};

/// The command as it runs.
pub struct Session {
    pub format: Format,
    pub overrides: Vec<Override>,
    /// The same as they stand on the command line, for another process.
    pub sets: Vec<String>,
    pub control: Arc<Control>,
    /// The seed of the command line.
    pub seed: Option<u64>,
    /// Headers of model files that were read.
    pub model_files: Arc<ModelFiles>,
    quiet: bool,
}

/// Who deals with signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// The first stops what runs and keeps what is done.
    Stop,
    /// The command itself.
    Own,
}

impl Session {
    /// Sets up threads and Ctrl-C, and reads the overrides.
    pub fn new(common: &Common, signals: Signals) -> Result<Session, Failure> {
        let mut overrides = common.sets.iter().map(|set| Override::parse(set)).collect::<Result<Vec<_>, _>>()?;
        if let Some(seed) = common.seed {
            overrides.push(Override::new("run.seed", &seed.to_string())?);
        }
        if let Some(threads) = common.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads));
            pool.build_global().map_err(|wrong| Failure::BadInput(format!("start {threads} threads: {wrong}")))?;
        }
        let control = Arc::new(Control::new());
        if signals == Signals::Stop {
            stop_on_signal(Arc::clone(&control))?;
        }
        let model_files = Arc::new(ModelFiles::new());
        let Common { format, seed, quiet, .. } = *common;
        let sets = common.sets.clone();
        Ok(Session { format, overrides, sets, control, seed, model_files, quiet })
    }

    /// The scenario's file, or the embedded one.
    pub fn file(&self, path: Option<&Path>) -> Result<ScenarioFile, Failure> {
        match path {
            Some(path) => self.load(path),
            None => Ok(ScenarioFile::parse(embedded::KNEE, Path::new(embedded::KNEE_NAME))?),
        }
    }

    /// A scenario's file, whose models may name their files instead of their memory, and whose base may be a daemon's
    /// configuration.
    pub fn load(&self, path: &Path) -> Result<ScenarioFile, Failure> {
        Ok(completed(path, ScenarioFile::load(path)?, self)?.with_estimator(Arc::clone(&self.model_files) as Arc<_>))
    }

    /// The scenario with the command line's overrides.
    pub fn scenario(&self, path: Option<&Path>) -> Result<Scenario, Failure> {
        Ok(self.file(path)?.resolve(&self.overrides)?)
    }

    /// An error if another format is asked for of a command that has only one.
    pub fn only_tables(&self, command: &str, why: &str) -> Result<(), Failure> {
        match self.format {
            Format::Table => Ok(()),
            Format::Json | Format::Csv => Err(Failure::BadInput(format!("--format: `{command}` {why}"))),
        }
    }

    /// Tells something on stderr, unless asked to be quiet.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            anstream::eprintln!("note: {text}");
        }
    }

    /// The same for other threads.
    pub fn teller(&self) -> Teller {
        Teller { quiet: self.quiet }
    }

    /// Shows progress while the result is alive: on a terminal, unless asked to be quiet.
    pub fn progress(&self, what: &str) -> Progress {
        Progress::start(what, Work::Runs(Arc::clone(&self.control)), self.quiet)
    }

    /// The same for a search that lasts until then.
    pub fn searching(&self, what: &str, share: &Arc<AtomicU64>) -> Progress {
        Progress::start(what, Work::Search(Arc::clone(&self.control), Arc::clone(share)), self.quiet)
    }

    /// The same for a measurement of which so many millionths are done.
    pub fn measuring(&self, what: &str, share: &Arc<AtomicU64>) -> Progress {
        Progress::start(what, Work::Measuring(Arc::clone(share)), self.quiet)
    }

    /// The same for files that are being read.
    pub fn reading(&self, what: &str, reading: &Arc<Reading>) -> Progress {
        Progress::start(what, Work::Files(Arc::clone(reading)), self.quiet)
    }

    /// The same for requests that are sent to an endpoint.
    pub fn loading(&self, what: &str, gauge: &Arc<Gauge>) -> Progress {
        Progress::start(what, Work::Load(Arc::clone(gauge)), self.quiet)
    }

    /// An error if the work was stopped, naming what is kept of it.
    pub fn unless_interrupted(&self, kept: &str) -> Result<(), Failure> {
        if self.control.is_interrupted() { Err(Failure::Interrupted(kept.to_owned())) } else { Ok(()) }
    }
}

/// Tells things on stderr, unless asked to be quiet.
#[derive(Clone, Copy, Debug)]
pub struct Teller {
    quiet: bool,
}

impl Teller {
    pub fn remark(self, text: &str) {
        if !self.quiet {
            anstream::eprintln!("note: {text}");
        }
    }

    /// A line of a process's output.
    pub fn line(self, from: &str, text: &str) {
        if !self.quiet {
            anstream::eprintln!("{from}: {text}");
        }
    }
}

/// The first signal stops all runs, which keeps what is finished; the second ends the process.
fn stop_on_signal(control: Arc<Control>) -> Result<(), Failure> {
    let asked = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        control.interrupt();
    })
    .map_err(|wrong| Failure::BadInput(format!("listen for Ctrl-C: {wrong}")))
}
