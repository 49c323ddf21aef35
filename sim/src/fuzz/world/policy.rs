//! The rules of a random world: most at their defaults, some elsewhere, a few at their limits.

use serde_json::{Map, Value, json};

use crate::fuzz::dice::Dice;

pub fn policy(dice: &mut Dice) -> Value {
    let mut policy = Map::new();
    let spans = [
        ("interactive_idle", 10.0, 5_000.0),
        ("background_max_starvation", 50.0, 10_000.0),
        ("batch_max_starvation", 200.0, 20_000.0),
        ("batch_turn", 100.0, 10_000.0),
        ("hot_ttl", 200.0, 60_000.0),
        ("min_residency", 100.0, 30_000.0),
        ("interactive_turn", 50.0, 6_000.0),
        ("interactive_gap", 10.0, 2_000.0),
        ("release_timeout", 500.0, 20_000.0),
    ];
    for (key, least, most) in spans {
        match dice.roll(10) {
            0 if key != "release_timeout" => drop(policy.insert(key.to_owned(), json!("0s"))),
            0..7 => drop(policy.insert(key.to_owned(), json!(dice.millis(least, most)))),
            _ => {}
        }
    }
    let choices: [(&str, &[Value]); 7] = [
        ("background_share", &[json!(0.1), json!(0.25), json!(0.5), json!(1.0)]),
        ("guard_parallel", &[json!(1), json!(2), json!(3)]),
        ("reserve_interactive_slots", &[json!(0), json!(1), json!(2)]),
        ("routing", &[json!("round_robin"), json!("join_shortest"), json!("power_of_two")]),
        ("eviction", &[json!("cost"), json!("lru")]),
        ("embedding_chunk", &[json!(1), json!(4), json!(32)]),
        ("default_class", &[json!("background"), json!("batch")]),
    ];
    for (key, values) in choices {
        if dice.one_in(4) {
            policy.insert(key.to_owned(), dice.pick(values));
        }
    }
    let mut classes = Map::new();
    for class in ["interactive", "background", "batch"] {
        let rules = class_rules(dice);
        if !rules.is_empty() {
            classes.insert(class.to_owned(), Value::Object(rules));
        }
    }
    if !classes.is_empty() {
        policy.insert("classes".to_owned(), Value::Object(classes));
    }
    Value::Object(policy)
}

fn class_rules(dice: &mut Dice) -> Map<String, Value> {
    let mut rules = Map::new();
    let choices: [(&str, &[Value], u64); 5] = [
        ("order", &[json!("edf")], 3),
        ("admission", &[json!("deadline"), json!("adaptive")], 4),
        ("max_queued", &[json!(0), json!(3), json!(50)], 8),
        ("drop_hopeless", &[json!(true)], 5),
        ("weight", &[json!(0.0), json!(1.0), json!(5.0)], 8),
    ];
    for (key, values, often) in choices {
        if dice.one_in(often) {
            rules.insert(key.to_owned(), dice.pick(values));
        }
    }
    rules
}
