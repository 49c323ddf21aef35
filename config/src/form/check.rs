//! The check of a whole document against the tables of its sections: unknown keys, wrong types, units and ranges.

use std::fmt;

use super::{Form, Key, Need, Rule, Scalar, Shape, Tagged, did_you_mean, listed};
use crate::error::Complaint;
use crate::source::{Entry, Node, Place, Table, Value};

/// What a walk over a document finds.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What is wrong.
    pub complaints: Vec<Complaint>,
}

/// The way from the document to a value, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: &'a str,
}

impl<'a> Trail<'a> {
    pub const ROOT: Trail<'static> = Trail { parent: None, step: "" };

    pub fn to(&'a self, step: &'a str) -> Trail<'a> {
        Trail { parent: Some(self), step }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            None => Ok(()),
            Some(parent) if parent.parent.is_none() => f.write_str(self.step),
            Some(parent) if self.step.starts_with('[') => write!(f, "{parent}{}", self.step),
            Some(parent) => write!(f, "{parent}.{}", self.step),
        }
    }
}

/// Checks the root table of a file.
pub(crate) fn check_document(table: &Table, form: &'static Form, place: Place) -> Findings {
    let mut findings = Findings::default();
    findings.table(table, place, form, &Trail::ROOT);
    findings
}

impl Findings {
    fn say(&mut self, place: Place, message: String, notes: Vec<String>) {
        self.complaints.push(Complaint { place, message, notes });
    }

    fn table(&mut self, table: &Table, place: Place, form: &'static Form, trail: &Trail<'_>) {
        for entry in table.entries.iter().filter(|entry| form.key(&entry.key).is_none()) {
            let keys: Vec<&str> = form.keys.iter().map(|key| key.name).collect();
            self.unknown_key(entry, trail, &keys, None);
        }
        self.number_of_keys(table, place, form, trail);
        self.keys(table, place, form, trail);
    }

    fn keys(&mut self, table: &Table, place: Place, form: &'static Form, trail: &Trail<'_>) {
        for key in form.keys {
            match table.entry(key.name) {
                Some(entry) => self.entry(entry, key, &trail.to(key.name)),
                None if key.need == Need::Required => self.missing(place, key.name, trail),
                None => {}
            }
        }
    }

    fn missing(&mut self, place: Place, key: &str, trail: &Trail<'_>) {
        let place_of = trail.to_string();
        let place_of = if place_of.is_empty() { "the file".to_owned() } else { format!("`{place_of}`") };
        self.say(place, format!("{place_of} has no `{key}`"), Vec::new());
    }

    fn entry(&mut self, entry: &Entry, key: &'static Key, trail: &Trail<'_>) {
        self.node(&entry.node, &key.shape, trail);
    }

    fn node(&mut self, node: &Node, shape: &'static Shape, trail: &Trail<'_>) {
        match (shape, &node.value) {
            (Shape::Scalar(scalar), _) => self.scalar(node, *scalar, trail),
            (Shape::Either(shapes), _) => match shapes.iter().find(|shape| shape.takes_type_of(node)) {
                Some(shape) => self.node(node, shape, trail),
                None => self.wrong_type(node, shape, trail),
            },
            (Shape::List(_), Value::List(list)) if list.is_empty() => {
                self.say(node.place, format!("`{trail}` must not be empty"), Vec::new());
            }
            (Shape::Pair(_) | Shape::Couple(..), Value::List(list)) if list.len() != 2 => {
                self.say(node.place, format!("`{trail}` must be two values, found {}", list.len()), Vec::new());
            }
            (Shape::List(inner) | Shape::Any(inner) | Shape::Pair(inner), Value::List(list)) => {
                for (at, one) in list.iter().enumerate() {
                    self.node(one, inner, &trail.to(&format!("[{at}]")));
                }
            }
            (Shape::Couple(first, second), Value::List(list)) => {
                for ((at, one), shape) in list.iter().enumerate().zip([first, second]) {
                    self.node(one, shape, &trail.to(&format!("[{at}]")));
                }
            }
            (Shape::Table(form), Value::Table(table)) => self.table(table, node.place, form, trail),
            (Shape::Tables(form), Value::List(list)) => self.tables(list, form, trail),
            (Shape::Named(form), Value::Table(table)) => self.named(table, form, trail),
            (Shape::Texts, Value::Table(table)) => {
                table.entries.iter().for_each(|entry| self.scalar(&entry.node, Scalar::Text, &trail.to(&entry.key)))
            }
            (Shape::Tagged(tagged), Value::Table(table)) => self.tagged(table, node.place, tagged, trail),
            (
                Shape::List(_)
                | Shape::Any(_)
                | Shape::Pair(_)
                | Shape::Couple(..)
                | Shape::Table(_)
                | Shape::Tables(_)
                | Shape::Named(_)
                | Shape::Texts
                | Shape::Tagged(_),
                _,
            ) => self.wrong_type(node, shape, trail),
        }
    }

    fn scalar(&mut self, node: &Node, scalar: Scalar, trail: &Trail<'_>) {
        if let Err(wrong) = scalar.check(node) {
            self.say(node.place, format!("`{trail}` {wrong}"), Vec::new());
        }
    }

    fn wrong_type(&mut self, node: &Node, shape: &Shape, trail: &Trail<'_>) {
        self.say(node.place, format!("`{trail}` must be {}, found {}", shape.words(), node.found()), Vec::new());
    }

    fn tables(&mut self, list: &[Node], form: &'static Form, trail: &Trail<'_>) {
        for (at, node) in list.iter().enumerate() {
            match node.as_table() {
                Some(table) => {
                    let step = table.name().map_or_else(|| format!("[{at}]"), str::to_owned);
                    self.table(table, node.place, form, &trail.to(&step));
                }
                None => self.wrong_type(node, &Shape::Table(form), &trail.to(&format!("[{at}]"))),
            }
        }
    }

    fn named(&mut self, table: &Table, form: &'static Form, trail: &Trail<'_>) {
        for Entry { key, place, node } in &table.entries {
            let trail = trail.to(key);
            if key.trim().is_empty() {
                self.say(*place, "a name must not be empty".to_owned(), Vec::new());
            }
            match node.as_table() {
                Some(table) => self.table(table, node.place, form, &trail),
                None => self.wrong_type(node, &Shape::Table(form), &trail),
            }
        }
    }

    fn tagged(&mut self, table: &Table, place: Place, tagged: &'static Tagged, trail: &Trail<'_>) {
        let Some(tag) = table.get(tagged.tag) else {
            let tags = tagged.tags().join(", ");
            return self.say(place, format!("`{trail}` has no `{}`; it is one of {tags}", tagged.tag), Vec::new());
        };
        let form = tag.as_text().and_then(|text| tagged.variant(text));
        let Some(form) = form else {
            let tags = listed(tagged.tags());
            let hint = tag.as_text().and_then(|text| did_you_mean(text, tagged.tags()));
            let message = format!("`{}` must be one of {tags}; found {}", trail.to(tagged.tag), tag.found());
            return self.say(tag.place, message, hint.into_iter().collect());
        };
        for entry in table.entries.iter().filter(|one| one.key != tagged.tag && form.key(&one.key).is_none()) {
            let keys: Vec<&str> = std::iter::once(tagged.tag).chain(form.keys.iter().map(|key| key.name)).collect();
            self.unknown_key(entry, trail, &keys, tagged.takers(&entry.key));
        }
        self.keys(table, place, form, trail);
    }

    fn unknown_key(&mut self, entry: &Entry, trail: &Trail<'_>, keys: &[&'static str], note: Option<String>) {
        let name = trail.to(&entry.key).to_string();
        let message = match did_you_mean(&entry.key, keys.iter().copied()) {
            Some(hint) => format!("unknown key `{name}`; {hint}"),
            None => format!("unknown key `{name}`"),
        };
        let known = format!("known here: {}", listed(keys.iter().copied()));
        self.say(entry.place, message, std::iter::once(known).chain(note).collect());
    }

    fn number_of_keys(&mut self, table: &Table, place: Place, form: &Form, trail: &Trail<'_>) {
        if form.rule == Rule::ExactlyOne && table.entries.len() != 1 {
            let keys = listed(form.keys.iter().map(|key| key.name));
            let found = listed(table.entries.iter().map(|entry| entry.key.as_str()));
            self.say(
                place,
                format!("`{trail}` must be exactly one of {keys}; found {found}"),
                form.hint.iter().map(|hint| (*hint).to_owned()).collect(),
            );
        }
    }
}

impl Shape {
    fn takes_type_of(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Shape::Scalar(scalar), _) => scalar.takes_type_of(node),
            (Shape::Either(shapes), _) => shapes.iter().any(|shape| shape.takes_type_of(node)),
            (Shape::List(_) | Shape::Any(_) | Shape::Pair(_) | Shape::Couple(..) | Shape::Tables(_), value) => {
                matches!(value, Value::List(_))
            }
            (Shape::Table(_) | Shape::Named(_) | Shape::Texts | Shape::Tagged(_), value) => {
                matches!(value, Value::Table(_))
            }
        }
    }

    /// What it is, in words: "a number or a table of ...".
    pub fn words(&self) -> String {
        match self {
            Shape::Scalar(scalar) => scalar.words(),
            Shape::List(inner) | Shape::Any(inner) => format!("a list, each {}", inner.words()),
            Shape::Pair(inner) => format!("a list of two, each {}", inner.words()),
            Shape::Couple(first, second) => format!("a list of two, {} and {}", first.words(), second.words()),
            Shape::Table(form) => {
                let keys = listed(form.keys.iter().map(|key| key.name));
                format!("a table with {}{keys}", if form.rule == Rule::ExactlyOne { "one of " } else { "" })
            }
            Shape::Tables(_) => "an array of tables".to_owned(),
            Shape::Named(_) => "a table of tables".to_owned(),
            Shape::Texts => "a table of texts".to_owned(),
            Shape::Tagged(tagged) => format!("a table with `{}`", tagged.tag),
            Shape::Either(shapes) => shapes.iter().map(Shape::words).collect::<Vec<_>>().join(", or "),
        }
    }
}
