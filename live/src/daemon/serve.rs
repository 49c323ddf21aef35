//! The daemon's life: everything is put together, runs until a signal comes, and is taken apart in good order.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;
use windtunnel_config::{ConfigError, Daemon};
use windtunnel_core::{Attempt, DeviceId, InstanceId, ModelId, Profile};

use super::{
    Source, Text,
    changes::Changes,
    fleet::{self, Ending, Fleet, Pace, Place},
    news::News,
    records::Records,
    running::{Parts, Running},
    setting,
};
use crate::{
    Clock, Dispatcher, LoadOrder, Runtimes,
    children::{Alert, Fate, Orphan, Witness},
    descriptors,
    dispatcher::Setting,
    gateway::{Catalogue, Gateway, Phase, may_listen},
    journal::Journal,
    metrics::{Metrics, Watched},
    model_files::ModelFiles,
    monitor, places,
    profiles::{self, Profiles, Store},
};

/// How long streams are given at an end that was asked for twice to be told of it.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Connections that may wait to be taken; the system has a limit of its own.
const UNACCEPTED: u32 = 4096;

/// How a daemon is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its configuration.
    pub source: Source,
    /// Where it listens, instead of what the configuration says; port 0: any that is free.
    pub listen: Option<SocketAddr>,
    /// Whether it may listen beyond this machine without keys.
    pub public: bool,
    /// Where it keeps what it learns, instead of what the configuration says.
    pub state_dir: Option<PathBuf>,
    /// Where it writes its journal, instead of what the configuration says.
    pub journal: Option<PathBuf>,
    /// The program that starts children; see [`crate::children`].
    pub executable: PathBuf,
}

/// Who is told what a daemon says; called from several threads.
pub type Sayer = Arc<dyn Fn(Said) + Send + Sync>;

/// What a daemon says while it runs.
#[derive(Clone, Debug)]
pub enum Said {
    /// It listens there, and takes requests.
    Listens(SocketAddr),
    /// Something that people should know.
    Remark(String),
    /// A line of a process's output.
    Line {
        /// Its model.
        model: String,
        /// The line, which holds no prompt.
        line: String,
    },
}

/// A daemon that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Something that the configuration names is not as it should be.
    #[error("{0}")]
    Wrong(String),
    /// The operating system refused something.
    #[error("{what}: {wrong}")]
    System {
        /// What was tried.
        what: String,
        /// What came of it.
        wrong: io::Error,
    },
}

impl ServeError {
    fn system(what: impl fmt::Display) -> impl FnOnce(io::Error) -> ServeError {
        move |wrong| ServeError::System { what: what.to_string(), wrong }
    }
}

/// Runs a daemon until it is asked to end. SIGTERM and SIGINT let what runs come to its end and refuse the rest; a second
/// one ends at once. SIGHUP and a changed file take up the new configuration.
///
/// # Errors
/// If it cannot be started; nothing has been served then.
pub fn serve(options: &Options, say: &Sayer) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("gateway").build();
    let runtime = runtime.map_err(ServeError::system("start threads"))?;
    let done = runtime.block_on(run(options, Arc::clone(say)));
    // Blocking calls into tools that hang are not waited for.
    runtime.shutdown_background();
    done
}

async fn run(options: &Options, say: Sayer) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::system("listen for signals"))?;
    let found = monitor::devices::devices(None);
    let mut daemon = options.source.resolve(&found)?;
    daemon.server.public |= options.public;
    options.source.check(&daemon).map_err(ServeError::Wrong)?;
    let descriptors = descriptors::raise();
    let settings = setting::gateway(&daemon, BTreeSet::new(), descriptors).map_err(ServeError::Wrong)?;
    let address = options.listen.unwrap_or(daemon.server.listen);
    may_listen(&settings, address).map_err(|wrong| ServeError::Wrong(wrong.to_string()))?;
    let simulated = fleet::is_simulated(&daemon).map_err(ServeError::Wrong)?;

    let files = ModelFiles::new();
    let (estimates, untold) = files.estimates(&daemon);
    if let Some(one) = untold.first() {
        let name = daemon.configuration.model(one.model).map_or("?", |model| model.name.as_str());
        return Err(ServeError::Wrong(format!("the model {name:?}: {}", one.why)));
    }
    let listener = listen(address).map_err(ServeError::system(format_args!("listen on {address}")))?;
    let address = listener.local_addr().map_err(ServeError::system("listen"))?;

    let place = Place { executable: options.executable.clone(), state: state_folder(options, &daemon)? };
    let (profiles, known) = open_profiles(&place.state, &daemon, simulated, &say)?;
    let clock = Clock::start();
    let journal = open_journal(options, &daemon)?;
    let metrics = Metrics::new(journal.as_ref().map(Journal::health));
    let (watched, seen) = Watched::new();
    let (news, teller) = News::start(Arc::clone(&say)).map_err(ServeError::system("start a thread for news"))?;
    let records = Records { journal, meter: metrics.meter(), watched, news };
    let (batches, batch_orders) = mpsc::unbounded_channel();
    let (steps, broken) = (metrics.steps(), metrics.broken());
    let setting = Setting {
        header: setting::header(&daemon, clock),
        started: setting::started(&daemon, known, estimates),
        recorder: records,
        learned: profiles.as_ref().map_or_else(|| Box::new(|_| {}) as _, Profiles::learner),
        batches,
        measured: Box::new(move |took| steps.observe(took.as_secs_f64())),
        broken: Box::new(move |_| {
            broken.inc();
        }),
    };
    let mut started = None;
    let (dispatcher, desk) = Dispatcher::start(clock, setting, |desk| {
        let fleet = if simulated {
            Ok(fleet::simulated(desk, &daemon, Handle::current()))
        } else {
            let witness = Arc::new(Teller { say: Arc::clone(&say), names: names(&daemon) });
            tokio::task::block_in_place(|| fleet::real(desk, &daemon, place, witness, Handle::current()))
        };
        match fleet {
            Ok(Fleet { runtimes, retell, end }) => {
                started = Some(Ok((retell, end)));
                runtimes
            }
            Err(wrong) => {
                started = Some(Err(wrong));
                Box::new(Nobody)
            }
        }
    })
    .map_err(ServeError::system("start the scheduler's thread"))?;
    let started = started.unwrap_or_else(|| Err(io::Error::other("nobody was asked to")));
    let (retell, end) = started.map_err(ServeError::system("start the supervisor of processes"))?;

    let catalogue = Catalogue::of(&daemon.configuration, &[]);
    let served: Vec<String> = catalogue.names().map(str::to_owned).collect();
    let source = options.source.clone();
    let mut changes = Changes::of(source.file().cloned());
    let runtime = Handle::current();
    let public = options.public;
    let parts = Parts {
        source,
        found,
        files,
        desk: desk.clone(),
        metrics,
        seen,
        runtime,
        retell,
        daemon,
        address,
        public,
        descriptors,
    };
    let running = Arc::new(Running::new(parts));
    let gateway = Gateway::new(desk.clone(), settings, catalogue, Arc::clone(&running) as _, batch_orders);
    drop(running.gateway.set(gateway.clone()));
    let last_word = gateway.clone();
    running.set_phase(Phase::Serving);
    say(Said::Listens(address));
    if let Source { text: Text::Fixed { .. }, .. } = &options.source {
        say(Said::Remark(format!("serves {}", served.join(", "))));
    }

    let shutdown = CancellationToken::new();
    let serving = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { gateway.serve(listener, shutdown).await }
    });
    tokio::pin!(serving);
    let (served, pace) = loop {
        tokio::select! {
            served = &mut serving => break (served, Pace::InOrder),
            end = signals.next() => match end {
                Asked::Reload => take_up(&running, &mut changes, &say),
                Asked::End if shutdown.is_cancelled() => {
                    // Streams are told before their processes die; who does not read by now is not waited for.
                    last_word.cut();
                    let told = tokio::time::timeout(LAST_WORDS, &mut serving).await;
                    break (told.unwrap_or(Ok(Ok(()))), Pace::AtOnce);
                }
                Asked::End => {
                    running.set_phase(Phase::Draining);
                    shutdown.cancel();
                }
            },
            () = changes.next(), if !shutdown.is_cancelled() => take_up(&running, &mut changes, &say),
        }
    };
    finish(end, pace, &mut signals, &say).await;
    desk.close();
    let in_order = tokio::task::block_in_place(|| {
        let in_order = dispatcher.join();
        drop(teller.join());
        in_order
    });
    if !in_order {
        say(Said::Remark("the scheduler's thread ended badly".to_owned()));
    }
    if let Some(profiles) = profiles {
        tokio::task::block_in_place(|| profiles.close());
    }
    match served {
        Ok(Ok(())) => Ok(()),
        Ok(Err(wrong)) => Err(ServeError::System { what: "serve".to_owned(), wrong }),
        Err(wrong) => Err(ServeError::System { what: "serve".to_owned(), wrong: io::Error::other(wrong) }),
    }
}

/// Ends all processes; a signal meanwhile says that nobody is to be waited for.
async fn finish(end: Box<dyn Fn(Pace) -> Ending + Send + Sync>, pace: Pace, signals: &mut Signals, say: &Sayer) {
    let hurried = match pace {
        Pace::AtOnce => true,
        Pace::InOrder => tokio::select! {
            () = end(Pace::InOrder) => false,
            () = signals.end() => true,
        },
    };
    if hurried {
        say(Said::Remark("ended at once".to_owned()));
        end(Pace::AtOnce).await;
    }
}

fn take_up(running: &Running, changes: &mut Changes, say: &Sayer) {
    changes.read();
    let told = tokio::task::block_in_place(|| running.take_up());
    say(Said::Remark(match told {
        Ok(told) => told,
        Err(wrong) => format!("the configuration stays as it was: {wrong}"),
    }));
}

/// Listens. The usual queue of 128 is full when a crowd comes at once, and who finds it full knocks again a second later.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED)
}

fn open_journal(options: &Options, daemon: &Daemon) -> Result<Option<Journal>, ServeError> {
    let Some(path) = options.journal.as_deref().or(daemon.server.journal.as_deref()) else { return Ok(None) };
    let journal = open_with_folder(path, daemon.server.journal_limit.get());
    journal.map(Some).map_err(ServeError::system(format_args!("write the journal {}", path.display())))
}

fn open_with_folder(path: &Path, limit: u64) -> io::Result<Journal> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    Journal::open(path, limit)
}

/// The folder of what is kept over restarts.
fn state_folder(options: &Options, daemon: &Daemon) -> Result<PathBuf, ServeError> {
    let named = options.state_dir.clone().or_else(|| daemon.server.state_dir.clone());
    named.or_else(places::state_folder).ok_or_else(|| {
        let message = "no home folder is known to keep what is learned in; name one with --state-dir DIR";
        ServeError::Wrong(message.to_owned())
    })
}

/// What earlier runs learned, and who keeps what this one learns. Simulated models have nothing to learn of.
fn open_profiles(
    state: &Path,
    daemon: &Daemon,
    simulated: bool,
    say: &Sayer,
) -> Result<(Option<Profiles>, Vec<Profile>), ServeError> {
    if simulated {
        return Ok((None, Vec::new()));
    }
    let folder = profiles::folder(state);
    let wrong = |wrong| ServeError::system(format_args!("read profiles in {}", folder.display()))(wrong);
    let (store, remarks) = Store::open(&folder).map_err(wrong)?;
    remarks.into_iter().for_each(|remark| say(Said::Remark(remark)));
    let subjects = profiles::subjects(daemon, |model| setting::program(daemon, model));
    let known = profiles::known(&store, &subjects);
    let keeper = Profiles::start(store, subjects).map_err(ServeError::system("start a thread for profiles"))?;
    Ok((Some(keeper), known))
}

fn names(daemon: &Daemon) -> Vec<String> {
    daemon.configuration.models.iter().map(|model| model.name.clone()).collect()
}

/// Tells people what concerns them of processes.
struct Teller {
    say: Sayer,
    names: Vec<String>,
}

impl Witness for Teller {
    fn alert(&self, alert: Alert) {
        let name = |model: ModelId| self.names.get(model.index()).map_or("?", String::as_str);
        (self.say)(Said::Remark(match alert {
            Alert::Unkillable { model, pid, .. } => {
                format!("process {pid} of {} does not end; its memory stays booked", name(model))
            }
            Alert::GoneAtLast { model, pid, .. } => format!("process {pid} of {} is gone after all", name(model)),
            Alert::Orphan(Orphan { pid, model, fate: Fate::Ended }) => {
                format!("process {pid} of {model}, which an earlier daemon had left behind, was ended")
            }
            Alert::Orphan(Orphan { pid, model, fate: Fate::Remains }) => {
                format!("process {pid} of {model}, which an earlier daemon had left behind, does not end")
            }
        }));
    }

    fn said(&self, model: ModelId, _instance: InstanceId, line: &str) {
        let name = self.names.get(model.index()).map_or("?", String::as_str);
        (self.say)(Said::Line { model: name.to_owned(), line: line.to_owned() });
    }
}

/// Stands where the supervisor could not be started; the daemon ends at once.
struct Nobody;

impl Runtimes for Nobody {
    fn load(&mut self, _order: LoadOrder) {}

    fn stop(&mut self, _attempt: Attempt, _instance: InstanceId) {}

    fn abort_load(&mut self, _attempt: Attempt, _instance: InstanceId) {}

    fn read(&mut self, _device: DeviceId) {}
}

/// What a signal asks for.
enum Asked {
    Reload,
    End,
}

struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits until the end is asked for.
    async fn end(&mut self) {
        while let Asked::Reload = self.next().await {}
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.hang_up.recv() => Asked::Reload,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.terminate.recv() => Asked::End,
        }
    }
}
