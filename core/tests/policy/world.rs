//! A driver for tests: it tells a scheduler a story and remembers what it wanted.

use std::collections::BTreeMap;

use windtunnel_core::*;

/// A scheduler, its clock, and every effect it has wanted.
pub struct World {
    pub scheduler: Scheduler,
    pub effects: Effects,
    pub now: u64,
    pub next_job: u64,
    pub grants: BTreeMap<u64, Grant<Vec<GrantedStep>>>,
    pub finished: BTreeMap<u64, Outcome>,
    pub log: Vec<Effect<Vec<GrantedStep>>>,
}

pub const MS: u64 = 1_000_000;

/// A request for a model with nothing special about it.
pub fn request(model: u32, class: Class) -> Submission {
    Submission {
        label: LabelId(0),
        wanted: Wanted::Model(ModelId(model)),
        class: Some(class),
        kind: JobKind::Chat,
        inputs: 1,
        prompt_tokens: 0,
        max_tokens: None,
        deadline: None,
        max_wait: None,
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: Bytes::ZERO,
        client: None,
        affinity: None,
    }
}

/// A model on the given devices whose batches take `alpha + beta * B` milliseconds.
pub fn model(name: &str, capacity: Capacity, (alpha, beta): (u64, u64), devices: &[u32]) -> Model {
    let predicted = ServiceTimes::Batch { alpha: Span::from_millis(alpha), beta: Span::from_millis(beta) };
    Model {
        name: name.into(),
        aliases: Vec::new(),
        capabilities: Vec::new(),
        capacity,
        replicas: Replicas::All,
        placements: placements(devices, predicted),
        prediction: Prediction::Configured,
        pinned: false,
        preload: false,
        idle_ttl: None,
    }
}

/// Places on these devices.
pub fn placements(devices: &[u32], predicted: ServiceTimes) -> Vec<Placement> {
    devices.iter().map(|&device| Placement { device: DeviceId(device), predicted }).collect()
}

pub fn slots(slots: u32) -> Capacity {
    Capacity::Slots { slots }
}

pub fn batch(max: u32, wait: u64) -> Capacity {
    Capacity::Batch { max, wait: Span::from_millis(wait) }
}

/// Devices and models, everything else by default.
pub fn configuration(devices: usize, models: Vec<Model>) -> Configuration {
    let device = |number| Device::new(format!("gpu{number}"), DeviceKind::Discrete, None);
    Configuration {
        policy: Policy::default(),
        devices: (0..devices).map(device).collect(),
        models,
        families: Vec::new(),
        labels: vec!["test".into()],
        seed: 1,
    }
}

impl World {
    /// A run in which every model is resident wherever it may be.
    pub fn new(configuration: Configuration) -> World {
        let models = configuration.models.iter().zip(0..);
        let places = models.flat_map(|(model, number)| {
            model.placements.iter().map(move |place| Resident { model: ModelId(number), device: place.device })
        });
        let residents = places.collect();
        let mut world = World::empty();
        world.input(Input::Started(Box::new(Started {
            configuration,
            profiles: Vec::new(),
            estimates: Vec::new(),
            residents,
        })));
        world
    }

    pub fn empty() -> World {
        World {
            scheduler: Scheduler::new(),
            effects: Effects::new(),
            now: 0,
            next_job: 0,
            grants: BTreeMap::new(),
            finished: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Tells one input now and checks every invariant after it.
    pub fn input(&mut self, input: Input) {
        self.scheduler.step(Time::from_nanos(self.now), &input, &mut self.effects);
        for effect in &self.effects {
            let effect = effect.map_steps(|range| self.effects.steps(range).to_vec());
            match &effect {
                Effect::Grant(grant) => {
                    assert!(self.grants.insert(grant.attempt.0, grant.clone()).is_none(), "an attempt was made twice");
                }
                Effect::Finish(finish) => {
                    let ended = self.finished.insert(finish.job.0, finish.outcome);
                    assert_eq!(ended, None, "{} ended twice", finish.job);
                }
                Effect::Load { .. }
                | Effect::Stop { .. }
                | Effect::Abort { .. }
                | Effect::Snapshot { .. }
                | Effect::Learned(_)
                | Effect::Note(_) => {}
            }
            self.log.push(effect);
        }
        if let Err(violation) = self.scheduler.check() {
            panic!("{violation} at {} ns after {input:?}", self.now);
        }
    }

    /// Moves the clock, acting on every timer on the way.
    pub fn at(&mut self, ms: u64) {
        self.until(ms * MS);
    }

    pub fn until(&mut self, nanos: u64) {
        while let Some(due) = self.scheduler.wake_at().map(Time::as_nanos).filter(|&due| due <= nanos) {
            assert!(due >= self.now, "a timer lies in the past");
            self.now = due;
            self.input(Input::TimerDue);
            let next = self.scheduler.wake_at();
            assert!(next.is_none_or(|next| next.as_nanos() > due), "the timer came back at once");
        }
        self.now = nanos;
    }

    pub fn submit(&mut self, submission: Submission) -> u64 {
        let job = self.next_job;
        self.next_job += 1;
        self.input(Input::Submitted { job: JobId(job), submission });
        job
    }

    pub fn cancel(&mut self, job: u64) {
        self.input(Input::Cancelled { job: JobId(job) });
    }

    /// The attempt of the grant under way that holds a step of this job; the first, where there are several.
    pub fn attempt_of(&self, job: u64) -> Option<u64> {
        let holds = |grant: &Grant<Vec<GrantedStep>>| grant.steps.iter().any(|step| step.job.0 == job);
        self.grants.iter().find(|(_, grant)| holds(grant)).map(|(&attempt, _)| attempt)
    }

    pub fn runs(&self, job: u64) -> bool {
        self.attempt_of(job).is_some()
    }

    /// Ends the grant that holds a step of this job.
    pub fn finish(&mut self, job: u64) {
        let attempt = self.attempt_of(job).expect("the job should run");
        self.finish_attempt(attempt);
    }

    pub fn finish_attempt(&mut self, attempt: u64) {
        let grant = self.grants.remove(&attempt).expect("the grant should be under way");
        let measured = Measured { first_token: None, output_tokens: 0 };
        self.input(Input::GrantFinished { attempt: grant.attempt, instance: grant.instance, measured });
    }

    pub fn fail(&mut self, job: u64, cause: GrantFailure, sent: Sent) {
        let attempt = self.attempt_of(job).expect("the job should run");
        let grant = self.grants.remove(&attempt).expect("the grant should be under way");
        self.input(Input::GrantFailed { attempt: grant.attempt, instance: grant.instance, cause, sent });
    }

    /// Notes since the start.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        self.log.iter().filter_map(|effect| match effect {
            Effect::Note(note) => Some(*note),
            Effect::Grant(_)
            | Effect::Load { .. }
            | Effect::Stop { .. }
            | Effect::Abort { .. }
            | Effect::Snapshot { .. }
            | Effect::Learned(_)
            | Effect::Finish(_) => None,
        })
    }

    pub fn why_waits(&self, job: u64) -> Option<WaitReason> {
        self.notes()
            .filter_map(|note| match note {
                Note::Waits { job: JobId(waiting), reason } if waiting == job => Some(reason),
                _other_note => None,
            })
            .last()
    }
}
