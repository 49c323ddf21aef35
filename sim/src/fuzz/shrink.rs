//! A failing world made small by delta debugging (Zeller and Hildebrandt, 2002): halves are left out, then quarters, down
//! to single workloads, requests, faults, devices and models; then every key that may go back to its default does. What is
//! kept still fails in the same way. It goes on until nothing more can be left out, or for a number of trials.

use serde_json::Value;

/// A world as small as it got.
#[derive(Clone, Debug)]
pub struct Shrunk {
    pub document: Value,
    /// Worlds that were tried.
    pub trials: u32,
}

/// Shrinks `document` while `fails` says so, within `most` trials.
pub fn shrink(document: Value, most: u32, fails: impl FnMut(&Value) -> bool) -> Shrunk {
    let mut shrinker = Shrinker { document, trials: 0, most, fails };
    loop {
        let before = shrinker.document.clone();
        shrinker.round();
        if shrinker.document == before || shrinker.is_over() {
            return Shrunk { document: shrinker.document, trials: shrinker.trials };
        }
    }
}

struct Shrinker<F> {
    document: Value,
    trials: u32,
    most: u32,
    fails: F,
}

impl<F: FnMut(&Value) -> bool> Shrinker<F> {
    fn is_over(&self) -> bool {
        self.trials >= self.most
    }

    fn round(&mut self) {
        self.list("/faults");
        self.list("/workload");
        for place in 0..self.length("/workload") {
            self.list(&format!("/workload/{place}/arrivals/requests"));
        }
        self.list("/devices");
        self.named("/families", &["family"]);
        self.named("/models", &["model"]);
        for section in ["/policy", "/models", "/devices", "/workload", "/faults", "/run"] {
            self.keys(section);
        }
    }

    /// Takes `candidate` if it still fails; whether it does.
    fn try_it(&mut self, candidate: Value) -> bool {
        if self.is_over() {
            return false;
        }
        self.trials += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.document = candidate;
        }
        fails
    }

    fn length(&self, list: &str) -> usize {
        self.document.pointer(list).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Leaves elements of a list out: halves, quarters, ..., one by one.
    fn list(&mut self, list: &str) {
        let mut chunk = self.length(list).div_ceil(2);
        while chunk > 0 {
            let mut at = 0;
            while at < self.length(list) {
                let mut candidate = self.document.clone();
                if let Some(elements) = candidate.pointer_mut(list).and_then(Value::as_array_mut) {
                    elements.drain(at..(at + chunk).min(elements.len()));
                }
                if !self.try_it(candidate) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Leaves a named table out, and everything that names it.
    fn named(&mut self, section: &str, keys: &[&str]) {
        let names = self.document.pointer(section).and_then(Value::as_object);
        let names: Vec<String> = names.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        for name in names {
            let mut candidate = self.document.clone();
            if let Some(table) = candidate.pointer_mut(section).and_then(Value::as_object_mut) {
                table.shift_remove(&name);
            }
            forget(&mut candidate, &name, keys);
            self.try_it(candidate);
        }
    }

    /// Leaves every key below `at` out that may be, outer ones first.
    fn keys(&mut self, at: &str) {
        let below: Vec<String> = match self.document.pointer(at) {
            Some(Value::Object(table)) => table.keys().map(|key| format!("{at}/{}", escaped(key))).collect(),
            Some(Value::Array(list)) => (0..list.len()).map(|place| format!("{at}/{place}")).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => return,
        };
        let in_table = self.document.pointer(at).is_some_and(Value::is_object);
        let is_request_list = at.ends_with("/requests") || at.ends_with("/times");
        for inner in below.into_iter().filter(|_| !is_request_list) {
            let key = inner.rsplit('/').next().unwrap_or_default().to_owned();
            let mut candidate = self.document.clone();
            let table = candidate.pointer_mut(at).and_then(Value::as_object_mut);
            let gone = in_table && table.is_some_and(|table| table.shift_remove(&unescaped(&key)).is_some());
            if !(gone && key != "seed" && self.try_it(candidate)) {
                self.keys(&inner);
            }
        }
    }
}

/// Takes out of workloads, faults and families what names a model or family that is gone.
fn forget(document: &mut Value, name: &str, keys: &[&str]) {
    let names_it = |value: &Value| keys.iter().any(|key| value.get(key).and_then(Value::as_str) == Some(name));
    for list in ["workload", "faults"] {
        if let Some(list) = document.get_mut(list).and_then(Value::as_array_mut) {
            list.retain(|one| !names_it(one));
        }
    }
    let families = document.get_mut("families").and_then(Value::as_object_mut);
    for family in families.into_iter().flatten().map(|(_, family)| family) {
        if let Some(variants) = family.get_mut("variants").and_then(Value::as_array_mut) {
            variants.retain(|one| !names_it(one));
        }
    }
}

/// A key as a step of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs(document: &Value, pointers: &[&str]) -> bool {
        pointers.iter().all(|pointer| document.pointer(pointer).is_some_and(|value| !value.is_null()))
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        let requests: Vec<Value> = (0..100).map(|at| json!({ "at": at })).collect();
        let document = json!({
            "policy": { "share": 1, "turn": 2 },
            "models": { "a": { "slots": 2, "pinned": true }, "b": {} },
            "workload": [{ "model": "a", "arrivals": { "requests": requests } }, { "model": "b" }],
            "faults": [{ "model": "b" }, { "model": "a", "at": 3 }],
        });
        let fails = |document: &Value| {
            let requests = document.pointer("/workload/0/arrivals/requests").and_then(Value::as_array);
            let has = |at: u64| requests.is_some_and(|list| list.iter().any(|one| one["at"] == at));
            needs(document, &["/policy/turn", "/models/a/slots"]) && has(17) && has(83)
        };
        let small = json!({
            "policy": { "turn": 2 },
            "models": { "a": { "slots": 2 } },
            "workload": [{ "arrivals": { "requests": [{ "at": 17 }, { "at": 83 }] } }],
            "faults": [],
        });
        let shrunk = shrink(document, 1_000, fails);
        assert_eq!(shrunk.document, small);
        assert!(shrunk.trials < 120, "{} trials", shrunk.trials);
    }

    #[test]
    fn it_stops_after_its_trials() {
        let list: Vec<Value> = (0..1_000).map(|at| json!(at)).collect();
        let shrunk = shrink(json!({ "faults": list }), 10, |document| document["faults"][0] == 0);
        assert_eq!(shrunk.trials, 10);
    }
}
