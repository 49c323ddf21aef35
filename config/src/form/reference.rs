//! The reference of a daemon's configuration as Markdown: every key, from the tables that files are checked against, each with
//! an example from a configuration that is checked itself.

use toml_edit::{DocumentMut, TableLike};

use super::{Form, Key, Need, Shape, Tagged};
use crate::sections::CONFIGURATION;

const EXAMPLES: &str = include_str!("examples.toml");

const HEAD: &str = "\
# Configuration

Every key of a daemon's configuration. This page is made by `windtunnel schema reference` from the tables that files are
checked against; [LIVE.md](LIVE.md#configuration) says where the file lies and shows whole ones, [POLICY.md](POLICY.md) what
the rules of `[policy]` do, `windtunnel schema config` prints a JSON Schema for editors.

Times are texts with a unit (`\"500ms\"`, `\"2s\"`, `\"5m\"`, `\"1h\"`), sizes too (`\"512MiB\"`, `\"16GiB\"`, `\"100MB\"`). Relative
paths start where the file lies. A daemon needs `gguf` of a model and nothing else; what says how a simulated card behaves is
here because a scenario may start from the same file.
";

/// The reference.
pub fn reference_config() -> String {
    let examples: DocumentMut = EXAMPLES.parse().unwrap_or_default();
    let mut text = HEAD.to_owned();
    for key in CONFIGURATION.keys {
        let tables = below(&[examples.as_table()], key);
        match key.shape {
            Shape::Table(form) => section(&mut text, "##", &format!("[{}]", key.name), form, &tables),
            Shape::Tables(form) => section(&mut text, "##", &format!("[[{}]]", key.name), form, &tables),
            Shape::Named(form) => section(&mut text, "##", &format!("[{}.X]", key.name), form, &tables),
            Shape::Scalar(_)
            | Shape::List(_)
            | Shape::Any(_)
            | Shape::Pair(_)
            | Shape::Couple(..)
            | Shape::Texts
            | Shape::Tagged(_)
            | Shape::Either(_) => {}
        }
    }
    text
}

/// A heading, what the table is for, its keys, and the tables within it.
fn section(text: &mut String, depth: &str, name: &str, form: &'static Form, examples: &[&dyn TableLike]) {
    text.push_str(&format!("\n{depth} `{name}`\n\n{}\n\n", form.doc));
    let inner = name.split(']').next().unwrap_or(name).trim_start_matches('[');
    if same_tables(form) {
        return classes(text, inner, form, examples);
    }
    text.push_str("| key | takes | default | meaning | example |\n|---|---|---|---|---|\n");
    form.keys.iter().for_each(|key| text.push_str(&row(key, examples)));
    for key in form.keys {
        let tables = below(examples, key);
        tables_within(text, &format!("{inner}.{}", key.name), &key.shape, &tables);
    }
}

/// Whether a form is several tables of one kind under fixed names.
fn same_tables(form: &Form) -> bool {
    let Some(Shape::Table(first)) = form.keys.first().map(|key| key.shape) else { return false };
    form.keys.iter().all(|key| matches!(key.shape, Shape::Table(other) if std::ptr::eq(other, first)))
}

/// One table for all of them.
fn classes(text: &mut String, inner: &str, form: &'static Form, examples: &[&dyn TableLike]) {
    for key in form.keys {
        text.push_str(&format!("* `[{inner}.{}]`: {}\n", key.name, key.doc));
    }
    if let Some(Shape::Table(each)) = form.keys.first().map(|key| key.shape) {
        let tables: Vec<&dyn TableLike> = form.keys.iter().flat_map(|key| below(examples, key)).collect();
        section(text, "###", &format!("[{inner}.X]"), each, &tables);
    }
}

fn tables_within(text: &mut String, name: &str, shape: &Shape, examples: &[&dyn TableLike]) {
    // What may differ from device to device was listed already.
    if name.contains(".NAME.") {
        return;
    }
    match shape {
        Shape::Table(form) => section(text, "###", &format!("[{name}]"), form, examples),
        Shape::Named(form) => section(text, "###", &format!("[{name}.NAME]"), form, examples),
        Shape::Tables(form) | Shape::List(Shape::Table(form)) | Shape::Any(Shape::Table(form)) => {
            section(text, "###", &format!("[[{name}]]"), form, examples);
        }
        Shape::Tagged(tagged) => variants(text, name, tagged, examples),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| tables_within(text, name, shape, examples)),
        Shape::Scalar(_) | Shape::List(_) | Shape::Any(_) | Shape::Pair(_) | Shape::Couple(..) | Shape::Texts => {}
    }
}

/// The variants of a table, one after another.
fn variants(text: &mut String, name: &str, tagged: &'static Tagged, examples: &[&dyn TableLike]) {
    for (tag, form) in tagged.variants {
        let is = |table: &&dyn TableLike| table.get(tagged.tag).and_then(toml_edit::Item::as_str) == Some(tag);
        let tables: Vec<&dyn TableLike> = examples.iter().copied().filter(is).collect();
        section(text, "###", &format!("[{name}] {} = \"{tag}\"", tagged.tag), form, &tables);
    }
}

fn row(key: &Key, examples: &[&dyn TableLike]) -> String {
    let default = match (key.need, key.default) {
        (Need::Required, _) => "required".to_owned(),
        (Need::Optional, Some(default)) => format!("`{default}`"),
        (Need::Optional, None) => String::new(),
    };
    let example = example(key, examples).map_or_else(String::new, |example| format!("`{example}`"));
    let takes = key.shape.words();
    format!("| `{}` | {} | {default} | {} | {example} |\n", key.name, cell(&takes), cell(key.doc))
}

/// In a table of Markdown a bar ends a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// How the key is written; tables with a heading of their own show there.
fn example(key: &Key, examples: &[&dyn TableLike]) -> Option<String> {
    if matches!(key.shape, Shape::Named(_) | Shape::Tables(_)) {
        return None;
    }
    let value = examples.iter().find_map(|table| table.get(key.name))?.as_value()?;
    Some(format!("{} = {}", key.name, value.to_string().trim()))
}

/// The tables that stand under a key in any of `tables`.
fn below<'e>(tables: &[&'e dyn TableLike], key: &Key) -> Vec<&'e dyn TableLike> {
    let items = tables.iter().filter_map(|table| table.get(key.name));
    let mut found: Vec<&'e dyn TableLike> = Vec::new();
    for item in items {
        if matches!(key.shape, Shape::Named(_)) {
            let named = item.as_table_like().into_iter().flat_map(TableLike::iter);
            found.extend(named.filter_map(|(_, item)| item.as_table_like()));
        } else if let Some(tables) = item.as_array_of_tables() {
            found.extend(tables.iter().map(|table| table as &dyn TableLike));
        } else if let Some(list) = item.as_array() {
            found.extend(list.iter().filter_map(|value| Some(value.as_inline_table()? as &dyn TableLike)));
        } else {
            found.extend(item.as_table_like());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::DaemonFile;

    #[test]
    fn the_examples_are_a_configuration() {
        let file = DaemonFile::parse(EXAMPLES, Path::new("examples.toml")).unwrap();
        file.resolve(&[], &[]).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn every_key_has_a_row_with_an_example() {
        let text = reference_config();
        let bare: Vec<&str> = text.lines().filter(|line| line.starts_with("| `") && line.ends_with("|  |")).collect();
        // These have headings and tables of their own.
        let bare: Vec<&str> = bare
            .into_iter()
            .filter(|line| !line.starts_with("| `on` ") && !line.starts_with("| `classes` |"))
            .collect();
        assert_eq!(bare, [""; 0]);
        for key in CONFIGURATION.keys {
            assert!(
                text.contains(&format!("`[{}", key.name)) || text.contains(&format!("`[[{}", key.name)),
                "{}",
                key.name
            );
        }
    }
}
