//! `[run]`: how long, how often, from which seed.

use windtunnel_core::Span;

use crate::decode::{Context, Section};
use crate::form::{Form, Key, Scalar};
use crate::scenario::{Arrivals, Run, Warmup, Workload};
use crate::source::Place;

pub(crate) static RUN: Form = Form::new(
    "run",
    "How long, how often, from which seed.",
    &[
        Key::scalar("horizon", Scalar::SpanAboveZero, "virtual time after which the run ends"),
        Key::scalar("jobs", Scalar::Count(1, i64::MAX as u64), "arrivals after which the run ends"),
        Key::scalar("warmup", Scalar::Warmup, "the beginning that is left out of the figures; \"auto\": MSER-5")
            .or("\"auto\""),
        Key::scalar("seed", Scalar::Count(0, i64::MAX as u64), "the seed of every random stream").or("1"),
        Key::scalar("replications", Scalar::Count(1, 100_000), "independent runs; 1: figures without intervals")
            .or("10"),
        Key::scalar("drain", Scalar::Flag, "whether the run goes on after its horizon until all jobs end").or("false"),
    ],
);

/// The run of a file. `None` where nothing says when it ends.
pub(crate) fn read(
    section: Option<&Section<'_>>,
    workloads: &[Workload],
    root: Place,
    context: &Context<'_>,
) -> Option<Run> {
    let run = Run {
        horizon: section.and_then(|run| run.span("horizon")),
        jobs: section.and_then(|run| run.count("jobs")),
        warmup: section.and_then(warmup).unwrap_or(Warmup::Auto),
        seed: section.and_then(|run| run.count("seed")).unwrap_or(1),
        replications: section.and_then(|run| run.count32("replications")).unwrap_or(10),
        drain: section.and_then(|run| run.flag("drain")).unwrap_or(false),
    };
    if let (Some(section), Warmup::Fixed(warmup), Some(horizon)) = (section, run.warmup, run.horizon)
        && warmup >= horizon
    {
        section.wrong("warmup", &format!("is {warmup}, and the run ends after {horizon}"));
    }
    let endless = workloads.iter().find(|workload| !ends(workload));
    if let (None, None, Some(endless)) = (run.horizon, run.jobs, endless) {
        let place = section.map_or(root, |run| run.place);
        let message = format!(
            "nothing ends the run, as `workload.{}` goes on for ever: give [run] a horizon = \"600s\" or jobs = 100000",
            endless.name
        );
        context.complain(place, message, Vec::new());
        return None;
    }
    Some(run)
}

fn warmup(section: &Section<'_>) -> Option<Warmup> {
    crate::form::scalar::warmup(section.node("warmup")?).ok()
}

/// Whether a workload sends a bounded number of requests by itself.
fn ends(workload: &Workload) -> bool {
    let listed = match workload.arrivals {
        Arrivals::Trace(_) | Arrivals::At(_) => true,
        Arrivals::Poisson { .. }
        | Arrivals::Constant { .. }
        | Arrivals::Gamma { .. }
        | Arrivals::Mmpp { .. }
        | Arrivals::Clients { .. } => false,
    };
    listed || workload.to.is_some_and(|to| to < Span::MAX)
}
