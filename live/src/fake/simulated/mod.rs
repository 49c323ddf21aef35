//! Runtimes without processes: loads take their time and memory on simulated cards, and every loaded model answers on a
//! loopback listener of its own through a fake server at that model's pace.

mod machine;
mod settings;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand::RngExt;
use tokio::{net::TcpListener, runtime::Handle, sync::Notify};
use windtunnel_core::{Attempt, Bytes, DeviceId, ExitCause, InstanceId, LoadFailure, ModelId};

use self::machine::{Happened, Machine};
use super::{Card, Death, FakeServer, Pace, Process, Settings};
use crate::{Desk, Endpoint, Lines, LoadOrder, Runtimes};

pub use settings::{SimulatedDevice, SimulatedModel, SimulatedSettings};

/// Simulated runtimes.
pub struct Simulated<W> {
    controls: SimulatedControls<W>,
}

/// What may be done to simulated runtimes from outside.
pub struct SimulatedControls<W> {
    world: Arc<World<W>>,
}

struct World<W> {
    desk: Desk<W>,
    runtime: Handle,
    settings: Mutex<Arc<SimulatedSettings>>,
    rooms: Mutex<Vec<Arc<Room>>>,
}

/// A card and what surrounds it.
struct Room {
    device: DeviceId,
    machine: Mutex<Machine>,
    card: Card,
    changed: Notify,
    servers: Mutex<BTreeMap<InstanceId, FakeServer>>,
}

impl<W: Send + Sync + 'static> Simulated<W> {
    /// Runtimes on these cards, whose tasks run on `runtime`.
    pub fn new(desk: Desk<W>, settings: SimulatedSettings, runtime: Handle) -> Simulated<W> {
        let world = World {
            desk,
            runtime,
            settings: Mutex::new(Arc::new(SimulatedSettings { devices: Vec::new(), models: Vec::new() })),
            rooms: Mutex::new(Vec::new()),
        };
        let controls = SimulatedControls { world: Arc::new(world) };
        controls.replace(settings);
        Simulated { controls }
    }

    /// A handle that remains when the dispatcher has these.
    pub fn controls(&self) -> SimulatedControls<W> {
        self.controls.clone()
    }

    fn at(&self, device: DeviceId, order: impl FnOnce(&Room, windtunnel_core::Time)) {
        let world = &self.controls.world;
        if let Some(room) = world.room(device) {
            order(&room, world.desk.clock().now());
            room.changed.notify_one();
        }
    }

    /// The room in which an instance is, where it is in one.
    fn with(&self, mut found: impl FnMut(&Room, windtunnel_core::Time) -> bool) -> bool {
        let world = &self.controls.world;
        let rooms = locked(&world.rooms).clone();
        let now = world.desk.clock().now();
        rooms.iter().any(|room| {
            let found = found(room, now);
            room.changed.notify_one();
            found
        })
    }
}

impl<W: Send + Sync + 'static> Runtimes for Simulated<W> {
    fn load(&mut self, order: LoadOrder) {
        let LoadOrder { attempt, instance, model, device, reservation: _ } = order;
        let settings = Arc::clone(&locked(&self.controls.world.settings));
        let Some(told) = settings.models.get(model.index()) else {
            return self.controls.world.desk.load_failed(attempt, instance, LoadFailure::NotStarted);
        };
        let footprint = told.footprint;
        self.at(device, |room, now| locked(&room.machine).load(now, attempt, instance, (model, footprint)));
    }

    fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        if !self.with(|room, now| locked(&room.machine).stop(now, instance, attempt)) {
            self.controls.world.desk.stopped(attempt, instance);
        }
    }

    fn abort_load(&mut self, attempt: Attempt, instance: InstanceId) {
        self.with(|room, now| {
            locked(&room.machine).abort(now, instance, attempt);
            false
        });
    }

    fn read(&mut self, device: DeviceId) {
        let desk = self.controls.world.desk.clone();
        self.at(device, |room, now| desk.snapshot(locked(&room.machine).read(now)));
    }
}

impl<W: Send + Sync + 'static> SimulatedControls<W> {
    /// Other cards and models, those that stay at their old places. What is loaded stays as it is.
    pub fn replace(&self, settings: SimulatedSettings) {
        let mut rooms = locked(&self.world.rooms);
        for (room, device) in rooms.iter().zip(&settings.devices) {
            locked(&room.machine).change(device.kind, device.memory, device.card.upkeep);
        }
        for (place, device) in settings.devices.iter().enumerate().skip(rooms.len()) {
            rooms.push(self.open(DeviceId(u32::try_from(place).unwrap_or(u32::MAX)), device));
        }
        *locked(&self.world.settings) = Arc::new(settings);
    }

    /// The process of an instance ends by itself; whether there was one.
    pub fn crash(&self, instance: InstanceId, cause: ExitCause) -> bool {
        let rooms = locked(&self.world.rooms).clone();
        rooms.iter().any(|room| self.world.end(room, instance, cause))
    }

    fn open(&self, device: DeviceId, told: &SimulatedDevice) -> Arc<Room> {
        let world = &self.world;
        let room = Arc::new(Room {
            device,
            machine: Mutex::new(Machine::new(device, told.kind, told.memory, told.card.upkeep)),
            card: Card::start(told.card.speed, told.card.sharing, &world.runtime),
            changed: Notify::new(),
            servers: Mutex::new(BTreeMap::new()),
        });
        world.runtime.spawn(drive(Arc::clone(world), Arc::clone(&room)));
        room
    }
}

impl<W> Clone for SimulatedControls<W> {
    fn clone(&self) -> SimulatedControls<W> {
        SimulatedControls { world: Arc::clone(&self.world) }
    }
}

/// Stands for the process of an instance.
struct Pretended<W> {
    world: Arc<World<W>>,
    room: Arc<Room>,
    instance: InstanceId,
}

impl<W: Send + Sync + 'static> Process for Pretended<W> {
    fn die(&self, death: Death) {
        self.world.end(&self.room, self.instance, cause(death));
    }

    fn log(&self, _line: &str) {}
}

impl<W: Send + Sync + 'static> World<W> {
    fn room(&self, device: DeviceId) -> Option<Arc<Room>> {
        locked(&self.rooms).get(device.index()).cloned()
    }

    fn end(&self, room: &Room, instance: InstanceId, cause: ExitCause) -> bool {
        let there = locked(&room.machine).exit(self.desk.clock().now(), instance);
        if there {
            room.close(instance);
            self.desk.exited(instance, cause);
            room.changed.notify_one();
        }
        there
    }

    async fn carry_out(self: &Arc<World<W>>, room: &Arc<Room>, happened: Happened) {
        match happened {
            Happened::Loaded(attempt, instance, model, footprint) => {
                self.loaded(room, (attempt, instance, model), footprint).await;
            }
            Happened::Failed(attempt, instance, cause) => self.desk.load_failed(attempt, instance, cause),
            Happened::Stopped(attempt, instance) => {
                room.close(instance);
                self.desk.stopped(attempt, instance);
            }
            Happened::Read(snapshot) => self.desk.snapshot(snapshot),
            Happened::Pressed(level) => self.desk.pressure(room.device, level),
        }
    }

    async fn loaded(
        self: &Arc<World<W>>,
        room: &Arc<Room>,
        (attempt, instance, model): (Attempt, InstanceId, ModelId),
        footprint: Option<Bytes>,
    ) {
        match self.serve(room, instance, model).await {
            Some(endpoint) => self.desk.loaded(attempt, instance, footprint, endpoint),
            None => {
                locked(&room.machine).exit(self.desk.clock().now(), instance);
                self.desk.load_failed(attempt, instance, LoadFailure::NotStarted);
            }
        }
    }

    /// Starts the server of an instance; `None`: the machine has no address left.
    async fn serve(self: &Arc<World<W>>, room: &Arc<Room>, instance: InstanceId, model: ModelId) -> Option<Endpoint> {
        let settings = Arc::clone(&locked(&self.settings));
        let told = settings.models.get(model.index())?;
        let pace = told.paces.get(room.device.index()).copied().flatten().unwrap_or(Pace::Instant);
        let key = format!("{:032x}", rand::rng().random::<u128>());
        let server = Settings { key: Some(key.clone()), pace, ..told.server.clone() };
        let requests_a_connection = Some(server.requests_a_connection);
        let lines = Arc::new(Lines::new(server.slots));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.ok()?;
        let process = Pretended { world: Arc::clone(self), room: Arc::clone(room), instance };
        let server = FakeServer::start(listener, server, Some(&room.card), Arc::new(process)).ok()?;
        server.ready();
        let address = server.address();
        locked(&room.servers).insert(instance, server);
        Some(Endpoint { address, key, requests_a_connection, progress: Arc::default(), lines })
    }
}

impl Room {
    /// Nobody answers for an instance any more.
    fn close(&self, instance: InstanceId) {
        if let Some(server) = locked(&self.servers).remove(&instance) {
            server.stop();
        }
    }
}

/// Lets happen what is due on one card, as long as the runtime lives.
async fn drive<W: Send + Sync + 'static>(world: Arc<World<W>>, room: Arc<Room>) {
    loop {
        let now = world.desk.clock().now();
        // The lock is let go before anything is carried out.
        let happened = locked(&room.machine).get_on(now);
        if let Some(happened) = happened {
            world.carry_out(&room, happened).await;
            continue;
        }
        let next = locked(&room.machine).next().and_then(|next| world.desk.clock().moment(next));
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = room.changed.notified() => {}
        }
    }
}

fn cause(death: Death) -> ExitCause {
    match death {
        Death::Code(code) => ExitCause::Code(code),
        Death::Signal(signal) => ExitCause::Signal(signal),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
