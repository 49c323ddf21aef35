//! A small machine around the scheduler: cards with memory, loads and stops that take their time, clients that send again
//! when they have their answer. It tells the truth unless a test makes it lie.

use std::collections::BTreeMap;

use windtunnel_core::*;

use crate::world::*;

pub const MIB: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Event {
    GrantEnds(Attempt),
    LoadEnds(Attempt, InstanceId),
    StopEnds(Attempt, InstanceId),
    Released(DeviceId, InstanceId),
    Sends(usize),
    Crash(InstanceId),
    Foreign(DeviceId, u64),
    Fact(Input),
}

/// A client of a closed loop.
#[derive(Clone, Debug)]
pub struct Client {
    pub submission: Submission,
    pub think_ms: u64,
    pub answers: u64,
    pub failures: u64,
    /// Whether it sends no more.
    pub leaves: bool,
}

/// What a model is really like.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub mib: u64,
    pub load_ms: u64,
    pub service_ms: u64,
    /// Loads that fail before one succeeds.
    pub failing: u32,
}

#[derive(Clone, Debug, Default)]
struct Card {
    foreign: u64,
    /// Bytes of processes, those that are gone but hold on included.
    processes: BTreeMap<InstanceId, u64>,
    /// What the list of processes leaves out.
    hidden: Vec<InstanceId>,
}

pub struct Machine {
    pub world: World,
    pub truth: Vec<Truth>,
    pub stop_ms: u64,
    pub release_ms: u64,
    pub clients: Vec<Client>,
    /// Whether readings come back at all.
    pub silent: bool,
    cards: Vec<Card>,
    totals: Vec<Option<u64>>,
    events: BTreeMap<(u64, u64), Event>,
    added: u64,
    answered: usize,
    model_of: BTreeMap<InstanceId, (ModelId, DeviceId)>,
    client_of: BTreeMap<u64, usize>,
    pub loads: Vec<(u64, ModelId)>,
    /// The most bytes that processes have held on a card.
    pub peak: u64,
    /// Things that happened one after another at the present moment.
    at_once: u32,
}

/// A model of so many MiB whose load and step take so long, on these devices, with `slots` slots.
pub fn truth(mib: u64, load_ms: u64, service_ms: u64) -> Truth {
    Truth { mib, load_ms, service_ms, failing: 0 }
}

impl Machine {
    /// Cards of so many MiB without headroom and models with what is true of them and was measured; nothing is loaded.
    pub fn new(
        cards: &[u64],
        mut models: Vec<Model>,
        truth: Vec<Truth>,
        change: impl FnOnce(&mut Configuration),
    ) -> Machine {
        for model in &mut models {
            model.replicas = Replicas::Count(1);
        }
        let mut configuration = configuration(cards.len(), models);
        for (device, mib) in configuration.devices.iter_mut().zip(cards) {
            device.memory = Some(Bytes::from_mib(*mib));
            device.headroom = Bytes::ZERO;
        }
        change(&mut configuration);
        let totals = configuration.devices.iter().map(|device| device.memory.map(Bytes::get)).collect();
        let mut machine = Machine {
            world: World::empty(),
            truth,
            stop_ms: 200,
            release_ms: 100,
            clients: Vec::new(),
            silent: false,
            cards: vec![Card::default(); cards.len()],
            totals,
            events: BTreeMap::new(),
            added: 0,
            answered: 0,
            model_of: BTreeMap::new(),
            client_of: BTreeMap::new(),
            loads: Vec::new(),
            peak: 0,
            at_once: 0,
        };
        machine.start(configuration);
        machine
    }

    fn start(&mut self, configuration: Configuration) {
        let mut profiles = Vec::new();
        let mut estimates = Vec::new();
        for (number, (model, truth)) in configuration.models.iter().zip(&self.truth).enumerate() {
            for place in &model.placements {
                let (model, device, footprint) = (ModelId(number as u32), place.device, Bytes::from_mib(truth.mib));
                let load_time = Span::from_millis(truth.load_ms);
                estimates.push(Estimate { model, device, footprint, load_time });
                let (factor, footprint) = (Ppm::ONE, Some(footprint));
                profiles.push(Profile { model, device, factor, observations: 0, footprint, load_time: None });
            }
        }
        let residents = Vec::new();
        self.input(Input::Started(Box::new(Started { configuration, profiles, estimates, residents })));
    }

    pub fn input(&mut self, input: Input) {
        self.world.input(input);
        self.obey();
    }

    fn add(&mut self, at: u64, event: Event) {
        self.added += 1;
        self.events.insert((at, self.added), event);
    }

    fn obey(&mut self) {
        let now = self.world.now;
        let effects = self.world.log[self.answered..].to_vec();
        self.answered = self.world.log.len();
        for effect in effects {
            match effect {
                Effect::Grant(grant) => {
                    let took = self.truth[grant.model.index()].service_ms * MS;
                    self.add(now + took, Event::GrantEnds(grant.attempt));
                }
                Effect::Load { attempt, instance, model, device, .. } => {
                    self.loads.push((now, model));
                    self.model_of.insert(instance, (model, device));
                    self.cards[device.index()].processes.insert(instance, 0);
                    self.add(now + self.truth[model.index()].load_ms * MS, Event::LoadEnds(attempt, instance));
                }
                Effect::Stop { attempt, instance, .. } => {
                    self.add(now + self.stop_ms * MS, Event::StopEnds(attempt, instance));
                }
                Effect::Abort { attempt, instance, .. } => self.abort(attempt, instance),
                Effect::Snapshot { device } if !self.silent => {
                    let reading = self.reading(device);
                    self.add(now, Event::Fact(Input::Snapshot(reading)));
                }
                Effect::Finish(finish) => self.answer(finish),
                Effect::Snapshot { .. } | Effect::Learned(_) | Effect::Note(_) => {}
            }
        }
    }

    fn abort(&mut self, attempt: Attempt, instance: InstanceId) {
        let now = self.world.now;
        let (cause, sent) = (GrantFailure::Aborted, Sent::Nothing);
        if self.world.grants.remove(&attempt.0).is_some() {
            return self.add(now, Event::Fact(Input::GrantFailed { attempt, instance, cause, sent }));
        }
        self.events.retain(|_, event| !matches!(event, Event::LoadEnds(one, _) if *one == attempt));
        let fact = Input::LoadFailed { attempt, instance, cause: LoadFailure::Stopped };
        self.add(now + self.stop_ms * MS, Event::Fact(fact));
        let (_, device) = self.model_of[&instance];
        self.add(now + (self.stop_ms + self.release_ms) * MS, Event::Released(device, instance));
    }

    fn answer(&mut self, finish: Finish) {
        let Some(client) = self.client_of.remove(&finish.job.0) else { return };
        let known = &mut self.clients[client];
        let pause = match finish.outcome {
            Outcome::Completed => {
                known.answers += 1;
                known.think_ms
            }
            _ended_otherwise => {
                known.failures += 1;
                known.think_ms.max(100)
            }
        };
        let at = self.world.now + pause * MS;
        self.add(at, Event::Sends(client));
    }

    /// What the card's tools say now.
    pub fn reading(&self, device: DeviceId) -> Snapshot {
        let card = &self.cards[device.index()];
        let used = card.foreign + card.processes.values().sum::<u64>();
        let ours = card.processes.iter().filter(|(id, _)| !card.hidden.contains(id));
        Snapshot {
            device,
            total: self.totals[device.index()].map(Bytes::new),
            used: Some(Bytes::new(used)),
            processes: ours
                .filter(|(id, _)| self.lives(**id))
                .map(|(id, bytes)| ProcessMemory { instance: *id, used: Some(Bytes::new(*bytes)) })
                .collect(),
        }
    }

    fn lives(&self, id: InstanceId) -> bool {
        let view = self.world.scheduler.view();
        view.devices.iter().any(|device| device.instances.iter().any(|instance| instance.instance == id))
    }

    pub fn client(&mut self, submission: Submission, first_ms: u64, think_ms: u64) {
        self.clients.push(Client { submission, think_ms, answers: 0, failures: 0, leaves: false });
        self.add(first_ms * MS, Event::Sends(self.clients.len() - 1));
    }

    pub fn submit_at(&mut self, ms: u64, submission: Submission) {
        self.client(submission, ms, 1_000_000_000);
    }

    /// Another program uses so much from then on.
    pub fn foreign_at(&mut self, ms: u64, device: u32, mib: u64) {
        self.add(ms * MS, Event::Foreign(DeviceId(device), mib * MIB));
    }

    pub fn fact_at(&mut self, ms: u64, input: Input) {
        self.add(ms * MS, Event::Fact(input));
    }

    pub fn crash_at(&mut self, ms: u64, instance: u32) {
        self.add(ms * MS, Event::Crash(InstanceId(instance)));
    }

    pub fn cards(&self) -> usize {
        self.cards.len()
    }

    /// A process that serves dies: first that is said, then its grants fail.
    fn crash(&mut self, instance: InstanceId) {
        let view = self.world.scheduler.view();
        let serves =
            |one: &&InstanceView| one.instance == instance && matches!(one.stage, Stage::Ready | Stage::Draining);
        if view.devices.iter().flat_map(|device| &device.instances).find(serves).is_none() {
            return;
        }
        let (_, device) = self.model_of[&instance];
        self.add(self.world.now + self.release_ms * MS, Event::Released(device, instance));
        self.input(Input::Exited { instance, cause: ExitCause::Signal(11) });
        let on_it: Vec<Attempt> =
            self.world.grants.values().filter(|grant| grant.instance == instance).map(|grant| grant.attempt).collect();
        for attempt in on_it {
            self.world.grants.remove(&attempt.0);
            let (cause, sent) = (GrantFailure::Crashed, Sent::Nothing);
            self.input(Input::GrantFailed { attempt, instance, cause, sent });
        }
    }

    /// The list of processes leaves this one out.
    pub fn hide(&mut self, device: u32, instance: u32) {
        self.cards[device as usize].hidden.push(InstanceId(instance));
    }

    /// A process uses so much from now on, and a reading says so.
    pub fn grow(&mut self, device: u32, instance: u32, mib: u64) {
        self.cards[device as usize].processes.insert(InstanceId(instance), mib * MIB);
        let reading = self.reading(DeviceId(device));
        self.input(Input::Snapshot(reading));
    }

    pub fn run_until(&mut self, ms: u64) {
        let end = ms * MS;
        loop {
            let event = self.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
            let wake = self.world.scheduler.wake_at().map_or(u64::MAX, Time::as_nanos);
            if event.min(wake) > end {
                break;
            }
            let at = event.min(wake).max(self.world.now);
            self.at_once = if at == self.world.now { self.at_once + 1 } else { 0 };
            let last = self.world.log.iter().rev().take(12).collect::<Vec<_>>();
            assert!(self.at_once < 10_000, "it never gets on from {at} ns: {last:#?}");
            self.world.now = at;
            if event <= wake {
                if let Some((_, event)) = self.events.pop_first() {
                    self.happen(event);
                }
            } else {
                self.input(Input::TimerDue);
            }
        }
        self.world.now = end;
    }

    fn happen(&mut self, event: Event) {
        let now = self.world.now;
        match event {
            Event::GrantEnds(attempt) => {
                if self.world.grants.contains_key(&attempt.0) {
                    self.world.finish_attempt(attempt.0);
                    self.obey();
                }
            }
            Event::LoadEnds(attempt, instance) => self.load_ends(attempt, instance),
            Event::StopEnds(attempt, instance) => {
                let (_, device) = self.model_of[&instance];
                self.add(now + self.release_ms * MS, Event::Released(device, instance));
                self.input(Input::StopFinished { attempt, instance });
            }
            Event::Released(device, instance) => {
                self.cards[device.index()].processes.remove(&instance);
            }
            Event::Sends(client) if self.clients[client].leaves => {}
            Event::Crash(instance) => self.crash(instance),
            Event::Sends(client) => {
                let job = self.world.next_job;
                self.world.next_job += 1;
                self.client_of.insert(job, client);
                let submission = self.clients[client].submission;
                self.input(Input::Submitted { job: JobId(job), submission });
            }
            Event::Foreign(device, bytes) => {
                self.cards[device.index()].foreign = bytes;
                if !self.silent {
                    let reading = self.reading(device);
                    self.input(Input::Snapshot(reading));
                }
            }
            Event::Fact(input) => self.input(input),
        }
    }

    fn load_ends(&mut self, attempt: Attempt, instance: InstanceId) {
        let (model, device) = self.model_of[&instance];
        let truth = &mut self.truth[model.index()];
        let bytes = truth.mib * MIB;
        let card = &mut self.cards[device.index()];
        let others: u64 = card.processes.iter().filter(|(id, _)| **id != instance).map(|(_, bytes)| *bytes).sum();
        let total = self.totals[device.index()].unwrap_or(u64::MAX);
        let cause = if truth.failing > 0 {
            truth.failing -= 1;
            Some(LoadFailure::Crashed)
        } else if card.foreign + others + bytes > total {
            Some(LoadFailure::OutOfMemory)
        } else {
            None
        };
        match cause {
            Some(cause) => {
                card.processes.remove(&instance);
                self.input(Input::LoadFailed { attempt, instance, cause });
            }
            None => {
                card.processes.insert(instance, bytes);
                self.peak = self.peak.max(card.processes.values().sum());
                self.input(Input::LoadFinished { attempt, instance, footprint: Some(Bytes::new(bytes)) });
            }
        }
    }

    /// Models that are loaded and take work, in order of their instances.
    pub fn ready(&self) -> Vec<u32> {
        let view = self.world.scheduler.view();
        let instances = view.devices.iter().flat_map(|device| &device.instances);
        instances.filter(|instance| instance.stage == Stage::Ready).map(|instance| instance.model.0).collect()
    }

    /// The last things the scheduler wanted, for messages.
    pub fn last(&self) -> String {
        let log = &self.world.log;
        log.iter()
            .filter(|one| !matches!(one, Effect::Finish(_) | Effect::Snapshot { .. }))
            .rev()
            .take(40)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .map(|effect| format!("{effect:?}\n"))
            .collect()
    }

    pub fn evictions(&self) -> usize {
        self.world.notes().filter(|note| matches!(note, Note::Evict { .. })).count()
    }
}
