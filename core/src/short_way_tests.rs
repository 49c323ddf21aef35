//! Short ways lead where long ones do.

use alloc::{boxed::Box, collections::VecDeque, string::String, vec, vec::Vec};

use crate::{
    Attempt, Bytes, Capacity, Class, Configuration, Device, DeviceId, DeviceKind, Effect, Effects, Input, InstanceId,
    JobId, JobKind, LabelId, Measured, Model, ModelId, Needs, Order, Overdue, Placement, Policy, Prediction, Replicas,
    Resident, Scheduler, ServiceTimes, Span, Started, Submission, Time, Wanted, direct::Arrival, job::Job,
    relay::ShortWay,
};

const MS: Span = Span::from_millis(1);

/// What differs between the worlds.
#[derive(Clone, Copy, Debug)]
struct World {
    order: Order,
    dropped: bool,
    idle: Span,
    /// Between arrivals.
    gap: u64,
}

/// Two devices with one model each batches of up to three.
fn configuration(world: World) -> Configuration {
    let device = |name: &str| Device {
        name: name.into(),
        kind: DeviceKind::Discrete,
        memory: None,
        limit: None,
        headroom: Bytes::ZERO,
        parallel_loads: 1,
    };
    let predicted = ServiceTimes::Batch { alpha: MS, beta: MS };
    let mut policy = Policy::default();
    policy.classes[0].order = world.order;
    policy.classes[0].drop_hopeless = world.dropped;
    policy.classes[0].max_queued = Some(40);
    policy.interactive_idle = world.idle;
    let model = Model {
        name: "m".into(),
        aliases: Vec::new(),
        capabilities: Vec::new(),
        capacity: Capacity::Batch { max: 3, wait: Span::ZERO },
        replicas: Replicas::All,
        placements: [0, 1].map(|device| Placement { device: DeviceId(device), predicted }).into(),
        prediction: Prediction::Configured,
        pinned: false,
        preload: false,
        idle_ttl: None,
    };
    Configuration {
        policy,
        devices: vec![device("a"), device("b")],
        models: vec![model],
        families: Vec::new(),
        labels: Vec::new(),
        seed: 1,
    }
}

fn submission(number: u64) -> Submission {
    Submission {
        label: LabelId(0),
        wanted: Wanted::Model(ModelId(0)),
        class: Some(Class::Interactive),
        kind: JobKind::Embedding,
        inputs: 1 + (number % 3) as u32,
        prompt_tokens: 0,
        max_tokens: None,
        deadline: Some(MS.times(4 + number * 7 % 60)),
        max_wait: None,
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: Bytes::new(5),
        client: None,
        affinity: None,
    }
}

fn started(world: World) -> Started {
    let residents = [0, 1].map(|device| Resident { model: ModelId(0), device: DeviceId(device) }).into();
    Started { configuration: configuration(world), profiles: Vec::new(), estimates: Vec::new(), residents }
}

fn granted(effects: &Effects, now: Time) -> Vec<(Attempt, InstanceId, Time)> {
    let grants = effects.iter().filter_map(|effect| if let Effect::Grant(grant) = effect { Some(grant) } else { None });
    grants.map(|grant| (grant.attempt, grant.instance, now.after(MS.times(1 + u64::from(grant.weight))))).collect()
}

fn state(scheduler: &Scheduler) -> String {
    serde_json::to_string(&scheduler.checkpoint()).unwrap()
}

/// A scheduler and one to which the short ways are closed leave the same state and want the same after every input.
fn agree(world: World) -> [u32; 4] {
    let (mut short, mut effects) = (Scheduler::new(), Effects::new());
    short.step(Time::ZERO, &Input::Started(Box::new(started(world))), &mut effects);
    let mut long = short.clone();
    long.plain = false;
    let (mut under_way, mut taken) = (VecDeque::new(), [0; 4]);
    let mut tell = |now: Time, input: Input, taken: &mut [u32; 4]| {
        count(&short, &input, taken);
        let mut others = Effects::new();
        short.step(now, &input, &mut effects);
        long.step(now, &input, &mut others);
        assert_eq!((&effects.list, &effects.steps), (&others.list, &others.steps));
        assert_eq!(state(&short), state(&long));
        granted(&effects, now)
    };
    for number in 0..1_500 {
        let now = Time::from_nanos(number * world.gap);
        while let Some((attempt, instance, due)) = under_way.pop_front_if(|(_, _, due)| *due <= now) {
            let measured = Measured { first_token: None, output_tokens: 0 };
            under_way.extend(tell(due, Input::GrantFinished { attempt, instance, measured }, &mut taken));
            under_way.make_contiguous().sort_by_key(|grant| grant.2);
        }
        let arrival = Input::Submitted { job: JobId(number), submission: submission(number) };
        for input in [arrival, Input::TimerDue] {
            under_way.extend(tell(now, input, &mut taken));
            under_way.make_contiguous().sort_by_key(|grant| grant.2);
        }
    }
    taken
}

/// Counts which short way an input takes: an arrival that starts or waits, an end with or without a next grant.
fn count(scheduler: &Scheduler, input: &Input, taken: &mut [u32; 4]) {
    let place = match input {
        Input::Submitted { submission, .. } => match scheduler.short_arrival(submission, Class::Interactive) {
            Some((_, Arrival::Starts)) => 0,
            Some((_, Arrival::Waits)) => 1,
            None => return,
        },
        Input::GrantFinished { attempt, instance, .. } => match scheduler.short_way(*attempt, *instance) {
            Some(ShortWay::Relay(_)) => 2,
            Some(ShortWay::Rest) => 3,
            None => return,
        },
        _ => return,
    };
    taken[place] += 1;
}

#[test]
fn short_ways_lead_where_long_ones_do() {
    let mut all = [0; 4];
    for order in [Order::Fifo, Order::Edf] {
        for dropped in [false, true] {
            for (idle, gap) in [(Span::ZERO, 1_400_000), (MS, 1_700_000), (MS.times(3), 1_500_000), (MS, 900_000)] {
                let taken = agree(World { order, dropped, idle, gap });
                all.iter_mut().zip(taken).for_each(|(all, taken)| *all += taken);
            }
        }
    }
    assert!(all.iter().all(|&taken| taken > 500), "{all:?}");
}

/// Two jobs run and eighteen wait, in the order of their deadlines.
fn crowded() -> Scheduler {
    let (mut scheduler, mut effects) = (Scheduler::new(), Effects::new());
    let world = World { order: Order::Edf, dropped: true, idle: MS, gap: 0 };
    scheduler.step(Time::ZERO, &Input::Started(Box::new(started(world))), &mut effects);
    for number in 0..20 {
        let input = Input::Submitted { job: JobId(number), submission: submission(number) };
        scheduler.step(Time::ZERO, &input, &mut effects);
    }
    scheduler
}

fn change(scheduler: &mut Scheduler, job: u64, change: impl FnOnce(&mut Job)) {
    change(scheduler.jobs.get_mut(job).unwrap());
}

#[test]
fn a_quick_look_at_the_jobs_misses_nothing() {
    let spoilt: [fn(&mut Scheduler); 10] = [
        |one| one.queued[0].jobs += 1,
        |one| one.jobs.discard(19),
        |one| change(one, 19, |job| job.set_line(None)),
        |one| change(one, 19, |job| job.running = 1),
        |one| change(one, 19, |job| job.inputs += 1),
        |one| change(one, 19, |job| job.set_expires(None)),
        |one| change(one, 0, |job| job.running = 2),
        |one| change(one, 0, |job| job.set_expires(Some((Time::MAX, Overdue::MaxWait)))),
        |one| one.expiry.insert(Time::MAX, JobId(99)),
        |one| one.jobs.insert(99, Job::default()),
    ];
    assert!(crowded().are_jobs_sound());
    assert_eq!(crowded().find_unsound_job(), Ok(()));
    for (number, spoil) in spoilt.into_iter().enumerate() {
        let mut scheduler = crowded();
        spoil(&mut scheduler);
        assert!(!scheduler.are_jobs_sound(), "{number}");
        assert!(scheduler.find_unsound_job().is_err(), "{number}");
    }
}
