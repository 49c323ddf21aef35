//! What changes while the daemon runs: its configuration, and where it is in its life. It answers what the gateway cannot
//! know.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::runtime::Handle;
use windtunnel_config::{Daemon, FoundDevice};
use windtunnel_core::{ModelId, Reconfiguration, Request, View};

use super::{Source, continued, setting};
use crate::{
    Desk,
    gateway::{Answered, Catalogue, Gateway, Operations, Phase, Work, may_listen},
    metrics::{Metrics, Seen},
    model_files::ModelFiles,
};

/// The daemon as long as it runs.
pub(super) struct Running {
    pub source: Source,
    pub found: Vec<FoundDevice>,
    pub files: ModelFiles,
    pub desk: Desk<Work>,
    pub metrics: Metrics,
    pub seen: Seen,
    pub runtime: Handle,
    /// Set once it stands: the gateway asks this, and this tells the gateway of new configurations.
    pub gateway: OnceLock<Gateway>,
    /// Tells those who carry out loads of a new configuration.
    pub retell: Box<dyn Fn(&Daemon) + Send + Sync>,
    /// Where clients are listened to, and whether the command line allowed that without keys.
    address: SocketAddr,
    public: bool,
    /// How many this process may have.
    descriptors: usize,
    current: RwLock<Arc<Current>>,
    /// One at a time takes up a new configuration.
    reloading: Mutex<()>,
    phase: AtomicU8,
}

/// The configuration in force.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub daemon: Daemon,
    /// Models that only earlier ones named.
    pub removed: Vec<ModelId>,
}

/// Everything that [`Running`] is made of.
pub(super) struct Parts {
    pub source: Source,
    pub found: Vec<FoundDevice>,
    pub files: ModelFiles,
    pub desk: Desk<Work>,
    pub metrics: Metrics,
    pub seen: Seen,
    pub runtime: Handle,
    pub retell: Box<dyn Fn(&Daemon) + Send + Sync>,
    pub daemon: Daemon,
    pub address: SocketAddr,
    pub public: bool,
    pub descriptors: usize,
}

impl Running {
    pub fn new(parts: Parts) -> Running {
        let Parts { source, found, files, desk, metrics, seen, runtime, retell, daemon, address, public, descriptors } =
            parts;
        Running {
            source,
            found,
            files,
            desk,
            metrics,
            seen,
            runtime,
            gateway: OnceLock::new(),
            retell,
            address,
            public,
            descriptors,
            current: RwLock::new(Arc::new(Current { daemon, removed: Vec::new() })),
            reloading: Mutex::new(()),
            phase: AtomicU8::new(STARTING),
        }
    }

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_phase(&self, phase: Phase) {
        let number = match phase {
            Phase::Starting => STARTING,
            Phase::Serving => SERVING,
            Phase::Draining => DRAINING,
        };
        self.phase.store(number, Ordering::Relaxed);
    }

    /// Reads the configuration again and takes up what is new in it. A file with a mistake changes nothing.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn take_up(&self) -> Result<String, String> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.current();
        let mut new = self.source.resolve(&self.found).map_err(|wrong| wrong.to_string())?;
        self.source.check(&new)?;
        new.server.public |= self.public;
        let fixed = unchanging(&old.daemon, &new);
        let next = continued(&old.daemon, new);
        // A model that is named again stands at a new place, since names of what is gone are marked.
        let removed = next.removed;
        let settings = setting::gateway(&next.daemon, next.retired, self.descriptors)?;
        may_listen(&settings, self.address)?;
        let (estimates, untold) = self.files.estimates(&next.daemon);
        if let Some(one) = untold.iter().find(|one| next.renewed.contains(&one.model)) {
            let name = &next.daemon.configuration.models[one.model.index()].name;
            return Err(format!("the model {name:?}: {}", one.why));
        }
        let estimates = estimates.into_iter().filter(|one| next.renewed.contains(&one.model)).collect();
        let catalogue = Catalogue::of(&next.daemon.configuration, &removed);
        let configuration = next.daemon.configuration.clone();
        let known = old.daemon.configuration.models.len();
        let restarted: Vec<ModelId> = next.renewed.iter().copied().filter(|id| id.index() < known).collect();
        let told = summary(&old, &next.daemon, &removed, &restarted, &fixed);

        (self.retell)(&next.daemon);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Current { daemon: next.daemon, removed: removed.clone() });
        self.desk.reconfigure(Reconfiguration { configuration, removed, estimates });
        if let Some(gateway) = self.gateway.get() {
            gateway.replace(settings, catalogue);
        }
        self.let_go(restarted);
        Ok(told)
    }

    /// Lets the instances of models finish and go that would be started in another way by now.
    fn let_go(&self, models: Vec<ModelId>) {
        if models.is_empty() {
            return;
        }
        let desk = self.desk.clone();
        self.runtime.spawn(async move {
            let Some(view) = desk.view().await else { return };
            let instances = view.devices.iter().flat_map(|device| &device.instances);
            for one in instances.filter(|one| models.contains(&one.model)) {
                desk.operate(Request::Renew { instance: one.instance });
            }
        });
    }
}

const STARTING: u8 = 0;
const SERVING: u8 = 1;
const DRAINING: u8 = 2;

/// What a new file says otherwise that only a restart changes.
fn unchanging(old: &Daemon, new: &Daemon) -> Vec<&'static str> {
    let (was, is) = (&old.server, &new.server);
    let pairs = [
        ("listen", was.listen == is.listen),
        ("state_dir", was.state_dir == is.state_dir),
        ("journal", was.journal == is.journal),
        ("journal_limit", was.journal_limit == is.journal_limit),
    ];
    pairs.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
}

fn summary(old: &Current, new: &Daemon, removed: &[ModelId], restarted: &[ModelId], fixed: &[&str]) -> String {
    let name = |id: &ModelId| new.configuration.models.get(id.index()).map_or("?", |model| model.name.as_str());
    let list = |ids: &[ModelId]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
    let known = old.daemon.configuration.models.len();
    let count = u32::try_from(new.configuration.models.len()).unwrap_or(u32::MAX);
    let added: Vec<ModelId> = (0..count).map(ModelId).filter(|id| id.index() >= known).collect();
    let gone: Vec<ModelId> = removed.iter().copied().filter(|id| !old.removed.contains(id)).collect();
    let mut parts = Vec::new();
    for (what, ids) in [("new", &added[..]), ("removed", &gone), ("started anew when next loaded", restarted)] {
        if !ids.is_empty() {
            parts.push(format!("{what}: {}", list(ids)));
        }
    }
    if !fixed.is_empty() {
        parts.push(format!("takes effect after a restart: server.{}", fixed.join(", server.")));
    }
    if parts.is_empty() { "the configuration was taken up".to_owned() } else { parts.join("; ") }
}

impl Operations for Running {
    fn metrics(&self, view: &View) -> String {
        self.metrics.text(view, &self.current().daemon.configuration)
    }

    fn events(&self, after: u64) -> (u64, Vec<String>) {
        self.seen.since(after)
    }

    fn reload(&self) -> Result<String, String> {
        self.take_up()
    }

    fn answered(&self, answered: &Answered) {
        self.metrics.answered(answered.status, answered.reason);
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            STARTING => Phase::Starting,
            SERVING => Phase::Serving,
            _ => Phase::Draining,
        }
    }
}
