//! Random worlds: configuration, load, faults and order are drawn from a seed; every invariant is checked after every step,
//! a restored checkpoint must give the same effects for the rest, and in the end every job must have ended once.

use crate::world::*;
use windtunnel_core::*;

/// Marsaglia's xorshift (2003): small, and the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }
}

fn random_configuration(dice: &mut Dice) -> Configuration {
    let devices = 1 + dice.roll(3) as usize;
    let models = 1 + dice.roll(3);
    let models = (0..models).map(|number| random_model(dice, number, devices as u32)).collect();
    let mut configuration = configuration(devices, models);
    configuration.policy = random_policy(dice);
    if configuration.models.len() > 1 && dice.one_in(2) {
        let variants = (0..configuration.models.len() as u32)
            .map(|model| Variant { model: ModelId(model), quality: Quality::Balanced })
            .collect();
        configuration.families.push(Family { name: "family".into(), aliases: Vec::new(), variants });
    }
    configuration
}

fn random_model(dice: &mut Dice, number: u64, devices: u32) -> Model {
    let capacity = match dice.roll(3) {
        0 => slots(1 + dice.roll(4) as u32),
        1 => batch(1 + dice.roll(40) as u32, 0),
        _ => batch(2 + dice.roll(40) as u32, dice.roll(50)),
    };
    let places: Vec<u32> = (0..devices).filter(|_| !dice.one_in(3)).collect();
    let places = if places.is_empty() { vec![0] } else { places };
    let mut made = model(&format!("m{number}"), capacity, (dice.roll(20), 1 + dice.roll(5)), &places);
    if matches!(capacity, Capacity::Slots { .. }) {
        for place in &mut made.placements {
            let ms = Span::from_millis;
            place.predicted = ServiceTimes::Slots {
                prefill_fixed: ms(1),
                prefill_per_token: Span::from_micros(10),
                decode_alpha: ms(1),
                decode_beta: Span::from_micros(100),
                prefill_slice: ms(2),
            };
        }
    }
    made.prediction = dice.pick(&[Prediction::Configured, Prediction::Learned]);
    made
}

fn random_policy(dice: &mut Dice) -> Policy {
    let class = |dice: &mut Dice| ClassPolicy {
        order: dice.pick(&[Order::Fifo, Order::Edf]),
        admission: dice.pick(&[Admission::None, Admission::Deadline]),
        max_queued: dice.pick(&[None, None, Some(0), Some(5)]),
        max_queued_bytes: Bytes::new(dice.pick(&[10, 1 << 30])),
        drop_hopeless: dice.one_in(2),
        weight: Ppm::ONE,
    };
    let span = |dice: &mut Dice, most: u64| Span::from_millis(dice.pick(&[0, 1, 5]) * most / 5);
    Policy {
        interactive_idle: span(dice, 200),
        background_max_starvation: span(dice, 300),
        background_share: Ppm::new(dice.pick(&[250_000, 500_000, 1_000_000])),
        guard_parallel: 1 + dice.roll(2) as u32,
        batch_max_starvation: span(dice, 1_000),
        batch_turn: span(dice, 500),
        hot_ttl: span(dice, 400),
        reserve_interactive_slots: dice.roll(3) as u32,
        default_class: Class::Interactive,
        embedding_chunk: 1 + dice.roll(32) as u32,
        routing: dice.pick(&[Routing::Shared, Routing::RoundRobin, Routing::JoinShortest, Routing::PowerOfTwo]),
        classes: core::array::from_fn(|_| class(dice)),
        ..Policy::default()
    }
}

fn random_request(dice: &mut Dice, configuration: &Configuration) -> Submission {
    let mut submission = request(dice.roll(configuration.models.len() as u64) as u32, dice.pick(&Class::ALL));
    if !configuration.families.is_empty() && dice.one_in(3) {
        submission.wanted = Wanted::Family(FamilyId(0));
        submission.quality = dice.pick(&[None, Some(Quality::Compact), Some(Quality::Preferred)]);
    }
    submission.kind = dice.pick(&[JobKind::Chat, JobKind::Embedding, JobKind::Rerank]);
    submission.inputs = dice.pick(&[1, 1, 1, 7, 100]);
    submission.prompt_tokens = dice.roll(1_000) as u32;
    submission.max_tokens = dice.pick(&[None, Some(10)]);
    submission.deadline = dice.pick(&[None, Some(Span::from_millis(20)), Some(Span::from_millis(500))]);
    submission.max_wait = dice.pick(&[None, None, Some(Span::from_millis(50))]);
    submission.body = Bytes::new(dice.roll(5));
    submission.class = dice.pick(&[None, submission.class, submission.class]);
    submission
}

/// A world with what a driver has to answer besides grants.
struct Storm {
    world: World,
    twin: Option<Scheduler>,
    dice: Dice,
    answered: usize,
    loads: Vec<(Attempt, InstanceId)>,
    stops: Vec<(Attempt, InstanceId)>,
    aborted: Vec<u64>,
}

impl Storm {
    fn input(&mut self, input: Input) {
        self.world.input(input.clone());
        if let Some(twin) = &mut self.twin {
            let mut effects = Effects::new();
            twin.step(Time::from_nanos(self.world.now), &input, &mut effects);
            let list = |effects: &Effects| -> Vec<_> {
                effects.iter().map(|effect| effect.map_steps(|range| effects.steps(range).to_vec())).collect()
            };
            assert_eq!(list(&effects), list(&self.world.effects), "the restored scheduler went another way");
            assert_eq!(twin.wake_at(), self.world.scheduler.wake_at());
        }
        self.answer_later();
    }

    /// Takes up what the scheduler wanted besides grants.
    fn answer_later(&mut self) {
        for effect in &self.world.log[self.answered..] {
            match effect {
                Effect::Load { attempt, instance, .. } => self.loads.push((*attempt, *instance)),
                Effect::Stop { attempt, instance, .. } => self.stops.push((*attempt, *instance)),
                Effect::Abort { attempt, .. } => self.aborted.push(attempt.0),
                Effect::Grant(_)
                | Effect::Snapshot { .. }
                | Effect::Learned(_)
                | Effect::Finish(_)
                | Effect::Note(_) => {}
            }
        }
        self.answered = self.world.log.len();
        while let Some(attempt) = self.aborted.pop() {
            match self.loads.iter().position(|load| load.0.0 == attempt) {
                Some(at) => {
                    let (attempt, instance) = self.loads.remove(at);
                    self.input(Input::LoadFailed { attempt, instance, cause: LoadFailure::Stopped });
                }
                None => self.end_grant(attempt, Some(GrantFailure::Aborted)),
            }
        }
    }

    fn end_grant(&mut self, attempt: u64, failure: Option<GrantFailure>) {
        let Some(grant) = self.world.grants.remove(&attempt) else { return };
        let (attempt, instance) = (grant.attempt, grant.instance);
        let sent = self.dice.pick(&[Sent::Nothing, Sent::Something]);
        let first_token = Some(Time::from_nanos(self.world.now));
        let measured = Measured { first_token, output_tokens: self.dice.roll(50) as u32 };
        self.input(match failure {
            Some(cause) => Input::GrantFailed { attempt, instance, cause, sent },
            None => Input::GrantFinished { attempt, instance, measured },
        });
    }

    fn end_some_grant(&mut self, failure: Option<GrantFailure>) {
        let under_way: Vec<u64> = self.world.grants.keys().copied().collect();
        if !under_way.is_empty() {
            let attempt = self.dice.pick(&under_way);
            self.end_grant(attempt, failure);
        }
    }

    fn answer_life_cycle(&mut self) {
        if let Some((attempt, instance)) = self.loads.pop() {
            let input = match self.dice.roll(3) {
                0 => Input::LoadFailed { attempt, instance, cause: LoadFailure::Crashed },
                _ => Input::LoadFinished { attempt, instance, footprint: None },
            };
            self.input(input);
        }
        if let Some((attempt, instance)) = self.stops.pop() {
            self.input(Input::StopFinished { attempt, instance });
        }
    }

    /// A process dies: first that is said, then its grants fail.
    fn crash(&mut self, instance: InstanceId) {
        if self.stops.iter().chain(&self.loads).any(|entry| entry.1 == instance) {
            return;
        }
        self.input(Input::Exited { instance, cause: ExitCause::Signal(9) });
        let on_it: Vec<u64> = self
            .world
            .grants
            .values()
            .filter(|grant| grant.instance == instance)
            .map(|grant| grant.attempt.0)
            .collect();
        for attempt in on_it {
            self.end_grant(attempt, Some(GrantFailure::Crashed));
        }
    }

    fn disturb(&mut self, configuration: &Configuration) {
        let instance = InstanceId(self.dice.roll(6) as u32);
        let model = ModelId(self.dice.roll(3) as u32);
        let device = DeviceId(self.dice.roll(3) as u32);
        match self.dice.roll(7) {
            0 => self.input(Input::Operator(Request::Unload { instance })),
            1 | 2 => self.input(Input::Operator(Request::Load { model, device })),
            3 => self.crash(instance),
            4 => {
                let mut changed = configuration.clone();
                changed.policy = random_policy(&mut self.dice);
                let removed = if self.dice.one_in(3) { vec![ModelId(0)] } else { Vec::new() };
                self.input(Input::Reconfigured(Box::new(Reconfiguration {
                    configuration: changed,
                    removed,
                    estimates: Vec::new(),
                })));
            }
            5 => {
                let (attempt, instance) = (Attempt(self.dice.roll(1_000_000)), InstanceId(99));
                let measured = Measured { first_token: None, output_tokens: 0 };
                self.input(Input::GrantFinished { attempt, instance, measured });
            }
            _ => self.cancel_some(),
        }
    }

    fn cancel_some(&mut self) {
        let job = JobId(self.dice.roll(self.world.next_job + 2));
        self.input(Input::Cancelled { job });
    }

    fn act(&mut self, configuration: &Configuration, disturbances: bool) {
        match self.dice.roll(20) {
            0..=7 => {
                let submission = random_request(&mut self.dice, configuration);
                let job = JobId(self.world.next_job);
                self.world.next_job += 1;
                self.input(Input::Submitted { job, submission });
            }
            8..=14 => self.end_some_grant(None),
            15 => self.cancel_some(),
            16 => self.answer_life_cycle(),
            17 if disturbances && self.dice.one_in(3) => self.disturb(configuration),
            17 if self.dice.one_in(4) => {
                let cause =
                    self.dice.pick(&[GrantFailure::Crashed, GrantFailure::Disconnected, GrantFailure::Rejected]);
                self.end_some_grant(Some(cause));
            }
            18 => self.restore(),
            _ => self.pass_time(),
        }
    }

    fn pass_time(&mut self) {
        let until = self.world.now + self.dice.roll(40) * MS / 4;
        while let Some(due) = self.world.scheduler.wake_at().map(Time::as_nanos).filter(|&due| due <= until) {
            assert!(due >= self.world.now, "a timer lies in the past");
            self.world.now = due;
            self.input(Input::TimerDue);
            let next = self.world.scheduler.wake_at();
            assert!(next.is_none_or(|next| next.as_nanos() > due), "the timer came back at once");
        }
        self.world.now = until;
    }

    /// Replaces the twin by what a checkpoint gives after a round trip through text.
    fn restore(&mut self) {
        if self.dice.one_in(8) {
            let text = serde_json::to_string(&self.world.scheduler.checkpoint()).expect("a checkpoint serialises");
            let read = serde_json::from_str(&text).expect("a checkpoint reads back");
            self.twin = Some(Scheduler::restore(read).expect("a checkpoint is sound"));
        }
    }

    /// Arrivals and faults have ended: everything that is left must come to its end.
    fn calm(&mut self, configuration: &Configuration) {
        let calm = Reconfiguration { configuration: configuration.clone(), removed: Vec::new(), estimates: Vec::new() };
        self.input(Input::Reconfigured(Box::new(calm)));
        for _ in 0..200_000 {
            if self.world.scheduler.jobs_in_flight() == 0 {
                return;
            }
            self.answer_life_cycle();
            self.end_some_grant(None);
            self.pass_time();
        }
        panic!("jobs never ended: {:#?}", self.world.scheduler.view());
    }
}

fn storm(seed: u64) {
    let mut dice = Dice::of(seed);
    let mut configuration = random_configuration(&mut dice);
    let mut quiet = configuration.clone();
    quiet.policy.background_max_starvation = Span::from_millis(100);
    let world = World::new(configuration.clone());
    let disturbances = dice.one_in(2);
    let mut storm = Storm { world, twin: None, dice, answered: 0, loads: vec![], stops: vec![], aborted: vec![] };
    for _ in 0..400 {
        storm.act(&configuration, disturbances);
    }
    configuration.policy.background_max_starvation = quiet.policy.background_max_starvation;
    storm.calm(&configuration);
    assert_eq!(storm.world.finished.len() as u64, storm.world.next_job, "every job ends exactly once");
}

/// A number from the environment: `WINDTUNNEL_SEED` tells one world again, `WINDTUNNEL_WORLDS` searches so many.
fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The worlds to look at, so many if nothing else is asked for.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    match wanted("WINDTUNNEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("WINDTUNNEL_WORLDS").unwrap_or(usual),
    }
}

#[test]
fn random_worlds_keep_every_invariant() {
    for seed in seeds(600) {
        if let Err(panic) = std::panic::catch_unwind(|| storm(seed)) {
            eprintln!("run it again with WINDTUNNEL_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
