//! What a step of the scheduler costs with a hundred thousand jobs waiting for fifty models that do not fit together, and what
//! it costs when five thousand clients give up at once.
//!
//! `cargo bench -p windtunnel-sim --bench cost`. Ratios say more than times: the same step with a job of every class for every
//! model waiting is timed in turns with it, and where half of the models are loaded and the others wait for their places the
//! same step with a quarter as many models.

use std::{hint::black_box, time::Instant};

use windtunnel_core::*;

const MODELS: u32 = 50;
/// Of five models each, where there are families.
const FAMILIES: u32 = 10;
/// One job of every class for every model, and a crowd.
const FEW: u64 = 150;
const MANY: u64 = 100_000;
/// Models of which half are loaded, and so many more.
const SOME: u32 = 50;
const MORE: u32 = 4;
const ROUNDS: usize = 7;
/// Steps that are timed in a round.
const STEPS: u64 = 2_000;

fn main() {
    let crowds = [FEW, MANY].map(|waiting| crowd(waiting, Models { count: MODELS, loaded: 3, families: 0 }));
    let families = [FEW, MANY].map(|waiting| crowd(waiting, Models { count: MODELS, loaded: 3, families: FAMILIES }));
    let halves =
        [SOME, SOME * MORE].map(|count| crowd(3 * u64::from(count), Models { count, loaded: count / 2, families: 0 }));
    compare("an arrival and an end", medians(&crowds, busy));
    compare("the same with ten families", medians(&families, busy));
    compare("a reading, after which all is planned anew", medians(&crowds, read));
    scales("an arrival and an end", medians(&halves, busy));
    scales("a reading, after which all is planned anew", medians(&halves, read));
    let millis = median((0..ROUNDS).map(|_| cancelled_at_once(&crowds[1])).collect());
    println!("{:<58} {millis:>10.1} ms       at most 50 {}", "5,000 of them cancelled at once", mark(millis <= 50.0));
}

fn compare(what: &str, [few, many]: [f64; 2]) {
    println!("{:<58} {few:>10.0} ns/step", format!("{FEW} jobs wait for 50 models: {what}"));
    println!("{:<58} {many:>10.0} ns/step", format!("{MANY} jobs wait for 50 models: {what}"));
    let ratio = many / few;
    println!("{:<58} {ratio:>10.2} x        at most 2 {}", format!("{MANY} waiting against {FEW}"), mark(ratio <= 2.0));
}

/// A step that looks at every head may cost so much more as there are more models, and some memory that no longer fits the cache.
fn scales(what: &str, [some, more]: [f64; 2]) {
    println!("{:<58} {some:>10.0} ns/step", format!("{} of {SOME} models loaded: {what}", SOME / 2));
    println!("{:<58} {more:>10.0} ns/step", format!("{} of {} models loaded: {what}", SOME * MORE / 2, SOME * MORE));
    let (ratio, most) = (more / some, f64::from(MORE) * 1.5);
    println!(
        "{:<58} {ratio:>10.2} x        at most {most} {}",
        format!("{MORE} times the models"),
        mark(ratio <= most)
    );
}

fn mark(met: bool) -> &'static str {
    if met { "(met)" } else { "(MISSED)" }
}

/// What is served.
#[derive(Clone, Copy)]
struct Models {
    count: u32,
    /// The first so many.
    loaded: u32,
    families: u32,
}

impl Models {
    /// What the loaded ones take of the card.
    fn mib(self) -> u64 {
        u64::from(self.loaded) * FOOTPRINT
    }
}

/// What an instance takes, in MiB.
const FOOTPRINT: u64 = 5_000;

/// A scheduler on a card that the loaded models of 5 GiB fill, and so many jobs waiting for all of them.
fn crowd(waiting: u64, models: Models) -> Scheduler {
    let mut scheduler = Scheduler::new();
    let mut effects = Effects::new();
    scheduler.step(Time::ZERO, &Input::Started(Box::new(started(models))), &mut effects);
    scheduler.step(Time::ZERO, &Input::Snapshot(reading(models.loaded, models.mib())), &mut effects);
    for job in 0..waiting {
        submit(&mut scheduler, job, &mut effects);
    }
    scheduler
}

fn reading(processes: u32, mib: u64) -> Snapshot {
    let used = Some(Bytes::from_mib(mib));
    Snapshot { device: DeviceId(0), total: None, used, processes: (0..processes).map(process).collect() }
}

fn process(instance: u32) -> ProcessMemory {
    ProcessMemory { instance: InstanceId(instance), used: Some(Bytes::from_mib(FOOTPRINT)) }
}

fn started(models: Models) -> Started {
    let times = ServiceTimes::Batch { alpha: Span::from_millis(10), beta: Span::ZERO };
    let model = |number: u32| Model {
        name: format!("m{number}"),
        aliases: Vec::new(),
        capabilities: Vec::new(),
        capacity: Capacity::Slots { slots: 1 },
        replicas: Replicas::Count(1),
        placements: vec![Placement { device: DeviceId(0), predicted: times }],
        prediction: Prediction::Configured,
        pinned: false,
        preload: false,
        idle_ttl: None,
    };
    let footprint = Bytes::from_mib(FOOTPRINT);
    let profile = |model| Profile {
        model: ModelId(model),
        device: DeviceId(0),
        factor: Ppm::ONE,
        observations: 0,
        footprint: Some(footprint),
        load_time: Some(Span::from_secs(3)),
    };
    Started {
        configuration: Configuration {
            policy: Policy::default(),
            devices: vec![Device::new("gpu".into(), DeviceKind::Discrete, Some(Bytes::from_mib(models.mib() + 1_384)))],
            models: (0..models.count).map(model).collect(),
            families: (0..models.families).map(family).collect(),
            labels: vec!["bench".into()],
            seed: 1,
        },
        profiles: (0..models.count).map(profile).collect(),
        estimates: Vec::new(),
        residents: (0..models.loaded).map(|model| Resident { model: ModelId(model), device: DeviceId(0) }).collect(),
    }
}

fn family(number: u32) -> Family {
    let variant = |place| Variant { model: ModelId(number + place * FAMILIES), quality: Quality::Preferred };
    Family { name: format!("f{number}"), aliases: Vec::new(), variants: (0..MODELS / FAMILIES).map(variant).collect() }
}

fn submit(scheduler: &mut Scheduler, job: u64, effects: &mut Effects) {
    let models = scheduler.configuration().models.len() as u64;
    let class = [Class::Interactive, Class::Background, Class::Batch][(job / models % 3) as usize];
    let families = scheduler.configuration().families.len() as u64;
    let wanted = match (job / 3).checked_rem(families) {
        Some(family) if job.is_multiple_of(2) => Wanted::Family(FamilyId(family as u32)),
        _ => Wanted::Model(ModelId((job % models) as u32)),
    };
    let submission = Submission {
        label: LabelId(0),
        wanted,
        class: Some(class),
        kind: JobKind::Chat,
        inputs: 1,
        prompt_tokens: 0,
        max_tokens: None,
        deadline: None,
        max_wait: Some(Span::from_secs(3_600)),
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: Bytes::ZERO,
        client: None,
        affinity: None,
    };
    scheduler.step(scheduler.now(), &Input::Submitted { job: JobId(job), submission }, effects);
}

/// Arrivals and ends in turns: nanoseconds a step.
fn busy(scheduler: &Scheduler, waiting: u64) -> f64 {
    let mut scheduler = scheduler.clone();
    let mut effects = Effects::new();
    let mut running: Vec<(Attempt, InstanceId)> = Vec::new();
    // A copy has no room for one more: making it, for all that wait, is no part of a step.
    submit(&mut scheduler, waiting, &mut effects);
    running.extend(grants(&effects));
    let start = Instant::now();
    let mut steps = 0;
    for number in 1..=STEPS {
        submit(&mut scheduler, waiting + number, &mut effects);
        running.extend(grants(&effects));
        steps += 1;
        if let Some((attempt, instance)) = running.pop() {
            let measured = Measured { first_token: None, output_tokens: 0 };
            let ended = Input::GrantFinished { attempt, instance, measured };
            scheduler.step(scheduler.now(), &ended, &mut effects);
            running.extend(grants(&effects));
            steps += 1;
        }
    }
    black_box(scheduler.jobs_in_flight());
    start.elapsed().as_secs_f64() * 1e9 / steps as f64
}

fn grants(effects: &Effects) -> impl Iterator<Item = (Attempt, InstanceId)> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Grant(grant) => Some((grant.attempt, grant.instance)),
        _other => None,
    })
}

/// Readings that differ: nanoseconds a step.
fn read(scheduler: &Scheduler, _waiting: u64) -> f64 {
    let mut scheduler = scheduler.clone();
    let mut effects = Effects::new();
    let loaded = scheduler.view().devices[0].instances.len() as u32;
    let start = Instant::now();
    for number in 0..STEPS {
        let snapshot = Input::Snapshot(reading(loaded, u64::from(loaded) * FOOTPRINT + number % 100));
        scheduler.step(scheduler.now().after(Span::from_millis(1)), &snapshot, &mut effects);
    }
    black_box(scheduler.jobs_in_flight());
    start.elapsed().as_secs_f64() * 1e9 / STEPS as f64
}

fn medians(crowds: &[Scheduler; 2], time: fn(&Scheduler, u64) -> f64) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (of, scheduler) in times.iter_mut().zip(crowds) {
            of.push(time(scheduler, scheduler.jobs_in_flight() as u64));
        }
    }
    times.map(median)
}

fn cancelled_at_once(scheduler: &Scheduler) -> f64 {
    let mut scheduler = scheduler.clone();
    let mut effects = Effects::new();
    let start = Instant::now();
    for job in (0..MANY).step_by(20) {
        scheduler.step(scheduler.now(), &Input::Cancelled { job: JobId(job) }, &mut effects);
    }
    black_box(scheduler.jobs_in_flight());
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
