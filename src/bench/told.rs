//! What was measured, for people and programs: rows of points, and a block to put into a scenario or configuration.

use serde_json::{Value, json};

use super::{
    fit::{Line, Point},
    measure::{Measured, Service},
};
use crate::rows::{Rows, size};

/// Every point.
pub fn rows(all: &[Measured]) -> Rows {
    let mut rows = Rows::new(&["model", "measured", "size", "ms", "per_second"]);
    for Measured { model, load, estimated, holds, service } in all {
        let mut push = |what: &str, size: Value, millis: Value, rate: Value| {
            rows.push(vec![json!(model), json!(what), size, millis, rate]);
        };
        if let Some(load) = load {
            push("load", Value::Null, number(load.as_secs_f64() * 1e3), Value::Null);
        }
        if let Some(bytes) = estimated {
            push("set aside", json!(size(*bytes)), Value::Null, Value::Null);
        }
        push("holds", json!(size(*holds)), Value::Null, Value::Null);
        match service {
            Service::Slots { prefill, decode, .. } => {
                for &Point { size, millis } in prefill {
                    push("prompt tokens", json!(size as u64), number(millis), number(size / millis * 1e3));
                }
                for &Point { size, millis } in decode {
                    // What all of them make together.
                    push("generations", json!(size as u64), number(millis), number(size / millis * 1e3));
                }
            }
            Service::Batch { inputs, .. } => {
                for &Point { size, millis } in inputs {
                    push("inputs", json!(size as u64), number(millis), number(size / millis * 1e3));
                }
            }
        }
    }
    rows
}

/// Rows, then a block for each model.
pub fn text(all: &[Measured]) -> String {
    let blocks = all.iter().map(block).collect::<Vec<_>>();
    format!("{}\n{}", rows(all).text(), blocks.join("\n"))
}

/// The model's table as a scenario or a configuration has it.
fn block(measured: &Measured) -> String {
    let Measured { model, load, estimated, holds, service } = measured;
    let key = toml_edit::Key::new(model.as_str()).display_repr().into_owned();
    let mut text = format!("[models.{key}]\n");
    if let Some(load) = load {
        text.push_str(&format!("# loaded in {:.2} s\n", load.as_secs_f64()));
    }
    let before = estimated.map_or_else(String::new, |bytes| format!("  # {} were set aside for it", size(bytes)));
    text.push_str(&format!("footprint = \"{}B\"{before}\n", holds));
    if let Service::Slots { slots, .. } = service {
        text.push_str(&format!("slots = {slots}\n"));
    }
    let entries: Vec<String> = numbers(service).iter().map(|(name, text)| format!("{name} = \"{text}\"")).collect();
    text.push_str(&format!("service = {{ kind = \"{}\", {} }}\n", kind(service), entries.join(", ")));
    text
}

fn kind(service: &Service) -> &'static str {
    match service {
        Service::Slots { .. } => "slots",
        Service::Batch { .. } => "batch",
    }
}

/// The numbers of the service, as a file has them.
fn numbers(service: &Service) -> Vec<(&'static str, String)> {
    let pair = |line: &Line, fixed, each| vec![(fixed, span(line.fixed)), (each, span(line.each))];
    match service {
        Service::Slots { prefill_line, decode_line, .. } => {
            let prefill = pair(prefill_line, "prefill_fixed", "prefill_per_token");
            [prefill, pair(decode_line, "decode_alpha", "decode_beta")].concat()
        }
        Service::Batch { line, .. } => pair(line, "alpha", "beta"),
    }
}

/// Milliseconds with a resolution of nanoseconds.
fn span(millis: f64) -> String {
    let text = format!("{millis:.6}");
    format!("{}ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// For programs.
pub fn json(all: &[Measured]) -> Value {
    let one = |measured: &Measured| {
        let Measured { model, load, estimated, holds, service } = measured;
        let lines = match service {
            Service::Slots { prefill_line, decode_line, .. } => json!({
                "kind": "slots", "prefill_fixed_ms": prefill_line.fixed, "prefill_per_token_ms": prefill_line.each,
                "decode_alpha_ms": decode_line.fixed, "decode_beta_ms": decode_line.each,
            }),
            Service::Batch { line, .. } => json!({ "kind": "batch", "alpha_ms": line.fixed, "beta_ms": line.each }),
        };
        json!({
            "model": model, "load_seconds": load.map(|load| load.as_secs_f64()), "estimated_bytes": estimated,
            "holds_bytes": holds, "service": lines,
        })
    };
    let points = rows(all).json();
    json!({ "models": all.iter().map(one).collect::<Vec<Value>>(), "points": points })
}

/// Three decimals say enough.
fn number(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use windtunnel_config::ScenarioFile;

    use super::*;
    use crate::bench::fit::line;

    fn measured() -> Vec<Measured> {
        let points =
            |pairs: &[(f64, f64)]| pairs.iter().map(|&(size, millis)| Point { size, millis }).collect::<Vec<_>>();
        let (prefill, decode) = (points(&[(64.0, 36.0), (512.0, 260.0)]), points(&[(1.0, 21.0), (2.0, 22.0)]));
        let (prefill_line, decode_line) = (line(&prefill), line(&decode));
        let inputs = points(&[(1.0, 5.5), (32.0, 21.0)]);
        let line = line(&inputs);
        vec![
            Measured {
                model: "gemma 4".to_owned(),
                load: Some(Duration::from_millis(2_340)),
                estimated: Some(9 << 30),
                holds: 8 << 30,
                service: Service::Slots { slots: 2, prefill, decode, prefill_line, decode_line },
            },
            Measured {
                model: "nomic".to_owned(),
                load: None,
                estimated: None,
                holds: 600 << 20,
                service: Service::Batch { inputs, line },
            },
        ]
    }

    #[test]
    fn what_was_measured_is_shown_with_a_block_to_paste() {
        insta::assert_snapshot!(text(&measured()));
    }

    #[test]
    fn the_block_is_part_of_a_scenario() {
        let blocks: String = measured().iter().map(block).collect();
        let rest = "run.horizon = '1s'\n[[devices]]\nname = 'd'\n[[workload]]\nname = 'w'\nmodel = 'nomic'\n\
            arrivals = { process = 'poisson', rate = 1 }\n";
        let scenario = ScenarioFile::parse(&format!("{rest}{blocks}"), Path::new("s.toml")).unwrap();
        let scenario = scenario.resolve(
            &["models.nomic.resident=true", "models.\"gemma 4\".resident=true"]
                .map(|set| windtunnel_config::Override::parse(set).unwrap()),
        );
        scenario.unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}
