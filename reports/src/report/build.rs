//! From the figures of replications to a report.

use windtunnel_core::Class;

use super::{
    ArrivalReport, ClassReport, DeviceReport, Figure, FlowReport, Invariants, ModelReport, Named, REPORT_SCHEMA,
    Report, RunReport, Starved, WorkloadReport,
    distribution::{QUANTILES, needed},
    flow::Sample,
    thrash,
};
use crate::{
    RunFigures,
    journal::{Header, Source, WorkloadFacts},
    metrics::{Absorb, Histogram, Quantile, Tally},
    statistics::{Growth, Stability, growth, judge, workload_growth},
};

impl Report {
    /// The report of replications of one setting; names and title are those of the first.
    pub fn from_runs(mut runs: Vec<RunFigures>) -> Report {
        runs.sort_by_key(|run| run.header.replication);
        let header = runs.first().map(|run| run.header.clone());
        let growing = Growing::of(&runs, header.as_ref());
        let mut report = Report {
            schema: REPORT_SCHEMA,
            title: header.as_ref().map(|header| header.title.clone()).unwrap_or_default(),
            seed: header.as_ref().map_or(0, |header| header.seed),
            source: header.as_ref().map_or(Source::Sim, |header| header.source),
            unstable: growing.any(),
            remarks: Vec::new(),
            workload: workloads(&runs, header.as_ref()),
            class: classes(&runs),
            model: models(&runs, header.as_ref()),
            device: devices(&runs, header.as_ref()),
            starved: Starved::of(&runs),
            invariants: invariants(&runs),
            run: RunReport::of(&runs),
        };
        report.of_the_horizon(&growing, &runs);
        report.remarks = report.remarks_of(&runs, header.as_ref());
        report
    }

    /// Takes the intervals from the times of what has no steady state.
    fn of_the_horizon(&mut self, growing: &Growing, runs: &[RunFigures]) {
        let flows = || runs.iter().flat_map(|run| &run.flows).filter(|flow| growing.workload(flow.label));
        let classes: Vec<&str> = flows().map(|flow| flow.class.name()).collect();
        let models: Vec<usize> = flows().filter_map(|flow| flow.model).collect();
        for (label, (_, one)) in self.workload.iter_mut().enumerate().filter(|(label, _)| growing.workload(*label)) {
            one.unstable = growing.labels.get(label).is_some_and(|grows| *grows);
            one.flow.of_the_horizon();
        }
        self.class.iter_mut().filter(|(name, _)| classes.contains(name)).for_each(|(_, one)| one.flow.of_the_horizon());
        let touched = self.model.iter_mut().enumerate().filter(|(model, _)| models.contains(model));
        touched.for_each(|(_, (_, one))| one.flow.of_the_horizon());
    }

    fn remarks_of(&self, runs: &[RunFigures], header: Option<&Header>) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.unstable {
            let names = self.growing_workloads();
            let whose = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
            remarks.push(format!(
                "the backlog{whose} grows without end: latencies and waits are figures of the horizon, not of the queue"
            ));
        }
        remarks.extend(self.warmup_remark(runs));
        remarks.extend(self.interval_remarks());
        remarks.extend(self.live_remarks());
        remarks.extend(self.idle_devices());
        remarks.extend(self.starved.iter().map(Starved::in_words));
        remarks.extend(thrash::in_words(runs));
        remarks.extend(closed_loops(header));
        remarks.extend(header.iter().flat_map(|header| &header.remarks).map(|(key, text)| format!("{key}: {text}")));
        let last = runs.iter().flat_map(|run| run.end.remarks.iter().map(|said| (run.header.replication, said)));
        remarks.extend(last.map(|(number, (key, text))| match runs.len() {
            1 => format!("{key}: {text}"),
            _ => format!("{key}, replication {number}: {text}"),
        }));
        remarks
    }

    fn warmup_remark(&self, runs: &[RunFigures]) -> Option<String> {
        let short = self.run.warmup.too_short;
        if short > 0 && !self.unstable {
            let of = self.run.replications;
            return Some(format!("too short: in {short} of {of} runs the warm-up takes more than half"));
        }
        let unjudged = runs.iter().any(|run| !run.steady.judged);
        unjudged.then(|| "too few completions to find the end of the warm-up: nothing was cut off".to_owned())
    }

    /// The workloads worth a row: all of them, of a live run those that asked for anything. A daemon has a label for
    /// whoever has no key, whether or not there is anybody.
    pub fn workloads_seen(&self) -> impl Iterator<Item = (&str, &WorkloadReport)> {
        let asked = |one: &WorkloadReport| one.flow.offered.mean > 0.0 || one.arrivals.rate.is_some();
        let live = self.source == Source::Live && self.workload.iter().any(|(_, one)| asked(one));
        self.workload.iter().filter(move |(_, one)| !live || asked(one))
    }

    /// What figures of a live run mean that look as if they should be the same.
    fn live_remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.source != Source::Live {
            return remarks;
        }
        let differs = |one: &WorkloadReport| {
            one.arrivals.rate.is_some_and(|rate| (rate.mean / one.flow.offered_rate.mean - 1.0).abs() > 0.05)
        };
        if self.workload.iter().any(|(_, one)| differs(one)) {
            let what = "measured/s is from the first arrival to the last, offered/s over all the time measured, in which \
                        there may be pauses before and after";
            remarks.push(what.to_owned());
        }
        let loads = self.model.iter().any(|(_, model)| model.loads.mean > 0.0);
        if loads && !self.device.is_empty() {
            let what = "busy: of a model the share of the time in which it was loaded, of a device that of all the time \
                        measured";
            remarks.push(what.to_owned());
        }
        remarks
    }

    /// The workloads whose backlog grows by itself.
    pub fn growing_workloads(&self) -> Vec<&str> {
        self.workload.iter().filter(|(_, one)| one.unstable).map(|(name, _)| name).collect()
    }

    fn interval_remarks(&self) -> Vec<String> {
        if self.run.replications == 1 {
            return vec!["one replication: no intervals can be given".to_owned()];
        }
        let stable = self.workload.iter().filter(|(_, one)| !one.unstable && !self.all_unstable());
        stable.filter_map(|(name, one)| interval_remark(name, &one.flow)).collect()
    }

    fn all_unstable(&self) -> bool {
        self.unstable && self.growing_workloads().is_empty()
    }

    fn idle_devices(&self) -> Option<String> {
        let idle: Vec<&str> = self.device.iter().filter(|(_, device)| !device.used).map(|(name, _)| name).collect();
        (!idle.is_empty()).then(|| format!("no model may be placed on {}", idle.join(", ")))
    }
}

/// Which quantiles of a latency have no interval for want of completions.
fn interval_remark(name: &str, flow: &FlowReport) -> Option<String> {
    let figures = flow.latency?.figures();
    let bare = |name: &str| figures.iter().any(|(one, figure)| *one == name && figure.low.is_none());
    let lacking: Vec<(&str, Quantile)> = QUANTILES.iter().filter(|(name, _)| bare(name)).copied().collect();
    let (first, p) = *lacking.first()?;
    let names = lacking.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let needed = needed(p);
    let first = if lacking.len() > 1 { format!(" for {first}") } else { String::new() };
    Some(format!("no interval for {names} of {name}: each replication needs {needed} completions{first}"))
}

/// Whose backlog grows without end.
struct Growing {
    all: bool,
    labels: Vec<bool>,
}

impl Growing {
    fn of(runs: &[RunFigures], header: Option<&Header>) -> Growing {
        let grows = |of: &dyn Fn(&RunFigures) -> Option<Growth>| {
            judge(&runs.iter().map(of).collect::<Vec<_>>()) == Stability::Unstable
        };
        let labels = header.map_or(0, |header| header.workloads.len());
        Growing {
            all: grows(&growth),
            labels: (0..labels).map(|label| grows(&|run| workload_growth(run, label))).collect(),
        }
    }

    fn any(&self) -> bool {
        self.all || self.labels.contains(&true)
    }

    /// Whether the times of a workload are of the horizon: it grows, or the whole does and nobody knows whose fault it is.
    fn workload(&self, label: usize) -> bool {
        self.labels.get(label).is_some_and(|grows| *grows) || (self.all && !self.labels.contains(&true))
    }
}

fn closed_loops(header: Option<&Header>) -> Option<String> {
    let closed = header.iter().flat_map(|header| &header.workloads).filter(|facts| facts.closed_loop);
    let names: Vec<&str> = closed.map(|facts| facts.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("closed loop ({names}): clients that wait send less, so queueing is hidden")
    })
}

fn samples(runs: &[RunFigures], of: impl Fn(&RunFigures) -> Tally) -> Vec<Sample> {
    runs.iter().map(|run| Sample { tally: of(run), window: run.window_seconds() }).collect()
}

fn workloads(runs: &[RunFigures], header: Option<&Header>) -> Named<WorkloadReport> {
    let facts = header.map(|header| header.workloads.as_slice()).unwrap_or_default();
    facts.iter().enumerate().map(|(label, facts)| (facts.name.clone(), workload(runs, label, facts))).collect()
}

fn workload(runs: &[RunFigures], label: usize, facts: &WorkloadFacts) -> WorkloadReport {
    let samples = samples(runs, |run| run.workload(label));
    let measured =
        |of: &dyn Fn(&RunFigures) -> Option<f64>| Figure::of_values(&runs.iter().filter_map(of).collect::<Vec<_>>());
    WorkloadReport {
        class: facts.class.name().to_owned(),
        unstable: false,
        arrivals: ArrivalReport {
            process: facts.arrivals.clone(),
            closed_loop: facts.closed_loop,
            rate: measured(&|run| run.gaps.get(label)?.rate()),
            cv: measured(&|run| run.gaps.get(label)?.cv()),
        },
        flow: FlowReport::of(&samples),
        latency_curve: curve(&samples),
    }
}

/// Points of the distribution of latency over all replications: every hundredth, finer towards the end.
fn curve(samples: &[Sample]) -> Vec<[f64; 2]> {
    let mut pooled = Histogram::default();
    samples.iter().for_each(|one| pooled.absorb(one.tally.latency.clone()));
    let parts =
        (0..100).map(|percent| percent * 10_000).chain([992_500, 995_000, 997_500, 999_000, 999_900, 1_000_000]);
    let points = parts.filter_map(|parts| {
        let p = Quantile::ppm(parts);
        Some([p.share(), pooled.quantile(p)? / 1e9])
    });
    points.collect()
}

fn classes(runs: &[RunFigures]) -> Named<ClassReport> {
    let seen = |class: &Class| runs.iter().flat_map(|run| &run.flows).any(|flow| flow.class == *class);
    let classes = Class::ALL.into_iter().filter(seen);
    classes
        .map(|class| {
            let flow = FlowReport::of(&samples(runs, |run| run.class(class)));
            let longest = runs.iter().filter_map(|run| run.starvation[class.index()]).max();
            let starvation = longest.map(|span| Figure::bare(span.as_nanos() as f64 / 1e9, runs.len() as u32));
            (class.name().to_owned(), ClassReport { flow, starvation })
        })
        .collect()
}

fn models(runs: &[RunFigures], header: Option<&Header>) -> Named<ModelReport> {
    let facts = header.map(|header| header.models.as_slice()).unwrap_or_default();
    let models = facts.iter().enumerate();
    models
        .map(|(model, facts)| {
            let flow = FlowReport::of(&samples(runs, |run| run.model(model)));
            (facts.name.clone(), ModelReport::of(flow, runs, model))
        })
        .collect()
}

fn devices(runs: &[RunFigures], header: Option<&Header>) -> Named<DeviceReport> {
    let facts = header.map(|header| header.devices.as_slice()).unwrap_or_default();
    facts.iter().enumerate().map(|(device, facts)| (facts.name.clone(), DeviceReport::of(runs, device))).collect()
}

fn invariants(runs: &[RunFigures]) -> Invariants {
    let mut invariants = Invariants::default();
    for run in runs {
        let replication = run.header.replication;
        let checked = run.end.invariants_checked.saturating_add(run.checks.len() as u64);
        invariants.checked = invariants.checked.saturating_add(checked);
        let broken =
            run.checks.iter().filter_map(|check| Some(format!("{}: {}", check.name, check.violation.as_ref()?)));
        let all = run.end.violations.iter().cloned().chain(broken);
        invariants.details.extend(all.map(|text| format!("replication {replication}: {text}")));
    }
    invariants.violated = invariants.details.len() as u64;
    invariants
}
