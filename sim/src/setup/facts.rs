//! What the header of a journal tells of a scenario: names, capacities, arrivals.

use std::collections::BTreeMap;

use windtunnel_config::{Arrivals, Distribution, Scenario, Service, Warmup, Workload};
use windtunnel_core::{Capacity, DeviceId, JobKind, ModelId, Wanted};
use windtunnel_reports::journal::{DeviceFacts, Header, ModelFacts, SCHEMA, Source, WarmupRule, WorkloadFacts};

use super::Setup;
use crate::{arrivals, trace::Zone};

impl Setup {
    /// The header of the journal of one replication.
    pub fn header(&self, replication: u32) -> Header {
        let scenario = self.scenario();
        let run = &scenario.run;
        Header {
            schema: SCHEMA,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            source: Source::Sim,
            title: scenario.title.clone(),
            seed: run.seed,
            replication,
            horizon: run.horizon,
            jobs: run.jobs,
            warmup: match run.warmup {
                Warmup::Auto => WarmupRule::Auto,
                Warmup::Fixed(span) => WarmupRule::Fixed(span),
                Warmup::Share(share) => WarmupRule::Share(share),
            },
            wall_clock: None,
            devices: (0..)
                .map(DeviceId)
                .zip(&scenario.configuration.devices)
                .map(|(id, device)| DeviceFacts {
                    name: device.name.clone(),
                    used: instances_on(scenario, id) > 0,
                    side_by_side: side_by_side(scenario, id),
                })
                .collect(),
            models: (0..)
                .map(ModelId)
                .zip(&scenario.configuration.models)
                .map(|(id, model)| ModelFacts {
                    name: model.name.clone(),
                    capacity: (0..)
                        .map(DeviceId)
                        .take(scenario.cards.len())
                        .map(|device| capacity(scenario, id, device))
                        .collect(),
                    at_once: at_once(model.capacity),
                })
                .collect(),
            workloads: (0..scenario.workloads.len()).map(|label| facts(scenario, label)).collect(),
            remarks: self.remarks(),
        }
    }

    fn remarks(&self) -> BTreeMap<String, String> {
        let mut remarks = BTreeMap::new();
        if self.scenario().run.replications > 1 && !self.draws_anything() {
            let same =
                "nothing is drawn at random: all replications are the same run, and intervals over them mean nothing";
            remarks.insert("replications".to_owned(), same.to_owned());
        }
        for (place, workload) in self.scenario().workloads.iter().enumerate() {
            let Some(recording) = self.recording(place) else { continue };
            let summary = &recording.summary;
            let mut said = format!("{} of {} rows", summary.kept, summary.rows);
            let left_out = [
                (summary.dropped, "without output left out"),
                (summary.bad, "unreadable"),
                (summary.moved, "out of order"),
            ];
            for (count, what) in left_out.into_iter().filter(|&(count, _)| count > 0) {
                said.push_str(&format!(", {count} {what}"));
            }
            if summary.zone == Zone::AssumedUtc {
                said.push_str(", stamps taken as UTC");
            }
            remarks.insert(format!("trace of {}", workload.name), said);
        }
        remarks
    }
}

fn facts(scenario: &Scenario, label: usize) -> WorkloadFacts {
    let workload = &scenario.workloads[label];
    WorkloadFacts {
        name: workload.name.clone(),
        arrivals: arrivals::describe(workload),
        closed_loop: matches!(workload.arrivals, Arrivals::Clients { .. }),
        class: workload.class.unwrap_or(scenario.configuration.policy.default_class),
        capacity: scenario.capacity(label),
    }
}

fn at_once(capacity: Capacity) -> u32 {
    match capacity {
        Capacity::Slots { slots } => slots,
        Capacity::Batch { max, wait: _ } => max,
    }
}

/// The most inputs a second that a model can do on a device alone: Bmax / T(Bmax) for batches, n B / T(B) for n slots and
/// steps of B inputs, and
/// with continuous batching the bound 1 / (prefill + (mean output - 1) * (alpha / n + beta)), which depends on the sizes of
/// requests and is known where one workload alone asks for the model.
fn capacity(scenario: &Scenario, model: ModelId, device: DeviceId) -> Option<f64> {
    let card = scenario.cards.get(device.index())?;
    let at_once = scenario.configuration.model(model)?.capacity;
    let seconds = match scenario.services.get(model.index())?.get(device.index())?.as_ref()? {
        Service::Batch { alpha, beta, noise: _ } => {
            let (alpha, beta) = (alpha.as_nanos() as f64, beta.as_nanos() as f64);
            match at_once {
                Capacity::Batch { max, wait: _ } => (alpha / f64::from(max) + beta) / 1e9,
                Capacity::Slots { slots } => {
                    let inputs = inputs_per_step(scenario, model)?;
                    (alpha / inputs + beta) / 1e9 / f64::from(slots)
                }
            }
        }
        Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice: _ } => {
            let (inputs, prompt, output) = sizes_for(scenario, model)?;
            let prefill = prefill_fixed.as_nanos() as f64 + prefill_per_token.as_nanos() as f64 * prompt * inputs;
            let slots = f64::from(self::at_once(at_once));
            let token = decode_alpha.as_nanos() as f64 / slots + decode_beta.as_nanos() as f64;
            (prefill + (output - 1.0).max(0.0) * token) / 1e9 / inputs
        }
    };
    (seconds > 0.0).then(|| card.speed / seconds)
}

/// How many models may be on a device at once.
fn instances_on(scenario: &Scenario, device: DeviceId) -> usize {
    scenario.services.iter().filter(|services| matches!(services.get(device.index()), Some(Some(_)))).count()
}

/// n / (1 + sharing * (n - 1)) for all its instances, and never less than what one does.
fn side_by_side(scenario: &Scenario, device: DeviceId) -> f64 {
    let sharing = scenario.cards.get(device.index()).map_or(1.0, |card| card.sharing);
    let count = instances_on(scenario, device).max(1) as f64;
    (count / (1.0 + sharing * (count - 1.0))).max(1.0)
}

/// Inputs of a step of `model`, where they are known on average: every workload that asks for it sends one, or the only
/// one that does is not cut into steps.
fn inputs_per_step(scenario: &Scenario, model: ModelId) -> Option<f64> {
    let asking: Vec<_> = scenario.workloads.iter().filter(|workload| serves(scenario, workload, model)).collect();
    let single = |workload: &&Workload| workload.inputs == Distribution::Constant(1.0);
    let fixed = |workload: &&Workload| matches!(&workload.arrivals, Arrivals::At(at) if at.iter().any(|one| one.inputs.is_some()));
    match asking[..] {
        _ if asking.iter().all(single) && !asking.iter().any(fixed) => Some(1.0),
        [one] if fixed(&one) => None,
        [one] if one.kind != JobKind::Embedding => Some(one.inputs.mean().max(1.0)),
        [one] => whole_chunks(&one.inputs, f64::from(scenario.configuration.policy.embedding_chunk)),
        _ => None,
    }
}

/// Inputs of a step where every request is cut into equal ones.
fn whole_chunks(inputs: &Distribution, chunk: f64) -> Option<f64> {
    match inputs {
        Distribution::Constant(all) if *all <= chunk || all % chunk == 0.0 => Some(all.min(chunk)),
        _ => None,
    }
}

/// Mean inputs, prompt and output tokens of what is asked of `model`, if one workload with drawn sizes asks for it.
fn sizes_for(scenario: &Scenario, model: ModelId) -> Option<(f64, f64, f64)> {
    let mut asking = scenario.workloads.iter().filter(|workload| serves(scenario, workload, model));
    let workload = asking.next()?;
    let drawn = !matches!(workload.arrivals, Arrivals::Trace(_) | Arrivals::At(_));
    let alone = asking.next().is_none();
    let inputs = workload.inputs.mean().max(1.0);
    (drawn && alone).then(|| (inputs, workload.prompt_tokens.mean(), workload.output_tokens.mean()))
}

fn serves(scenario: &Scenario, workload: &Workload, model: ModelId) -> bool {
    match workload.wanted {
        Wanted::Model(wanted) => wanted == model,
        Wanted::Family(family) => {
            let family = scenario.configuration.families.get(family.index());
            family.is_some_and(|family| family.variants.iter().any(|variant| variant.model == model))
        }
    }
}
