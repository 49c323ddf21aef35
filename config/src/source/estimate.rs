//! Footprints that were estimated from model files, put where the file says none.

use windtunnel_core::Bytes;

use super::{Entry, Node, Table, Value};

/// Whether any model names its file.
pub(super) fn names_model_files(root: &Table) -> bool {
    let models = root.get("models").and_then(Node::as_table);
    let tables = models.into_iter().flat_map(|models| &models.entries).filter_map(|entry| entry.node.as_table());
    tables.into_iter().any(|model| model.get("gguf").is_some())
}

/// Writes estimates into the tables of their models, at the places of their files.
pub(super) fn give_footprints(root: &mut Table, estimates: Vec<(String, Bytes)>) {
    let Some(Value::Table(models)) = root.get_mut("models").map(|node| &mut node.value) else { return };
    for (name, bytes) in estimates {
        let Some(Value::Table(model)) = models.get_mut(&name).map(|node| &mut node.value) else { continue };
        let Some(place) = model.entry("gguf").map(|entry| entry.node.place) else { continue };
        let node = Node { place, value: Value::Text(format!("{}B", bytes.get())) };
        model.put(Entry { key: "footprint".to_owned(), place, node });
    }
}
