//! The models of a random world: together they need more memory than there is.

use serde_json::{Map, Value, json};

use super::{Kind, Plan};
use crate::fuzz::dice::Dice;

/// One to five models; about every other one generates text in slots, the others take batches.
pub fn models(dice: &mut Dice, plan: &mut Plan) -> Value {
    let count = dice.pick(&[1, 2, 3, 3, 4, 5, 6]);
    let mut models = Map::new();
    for number in 0..count {
        let name = format!("m{number}");
        models.insert(name.clone(), model(dice, plan, &name));
    }
    Value::Object(models)
}

fn model(dice: &mut Dice, plan: &mut Plan, name: &str) -> Value {
    let mut model = Map::new();
    let (batch, takes) =
        if dice.one_in(2) { served_in_slots(dice, &mut model) } else { served_in_batches(dice, plan, &mut model) };
    let mut put = |key: &str, value: Value| drop(model.insert(key.to_owned(), value));
    let least = plan.devices.iter().map(|(_, memory)| *memory).min().unwrap_or(8_192);
    let footprint = (least as f64 * dice.scale(0.15, 0.85)) as u64;
    put("footprint", json!(format!("{footprint}MiB")));
    if dice.one_in(4) {
        put("estimate", json!(format!("{}MiB", footprint * dice.between(70, 150) / 100)));
    }
    if dice.one_in(3) {
        put("measured", json!(true));
    }
    if plan.devices.len() > 1 && dice.one_in(3) {
        put("devices", json!([dice.pick(&plan.devices).0]));
    }
    if dice.one_in(4) {
        put("replicas", dice.pick(&[json!(2), json!("all")]));
    }
    if dice.one_in(8) {
        put("preload", json!(true));
    }
    if dice.one_in(10) {
        put("pinned", json!(true));
    }
    if dice.one_in(6) {
        put("idle_ttl", json!(dice.millis(500.0, 60_000.0)));
    }
    if dice.one_in(3) {
        put("prediction", json!("learned"));
    }
    plan.models.push(Kind { name: name.to_owned(), batch, takes, abilities: Vec::new() });
    Value::Object(model)
}

fn served_in_slots(dice: &mut Dice, model: &mut Map<String, Value>) -> (Option<u64>, f64) {
    let decode = dice.scale(1.0, 20.0);
    let service = json!({
        "kind": "slots",
        "prefill_per_token": format!("{}us", dice.between(10, 300)),
        "decode_alpha": format!("{}us", (decode * 1e3) as u64),
        "decode_beta": format!("{}us", dice.between(0, 2_000)),
    });
    model.insert("service".to_owned(), service);
    model.insert("slots".to_owned(), json!(dice.pick(&[1, 1, 2, 2, 3, 4, 6])));
    (None, decode * 60.0)
}

fn served_in_batches(dice: &mut Dice, plan: &Plan, model: &mut Map<String, Value>) -> (Option<u64>, f64) {
    let (alpha, beta) = (dice.scale(1.0, 300.0), dice.scale(0.5, 60.0));
    let mut service = json!({ "kind": "batch", "alpha": format!("{}us", (alpha * 1e3) as u64), "beta": format!("{}us", (beta * 1e3) as u64) });
    if plan.noisy && dice.one_in(2) {
        service["noise"] = dice.pick(&[json!("exponential"), json!({ "lognormal_cv": 0.5 })]);
    }
    model.insert("service".to_owned(), service);
    if dice.one_in(4) {
        model.insert("slots".to_owned(), json!(dice.between(1, 4)));
        return (Some(64), alpha + 4.0 * beta);
    }
    let max = dice.pick(&[1, 2, 4, 8, 16, 32]);
    let mut batch = json!({ "max": max });
    if dice.one_in(3) {
        batch["wait"] = json!(dice.millis(1.0, 500.0));
    }
    model.insert("batch".to_owned(), batch);
    (Some(max), alpha + beta * max as f64 / 2.0)
}

/// Now and then a family of the models that generate text.
pub fn families(dice: &mut Dice, plan: &mut Plan) -> Value {
    let mut families = Map::new();
    let able: Vec<String> = plan.models.iter().map(|kind| kind.name.clone()).collect();
    if able.len() > 1 && dice.one_in(2) {
        let qualities = ["preferred", "balanced", "compact"];
        let count = dice.between(2, able.len().min(3) as u64) as usize;
        let variants: Vec<Value> = able
            .iter()
            .rev()
            .take(count)
            .zip(qualities)
            .map(|(model, quality)| json!({ "model": model, "quality": quality }))
            .collect();
        families.insert("fam".to_owned(), json!({ "variants": variants }));
        plan.families.push("fam".to_owned());
    }
    Value::Object(families)
}
