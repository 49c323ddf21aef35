//! Random worlds: cards, models, rules, requests and faults, all from a seed, as the document of a scenario.
//!
//! A world is small and crowded: a few models that do not fit on the cards together, requests of every class that come
//! faster than they can be served for a while, and things that go wrong. Its faults end by its horizon, arrivals stop
//! there, and from then on everything that was submitted has to come to its end.

mod cards;
mod faults;
mod models;
mod policy;
mod requests;

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// What later parts of a world need to know of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The horizon, in milliseconds.
    pub horizon: u64,
    /// The names of device groups, and how much memory a card has, in MiB.
    pub devices: Vec<(String, u64)>,
    pub models: Vec<Kind>,
    pub families: Vec<String>,
    /// Whether services vary.
    pub noisy: bool,
}

/// A model, as those who ask for it see it.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: String,
    /// The most inputs of one batch; `None`: it has slots and generates text.
    pub batch: Option<u64>,
    /// About how long a request takes, in milliseconds.
    pub takes: f64,
    /// What it may be asked for; empty: nobody says.
    pub abilities: Vec<&'static str>,
}

/// The world of a seed.
pub fn draw(seed: u64) -> Value {
    let mut dice = Dice::of(seed);
    let mut plan = Plan { horizon: dice.scale(10_000.0, 400_000.0) as u64, ..Plan::default() };
    plan.noisy = dice.one_in(3);
    let devices = cards::devices(&mut dice, &mut plan);
    let models = models::models(&mut dice, &mut plan);
    let families = models::families(&mut dice, &mut plan);
    let policy = policy::policy(&mut dice);
    let workloads = requests::workloads(&mut dice, &plan);
    let faults = if dice.one_in(4) { Vec::new() } else { faults::faults(&mut dice, &plan) };
    let jobs = dice.scale(30.0, 1_500.0) as u64;
    json!({
        "title": format!("the world of seed {seed}"),
        "run": run(seed, plan.horizon, jobs),
        "devices": devices,
        "models": models,
        "families": families,
        "policy": policy,
        "workload": workloads,
        "faults": faults,
    })
}

/// A world of the user's making with other requests and other faults: what is configured stays as it is.
pub fn vary(base: &Value, plan: &Plan, seed: u64) -> Value {
    let mut dice = Dice::of(seed);
    let mut plan = Plan { horizon: dice.scale(10_000.0, 600_000.0) as u64, ..plan.clone() };
    plan.noisy = true;
    let mut world = base.as_object().cloned().unwrap_or_default();
    let mut workloads = own_workloads(&world, &mut dice);
    if workloads.is_empty() || dice.one_in(2) {
        workloads.extend(requests::workloads(&mut dice, &plan));
    }
    let mut faults: Vec<Value> = own_faults(&world, plan.horizon);
    if !dice.one_in(3) {
        faults.extend(faults::faults(&mut dice, &plan));
    }
    let jobs = dice.scale(50.0, 3_000.0) as u64;
    for left_out in ["sweep", "expect"] {
        world.shift_remove(left_out);
    }
    world.insert("run".to_owned(), run(seed, plan.horizon, jobs));
    world.insert("workload".to_owned(), Value::from(workloads));
    world.insert("faults".to_owned(), Value::from(faults));
    Value::Object(world)
}

fn run(seed: u64, horizon: u64, jobs: u64) -> Value {
    let seed = seed & i64::MAX as u64;
    json!({
        "horizon": format!("{horizon}ms"),
        "jobs": jobs,
        "seed": seed,
        "replications": 1,
        "warmup": "0s",
        "drain": true,
    })
}

/// Some of the user's own workloads, each at another pace.
fn own_workloads(world: &Map<String, Value>, dice: &mut Dice) -> Vec<Value> {
    let own = world.get("workload").and_then(Value::as_array).into_iter().flatten();
    let mut kept = Vec::new();
    for workload in own {
        let mut workload = workload.clone();
        if dice.one_in(4) {
            continue;
        }
        if let Some(rate) = workload.pointer_mut("/arrivals/rate") {
            let pace = rate.as_f64().unwrap_or(1.0) * dice.scale(0.2, 3.0);
            *rate = Value::from(pace);
        }
        if let Some(table) = workload.as_object_mut() {
            ["from", "to"].into_iter().for_each(|key| drop(table.shift_remove(key)));
        }
        kept.push(workload);
    }
    kept
}

/// The user's own faults; those without an end get one.
fn own_faults(world: &Map<String, Value>, horizon: u64) -> Vec<Value> {
    const WITHOUT_END: [&str; 3] = ["wrong_estimate", "foreign_memory", "pressure"];
    let own = world.get("faults").and_then(Value::as_array).into_iter().flatten();
    own.cloned()
        .map(|mut fault| {
            let kind = fault.get("kind").and_then(Value::as_str).unwrap_or_default();
            if !WITHOUT_END.contains(&kind)
                && let Some(table) = fault.as_object_mut()
            {
                table.entry("to").or_insert_with(|| Value::from(format!("{horizon}ms")));
            }
            fault
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windtunnel_config::{ScenarioFile, to_toml};

    use super::*;

    #[test]
    fn every_world_is_a_scenario() {
        for seed in 0..2_000 {
            let text = to_toml(&draw(seed));
            let file = ScenarioFile::parse(&text, Path::new("world.toml")).unwrap();
            let scenario = file.resolve(&[]).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}\n{text}"));
            assert!(crate::Setup::new(scenario).is_ok(), "seed {seed}");
        }
    }

    #[test]
    fn worlds_show_everything_there_is() {
        let all: String = (0..2_000).map(|seed| to_toml(&draw(seed))).collect();
        let kinds = "phantom_memory lingering_memory slow_exit never_exits slow_load stalled_load failed_load load_oom \
                     wrong_estimate memory_growth foreign_memory silent_overcommit crash wedge slow_device \
                     connection_limit monitor pressure clock_jump interactive background batch clients poisson gamma \
                     mmpp at edf deadline adaptive round_robin join_shortest power_of_two lru unified embedding rerank";
        for word in kinds.split_whitespace() {
            assert!(all.contains(&format!("\"{word}\"")), "no world has {word}");
        }
        for key in ["families.", "pinned", "preload", "idle_ttl", "patience", "max_wait", "drop_hopeless", "replicas"] {
            assert!(all.contains(key), "no world has {key}");
        }
    }
}
