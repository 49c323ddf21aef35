//! A world that failed, written down so that nothing in it is drawn any more: every request at its moment with its sizes,
//! services without noise. Faults keep what they draw: it depends on nothing but the seed of the run.

use serde_json::{Map, Value, json};

use crate::run::Arrival;

/// Whether services keep their noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Kept,
    Gone,
}

/// The document with `arrivals` in place of what drew them.
pub fn frozen(document: &Value, arrivals: &[Arrival], noise: Noise) -> Value {
    let mut frozen = document.clone();
    if let Some(workloads) = frozen.get_mut("workload").and_then(Value::as_array_mut) {
        for (workload, place) in workloads.iter_mut().filter_map(Value::as_object_mut).zip(0..) {
            let own = arrivals.iter().filter(|arrival| arrival.workload == place);
            let requests: Vec<Value> = own.map(request).collect();
            for drawn in ["from", "to", "inputs", "prompt_tokens", "output_tokens"] {
                workload.shift_remove(drawn);
            }
            workload.insert("arrivals".to_owned(), json!({ "process": "at", "requests": requests }));
        }
        let asks = |workload: &Value| workload["arrivals"]["requests"].as_array().is_some_and(|all| !all.is_empty());
        workloads.retain(asks);
    }
    if noise == Noise::Gone {
        let models = frozen.get_mut("models").and_then(Value::as_object_mut);
        models.into_iter().flatten().for_each(|(_, model)| quieten(model));
    }
    if let Some(run) = frozen.get_mut("run").and_then(Value::as_object_mut) {
        run.shift_remove("jobs");
    }
    frozen
}

fn request(arrival: &Arrival) -> Value {
    let at = arrival.at.before(arrival.slept).as_nanos();
    let mut request = Map::new();
    request.insert("at".to_owned(), json!(format!("{at}ns")));
    if arrival.inputs != 1 {
        request.insert("inputs".to_owned(), json!(arrival.inputs));
    }
    for (key, tokens) in [("prompt_tokens", arrival.prompt_tokens), ("output_tokens", arrival.output_tokens)] {
        if tokens != 0 {
            request.insert(key.to_owned(), json!(tokens));
        }
    }
    Value::Object(request)
}

/// Takes the noise out of a model's services, on single devices too.
fn quieten(value: &mut Value) {
    if let Some(table) = value.as_object_mut() {
        table.shift_remove("noise");
        table.values_mut().for_each(quieten);
    }
}
