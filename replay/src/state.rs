//! Where two serialised states differ first.

use serde_json::Value;

/// A place in both, as keys and indices from the outside in; what stands there in the first and in the second, `None` where
/// there is nothing. No place: they are equal.
pub type Place<'a> = (Vec<String>, Option<&'a Value>, Option<&'a Value>);

/// The first place, in the order of the first state, at which the states differ.
pub fn first_difference<'a>(first: &'a Value, second: &'a Value) -> Option<Place<'a>> {
    if first == second {
        return None;
    }
    let below = match (first, second) {
        (Value::Object(one), Value::Object(other)) => {
            let gone = one.iter().map(|(key, value)| (key.clone(), Some(value), other.get(key)));
            let new = other.iter().filter(|(key, _)| !one.contains_key(*key));
            let mut places = gone.chain(new.map(|(key, value)| (key.clone(), None, Some(value))));
            places.find_map(step)
        }
        (Value::Array(one), Value::Array(other)) => {
            let places = 0..one.len().max(other.len());
            places.map(|at| (at.to_string(), one.get(at), other.get(at))).find_map(step)
        }
        (_, _) => None,
    };
    Some(below.unwrap_or((Vec::new(), Some(first), Some(second))))
}

/// The place at one key or below it.
fn step<'a>((key, one, other): (String, Option<&'a Value>, Option<&'a Value>)) -> Option<Place<'a>> {
    let (mut path, one, other) = match (one, other) {
        (Some(one), Some(other)) => first_difference(one, other)?,
        (one, other) => (Vec::new(), one, other),
    };
    path.insert(0, key);
    Some((path, one, other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(first: &Value, second: &Value) -> Option<String> {
        let (path, one, other) = first_difference(first, second)?;
        let said = |value: Option<&Value>| value.map_or("-".to_owned(), Value::to_string);
        Some(format!("{} {} {}", path.join("."), said(one), said(other)))
    }

    #[test]
    fn the_place_is_as_far_inside_as_can_be_said() {
        let first = json!({ "now": 5, "jobs": [{ "id": 1, "steps": [1, 2] }, null], "spare": [] });
        let with = |jobs: Value| json!({ "spare": [], "now": 5, "jobs": jobs });
        assert_eq!(place(&first, &with(json!([{ "id": 1, "steps": [1, 2] }, null]))), None, "order of keys is nothing");
        let other = with(json!([{ "id": 1, "steps": [1, 3] }, null]));
        assert_eq!(place(&first, &other).as_deref(), Some("jobs.0.steps.1 2 3"));
        let other = with(json!([{ "id": 1, "steps": [1, 2] }]));
        assert_eq!(place(&first, &other).as_deref(), Some("jobs.1 null -"));
        let other = with(json!([{ "id": 1, "steps": [1, 2], "new": true }, null]));
        assert_eq!(place(&first, &other).as_deref(), Some("jobs.0.new - true"));
        assert_eq!(place(&json!([1]), &json!({})).as_deref(), Some(" [1] {}"));
    }
}
