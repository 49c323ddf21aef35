//! A thread a device: it looks when that is due or asked for, and says at the scheduler's desk what it saw.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use windtunnel_core::{Bytes, DeviceId, DeviceKind, InstanceId, PressureLevel, ProcessMemory, Snapshot};

use super::{
    reading::{Figure, Reading, Source, Unreadable},
    steady::{Reason, Steady},
};
use crate::{Desk, Watcher};

/// [`Watcher::footprint`] waits for a reading no longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// A reading from before a start is no older, or what came between is not known.
const RECENT: Duration = Duration::from_secs(5);

/// A device and who reads it.
#[derive(Debug)]
pub struct Watched {
    /// The device.
    pub device: DeviceId,
    /// Its name.
    pub name: String,
    /// Whose memory it has.
    pub kind: DeviceKind,
    /// Who reads it; an error where nobody can, which is said whenever a reading is asked for.
    pub source: Result<Box<dyn Source>, Unreadable>,
    /// Between two readings while models are on it.
    pub poll: Duration,
}

/// Who is told what was seen. [`Desk`] is one. No method may wait.
pub trait Listener: Clone + Send + 'static {
    /// The memory of a device was read.
    fn snapshot(&self, snapshot: Snapshot);

    /// The memory of a device could not be read.
    fn snapshot_failed(&self, device: DeviceId);

    /// A device says how scarce its memory is.
    fn pressure(&self, device: DeviceId, level: PressureLevel);
}

impl<W: Send + Sync + 'static> Listener for Desk<W> {
    fn snapshot(&self, snapshot: Snapshot) {
        Desk::snapshot(self, snapshot);
    }

    fn snapshot_failed(&self, device: DeviceId) {
        Desk::snapshot_failed(self, device);
    }

    fn pressure(&self, device: DeviceId, level: PressureLevel) {
        Desk::pressure(self, device, level);
    }
}

/// What is known of a device's monitor.
#[derive(Clone, Debug)]
pub struct Health {
    /// The device.
    pub device: DeviceId,
    /// Its name.
    pub name: String,
    /// The last reading and how old it is.
    pub last: Option<(Duration, Reading)>,
    /// Why the last look failed; `None`: it did not.
    pub trouble: Option<String>,
    /// How long the look that is under way has taken so far.
    pub looking: Option<Duration>,
}

/// The monitors of all devices. Their threads end with it, those that hang when they wake up.
#[derive(Debug)]
pub struct Monitors {
    posts: Vec<Arc<Post>>,
    homes: Mutex<BTreeMap<InstanceId, DeviceId>>,
}

/// Where a thread and everybody else meet.
#[derive(Debug)]
struct Post {
    device: DeviceId,
    name: String,
    kind: DeviceKind,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asked: bool,
    closed: bool,
    /// Something has changed since the last look.
    stirred: bool,
    /// Looks begun and ended.
    begun: u64,
    ended: u64,
    since: Option<Instant>,
    /// The last look that showed something, when it ended and which it was.
    last: Option<(Instant, u64, Reading)>,
    trouble: Option<String>,
    tracked: BTreeMap<InstanceId, Tracked>,
}

/// A process that serves an instance.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    pid: u32,
    /// What was in use before it started, as long as nothing else comes or goes.
    before: Option<Bytes>,
    /// Whether it was asked what it takes.
    weighed: bool,
}

impl Monitors {
    /// Starts a thread for each device.
    ///
    /// # Errors
    /// If the operating system starts no thread.
    pub fn start<L: Listener>(desk: &L, devices: Vec<Watched>) -> io::Result<Monitors> {
        let mut posts = Vec::new();
        for Watched { device, name, kind, source, poll } in devices {
            let thread = thread::Builder::new().name(format!("monitor {name}"));
            let post = Arc::new(Post { device, name, kind, state: Mutex::default(), bell: Condvar::new() });
            let (here, desk) = (Arc::clone(&post), desk.clone());
            thread.spawn(move || {
                Watch { post: here, desk, poll, steady: Steady::default(), pressure: None }.run(source)
            })?;
            posts.push(post);
        }
        Ok(Monitors { posts, homes: Mutex::default() })
    }

    /// How every device's monitor fares, in the order they were given.
    pub fn health(&self) -> Vec<Health> {
        self.posts.iter().map(|post| post.health()).collect()
    }

    fn post(&self, device: DeviceId) -> Option<&Arc<Post>> {
        self.posts.iter().find(|post| post.device == device)
    }

    fn home(&self, instance: InstanceId) -> Option<&Arc<Post>> {
        let device = self.homes().get(&instance).copied()?;
        self.post(device)
    }

    fn homes(&self) -> MutexGuard<'_, BTreeMap<InstanceId, DeviceId>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Monitors {
    fn read(&self, device: DeviceId) {
        if let Some(post) = self.post(device) {
            post.lock().asked = true;
            post.bell.notify_all();
        }
    }

    fn started(&self, instance: InstanceId, device: DeviceId, pid: u32) {
        let Some(post) = self.post(device) else { return };
        self.homes().insert(instance, device);
        post.lock().started(instance, pid);
        post.bell.notify_all();
    }

    fn ended(&self, instance: InstanceId) {
        let Some(post) = self.home(instance) else { return };
        self.homes().remove(&instance);
        post.lock().forget(instance);
        post.bell.notify_all();
    }

    fn footprint(&self, instance: InstanceId) -> Option<Bytes> {
        self.home(instance)?.footprint(instance)
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for post in &self.posts {
            post.lock().closed = true;
            post.bell.notify_all();
        }
    }
}

impl Post {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an instance takes as a look shows that begins now: what the process list says, else the difference that its load
    /// made to the card, if nothing else came or went meanwhile.
    fn footprint(&self, instance: InstanceId) -> Option<Bytes> {
        let mut state = self.lock();
        let look = state.begun + 1;
        state.asked = true;
        self.bell.notify_all();
        let waited = self.bell.wait_timeout_while(state, PATIENCE, |state| state.ended < look && !state.closed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let tracked = state.tracked.get_mut(&instance)?;
        let Tracked { pid, before, .. } = *tracked;
        tracked.weighed = true;
        let (_, _, reading) = state.last.as_ref().filter(|(_, number, _)| *number >= look)?;
        let own = reading.processes.iter().find(|process| process.pid == pid).and_then(|process| process.used);
        let difference = || match self.kind {
            DeviceKind::Discrete => Some(reading.used?.bytes.minus(before?)).filter(|bytes| *bytes > Bytes::ZERO),
            // The machine's own memory moves too much to be anybody's.
            DeviceKind::Unified => None,
        };
        own.map(|figure| figure.bytes).or_else(difference)
    }

    fn health(&self) -> Health {
        let state = self.lock();
        Health {
            device: self.device,
            name: self.name.clone(),
            last: state.last.as_ref().map(|(at, _, reading)| (at.elapsed(), reading.clone())),
            trouble: state.trouble.clone(),
            looking: state.since.map(|since| since.elapsed()),
        }
    }
}

impl State {
    fn started(&mut self, instance: InstanceId, pid: u32) {
        let alone = self.tracked.values().all(|other| other.weighed);
        self.others_change();
        let used = self.last.as_ref().filter(|(at, _, _)| at.elapsed() < RECENT).and_then(|(_, _, last)| last.used);
        let before = used.map(|used| used.bytes).filter(|_| alone);
        self.tracked.insert(instance, Tracked { pid, before, weighed: false });
        self.stirred = true;
    }

    fn forget(&mut self, instance: InstanceId) {
        self.tracked.remove(&instance);
        self.others_change();
        self.stirred = true;
    }

    /// The difference a load makes is not known when another process comes or goes.
    fn others_change(&mut self) {
        self.tracked.values_mut().for_each(|one| one.before = None);
    }
}

/// A look at a device.
struct Look {
    reason: Reason,
    /// Which it is, from 1.
    number: u64,
    /// Whose processes are looked at.
    tracked: Vec<(InstanceId, u32)>,
}

/// The thread of one device.
struct Watch<L> {
    post: Arc<Post>,
    desk: L,
    poll: Duration,
    steady: Steady,
    pressure: Option<PressureLevel>,
}

impl<L: Listener> Watch<L> {
    fn run(mut self, mut source: Result<Box<dyn Source>, Unreadable>) {
        while let Some(Look { reason, number, tracked }) = self.next() {
            let pids: Vec<u32> = tracked.iter().map(|(_, pid)| *pid).collect();
            let shown = match &mut source {
                Ok(source) => source.read(&pids).map(Reading::plausible),
                Err(unreadable) => Err(unreadable.clone()),
            };
            let failed_before = self.noted(number, &shown);
            match shown {
                Ok(reading) => self.tell(&reading, reason, &tracked),
                // It is said when somebody waits for it, and when it is new.
                Err(_) if reason == Reason::Asked || !failed_before => self.desk.snapshot_failed(self.post.device),
                Err(_) => {}
            }
        }
    }

    /// Waits until the device is to be looked at. `None`: never again.
    fn next(&mut self) -> Option<Look> {
        let mut state = self.post.lock();
        let waiting = Instant::now();
        loop {
            if state.closed {
                return None;
            }
            if std::mem::take(&mut state.stirred) {
                self.steady.stirred();
            }
            let asked = std::mem::take(&mut state.asked);
            // Scarcity that was reported has to be taken back too.
            let scarce = self.pressure.is_some_and(|level| level != PressureLevel::Normal);
            let watching = !state.tracked.is_empty() || !self.steady.settled() || scarce;
            let left = self.poll.saturating_sub(waiting.elapsed());
            let due = state.begun == 0 || (watching && left.is_zero());
            if asked || due {
                state.begun += 1;
                state.since = Some(Instant::now());
                let tracked = state.tracked.iter().map(|(instance, one)| (*instance, one.pid)).collect();
                let reason = if asked { Reason::Asked } else { Reason::Due };
                return Some(Look { reason, number: state.begun, tracked });
            }
            state = if watching {
                self.post.bell.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.post.bell.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Leaves what was seen for everybody; whether the look before had failed.
    fn noted(&self, number: u64, shown: &Result<Reading, Unreadable>) -> bool {
        let mut state = self.post.lock();
        let failed_before = state.trouble.is_some();
        match shown {
            Ok(reading) => {
                state.last = Some((Instant::now(), number, reading.clone()));
                state.trouble = None;
            }
            Err(unreadable) => state.trouble = Some(unreadable.to_string()),
        }
        state.ended = number;
        state.since = None;
        drop(state);
        self.post.bell.notify_all();
        failed_before
    }

    fn tell(&mut self, reading: &Reading, reason: Reason, tracked: &[(InstanceId, u32)]) {
        if let Some(level) = reading.pressure.filter(|_| self.post.kind == DeviceKind::Unified)
            && self.pressure.unwrap_or(PressureLevel::Normal) != level
        {
            self.desk.pressure(self.post.device, level);
            self.pressure = Some(level);
        }
        if self.steady.tells(reading, reason) {
            self.desk.snapshot(snapshot(self.post.device, reading, tracked));
        }
    }
}

/// A reading as the scheduler takes it: processes are instances to it.
fn snapshot(device: DeviceId, reading: &Reading, tracked: &[(InstanceId, u32)]) -> Snapshot {
    let bytes = |figure: Option<Figure>| figure.map(|figure| figure.bytes);
    let used = |pid: u32| reading.processes.iter().find(|one| one.pid == pid).and_then(|one| bytes(one.used));
    let processes = tracked.iter().map(|&(instance, pid)| ProcessMemory { instance, used: used(pid) });
    Snapshot { device, total: bytes(reading.total), used: bytes(reading.used), processes: processes.collect() }
}
