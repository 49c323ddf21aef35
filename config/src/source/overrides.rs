//! `--set dotted.key=value`: one value of a file replaced from outside.
//!
//! The way to a value leads through the forms of the sections: elements of arrays of tables and of tables of tables are
//! found by their names, tables that are left out in the file are made, and where a table takes exactly one of several
//! keys the new one replaces the old.

use toml_edit::Key as DottedKey;

use super::tree::Reader;
use super::{Entry, Node, Place, Table, Value};
use crate::error::ConfigError;
use crate::form::{Form, Key, Rule, Shape, Tagged, did_you_mean, listed};

/// Parts of a dotted key, at most. Names may have dots, so every way to join parts to a name is tried.
const DEEPEST: usize = 32;

/// A value to be put in place of what a file says.
#[derive(Clone, Debug)]
pub struct Override {
    text: String,
    path: Vec<String>,
    value: Node,
}

/// Why a key cannot be set: a message and hints.
pub(crate) type Unsettable = (String, Vec<String>);

impl Override {
    /// Reads `dotted.key=value`. The value is TOML; a bare word counts as a string. Names with dots or blanks may be quoted
    /// as in TOML.
    pub fn parse(text: &str) -> Result<Override, ConfigError> {
        match split(text) {
            Some((key, value)) => Override::from_parts(key, value, text),
            None => Err(failure(text, "must be key=value, such as policy.background_share=0.25")),
        }
    }

    /// The override of `key` by `value`, both as in [`Override::parse`].
    pub fn new(key: &str, value: &str) -> Result<Override, ConfigError> {
        Override::from_parts(key, value, &format!("{key}={value}"))
    }

    fn from_parts(key: &str, value: &str, text: &str) -> Result<Override, ConfigError> {
        let path = path(key);
        if path.is_empty() || path.iter().any(String::is_empty) {
            return Err(failure(text, "has an empty key; keys are dotted, such as policy.background_share"));
        }
        if path.len() > DEEPEST {
            return Err(failure(text, &format!("has a key of {} parts; none has more than {DEEPEST}", path.len())));
        }
        Ok(Override { text: text.to_owned(), path, value: node(value.trim(), text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Puts its value into `root`; `source` is its number among the sources.
    pub(crate) fn apply(&self, root: &mut Table, form: &'static Form, source: usize) -> Result<(), Unsettable> {
        if self.path == ["base"] {
            return Err(("`base` is read with the file and cannot be set".to_owned(), Vec::new()));
        }
        let place = Place { source, start: 0, end: 0 };
        let value = placed(self.value.clone(), place);
        Way { place, value }.set(root, form, &self.path, "")
    }
}

fn failure(text: &str, message: &str) -> ConfigError {
    ConfigError::whole(format!("--set {text}"), message)
}

/// Splits at the first equals sign outside quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let at = text.find(|one: char| {
        match quote {
            Some(open) if open == one => quote = None,
            None if matches!(one, '"' | '\'') => quote = Some(one),
            None | Some(_) => {}
        }
        quote.is_none() && one == '='
    })?;
    Some((&text[..at], &text[at + 1..]))
}

fn path(key: &str) -> Vec<String> {
    match DottedKey::parse(key.trim()) {
        Ok(keys) => keys.iter().map(|key| key.get().to_owned()).collect(),
        Err(_) => key.trim().split('.').map(|step| step.trim().to_owned()).collect(),
    }
}

fn node(value: &str, text: &str) -> Result<Node, ConfigError> {
    let reader = Reader { source: 0, text: "" };
    match value.parse::<toml_edit::Value>() {
        Ok(value) => Ok(reader.value(&value)),
        Err(_) if value.is_empty() => Err(failure(text, "has no value; an empty text is written \"\"")),
        Err(error) if value.starts_with(['"', '\'', '[', '{']) => {
            Err(failure(text, &format!("its value is no TOML: {}", error.message())))
        }
        Err(_) => Ok(reader.value(&toml_edit::Value::from(value))),
    }
}

fn placed(node: Node, place: Place) -> Node {
    let value = match node.value {
        Value::List(list) => Value::List(list.into_iter().map(|node| placed(node, place)).collect()),
        Value::Table(table) => {
            let entry = |entry: Entry| Entry { key: entry.key, place, node: placed(entry.node, place) };
            Value::Table(Table { entries: table.entries.into_iter().map(entry).collect() })
        }
        single @ (Value::Text(_) | Value::Integer { .. } | Value::Float { .. } | Value::Flag(_) | Value::Moment(_)) => {
            single
        }
    };
    Node { place, value }
}

/// A value on its way to its key.
struct Way {
    place: Place,
    value: Node,
}

impl Way {
    /// Sets `path` below `table`, whose dotted name is `at`.
    fn set(self, table: &mut Table, form: &'static Form, path: &[String], at: &str) -> Result<(), Unsettable> {
        let Some((step, rest)) = path.split_first() else { return Err((format!("`{at}` has no key"), Vec::new())) };
        let key = form.key(step).ok_or_else(|| unknown_key(step, form.keys.iter(), at))?;
        if form.rule == Rule::ExactlyOne {
            table.entries.retain(|entry| entry.key == *step);
        }
        self.set_key(table, key, rest, &joined(at, step))
    }

    fn set_key(self, table: &mut Table, key: &'static Key, rest: &[String], at: &str) -> Result<(), Unsettable> {
        let Some(next) = rest.first() else {
            table.put(Entry { key: key.name.to_owned(), place: self.place, node: self.value });
            return Ok(());
        };
        match key.shape {
            Shape::Tables(form) => self.set_element(table.get_mut(key.name), form, rest, at),
            Shape::Any(Shape::Tagged(tagged)) => self.set_variant(table.get_mut(key.name), tagged, rest, at),
            Shape::Named(form) => self.set_named(table, key, form, rest, at),
            Shape::Tagged(tagged) => self.set_tagged(table.get_mut(key.name), tagged, rest, at),
            Shape::Texts => {
                let texts = table_at(table, key.name, self.place)?;
                texts.put(Entry { key: rest.join("."), place: self.place, node: self.value });
                Ok(())
            }
            shape => match shape.table_form() {
                Some(form) => {
                    let place = self.place;
                    self.set(table_at(table, key.name, place)?, form, rest, at)
                }
                None => Err((
                    format!("`{at}` has no `{next}` below it that could be set; set `{at}` as a whole"),
                    Vec::new(),
                )),
            },
        }
    }

    fn set_element(
        self,
        list: Option<&mut Node>,
        form: &'static Form,
        rest: &[String],
        at: &str,
    ) -> Result<(), Unsettable> {
        let list = match list.map(|node| &mut node.value) {
            Some(Value::List(list)) => list.as_mut_slice(),
            Some(_) | None => &mut [],
        };
        let names: Vec<String> = list.iter().filter_map(|node| node.as_table()?.name().map(str::to_owned)).collect();
        if form.key("name").is_none() {
            return Err((format!("the elements of `{at}` have no names and cannot be set one by one"), Vec::new()));
        }
        let (name, rest) = named_step(rest, &names, at)?;
        let node = list.iter_mut().find(|node| node.as_table().and_then(Table::name) == Some(name.as_str()));
        match node.map(|node| &mut node.value) {
            Some(Value::Table(table)) => self.set(table, form, rest, &joined(at, &name)),
            Some(_) | None => Err(unknown_name(&name, &names, at)),
        }
    }

    /// An element of an array whose elements come in kinds: found by its name, or by its kind where it has none.
    fn set_variant(
        self,
        list: Option<&mut Node>,
        tagged: &'static Tagged,
        rest: &[String],
        at: &str,
    ) -> Result<(), Unsettable> {
        let list = match list.map(|node| &mut node.value) {
            Some(Value::List(list)) => list.as_mut_slice(),
            Some(_) | None => &mut [],
        };
        let called = |node: &Node| {
            let table = node.as_table()?;
            table.name().or_else(|| table.get(tagged.tag)?.as_text()).map(str::to_owned)
        };
        let names: Vec<String> = list.iter().filter_map(called).collect();
        let (name, rest) = named_step(rest, &names, at)?;
        let node = list.iter_mut().find(|node| called(node).as_deref() == Some(name.as_str()));
        self.set_tagged(node, tagged, rest, &joined(at, &name))
    }

    fn set_named(
        self,
        table: &mut Table,
        key: &Key,
        form: &'static Form,
        rest: &[String],
        at: &str,
    ) -> Result<(), Unsettable> {
        let place = self.place;
        let tables = table_at(table, key.name, place)?;
        let names: Vec<String> = tables.entries.iter().map(|entry| entry.key.clone()).collect();
        let (name, rest) = match (named_step(rest, &names, at), rest) {
            (Ok(step), _) => step,
            // Tables of devices are small changes to a model and may be begun from outside; a new model may come whole.
            (Err(_), [name, rest @ ..]) if key.name == "on" || rest.is_empty() => (name.clone(), rest),
            (Err(wrong), _) => return Err(wrong),
        };
        if rest.is_empty() {
            tables.put(Entry { key: name, place, node: self.value });
            return Ok(());
        }
        self.set(table_at(tables, &name, place)?, form, rest, &joined(at, &name))
    }

    fn set_tagged(
        self,
        node: Option<&mut Node>,
        tagged: &'static Tagged,
        rest: &[String],
        at: &str,
    ) -> Result<(), Unsettable> {
        let whole = || (format!("`{at}` is not in the file; set it as a whole"), Vec::new());
        let Some(Value::Table(table)) = node.map(|node| &mut node.value) else { return Err(whole()) };
        let [step, rest @ ..] = rest else { return Err(whole()) };
        if step == tagged.tag && rest.is_empty() {
            table.put(Entry { key: step.clone(), place: self.place, node: self.value });
            return Ok(());
        }
        let tag = table.get(tagged.tag).and_then(Node::as_text);
        let form = tag.and_then(|tag| tagged.variant(tag)).ok_or_else(whole)?;
        let key = form.key(step).ok_or_else(|| unknown_key(step, form.keys.iter(), at))?;
        self.set_key(table, key, rest, &joined(at, step))
    }
}

/// The table at `key`, made or put in place of a single value where there is none.
fn table_at<'t>(table: &'t mut Table, key: &str, place: Place) -> Result<&'t mut Table, Unsettable> {
    if table.get(key).and_then(Node::as_table).is_none() {
        let node = Node { place, value: Value::Table(Table::default()) };
        table.put(Entry { key: key.to_owned(), place, node });
    }
    match table.get_mut(key).map(|node| &mut node.value) {
        Some(Value::Table(inner)) => Ok(inner),
        Some(_) | None => Err((format!("`{key}` is no table"), Vec::new())),
    }
}

/// The name that `rest` begins with: one step, or several where the name itself has dots.
fn named_step<'r>(rest: &'r [String], names: &[String], at: &str) -> Result<(String, &'r [String]), Unsettable> {
    let found =
        (1..=rest.len()).map(|steps| (rest[..steps].join("."), &rest[steps..])).find(|(name, _)| names.contains(name));
    found.ok_or_else(|| unknown_name(rest.first().map_or("", String::as_str), names, at))
}

fn unknown_name(name: &str, names: &[String], at: &str) -> Unsettable {
    let hint = did_you_mean(name, names.iter().map(String::as_str)).map_or(String::new(), |hint| format!("; {hint}"));
    (format!("`{at}` has no {name:?}{hint}"), vec![format!("known here: {}", listed(names.iter().map(String::as_str)))])
}

fn unknown_key(step: &str, keys: impl Iterator<Item = &'static Key>, at: &str) -> Unsettable {
    let keys: Vec<&str> = keys.map(|key| key.name).collect();
    let hint = did_you_mean(step, keys.iter().copied()).map_or(String::new(), |hint| format!("; {hint}"));
    (format!("unknown key `{}`{hint}", joined(at, step)), vec![format!("known here: {}", listed(keys))])
}

fn joined(at: &str, step: &str) -> String {
    if at.is_empty() { step.to_owned() } else { format!("{at}.{step}") }
}
