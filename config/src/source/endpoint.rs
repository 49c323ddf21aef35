//! A scenario of which only the workloads count, because somebody else's endpoint serves them.
//!
//! Cards, services, and models where it has none, are filled in, so that it can be resolved like any other; what they say is
//! never looked at. What the file does describe stays, and is checked: a name that is misspelt is still found.

use super::file::{WHOLE, says_service};
use super::{Entry, Node, Table, Value};
use crate::sections::launch_keys;

/// Fills in what an endpoint has of itself.
pub(super) fn fill_in(root: &mut Table) {
    let bare = root.get("devices").and_then(Node::as_list).is_none_or(<[Node]>::is_empty);
    if bare {
        put(root, "devices", list(vec![table(vec![("name", text("endpoint"))])]));
    }
    let named = root.get("models").and_then(Node::as_table).is_some_and(|models| !models.entries.is_empty());
    let mut models = if named { Vec::new() } else { asked_for(root, "model") };
    if !named && root.get("families").is_none() {
        for name in asked_for(root, "family") {
            let variant = format!("a variant of {name}");
            let first = table(vec![("model", text(&variant)), ("quality", text("preferred"))]);
            with_table(root, "families", |all| put(all, &name, table(vec![("variants", list(vec![first]))])));
            models.push(variant);
        }
    }
    with_table(root, "models", |all| {
        models.iter().for_each(|name| put(all, name, table(Vec::new())));
        for entry in &mut all.entries {
            if let Value::Table(model) = &mut entry.node.value {
                if bare {
                    model.entries.retain(|entry| !matches!(entry.key.as_str(), "devices" | "on"));
                }
                serve(model);
            }
        }
    });
}

/// What workloads ask for under `key`, each once.
fn asked_for(root: &Table, key: &str) -> Vec<String> {
    let workloads = root.get("workload").and_then(Node::as_list).unwrap_or_default();
    let mut asked: Vec<String> = Vec::new();
    for name in workloads.iter().filter_map(|workload| workload.as_table()?.get(key)?.as_text()) {
        if !asked.iter().any(|other| other == name) {
            asked.push(name.to_owned());
        }
    }
    asked
}

/// Gives a model a service where it has none.
fn serve(model: &mut Table) {
    // Nothing is started here, and its files may be elsewhere.
    let launch = launch_keys();
    model.entries.retain(|entry| !launch.contains(&entry.key.as_str()));
    if model.get("footprint").is_none() {
        model.entries.retain(|entry| !matches!(entry.key.as_str(), "estimate" | "measured"));
    }
    if !says_service(model) {
        let (kind, time) = if model.get("batch").is_some() { ("batch", "alpha") } else { ("slots", "decode_alpha") };
        put(model, "service", table(vec![("kind", text(kind)), (time, text("1ms"))]));
    }
}

/// Does something to the table under a key, which is made where there is none. What is no table is left for the check.
fn with_table(root: &mut Table, key: &str, act: impl FnOnce(&mut Table)) {
    if root.get(key).is_none() {
        put(root, key, table(Vec::new()));
    }
    if let Some(Value::Table(table)) = root.get_mut(key).map(|node| &mut node.value) {
        act(table);
    }
}

fn put(table: &mut Table, key: &str, node: Node) {
    table.put(Entry { key: key.to_owned(), place: WHOLE, node });
}

fn text(text: &str) -> Node {
    Node { place: WHOLE, value: Value::Text(text.to_owned()) }
}

fn list(list: Vec<Node>) -> Node {
    Node { place: WHOLE, value: Value::List(list) }
}

fn table(entries: Vec<(&str, Node)>) -> Node {
    let entry = |(key, node): (&str, Node)| Entry { key: key.to_owned(), place: WHOLE, node };
    Node { place: WHOLE, value: Value::Table(Table { entries: entries.into_iter().map(entry).collect() }) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windtunnel_core::Wanted;

    use crate::source::ScenarioFile;

    const WORKLOAD: &str =
        "run.horizon = '1s'\n[[workload]]\nname = 'w'\nARRIVALS\narrivals = { process = 'poisson', rate = 1 }\n";

    fn file(asked: &str, rest: &str) -> ScenarioFile {
        let text = format!("{}{rest}", WORKLOAD.replace("ARRIVALS", asked));
        ScenarioFile::parse(&text, Path::new("s.toml")).unwrap()
    }

    #[test]
    fn workloads_are_enough_for_an_endpoint() {
        for (asked, rest, wanted) in [
            ("model = 'm'", "", Ok("m")),
            ("family = 'f'", "", Err("f")),
            ("model = 'n'", "[models.m]\ngguf = 'nowhere.gguf'\naliases = ['n']\n", Ok("m")),
            (
                "model = 'm'\nkind = 'embedding'",
                "[models.m]\nbatch = { max = 8 }\npredicted = { alpha = '1ms' }\n",
                Ok("m"),
            ),
            ("model = 'm'", "[models.m]\ndevices = ['cuda0']\nestimate = '1GiB'\n", Ok("m")),
        ] {
            let file = file(asked, rest);
            assert!(file.resolve(&[]).is_err(), "{rest}: no card serves it here");
            let scenario = file.served_elsewhere().resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}\n{rest}"));
            let told = &scenario.configuration;
            let name = match scenario.workloads[0].wanted {
                Wanted::Model(model) => Ok(told.model(model).unwrap().name.as_str()),
                Wanted::Family(family) => Err(told.families[family.index()].name.as_str()),
            };
            assert_eq!(name, wanted, "{rest}");
        }
    }

    #[test]
    fn a_name_that_is_misspelt_is_still_found() {
        let wrong = file("model = 'chta'", "[models.chat]\n").served_elsewhere().resolve(&[]).unwrap_err().to_string();
        assert!(wrong.contains("there is no model \"chta\"") && wrong.contains("chat"), "{wrong}");
    }
}
