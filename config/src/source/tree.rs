//! Values of a TOML document with their places, whatever way of writing tables they came from.
//!
//! A header, a dotted key and an inline table are the same [`Table`]; an array of tables is a list of them. Numbers keep the
//! text they were written as, so that decimals can be read exactly.

use std::ops::Range;

use toml_edit::{Item, TableLike};

use super::Place;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub place: Place,
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer { value: i64, text: String },
    Float { value: f64, text: String },
    Flag(bool),
    Moment(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys and their values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub place: Place,
    pub node: Node,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    /// Replaces the entry of the same key, or appends it.
    pub fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    /// The value of `name`, where it is a text: what elements of arrays of tables are found by.
    pub fn name(&self) -> Option<&str> {
        match &self.get("name")?.value {
            Value::Text(name) => Some(name),
            Value::Integer { .. }
            | Value::Float { .. }
            | Value::Flag(_)
            | Value::Moment(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            Value::Text(_)
            | Value::Integer { .. }
            | Value::Float { .. }
            | Value::Flag(_)
            | Value::Moment(_)
            | Value::List(_) => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Integer { .. }
            | Value::Float { .. }
            | Value::Flag(_)
            | Value::Moment(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(list) => Some(list),
            Value::Text(_)
            | Value::Integer { .. }
            | Value::Float { .. }
            | Value::Flag(_)
            | Value::Moment(_)
            | Value::Table(_) => None,
        }
    }

    /// What it is, for messages: `"abc"`, `12`, `a list`.
    pub fn found(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("{text:?}"),
            Value::Integer { text, .. } | Value::Float { text, .. } => text.clone(),
            Value::Flag(flag) => flag.to_string(),
            Value::Moment(text) => format!("the date {text}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as TOML writes it.
    pub fn to_toml(&self) -> String {
        match &self.value {
            Value::Text(text) => toml_edit::Value::from(text.as_str()).to_string(),
            Value::Integer { text, .. } | Value::Float { text, .. } | Value::Moment(text) => text.clone(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(list) => format!("[{}]", joined(list.iter().map(Node::to_toml))),
            Value::Table(table) => {
                let entries = table.entries.iter();
                format!(
                    "{{ {} }}",
                    joined(entries.map(|one| format!("{} = {}", key_text(&one.key), one.node.to_toml())))
                )
            }
        }
    }
}

fn key_text(key: &str) -> String {
    toml_edit::Key::new(key).display_repr().into_owned()
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Turns what the parser found into a tree.
pub(crate) struct Reader<'a> {
    /// The number of the source.
    pub source: usize,
    /// Its text, or nothing where values carry their own.
    pub text: &'a str,
}

impl Reader<'_> {
    pub fn table(&self, table: &dyn TableLike) -> Table {
        let entries = table.iter().map(|(key, item)| {
            let place = self.place(table.key(key).and_then(|key| key.span()));
            Entry { key: key.to_owned(), place, node: self.item(item, place) }
        });
        Table { entries: entries.collect() }
    }

    fn item(&self, item: &Item, key: Place) -> Node {
        match item {
            Item::None => Node { place: key, value: Value::Table(Table::default()) },
            Item::Value(value) => self.value(value),
            Item::Table(table) => {
                Node { place: self.place_or(table.span(), key), value: Value::Table(self.table(table)) }
            }
            Item::ArrayOfTables(tables) => {
                let list = tables.iter().map(|table| Node {
                    place: self.place_or(table.span(), key),
                    value: Value::Table(self.table(table)),
                });
                Node { place: key, value: Value::List(list.collect()) }
            }
        }
    }

    pub fn value(&self, value: &toml_edit::Value) -> Node {
        let place = self.place(value.span());
        let written = || self.text.get(place.start..place.end).unwrap_or_default();
        let value = match value {
            toml_edit::Value::String(text) => Value::Text(text.value().clone()),
            toml_edit::Value::Integer(number) => {
                Value::Integer { value: *number.value(), text: written_or(written(), number.display_repr()) }
            }
            toml_edit::Value::Float(number) => {
                Value::Float { value: *number.value(), text: written_or(written(), number.display_repr()) }
            }
            toml_edit::Value::Boolean(flag) => Value::Flag(*flag.value()),
            toml_edit::Value::Datetime(moment) => Value::Moment(moment.value().to_string()),
            toml_edit::Value::Array(list) => Value::List(list.iter().map(|value| self.value(value)).collect()),
            toml_edit::Value::InlineTable(table) => Value::Table(self.table(table)),
        };
        Node { place, value }
    }

    fn place(&self, span: Option<Range<usize>>) -> Place {
        let span = span.unwrap_or_default();
        Place { source: self.source, start: span.start, end: span.end }
    }

    fn place_or(&self, span: Option<Range<usize>>, other: Place) -> Place {
        if span.as_ref().is_none_or(Range::is_empty) { other } else { self.place(span) }
    }
}

fn written_or(written: &str, own: std::borrow::Cow<'_, str>) -> String {
    if written.is_empty() { own.into_owned() } else { written.to_owned() }
}
