//! What remains of a run when it is over and its warm-up is cut off.

use windtunnel_core::{Bytes, Class, Span, Time};

use super::{
    RunMetrics,
    checks::{self, Check},
    crowd::Point,
    device_time::Shares,
    flows::{Flow, Gaps},
    share_of,
    starvation::Starved,
    stretch::{Absorb, OUTSIDE, STRETCHES},
    tally::Tally,
    thrash::Thrash,
    warmup::{Cut, Groups},
    work::Work,
};
use crate::journal::{End, EndCause, Header, WarmupRule};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigures {
    /// What the run was.
    pub header: Header,
    /// How it ended.
    pub end: End,
    /// Where its steady part begins.
    pub steady: Steady,
    /// From the cut to the horizon, or to the last of the arrivals asked for.
    pub window: Span,
    /// Jobs by workload, class and model, in the order of these.
    pub flows: Vec<Flow>,
    /// Times between arrivals by workload, over the whole run.
    pub gaps: Vec<Gaps>,
    /// What was done by each model on each device.
    pub places: Vec<PlaceFigures>,
    /// Devices, by id.
    pub devices: Vec<DeviceFigures>,
    /// The longest time without progress by class over the whole run.
    pub starvation: [Option<Span>; 3],
    /// The same of lower classes by what was asked for, and what kept it.
    pub starved: Vec<Starved>,
    /// Models that were loaded again and again, over the whole run.
    pub thrash: Vec<Thrash>,
    /// From then on a job without progress is starved.
    pub patience: Span,
    /// The names of families.
    pub families: Vec<String>,
    /// The number of jobs in the system and in the queue from the cut on.
    pub crowd: SeriesPoint,
    /// Rate times mean stay of the jobs that arrived after the cut, of every outcome: by Little's law what the number in
    /// the system should be, but for the edges of the window.
    pub little: f64,
    /// The same numbers over time, over the whole window and the warm-up.
    pub series: Vec<SeriesPoint>,
    /// The stretches after the cut.
    pub stretches: Vec<StretchMean>,
    /// The backlog of each workload, by label, stretch by stretch as above.
    pub backlogs: Vec<Vec<BacklogPoint>>,
    /// What was found right or wrong.
    pub checks: Vec<Check>,
}

/// Where the steady part of a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// What arrived or ended before this is left out.
    pub cut: Time,
    /// Whether the rule would have left less than half of the run.
    pub too_short: bool,
    /// Whether there was enough to say where to cut.
    pub judged: bool,
}

/// A model on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceFigures {
    /// The model, by id.
    pub model: usize,
    /// The device, by id.
    pub device: usize,
    /// What was done.
    pub work: Work,
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFigures {
    /// Nanoseconds busy and in interactive mode.
    pub shares: Shares,
    /// The most memory seen in use, where it was seen.
    pub memory_peak: Option<Bytes>,
    /// Whether its mode is known.
    pub mode_known: bool,
}

/// Mean numbers of jobs over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeriesPoint {
    /// When that time ends, in seconds.
    pub until: f64,
    /// Jobs in the system.
    pub system: f64,
    /// Waiting jobs.
    pub queue: f64,
}

/// Means over a stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StretchMean {
    /// Its middle, in seconds.
    pub middle: f64,
    /// Jobs in the system.
    pub system: f64,
    /// The latency of the jobs completed in it in seconds; `None`: there were none.
    pub latency: Option<f64>,
    /// The mean age of the jobs in the system at its end in seconds.
    pub age: f64,
}

/// A workload in a stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BacklogPoint {
    /// Its jobs in the system at the end of the stretch.
    pub left: u64,
    /// The latency of those completed in it in seconds; `None`: there were none.
    pub latency: Option<f64>,
}

pub(super) fn of(metrics: RunMetrics) -> RunFigures {
    let (first, steady) = cut(&metrics);
    let end = ended(&metrics);
    let edge = edge(&metrics, first, &end);
    let mut figures = RunFigures {
        window: Span::from_nanos(metrics.close_at.saturating_sub(steady.cut.as_nanos())),
        steady,
        gaps: metrics.flows.labels().iter().map(|label| label.gaps).collect(),
        places: places(&metrics, first),
        devices: devices(&metrics, first),
        starvation: starvation(&metrics, end.t.as_nanos()),
        starved: metrics.starvation.queues(end.t.as_nanos()),
        thrash: metrics.thrashing.clone().into_models(),
        patience: metrics.patience,
        families: metrics.families.clone(),
        crowd: crowd_after(&metrics, first),
        little: 0.0,
        series: series(&metrics),
        stretches: stretches(&metrics, first),
        backlogs: backlogs(&metrics, first),
        checks: checks::of(&metrics, end.cause),
        end,
        flows: metrics.flows.after(first),
        header: metrics.header,
    };
    let (little, check) = checks::little(&figures, edge);
    figures.little = little;
    figures.checks.push(check);
    figures
}

/// A run that says nothing of its end counts as interrupted at its last record.
fn ended(metrics: &RunMetrics) -> End {
    metrics.end.clone().unwrap_or(End {
        t: Time::from_nanos(metrics.now),
        cause: EndCause::Interrupted,
        invariants_checked: 0,
        violations: Vec::new(),
        remarks: std::collections::BTreeMap::new(),
    })
}

/// The longest time without progress by class. Of interactive jobs that were completed it is their wait.
fn starvation(metrics: &RunMetrics, end: u64) -> [Option<Span>; 3] {
    let mut longest = metrics.starvation.longest(end);
    if let Some(interactive) = &mut longest[Class::Interactive.index()] {
        *interactive = metrics.flows.longest_wait(Class::Interactive).max(*interactive);
    }
    longest.map(|longest| longest.map(Span::from_nanos))
}

fn edge(metrics: &RunMetrics, first: usize, end: &End) -> checks::Edge {
    let crowd = &metrics.crowd;
    checks::Edge {
        before: crowd.ends[first.checked_sub(1).unwrap_or(OUTSIDE)].jobs,
        ages: crowd.ages(metrics.close_at),
        overtime: metrics.overtime,
        longest: if crowd.system() > 0 { end.t.as_nanos() } else { 0 }.max(metrics.flows.longest_stay()),
    }
}

/// The first stretch that counts and what is to be said of the cut.
fn cut(metrics: &RunMetrics) -> (usize, Steady) {
    let grid = &metrics.grid;
    let end = metrics.close_at;
    let (wanted, judged) = match (metrics.header.warmup, metrics.header.horizon) {
        (WarmupRule::Fixed(_), _) | (WarmupRule::Share(_), Some(_)) => (grid.origin(), true),
        (WarmupRule::Share(share), None) => (share_of(share, end), true),
        (WarmupRule::Auto, _) => latest_cut(metrics),
    };
    let half = end / 2;
    let too_short = wanted > half;
    let asked = matches!(metrics.header.warmup, WarmupRule::Fixed(_) | WarmupRule::Share(_));
    let wanted = if too_short && !asked { half - half % grid.length() } else { wanted };
    let first = grid.first_from(wanted);
    (first, Steady { cut: Time::from_nanos(grid.start(first).min(end)), too_short, judged })
}

fn latest_cut(metrics: &RunMetrics) -> (u64, bool) {
    let cuts = metrics.flows.labels().iter().map(|label| label.groups.cut());
    cuts.fold((0, false), |(latest, judged), cut| match cut {
        Cut::Unknown => (latest, judged),
        Cut::At(t) => (latest.max(t), true),
    })
}

fn crowd_after(metrics: &RunMetrics, first: usize) -> SeriesPoint {
    let mut all = Point::default();
    for stretch in first..STRETCHES {
        all.absorb(metrics.crowd.stretch(stretch));
    }
    mean_of(all, metrics.close_at)
}

fn mean_of(point: Point, until: u64) -> SeriesPoint {
    SeriesPoint {
        until: seconds(until),
        system: point.mean_system().unwrap_or(0.0),
        queue: point.mean_queue().unwrap_or(0.0),
    }
}

fn series(metrics: &RunMetrics) -> Vec<SeriesPoint> {
    let (origin, length) = (metrics.grid.origin(), metrics.grid.point_length());
    let ends = (1u64..).map(|n| origin.saturating_add(n.saturating_mul(length)).min(metrics.close_at));
    let filled = metrics.crowd.points().iter().zip(ends).filter(|(point, _)| point.span > 0);
    filled.map(|(point, end)| mean_of(*point, end)).collect()
}

/// The stretches that tell of a steady state: from `first` on, without one that the end of the run cut to less than half.
fn telling(metrics: &RunMetrics, first: usize) -> impl Iterator<Item = (usize, Point)> {
    let length = metrics.grid.length();
    let stretches = (first..STRETCHES).map(|stretch| (stretch, metrics.crowd.stretch(stretch)));
    stretches.filter(move |(_, crowd)| crowd.span >= length / 2)
}

fn stretches(metrics: &RunMetrics, first: usize) -> Vec<StretchMean> {
    let mut paces = Paces::default();
    metrics.flows.labels().iter().for_each(|label| paces.add(&label.groups, metrics));
    telling(metrics, first)
        .map(|(stretch, crowd)| StretchMean {
            middle: seconds(metrics.grid.start(stretch)) + seconds(crowd.span) / 2.0,
            system: crowd.mean_system().unwrap_or(0.0),
            latency: paces.mean(stretch),
            age: metrics.crowd.ends[stretch].age.unwrap_or(0.0) / 1e9,
        })
        .collect()
}

fn backlogs(metrics: &RunMetrics, first: usize) -> Vec<Vec<BacklogPoint>> {
    let labels = metrics.flows.labels().iter().enumerate();
    labels
        .map(|(label, facts)| {
            let mut paces = Paces::default();
            paces.add(&facts.groups, metrics);
            let left = metrics.flows.left(label);
            let stretches = telling(metrics, first);
            stretches.map(|(stretch, _)| BacklogPoint { left: left[stretch], latency: paces.mean(stretch) }).collect()
        })
        .collect()
}

/// Completions and the sum of their latencies by the stretch in which they ended, as far as groups of them are full.
#[derive(Default)]
struct Paces([(u64, u128); STRETCHES]);

impl Paces {
    fn add(&mut self, groups: &Groups, metrics: &RunMetrics) {
        for group in groups.iter().filter(|group| group.end <= metrics.close_at) {
            if let Some((completions, latency)) = self.0.get_mut(metrics.grid.stretch(group.end)) {
                *completions += u64::from(group.size);
                *latency += u128::from(group.sum);
            }
        }
    }

    /// The mean latency in seconds; `None` where there is none.
    fn mean(&self, stretch: usize) -> Option<f64> {
        let (completions, latency) = self.0[stretch];
        (completions > 0).then(|| latency as f64 / completions as f64 / 1e9)
    }
}

fn places(metrics: &RunMetrics, first: usize) -> Vec<PlaceFigures> {
    let mut places: Vec<PlaceFigures> = metrics
        .service
        .places()
        .iter()
        .map(|place| PlaceFigures {
            model: place.model,
            device: place.device,
            work: place.stretches.clone().from(first),
        })
        .collect();
    places.sort_by_key(|place| (place.model, place.device));
    places
}

fn devices(metrics: &RunMetrics, first: usize) -> Vec<DeviceFigures> {
    let devices = metrics.service.devices.iter();
    devices
        .map(|device| DeviceFigures {
            shares: device.stretches.clone().from(first),
            memory_peak: device.memory_peak,
            mode_known: device.mode_known(),
        })
        .collect()
}

/// Nanoseconds in seconds.
pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl RunFigures {
    /// The length of the window in seconds.
    pub fn window_seconds(&self) -> f64 {
        seconds(self.window.as_nanos())
    }

    /// The jobs of a workload, by label, in one.
    pub fn workload(&self, label: usize) -> Tally {
        self.merged(|flow| flow.label == label)
    }

    /// The jobs of a class in one.
    pub fn class(&self, class: Class) -> Tally {
        self.merged(|flow| flow.class == class)
    }

    /// The jobs of a model in one.
    pub fn model(&self, model: usize) -> Tally {
        self.merged(|flow| flow.model == Some(model))
    }

    /// All jobs in one.
    pub fn all(&self) -> Tally {
        self.merged(|_| true)
    }

    fn merged(&self, which: impl Fn(&Flow) -> bool) -> Tally {
        let mut all = Tally::default();
        for flow in self.flows.iter().filter(|flow| which(flow)) {
            all.absorb(flow.tally.clone());
        }
        all
    }

    /// The share of its capacity that a device used: inputs done, each as the time it takes at capacity. `None` where a
    /// capacity that is needed is not known, or nothing can be placed on the device.
    pub fn capacity_fraction(&self, device: usize) -> Option<f64> {
        let window = self.window_seconds();
        let facts = self.header.devices.get(device)?;
        if !facts.used || window <= 0.0 {
            return None;
        }
        let mut used = 0.0;
        for place in self.places.iter().filter(|place| place.device == device && place.work.inputs > 0) {
            used += place.work.inputs as f64 / self.header.capacity(place.model, device)?;
        }
        Some(used / (window * facts.side_by_side))
    }
}

impl Header {
    /// The most inputs a second of a model alone on a device, where that is known.
    pub fn capacity(&self, model: usize, device: usize) -> Option<f64> {
        self.models.get(model)?.capacity.get(device).copied().flatten().filter(|capacity| *capacity > 0.0)
    }
}
