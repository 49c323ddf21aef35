//! A scenario as a plain tree: what programs make, change and write down as TOML again.
//!
//! The tree is JSON's: tables are objects, whose keys keep their order. Times and sizes stay the texts they are in a file,
//! so a tree that was read, written and read again is the same scenario.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{DaemonFile, Node, Override, ScenarioFile, SourceFile, Table, Value, file::parse};
use crate::error::ConfigError;
use crate::sections::CONFIGURATION;

impl ScenarioFile {
    /// The file laid over its base, with `overrides` put in place.
    ///
    /// # Errors
    /// If an override names no key.
    pub fn document(&self, overrides: &[Override]) -> Result<Json, ConfigError> {
        let mut root = self.overlaid(overrides)?;
        root.entries.retain(|entry| entry.key != "base");
        Ok(plain_table(&root))
    }

    /// Its own document and that of its base, as they were read; `None`: it has no base.
    ///
    /// # Errors
    /// Those of reading it, which then has failed before.
    pub fn layers(&self) -> Result<Option<(Json, Json)>, ConfigError> {
        let [own, base, ..] = self.sources.as_slice() else { return Ok(None) };
        let plain = |file: &SourceFile| parse(&file.text, Path::new(&file.name), &mut Vec::new());
        Ok(Some((plain_table(&plain(own)?), plain_table(&plain(base)?))))
    }

    /// Whether it holds nothing but what a daemon's configuration holds too, and so asks for nothing.
    pub fn is_configuration(&self) -> bool {
        self.keys().all(|key| CONFIGURATION.key(key).is_some())
    }
}

impl DaemonFile {
    /// The file with `overrides` put in place.
    ///
    /// # Errors
    /// If an override names no key.
    pub fn document(&self, overrides: &[Override]) -> Result<Json, ConfigError> {
        Ok(plain_table(&self.overridden(overrides)?))
    }
}

fn plain_table(table: &Table) -> Json {
    Json::Object(table.entries.iter().map(|entry| (entry.key.clone(), plain(&entry.node))).collect())
}

fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Text(text) | Value::Moment(text) => Json::from(text.as_str()),
        Value::Integer { value, .. } => Json::from(*value),
        Value::Float { value, .. } => Json::from(*value),
        Value::Flag(flag) => Json::from(*flag),
        Value::List(list) => list.iter().map(plain).collect(),
        Value::Table(table) => plain_table(table),
    }
}

/// `document` as TOML: a header for every table of the first two levels, everything below it on one line. What is null is
/// left out.
pub fn to_toml(document: &Json) -> String {
    let mut text = String::new();
    let Json::Object(root) = document else { return text };
    for (key, value) in root.iter().filter(|(_, value)| !is_section(value)) {
        entry(&mut text, key, value);
    }
    for (key, value) in root {
        match value {
            Json::Array(tables) if is_section(value) => {
                for table in tables.iter().filter_map(Json::as_object) {
                    text.push_str(&format!("\n[[{}]]\n", key_text(key)));
                    table.iter().for_each(|(key, value)| entry(&mut text, key, value));
                }
            }
            Json::Object(table) => section(&mut text, key, table),
            Json::Array(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    text
}

/// A table, and those right below it that hold nothing but tables of their own or stand in a table of named ones.
fn section(text: &mut String, key: &str, table: &Map<String, Json>) {
    let named = !table.is_empty() && table.values().all(Json::is_object);
    if !named {
        text.push_str(&format!("\n[{}]\n", key_text(key)));
        return table.iter().for_each(|(key, value)| entry(text, key, value));
    }
    for (name, value) in table {
        text.push_str(&format!("\n[{}.{}]\n", key_text(key), key_text(name)));
        value.as_object().into_iter().flatten().for_each(|(key, value)| entry(text, key, value));
    }
}

fn is_section(value: &Json) -> bool {
    match value {
        Json::Object(_) => true,
        Json::Array(list) => !list.is_empty() && list.iter().all(Json::is_object),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn entry(text: &mut String, key: &str, value: &Json) {
    if !value.is_null() {
        text.push_str(&format!("{} = {}\n", key_text(key), inline(value)));
    }
}

fn inline(value: &Json) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Json::Null => String::new(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(string) => toml_edit::Value::from(string.as_str()).to_string(),
        Json::Array(list) if list.len() > 8 && list.iter().all(Json::is_object) => {
            format!("[\n{}]", list.iter().map(|one| format!("  {},\n", inline(one))).collect::<String>())
        }
        Json::Array(list) => format!("[{}]", joined(list.iter().map(inline).collect())),
        Json::Object(table) => {
            let entries = table.iter().filter(|(_, value)| !value.is_null());
            let entries = entries.map(|(key, value)| format!("{} = {}", key_text(key), inline(value))).collect();
            format!("{{ {} }}", joined(entries))
        }
    }
}

fn key_text(key: &str) -> String {
    toml_edit::Key::new(key).display_repr().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_file_that_was_read_and_written_is_the_same_scenario() {
        let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/everything.toml");
        let file = ScenarioFile::load(&origin).unwrap();
        let text = to_toml(&file.document(&[]).unwrap());
        let again = ScenarioFile::parse(&text, &origin).unwrap();
        let scenario = |file: &ScenarioFile| {
            let mut scenario = file.resolve(&[]).unwrap_or_else(|error| panic!("{error}"));
            scenario.expectations.iter_mut().for_each(|one| one.line = 0);
            scenario
        };
        assert_eq!(scenario(&again), scenario(&file));
    }

    #[test]
    fn an_override_is_in_the_document() {
        let file = ScenarioFile::parse("[policy]\nbackground_share = 0.5\n", Path::new("s.toml")).unwrap();
        let one = Override::parse("policy.background_share=0.25").unwrap();
        assert_eq!(to_toml(&file.document(&[one]).unwrap()), "\n[policy]\nbackground_share = 0.25\n");
        let none = Override::parse("policy.background_shore=0.25").unwrap();
        assert!(file.document(&[none]).is_err());
    }

    #[test]
    fn a_file_that_asks_for_something_or_has_a_base_is_no_configuration() {
        let is = |text: &str| ScenarioFile::parse(text, Path::new("s.toml")).unwrap().is_configuration();
        assert!(is("[server]\n[[keys]]\nname = 'k'\n[models.m]\n[policy]\n[[devices]]\nname = 'd'\n[families.f]\n"));
        assert!(!is("[models.m]\n[[workload]]\nname = 'w'\n") && !is("title = 't'\n[models.m]\n"));
    }

    #[test]
    fn a_daemons_file_comes_with_its_overrides() {
        let file = DaemonFile::parse("[server]\nbody_limit = '1MiB'\n", Path::new("d.toml")).unwrap();
        let one = Override::parse("server.body_limit=2MiB").unwrap();
        assert_eq!(file.document(&[one]).unwrap(), serde_json::json!({ "server": { "body_limit": "2MiB" } }));
        assert!(file.document(&[Override::parse("run.seed=1").unwrap()]).is_err());
    }
}
