//! What goes wrong in a random world. Everything ends by the horizon.

use serde_json::{Map, Value, json};

use super::Plan;
use crate::fuzz::dice::Dice;

const ANYWHERE: [&str; 14] = [
    "phantom_memory",
    "lingering_memory",
    "slow_exit",
    "never_exits",
    "slow_load",
    "stalled_load",
    "failed_load",
    "load_oom",
    "memory_growth",
    "silent_overcommit",
    "crash",
    "wedge",
    "wrong_estimate",
    "connection_limit",
];
const OF_A_DEVICE: [&str; 4] = ["foreign_memory", "pressure", "slow_device", "monitor"];

/// One to four faults.
pub fn faults(dice: &mut Dice, plan: &Plan) -> Vec<Value> {
    let count = dice.between(1, 4);
    (0..count).map(|number| fault(dice, plan, number)).collect()
}

fn fault(dice: &mut Dice, plan: &Plan, number: u64) -> Value {
    let mut fault = Map::new();
    let mut put = |key: &str, value: Value| drop(fault.insert(key.to_owned(), value));
    put("name", json!(format!("fault{number}")));
    let devices: Vec<String> = plan.devices.iter().map(|(name, _)| name.clone()).collect();
    match dice.roll(20) {
        0 => {
            put("kind", json!("clock_jump"));
            put("by", json!(dice.millis(10.0, 600_000.0)));
            put("at", json!(moment(dice, plan)));
        }
        1..6 => of_a_device(dice, plan, &devices, &mut put),
        _ => anywhere(dice, plan, &devices, &mut put),
    }
    Value::Object(fault)
}

fn of_a_device(dice: &mut Dice, plan: &Plan, devices: &[String], put: &mut impl FnMut(&str, Value)) {
    let kind = dice.pick(&OF_A_DEVICE);
    put("kind", json!(kind));
    if !devices.is_empty() && dice.one_in(2) {
        put("device", json!(dice.pick(devices)));
    }
    match kind {
        "foreign_memory" => {
            let most = plan.devices.iter().map(|(_, memory)| *memory).min().unwrap_or(8_192);
            put("curve", curve(dice, plan, "0MiB", |dice| format!("{}MiB", dice.roll(most))));
        }
        "pressure" => put("curve", curve(dice, plan, "normal", |dice| dice.pick(&["warn", "critical"]).to_owned())),
        "slow_device" => {
            put("factor", json!(dice.pick(&[0.5, 2.0, 8.0])));
            put("at", json!(moment(dice, plan)));
            put("for", json!(dice.millis(100.0, 30_000.0)));
        }
        _ => {
            put("mode", json!(dice.pick(&["missing", "stale", "partial", "jumping"])));
            put("at", json!(moment(dice, plan)));
            put("for", json!(dice.millis(500.0, 60_000.0)));
        }
    }
}

/// Up to three steps and back to `end`.
fn curve(dice: &mut Dice, plan: &Plan, end: &str, mut value: impl FnMut(&mut Dice) -> String) -> Value {
    let mut moments: Vec<u64> = (0..dice.between(2, 4)).map(|_| dice.roll(plan.horizon)).collect();
    moments.sort_unstable();
    moments.dedup();
    let last = moments.len() - 1;
    let points = moments.iter().enumerate().map(|(at, moment)| {
        let value = if at == last { end.to_owned() } else { value(dice) };
        json!([format!("{moment}ms"), value])
    });
    points.collect()
}

fn anywhere(dice: &mut Dice, plan: &Plan, devices: &[String], put: &mut impl FnMut(&str, Value)) {
    let kind = dice.pick(&ANYWHERE);
    put("kind", json!(kind));
    if !plan.models.is_empty() && dice.one_in(2) {
        put("model", json!(dice.pick(&plan.models).name));
    } else if !devices.is_empty() && dice.one_in(4) {
        put("device", json!(dice.pick(devices)));
    }
    match kind {
        "phantom_memory" => put("polls", json!(dice.between(1, 4))),
        "lingering_memory" | "slow_exit" => put("for", json!(dice.millis(50.0, 20_000.0))),
        "stalled_load" | "wedge" => put("for", json!(dice.millis(100.0, 120_000.0))),
        "slow_load" => put("factor", json!(dice.pick(&[2.0, 5.0, 20.0]))),
        "wrong_estimate" => return put("factor", json!(dice.pick(&[0.3, 0.7, 1.3, 2.0]))),
        "memory_growth" => {
            put("bytes", json!(format!("{}MiB", dice.between(10, 6_000))));
            put("over", json!(dice.millis(1.0, 60_000.0)));
        }
        "connection_limit" => {
            put("requests", json!(dice.between(1, 20)));
            return put("to", json!(format!("{}ms", plan.horizon)));
        }
        _ => {}
    }
    let by_itself = matches!(kind, "crash" | "wedge");
    match dice.roll(4) {
        0 if !by_itself => put("from", json!(moment(dice, plan))),
        1 => put("probability", json!(dice.pick(&[0.02, 0.1, 0.5]))),
        _ => {
            let moments: Vec<String> = (0..dice.between(1, 6)).map(|_| moment(dice, plan)).collect();
            put("at", json!(moments));
        }
    }
    put("to", json!(format!("{}ms", plan.horizon)));
}

fn moment(dice: &mut Dice, plan: &Plan) -> String {
    format!("{}ms", dice.roll(plan.horizon))
}
