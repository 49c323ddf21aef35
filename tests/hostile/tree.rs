//! JSON changed as a tree: it stays JSON, but what it says is no longer true.

use serde_json::{Map, Number, Value, json};

use crate::dice::Dice;

/// Changes one value somewhere.
pub fn change(tree: &mut Value, dice: &mut Dice) {
    let mut at = dice.roll(count(tree));
    if let Some(value) = find(tree, &mut at) {
        change_here(value, dice);
    }
}

fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The value of that number in the order of the text.
fn find<'a>(tree: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(tree);
    }
    *at -= 1;
    match tree {
        Value::Array(list) => list.iter_mut().find_map(|value| find(value, at)),
        Value::Object(map) => map.values_mut().find_map(|value| find(value, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn change_here(value: &mut Value, dice: &mut Dice) {
    if dice.one_in(20) {
        let others = [Value::Null, json!(0), json!([]), json!({}), json!("x"), json!(true)];
        *value = dice.pick(&others).clone();
        return;
    }
    match value {
        Value::Null => *value = json!(dice.roll(4)),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => *number = other(number, dice),
        Value::String(text) => change_text(text, dice),
        Value::Array(list) => change_list(list, dice),
        Value::Object(map) => change_map(map, dice),
    }
}

fn other(number: &Number, dice: &mut Dice) -> Number {
    let old = number.as_u64().unwrap_or(0);
    let extremes = [0, 1, 2, 3, 255, 65_535, u64::from(u32::MAX), 1 << 32, 1 << 62, i64::MAX as u64, u64::MAX];
    match dice.roll(6) {
        0 => old.wrapping_add(1).into(),
        1 => old.wrapping_sub(1).into(),
        2 => (old ^ 1 << dice.roll(64)).into(),
        3 => dice.roll(8).into(),
        _ => (*dice.pick(&extremes)).into(),
    }
}

fn change_text(text: &mut String, dice: &mut Dice) {
    let words = ["", "Interactive", "Batch", "Gone", "Idle", "Fixed", "Managed", "Shared", "Edf", "Fifo", "Yes", "No"];
    match dice.roll(3) {
        0 => text.push('x'),
        1 => drop(text.pop()),
        _ => *text = (*dice.pick(&words)).to_owned(),
    }
}

fn change_list(list: &mut Vec<Value>, dice: &mut Dice) {
    let (one, other) = (dice.roll(list.len()), dice.roll(list.len()));
    if list.is_empty() {
        return list.push(json!(0));
    }
    match dice.roll(5) {
        0 => drop(list.remove(one)),
        1 => list.insert(other, list[one].clone()),
        2 => list.push(list[one].clone()),
        3 => list.truncate(one),
        _ => list.swap(one, other),
    }
}

fn change_map(map: &mut Map<String, Value>, dice: &mut Dice) {
    let keys: Vec<String> = map.keys().cloned().collect();
    if keys.is_empty() {
        map.insert("0".to_owned(), json!(0));
        return;
    }
    let (one, other) = (dice.pick(&keys), dice.pick(&keys));
    match dice.roll(3) {
        0 => drop(map.remove(one)),
        1 => {
            let copy = map[one].clone();
            map.insert(other.clone(), copy);
        }
        _ => {
            let moved = map.remove(one).unwrap_or_default();
            map.insert("Ready".to_owned(), moved);
        }
    }
}
