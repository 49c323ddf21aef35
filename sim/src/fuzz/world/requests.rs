//! Who asks for what in a random world, and how fast.

use serde_json::{Map, Value, json};

use super::{Kind, Plan};
use crate::fuzz::dice::Dice;

const CLASSES: [&str; 3] = ["interactive", "background", "batch"];

/// One to six workloads.
pub fn workloads(dice: &mut Dice, plan: &Plan) -> Vec<Value> {
    let count = dice.pick(&[1, 2, 3, 4, 5, 6, 8]);
    (0..count).filter_map(|number| workload(dice, plan, number)).collect()
}

fn workload(dice: &mut Dice, plan: &Plan, number: u64) -> Option<Value> {
    let mut workload = Map::new();
    let mut put = |key: &str, value: Value| drop(workload.insert(key.to_owned(), value));
    put("name", json!(format!("random{number}")));
    if !dice.one_in(10) {
        put("class", json!(dice.pick(&CLASSES)));
    }
    let kind = if plan.models.is_empty() { return None } else { dice.pick(&plan.models) };
    let family = !plan.families.is_empty() && dice.one_in(2);
    if family {
        put("family", json!(dice.pick(&plan.families)));
        if dice.one_in(3) {
            put("quality", json!(dice.pick(&["preferred", "balanced", "compact"])));
        }
    } else {
        put("model", json!(kind.name));
    }
    let ability = (!family && !kind.abilities.is_empty()).then(|| dice.pick(&kind.abilities));
    match (ability, kind.batch) {
        (Some(able), batch) => asked(dice, able, batch, &mut put),
        (None, Some(max)) if !family => batched(dice, max, &mut put),
        (None, Some(_) | None) => generated(dice, &mut put),
    }
    if dice.one_in(3) {
        put("deadline", json!(dice.millis(20.0, 30_000.0)));
    }
    if dice.one_in(4) {
        put("max_wait", json!(dice.millis(20.0, 60_000.0)));
    }
    if dice.one_in(5) {
        put("patience", json!(dice.millis(20.0, 60_000.0)));
    }
    if dice.one_in(8) {
        put("drop_hopeless", json!(dice.one_in(2)));
    }
    put("arrivals", arrivals(dice, plan, &kind));
    if dice.one_in(4) {
        put("from", json!(format!("{}ms", dice.roll(plan.horizon / 2))));
    }
    Some(Value::Object(workload))
}

/// A request for something that the model is said to be able to do.
fn asked(dice: &mut Dice, able: &'static str, batch: Option<u64>, put: &mut impl FnMut(&str, Value)) {
    put("kind", json!(able));
    if !matches!(able, "embedding" | "rerank") {
        return generated(dice, put);
    }
    put("inputs", json!(dice.between(1, batch.unwrap_or(32))));
    put("prompt_tokens", json!(dice.between(5, 500)));
}

fn generated(dice: &mut Dice, put: &mut impl FnMut(&str, Value)) {
    if dice.one_in(2) {
        put("prompt_tokens", json!(dice.between(1, 2_000)));
        put("output_tokens", json!(dice.between(1, 100)));
    } else {
        put("prompt_tokens", json!({ "lognormal": { "median": dice.between(50, 1_000), "cv": 1.0 } }));
        put("output_tokens", json!({ "exponential": dice.between(5, 150) }));
    }
    if dice.one_in(3) {
        put("max_tokens", json!(dice.between(1, 300)));
    }
}

fn batched(dice: &mut Dice, max: u64, put: &mut impl FnMut(&str, Value)) {
    if dice.one_in(3) {
        return;
    }
    put("kind", json!(dice.pick(&["embedding", "embedding", "rerank"])));
    let most = dice.pick(&[max, max, 100]);
    put("inputs", if dice.one_in(2) { json!(dice.between(1, most)) } else { json!({ "uniform": [1, most] }) });
}

/// Open, closed and at given moments; between a tenth and three times what one instance could do.
fn arrivals(dice: &mut Dice, plan: &Plan, kind: &Kind) -> Value {
    let rate = 1_000.0 / kind.takes.max(1.0) * dice.scale(0.03, 2.0);
    let rate = (rate.min(20.0) * 1e3).ceil() / 1e3;
    match dice.roll(8) {
        0..3 => json!({ "process": "poisson", "rate": rate }),
        3 => json!({ "process": "gamma", "rate": rate, "cv": 3.0 }),
        4 => json!({
            "process": "mmpp",
            "rates": [rate / 4.0, rate * 4.0],
            "means": [dice.millis(1_000.0, 20_000.0), dice.millis(200.0, 5_000.0)],
        }),
        5 => {
            let times: Vec<String> =
                (0..dice.between(1, 8)).map(|_| format!("{}ms", dice.roll(plan.horizon / 100) * 50)).collect();
            json!({ "process": "at", "times": times })
        }
        _ => {
            let mut clients = json!({ "process": "clients", "count": dice.between(1, 6) });
            if dice.one_in(2) {
                let mean = format!("{}ms", dice.between(10, 4_000));
                clients["think"] = if dice.one_in(2) { json!(mean) } else { json!({ "exponential": mean }) };
            }
            clients
        }
    }
}
