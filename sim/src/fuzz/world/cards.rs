//! The cards of a random world.

use serde_json::{Map, Value, json};

use super::Plan;
use crate::fuzz::dice::Dice;

/// One to three cards in one or two groups, all with memory that is counted.
pub fn devices(dice: &mut Dice, plan: &mut Plan) -> Vec<Value> {
    let groups = if dice.one_in(4) { 2 } else { 1 };
    (0..groups).map(|number| group(dice, plan, number)).collect()
}

fn group(dice: &mut Dice, plan: &mut Plan, number: u64) -> Value {
    let memory = dice.pick(&[8_192, 12_288, 16_384, 24_576]);
    let name = format!("gpu{}", (b'a' + number as u8) as char);
    let mut device = Map::new();
    let mut put = |key: &str, value: Value| drop(device.insert(key.to_owned(), value));
    put("name", json!(name));
    put("memory", json!(format!("{memory}MiB")));
    if dice.one_in(3) {
        put("count", json!(dice.between(2, 3)));
    }
    if dice.one_in(3) {
        put("kind", json!("unified"));
    }
    if dice.one_in(4) {
        put("sharing", json!(dice.pick(&[0.0, 0.3, 0.5])));
    }
    if dice.one_in(5) {
        put("speed", json!(dice.pick(&[0.5, 2.0])));
    }
    let mut load = json!({ "fixed": dice.millis(50.0, 3_000.0) });
    if dice.one_in(2) {
        load["bandwidth"] = json!(dice.pick(&["1GiB/s", "3GiB/s", "10GiB/s"]));
    }
    put("load", load);
    if dice.one_in(2) {
        put("stop", json!(dice.millis(10.0, 3_000.0)));
    }
    if dice.one_in(2) {
        put("release", json!(dice.millis(10.0, 4_000.0)));
    }
    if dice.one_in(4) {
        put("poll", json!(dice.millis(200.0, 4_000.0)));
    }
    if dice.one_in(5) {
        put("limit", json!(format!("{}MiB", memory * dice.between(6, 9) / 10)));
    }
    if dice.one_in(5) {
        put("headroom", json!(dice.pick(&["0MiB", "2048MiB"])));
    }
    if dice.one_in(3) {
        put("parallel_loads", json!(dice.between(1, 3)));
    }
    plan.devices.push((name, memory));
    Value::Object(device)
}
