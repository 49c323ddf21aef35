//! What was learned of models, kept over restarts: how much memory an instance really takes, how long it takes to load, how
//! far predictions were off.
//!
//! A profile belongs to a [`Subject`]: a model file as it is, the arguments of its process, its runtime and a device. If one
//! of them changes it is another subject, of which nothing is known yet. Every subject has a file of its own in the state
//! directory, written beside and put in its place at once, by a thread of its own: the scheduler says what it learned and
//! goes on. A file that cannot be understood is set aside and said, and costs only what it held.

mod store;
mod subject;

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use windtunnel_core::{DeviceId, ModelId, Profile};

pub use store::{Pruned, Store, Stored};
pub use subject::{FileIdentity, Subject, subjects};

/// How long the disk rests between two times of writing. Something is learned of every answer, and what is written of it in
/// between nobody reads.
const REST: Duration = Duration::from_secs(2);

/// The subject of every model on every device it may be placed on.
pub type Subjects = BTreeMap<(ModelId, DeviceId), Subject>;

/// Keeps profiles, on a thread of its own.
#[derive(Debug)]
pub struct Profiles {
    say: Sender<Message>,
    thread: Option<JoinHandle<()>>,
    trouble: Arc<Mutex<Option<String>>>,
    due: Arc<Mutex<Due>>,
}

/// Learned and not kept yet; of each the latest.
type Due = BTreeMap<(ModelId, DeviceId), Profile>;

enum Message {
    /// Something is due since nothing was.
    Due,
    /// New subjects; what was learned before is about the old ones.
    Subjects {
        learned: Due,
        subjects: Subjects,
    },
    Close,
}

impl Profiles {
    /// Starts the thread; what is learned from now on goes into `store`.
    ///
    /// # Errors
    /// If the operating system starts no thread.
    pub fn start(store: Store, subjects: Subjects) -> io::Result<Profiles> {
        let (say, inbox) = mpsc::channel();
        let trouble = Arc::new(Mutex::new(None));
        let due = Arc::<Mutex<Due>>::default();
        let keeper = Keeper { store, subjects, trouble: Arc::clone(&trouble), due: Arc::clone(&due) };
        let thread = thread::Builder::new().name("profiles".to_owned()).spawn(move || keeper.run(&inbox))?;
        Ok(Profiles { say, thread: Some(thread), trouble, due })
    }

    /// Whom the scheduler tells what it learned. He never waits, and wakes the thread only for the first of what is due.
    pub fn learner(&self) -> Box<dyn FnMut(Profile) + Send> {
        let (say, due) = (self.say.clone(), Arc::clone(&self.due));
        Box::new(move |profile| {
            let mut due = locked(&due);
            let is_first = due.is_empty();
            due.insert((profile.model, profile.device), profile);
            drop(due);
            if is_first {
                // After the end nobody keeps anything any more.
                drop(say.send(Message::Due));
            }
        })
    }

    /// The configuration changed: what is learned from now on is about these.
    pub fn replace(&self, subjects: Subjects) {
        let learned = std::mem::take(&mut *locked(&self.due));
        drop(self.say.send(Message::Subjects { learned, subjects }));
    }

    /// Why the last profile could not be kept; `None`: it was.
    pub fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Ends the thread once everything said before is kept.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.say.send(Message::Close));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Profiles {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread has.
struct Keeper {
    store: Store,
    subjects: Subjects,
    trouble: Arc<Mutex<Option<String>>>,
    due: Arc<Mutex<Due>>,
}

impl Keeper {
    fn run(mut self, inbox: &Receiver<Message>) {
        let mut rested = Instant::now();
        loop {
            let message = if locked(&self.due).is_empty() {
                inbox.recv().map_err(RecvTimeoutError::from)
            } else {
                inbox.recv_timeout(rested.saturating_duration_since(Instant::now()))
            };
            match message {
                Ok(Message::Due) => {}
                Ok(Message::Subjects { learned, subjects }) => {
                    self.write(learned);
                    self.subjects = subjects;
                }
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => {
                    let due = self.take_due();
                    return self.write(due);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let due = self.take_due();
                    self.write(due);
                    rested = Instant::now() + REST;
                }
            }
        }
    }

    fn take_due(&self) -> Due {
        std::mem::take(&mut *locked(&self.due))
    }

    fn write(&mut self, due: Due) {
        for (place, profile) in due {
            let Some(subject) = self.subjects.get(&place) else { continue };
            let trouble = self.store.put(subject, &profile).err().map(|wrong| wrong.to_string());
            *locked(&self.trouble) = trouble;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whatever a store knows of these subjects, for the start of a scheduler.
pub fn known(store: &Store, subjects: &Subjects) -> Vec<Profile> {
    let one = |((model, device), subject): (&(ModelId, DeviceId), &Subject)| {
        let stored = store.get(subject)?;
        Some(stored.profile(*model, *device))
    };
    subjects.iter().filter_map(one).collect()
}

/// The folder of profiles in a state directory.
pub fn folder(state: &Path) -> std::path::PathBuf {
    state.join("profiles")
}
