//! A recorded run as something to simulate.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use windtunnel_config::{Arrivals, Distribution, FaultKind, Noise, Request, Scenario, Service, Warmup, Workload};
use windtunnel_core::{
    Bytes, Capability, Class, Configuration, DeviceId, FamilyId, JobId, JobKind, LabelId, ModelId, Needs, Quality,
    Span, Submission, Time, Wanted,
};

use super::{
    devices::SameDevices,
    loads::Loads,
    read::{RecordedGrant, RecordedJob, RecordedRun},
    residuals::{Own, Residual, residuals},
};
use crate::{SimError, arrivals::UnitNoise, random::Stream, setup::Setup};

/// What workloads of given moments do not say of their requests, by the number the driver gives them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    patience: Vec<Span>,
    /// Where the residuals of each request begin, and at the end how many there are.
    first: Vec<usize>,
    residuals: Vec<Own>,
}

/// What was drawn because the recording does not hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Requests that had no step or one that did not finish: its service is that of another.
    pub residuals: u64,
    /// Requests that never got their output: it is that of another.
    pub outputs: u64,
}

/// A recorded run, to be played under any settings.
#[derive(Clone, Debug)]
pub struct Playback {
    run: RecordedRun,
    groups: Vec<Group>,
    requests: Arc<Requests>,
    /// The recorded place of each request, by the number the driver gives it.
    order: Vec<usize>,
    drawn: Drawn,
    loads: Loads,
    remarks: Vec<String>,
}

/// Requests that are alike but for their sizes.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    alike: Submission,
    requests: Vec<Request>,
}

impl Requests {
    /// After how long the client of a job gives up; [`Span::MAX`]: never.
    pub fn patience(&self, job: JobId) -> Span {
        self.patience.get(job.0 as usize).copied().unwrap_or(Span::MAX)
    }

    /// What varies the service of a step; steps beyond the recorded ones take theirs in turn.
    #[inline(never)]
    pub fn noise(&self, job: JobId, step: u32) -> UnitNoise {
        let at = job.0 as usize;
        let own = match (self.first.get(at), self.first.get(at + 1)) {
            (Some(&first), Some(&end)) if first < end => &self.residuals[first..end],
            (_, _) => return UnitNoise::NONE,
        };
        let Own { time, prefill } = own[step as usize % own.len()];
        UnitNoise { exponential: time, normal: prefill - 1.0 }
    }
}

impl Playback {
    /// Makes `run` ready, which was recorded with cards and services as in `scenario`; what the recording does not hold is
    /// drawn from a stream of `seed`.
    pub fn new(run: RecordedRun, scenario: &Scenario, seed: u64) -> Playback {
        let mut draws = Stream::from_seed(seed ^ (u64::from(run.header.replication) << 32) ^ 0x6a09_e667);
        let grants = known_here(&run, scenario);
        let residuals = residuals(&grants, run.end.as_nanos(), scenario);
        let mut drawn = Drawn::default();
        let outputs = outputs(&run.jobs, &mut draws, &mut drawn);
        let own = own_residuals(&run.jobs, &residuals, &mut draws, &mut drawn);
        let (groups, order) = group(&run, &outputs);
        let mut requests = Requests::default();
        for &place in &order {
            requests.patience.push(run.jobs[place].gave_up.unwrap_or(Span::MAX));
            requests.first.push(requests.residuals.len());
            requests.residuals.extend(&own[place]);
        }
        requests.first.push(requests.residuals.len());
        let loads = Loads::of(&run);
        let mut remarks = remarks(&run, &grants, scenario);
        remarks.extend(loads.remark(&run.started.configuration, scenario));
        Playback { run, groups, requests: Arc::new(requests), order, drawn, loads, remarks }
    }

    /// The run as it was recorded.
    pub fn run(&self) -> &RecordedRun {
        &self.run
    }

    /// The recorded place of each request, by the number it has in a playback.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// What had to be drawn.
    pub fn drawn(&self) -> Drawn {
        self.drawn
    }

    /// What of the recording is not played.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The run with the cards, models and policy of `scenario`, whose workloads are left out. Arrivals stop where the
    /// recording ends, and the run goes on until every job has ended.
    ///
    /// # Errors
    /// If the scenario lacks a model or family that was asked for, or cannot be simulated.
    pub fn under(&self, mut scenario: Scenario) -> Result<Setup, SimError> {
        scenario.faults.retain(|fault| !strikes_work(&fault.kind));
        let workload = |group: &Group| group.workload(&self.run.started.configuration, &scenario);
        let workloads = self.groups.iter().map(workload).collect::<Result<Vec<_>, _>>()?;
        scenario.configuration.labels = workloads.iter().map(|workload| workload.name.clone()).collect();
        scenario.workloads = workloads;
        scenario.run = windtunnel_config::Run {
            horizon: Some(self.run.end.since(Time::ZERO)),
            jobs: None,
            warmup: Warmup::Fixed(Span::ZERO),
            seed: scenario.run.seed,
            replications: 1,
            drain: true,
        };
        for service in scenario.services.iter_mut().flatten().flatten() {
            if let Service::Batch { noise, .. } = service {
                // The time of a grant is that of its weight times the residual of its first step.
                *noise = Noise::Exponential;
            }
        }
        let loads = self.loads.within(&self.run.started.configuration, &scenario);
        Ok(Setup::new(scenario)?.with_requests(Arc::clone(&self.requests)).with_load_times(loads))
    }
}

/// Whether a fault strikes grants or requests: what it did is in the recorded times already. Those of memory, loads and exits
/// belong to the world that other settings meet as well.
fn strikes_work(kind: &FaultKind) -> bool {
    match kind {
        FaultKind::Crash
        | FaultKind::Wedge { .. }
        | FaultKind::SlowDevice { .. }
        | FaultKind::ConnectionLimit { .. }
        | FaultKind::SilentOvercommit
        | FaultKind::ClockJump { .. } => true,
        FaultKind::PhantomMemory { .. }
        | FaultKind::LingeringMemory { .. }
        | FaultKind::SlowExit { .. }
        | FaultKind::NeverExits
        | FaultKind::SlowLoad { .. }
        | FaultKind::StalledLoad { .. }
        | FaultKind::FailedLoad
        | FaultKind::LoadOom
        | FaultKind::WrongEstimate { .. }
        | FaultKind::MemoryGrowth { .. }
        | FaultKind::ForeignMemory { .. }
        | FaultKind::Pressure { .. }
        | FaultKind::Monitor { .. } => false,
    }
}

/// What no device is called.
const NOWHERE: DeviceId = DeviceId(u32::MAX);

/// The recorded grants with the scenario's ids of their models and devices, which have the same names; what it does not have
/// gets an id that nothing has.
fn known_here(run: &RecordedRun, scenario: &Scenario) -> Vec<RecordedGrant> {
    let (theirs, ours) = (&run.started.configuration, &scenario.configuration);
    let models = theirs.models.iter().map(|model| ours.models.iter().position(|other| other.name == model.name));
    let models: Vec<Option<usize>> = models.collect();
    let devices = SameDevices::of(theirs, ours);
    let id = |model: ModelId| models.get(model.index()).copied().flatten().map_or(u32::MAX, |at| at as u32);
    let here = |grant: &RecordedGrant| RecordedGrant {
        model: ModelId(id(grant.model)),
        device: devices.here(grant.device).unwrap_or(NOWHERE),
        ..grant.clone()
    };
    run.grants.iter().map(here).collect()
}

/// The output of every request. One that never got it has that of another of its workload; of one that shared its batches
/// it is not known and does not matter, for the time of a batch does not depend on it.
fn outputs(jobs: &[RecordedJob], draws: &mut Stream, drawn: &mut Drawn) -> Vec<u32> {
    let mut known: BTreeMap<LabelId, Vec<u32>> = BTreeMap::new();
    for job in jobs {
        known.entry(job.submission.label).or_default().extend(job.output_tokens);
    }
    let output = |job: &RecordedJob| match (job.output_tokens, known.get(&job.submission.label)) {
        (Some(tokens), _) => tokens,
        (None, Some(others)) if !others.is_empty() && !job.is_completed() => {
            drawn.outputs += 1;
            others[draws.below(others.len())]
        }
        (None, _) => 0,
    };
    jobs.iter().map(output).collect()
}

/// The residuals of the steps of every request. A step that never ran, or not to its end, has one of another of its
/// workload, where there is one no less than what is known of its own.
fn own_residuals(jobs: &[RecordedJob], residuals: &[Residual], draws: &mut Stream, drawn: &mut Drawn) -> Vec<Vec<Own>> {
    let of = |grant: &Option<u32>| grant.and_then(|grant| residuals.get(grant as usize).copied());
    let mut known: BTreeMap<LabelId, Vec<Own>> = BTreeMap::new();
    for job in jobs {
        let own = job.steps.iter().filter_map(of).filter_map(|residual| match residual {
            Residual::Known(value) => Some(value),
            Residual::AtLeast(_) | Residual::Unknown => None,
        });
        known.entry(job.submission.label).or_default().extend(own);
    }
    known.values_mut().for_each(|values| values.sort_by(|a, b| a.time.total_cmp(&b.time)));
    let mut draw = |others: &[Own], least: f64| {
        let fit = &others[others.partition_point(|other| other.time < least)..];
        match fit {
            [] if least > 0.0 => Own { time: least, ..Own::NONE },
            [] => Own::NONE,
            _ => fit[draws.below(fit.len())],
        }
    };
    let own = |job: &RecordedJob| -> Vec<Own> {
        let others = known.get(&job.submission.label).map_or(&[][..], Vec::as_slice);
        let mut complete = true;
        let mut steps: Vec<Own> = Vec::new();
        for grant in &job.steps {
            steps.push(match of(grant) {
                Some(Residual::Known(value)) => value,
                Some(Residual::Unknown) => Own::NONE,
                Some(Residual::AtLeast(least)) => {
                    complete = false;
                    draw(others, least)
                }
                None => {
                    complete = false;
                    draw(others, 0.0)
                }
            });
        }
        if steps.is_empty() && !others.is_empty() {
            complete = false;
            steps.push(draw(others, 0.0));
        }
        drawn.residuals += u64::from(!complete);
        steps
    };
    jobs.iter().map(own).collect()
}

/// Requests in groups that are alike, and the order in which a driver will number them: by moment, then by group.
fn group(run: &RecordedRun, outputs: &[u32]) -> (Vec<Group>, Vec<usize>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut order: Vec<(Time, usize, usize)> = Vec::with_capacity(run.jobs.len());
    for (place, job) in run.jobs.iter().enumerate() {
        let submission = job.submission;
        let alike =
            Submission { inputs: 1, prompt_tokens: 0, client: None, affinity: None, body: Bytes::ZERO, ..submission };
        let at = groups.iter().position(|group| group.alike == alike).unwrap_or_else(|| {
            let same = groups.iter().filter(|group| group.alike.label == alike.label).count();
            groups.push(Group { name: name(run, alike.label, same), alike, requests: Vec::new() });
            groups.len() - 1
        });
        groups[at].requests.push(Request {
            at: job.at.since(Time::ZERO),
            inputs: Some(submission.inputs),
            prompt_tokens: Some(submission.prompt_tokens),
            output_tokens: Some(outputs[place]),
        });
        order.push((job.at, at, place));
    }
    order.sort();
    (groups, order.into_iter().map(|(_, _, place)| place).collect())
}

fn name(run: &RecordedRun, label: LabelId, same: usize) -> String {
    let labels = &run.started.configuration.labels;
    let name = labels.get(label.index()).cloned().unwrap_or_else(|| format!("label {}", label.0));
    if same == 0 { name } else { format!("{name} ({})", same + 1) }
}

/// Which recorded grants have no place in `scenario`, so that nothing is known of what was their own.
fn strangers(run: &RecordedRun, here: &[RecordedGrant], scenario: &Scenario) -> Option<String> {
    let serves = |grant: &RecordedGrant| {
        let service = scenario.services.get(grant.model.index()).and_then(|on| on.get(grant.device.index()));
        matches!(service, Some(Some(_)))
    };
    let told = &run.started.configuration;
    let lost = run.grants.iter().zip(here).filter(|(_, here)| !serves(here)).map(|(grant, _)| grant);
    let places: BTreeSet<(ModelId, DeviceId)> = lost.clone().map(|grant| (grant.model, grant.device)).collect();
    let names = places
        .into_iter()
        .filter_map(|(model, device)| Some(format!("{} on {}", told.model(model)?.name, told.device(device)?.name)));
    let names = names.collect::<Vec<_>>().join(", ");
    let (lost, all) = (lost.count(), run.grants.len());
    (lost > 0).then(|| {
        format!(
            "NOT MATCHED: {lost} of {all} grants ran as {names}, which the scenario has not: their recorded times are \
             lost, and others of their workload or the model's stand for them"
        )
    })
}

fn remarks(run: &RecordedRun, here: &[RecordedGrant], scenario: &Scenario) -> Vec<String> {
    let mut remarks: Vec<String> = strangers(run, here, scenario).into_iter().chain(run.remarks.clone()).collect();
    let slots = |grant: &&RecordedGrant| {
        let service = scenario.services.get(grant.model.index()).and_then(|on| on.get(grant.device.index()));
        matches!(service, Some(Some(Service::Slots { .. })))
    };
    let untold = |grant: &&RecordedGrant| grant.output_tokens > 1 && grant.first_token.is_none();
    let count = here.iter().filter(slots).filter(untold).count();
    if count > 0 {
        remarks.push(format!(
            "of {count} grants with continuous batching it is not known when the first token was out: their service is the model's"
        ));
    }
    if scenario.faults.iter().any(|fault| strikes_work(&fault.kind)) {
        remarks.push(
            "faults of the scenario that strike work are left out: what they did is in the recorded times".to_owned(),
        );
    }
    if run.jobs.iter().any(|job| job.submission.affinity.is_some() || job.submission.body != Bytes::ZERO) {
        remarks.push("conversations and the bytes of requests are left out".to_owned());
    }
    let cancelled = run.jobs.iter().filter(|job| job.gave_up.is_some()).count();
    if cancelled > 0 {
        remarks.push(format!(
            "{cancelled} clients gave up and do so again after as long; those that did not never do, however long they wait"
        ));
    }
    if run.header.workloads.iter().any(|workload| workload.closed_loop) {
        remarks.push(
            "clients that waited for answers send when they did, however fast answers come (open loop)".to_owned(),
        );
    }
    remarks
}

impl Group {
    fn workload(&self, recorded: &Configuration, scenario: &Scenario) -> Result<Workload, SimError> {
        let Submission { wanted, class, kind, max_tokens, deadline, max_wait, drop_hopeless, quality, needs, .. } =
            self.alike;
        Ok(workload_of(&self.name, (class, kind), wanted_in(wanted, recorded, scenario)?, &self.requests, |workload| {
            workload.max_tokens = max_tokens;
            workload.deadline = deadline;
            workload.max_wait = max_wait;
            workload.drop_hopeless = drop_hopeless;
            (workload.quality, workload.needs) = (quality, needs);
        }))
    }
}

fn workload_of(
    name: &str,
    (class, kind): (Option<Class>, JobKind),
    wanted: Wanted,
    requests: &[Request],
    rest: impl FnOnce(&mut Workload),
) -> Workload {
    let (none, one) = (Distribution::Constant(0.0), Distribution::Constant(1.0));
    let mut workload = Workload {
        name: name.to_owned(),
        class,
        wanted,
        kind,
        quality: None::<Quality>,
        needs: Needs::NONE,
        needs_listed: Vec::<Capability>::new(),
        patience: None,
        drop_hopeless: None,
        deadline: None,
        max_wait: None,
        inputs: one,
        prompt_tokens: none.clone(),
        output_tokens: none,
        max_tokens: None,
        arrivals: Arrivals::At(requests.to_vec()),
        rate_scale: 1.0,
        from: Span::ZERO,
        to: None,
    };
    rest(&mut workload);
    workload
}

/// What was asked for, by its name.
fn wanted_in(wanted: Wanted, recorded: &Configuration, scenario: &Scenario) -> Result<Wanted, SimError> {
    let (what, name) = match wanted {
        Wanted::Model(model) => ("model", recorded.model(model).map(|model| &model.name)),
        Wanted::Family(family) => ("family", recorded.families.get(family.index()).map(|family| &family.name)),
    };
    // What was never configured is refused again.
    let Some(name) = name else { return Ok(wanted) };
    let (models, families) = (&scenario.configuration.models, &scenario.configuration.families);
    let found = match wanted {
        Wanted::Model(_) => {
            models.iter().position(|model| model.name == *name).map(|at| Wanted::Model(ModelId(at as u32)))
        }
        Wanted::Family(_) => {
            families.iter().position(|family| family.name == *name).map(|at| Wanted::Family(FamilyId(at as u32)))
        }
    };
    found.ok_or_else(|| SimError::Scenario(format!("the journal asks for {what} {name}, which the scenario has not")))
}
