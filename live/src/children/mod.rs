//! The processes that run models: one `llama-server` for each instance, from the order to load it until it is gone.
//!
//! ```text
//!   scheduler -> Children -> keeper (a task for each instance)      -> desk: loaded, failed, exited, stopped, out of memory
//!                              |  load: help -> launch -> spawner   -> a process of our own, which dies with us
//!                              |        probe: is it ready, and ours?
//!                              |  attend: output, progress, orders
//!                              `- stop: TERM, grace, KILL, unkillable
//! ```
//!
//! * A child is started by one thread that lives as long as the daemon (`spawner`), becomes the server after it has asked
//!   to die with its parent (`become_child`), and carries a mark. The list of children on disk (`ledger`) lets the next
//!   daemon end those of one that was killed.
//! * Everything is said on its command line (`launch`), as far as its build knows it (`build`).
//! * It is ready when it answers with the key of this launch and not without, is healthy, and has not run out of memory on
//!   the way (`probe`, `load`). A load may take as long as it gets on.
//! * One that has work, is silent and does not use the processor is wedged (`watch`, [`Progress`]). Silent and busy is
//!   never killed.
//! * Back-off and breaker are the scheduler's. What is said here is what happened.

mod become_child;
mod build;
mod keeper;
mod launch;
mod ledger;
mod load;
mod output;
mod platform;
mod probe;
mod process;
mod settings;
mod spawner;
mod watch;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{self, UnboundedSender},
        watch as watched,
    },
};
use tokio_util::sync::CancellationToken;
use windtunnel_core::{Attempt, DeviceId, InstanceId, LoadFailure, ModelId, Time};

use self::{
    build::Builds,
    keeper::{Keeper, Order},
    ledger::Ledger,
    spawner::Spawner,
};
use crate::{Desk, LoadOrder, Progress, Runtimes, Watcher};

pub use become_child::{BECOME_CHILD, become_child};
pub use ledger::{Fate, Orphan};
pub use output::says_out_of_memory;
pub use settings::{ChildDevice, ChildModel, Limits, Purpose, Select, Settings};

/// Hears what concerns people rather than the scheduler. No method may wait.
pub trait Witness: Send + Sync {
    /// Something that somebody should look at.
    fn alert(&self, alert: Alert);

    /// A line of a child's output that holds no prompt.
    fn said(&self, model: ModelId, instance: InstanceId, line: &str);
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// A process was killed and is still there. Its memory stays booked; the rest goes on.
    Unkillable {
        /// Its instance.
        instance: InstanceId,
        /// Its model.
        model: ModelId,
        /// Its number.
        pid: u32,
    },
    /// Such a process is gone after all.
    GoneAtLast {
        /// Its instance.
        instance: InstanceId,
        /// Its model.
        model: ModelId,
        /// Its number.
        pid: u32,
    },
    /// An earlier daemon had left a process behind.
    Orphan(Orphan),
}

/// A child, for those who look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildView {
    /// The instance.
    pub instance: InstanceId,
    /// Its model.
    pub model: ModelId,
    /// Its device.
    pub device: DeviceId,
    /// How far it is.
    pub phase: Phase,
    /// Its process and where it listens, once there is one.
    pub process: Option<(u32, SocketAddr)>,
}

/// How far a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It loads.
    Loading,
    /// It serves.
    Ready,
    /// It is being stopped.
    Stopping,
    /// It was killed and is still there.
    Unkillable,
}

/// Why a model last failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: Time,
    /// In words.
    pub text: String,
    /// The last lines that its process said, as far as they can hold no prompt.
    pub output: Vec<String>,
}

/// The supervisor.
pub struct Children<W> {
    handle: ChildrenHandle<W>,
    runtime: Handle,
}

/// The way to the supervisor for everybody but the scheduler.
pub struct ChildrenHandle<W> {
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    desk: Desk<W>,
    watcher: Arc<dyn Watcher>,
    witness: Arc<dyn Witness>,
    settings: Mutex<Arc<Settings>>,
    builds: Builds,
    spawner: Spawner,
    children: Mutex<BTreeMap<InstanceId, Entry>>,
    /// How many there are.
    count: watched::Sender<usize>,
    failures: Mutex<BTreeMap<ModelId, Failure>>,
    /// Goes off when nobody is given time to end any more.
    hurry: CancellationToken,
}

struct Entry {
    view: ChildView,
    orders: UnboundedSender<Order>,
    progress: Arc<Progress>,
}

impl<W: Send + Sync + 'static> Children<W> {
    /// Starts the supervisor, whose tasks run on `runtime`. Ends the children of an earlier daemon first, which may take
    /// seconds; to be called before the scheduler begins.
    ///
    /// # Errors
    /// If the state folder cannot be written or no thread be started.
    pub fn start(
        desk: Desk<W>,
        settings: Settings,
        watcher: Arc<dyn Watcher>,
        witness: Arc<dyn Witness>,
        runtime: Handle,
    ) -> io::Result<Children<W>> {
        let (ledger, orphans) = Ledger::begin(&settings.state_folder)?;
        orphans.into_iter().for_each(|orphan| witness.alert(Alert::Orphan(orphan)));
        let shared = Shared {
            desk,
            watcher,
            witness,
            settings: Mutex::new(Arc::new(settings)),
            builds: Builds::default(),
            spawner: Spawner::start(ledger, runtime.clone())?,
            children: Mutex::default(),
            count: watched::Sender::new(0),
            failures: Mutex::default(),
            hurry: CancellationToken::new(),
        };
        Ok(Children { handle: ChildrenHandle { shared: Arc::new(shared) }, runtime })
    }

    /// A handle that remains when the dispatcher has these.
    pub fn handle(&self) -> ChildrenHandle<W> {
        self.handle.clone()
    }

    /// A keeper for the order; `None`: nothing is known of its model or its device.
    fn keeper(&self, order: LoadOrder) -> Option<Keeper<W>> {
        let shared = &self.handle.shared;
        let settings = Arc::clone(&locked(&shared.settings));
        let model = settings.models.get(order.model.index())?.clone();
        let device = settings.devices.get(order.device.index())?.clone();
        let (tell, orders) = mpsc::unbounded_channel();
        let progress = Arc::<Progress>::default();
        let LoadOrder { instance, model: id, device: place, .. } = order;
        let view = ChildView { instance, model: id, device: place, phase: Phase::Loading, process: None };
        shared.enter(Entry { view, orders: tell, progress: Arc::clone(&progress) });
        let (own_program, limits) = (settings.own_program.clone(), settings.limits);
        Some(Keeper { shared: Arc::clone(shared), order, orders, progress, own_program, model, device, limits })
    }
}

impl<W: Send + Sync + 'static> Runtimes for Children<W> {
    fn load(&mut self, order: LoadOrder) {
        match self.keeper(order) {
            Some(keeper) => drop(self.runtime.spawn(keeper.keep())),
            None => {
                let shared = &self.handle.shared;
                shared.failed(order.model, "nothing is known of this model on this device".to_owned(), Vec::new());
                shared.desk.load_failed(order.attempt, order.instance, LoadFailure::NotStarted);
            }
        }
    }

    fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        if !self.handle.shared.order(instance, Order::Stop(attempt)) {
            self.handle.shared.desk.stopped(attempt, instance);
        }
    }

    fn abort_load(&mut self, attempt: Attempt, instance: InstanceId) {
        // One that is gone has said how its load ended.
        self.handle.shared.order(instance, Order::Abort(attempt));
    }

    fn read(&mut self, device: DeviceId) {
        self.handle.shared.watcher.read(device);
    }
}

impl<W> ChildrenHandle<W> {
    /// What holds from now on; children that run go on as they are.
    pub fn replace(&self, settings: Settings) {
        *locked(&self.shared.settings) = Arc::new(settings);
    }

    /// The work of an instance, while there is one.
    pub fn progress(&self, instance: InstanceId) -> Option<Arc<Progress>> {
        locked(&self.shared.children).get(&instance).map(|entry| Arc::clone(&entry.progress))
    }

    /// Why a model last failed, until it is loaded again.
    pub fn failure(&self, model: ModelId) -> Option<Failure> {
        locked(&self.shared.failures).get(&model).cloned()
    }

    /// All children.
    pub fn list(&self) -> Vec<ChildView> {
        locked(&self.shared.children).values().map(|entry| entry.view.clone()).collect()
    }

    /// Kills all of them, also those that are being stopped; whether they are gone within `limit`.
    pub async fn kill(&self, limit: Duration) -> bool {
        self.shared.hurry.cancel();
        self.shut_down(limit).await
    }

    /// Stops all of them, at the end of the daemon; whether they are gone within `limit`.
    pub async fn shut_down(&self, limit: Duration) -> bool {
        let mut count = self.shared.count.subscribe();
        for entry in locked(&self.shared.children).values() {
            let _gone = entry.orders.send(Order::Shutdown);
        }
        tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await.is_ok()
    }
}

impl<W> Clone for ChildrenHandle<W> {
    fn clone(&self) -> ChildrenHandle<W> {
        ChildrenHandle { shared: Arc::clone(&self.shared) }
    }
}

impl<W> Shared<W> {
    fn enter(&self, entry: Entry) {
        let mut children = locked(&self.children);
        children.insert(entry.view.instance, entry);
        self.count.send_replace(children.len());
    }

    fn forget(&self, instance: InstanceId) {
        let mut children = locked(&self.children);
        children.remove(&instance);
        self.count.send_replace(children.len());
    }

    /// Tells a keeper; whether there is one.
    fn order(&self, instance: InstanceId, order: Order) -> bool {
        locked(&self.children).get(&instance).is_some_and(|entry| entry.orders.send(order).is_ok())
    }

    fn set_phase(&self, instance: InstanceId, phase: Phase) {
        if let Some(entry) = locked(&self.children).get_mut(&instance) {
            entry.view.phase = phase;
        }
    }

    fn set_process(&self, instance: InstanceId, pid: u32, address: SocketAddr) {
        if let Some(entry) = locked(&self.children).get_mut(&instance) {
            entry.view.process = Some((pid, address));
        }
    }

    fn failed(&self, model: ModelId, text: String, output: Vec<String>) {
        let at = self.desk.clock().now();
        locked(&self.failures).insert(model, Failure { at, text, output });
    }

    fn recovered(&self, model: ModelId) {
        locked(&self.failures).remove(&model);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
