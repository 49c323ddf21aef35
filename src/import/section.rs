//! A mapping being read. Whatever nobody asked for by the end is a loss, so that no setting goes unmentioned.

use super::{
    duration,
    losses::{Losses, Place},
    yaml::{Entry, Node, Value},
};

pub struct Section<'n> {
    trail: String,
    entries: &'n [Entry],
    asked: Vec<&'static str>,
}

impl<'n> Section<'n> {
    /// The mapping of `node`; anything else is a loss and reads as empty.
    pub fn new(trail: impl Into<String>, node: &'n Node, losses: &mut Losses) -> Section<'n> {
        let trail = trail.into();
        if !matches!(node.value, Value::Map(_) | Value::Null) {
            losses.add(node.line, trail.clone(), format!("has to be a mapping, found {}", node.kind()));
        }
        Section { trail, entries: node.entries(), asked: Vec::new() }
    }

    pub fn entry(&mut self, key: &'static str) -> Option<&'n Entry> {
        self.asked.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (entry.node.value != Value::Null).then_some(entry)
    }

    /// The entries of the mapping under a key; anything else there is a loss and reads as empty.
    pub fn mapping(&mut self, key: &'static str, losses: &mut Losses) -> &'n [Entry] {
        let Some(entry) = self.entry(key) else { return &[] };
        if !matches!(entry.node.value, Value::Map(_)) {
            losses.add(entry.line, self.name(key), format!("has to be a mapping, found {}", entry.node.kind()));
        }
        entry.node.entries()
    }

    /// A key's dotted name.
    pub fn name(&self, key: &str) -> String {
        if self.trail.is_empty() { key.to_owned() } else { format!("{}.{key}", self.trail) }
    }

    pub fn text(&mut self, key: &'static str, losses: &mut Losses) -> Option<&'n str> {
        let entry = self.entry(key)?;
        if entry.node.text().is_none() {
            losses.add(entry.line, self.name(key), format!("has to be a single value, found {}", entry.node.kind()));
        }
        entry.node.text()
    }

    /// A list of single values, or one for all.
    pub fn texts(&mut self, key: &'static str, losses: &mut Losses) -> Vec<&'n str> {
        self.placed_texts(key, losses).into_iter().map(|(text, _)| text).collect()
    }

    /// The same with the line of each.
    pub fn placed_texts(&mut self, key: &'static str, losses: &mut Losses) -> Vec<(&'n str, usize)> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        if let Some(one) = entry.node.text() {
            return vec![(one, entry.node.line)];
        }
        if !matches!(entry.node.value, Value::List(_)) {
            losses.add(entry.line, self.name(key), format!("has to be a list, found {}", entry.node.kind()));
        }
        let mut texts = Vec::new();
        for item in entry.node.items() {
            match item.text() {
                Some(text) => texts.push((text, item.line)),
                None => losses.add(item.line, self.name(key), format!("takes single values, found {}", item.kind())),
            }
        }
        texts
    }

    /// A whole number; below zero it is `None`, which the formats here take for "as usual".
    pub fn count(&mut self, key: &'static str, losses: &mut Losses) -> Option<u64> {
        let text = self.text(key, losses)?;
        match text.trim().parse::<i64>() {
            Ok(number) => u64::try_from(number).ok(),
            Err(_) => self.unread(key, "a whole number", text, losses),
        }
    }

    /// The same where zero stands for "as usual" too.
    pub fn some(&mut self, key: &'static str, losses: &mut Losses) -> Option<u64> {
        self.count(key, losses).filter(|count| *count > 0)
    }

    pub fn number(&mut self, key: &'static str, losses: &mut Losses) -> Option<f64> {
        let text = self.text(key, losses)?;
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(number),
            Ok(_) | Err(_) => self.unread(key, "a number", text, losses),
        }
    }

    pub fn flag(&mut self, key: &'static str, losses: &mut Losses) -> Option<bool> {
        let text = self.text(key, losses)?;
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => self.unread(key, "true or false", text, losses),
        }
    }

    /// A length of time in Go's spelling, as TOML text here.
    pub fn duration(&mut self, key: &'static str, losses: &mut Losses) -> Option<String> {
        let text = self.text(key, losses)?;
        match duration::read(text) {
            Some(nanoseconds) => Some(duration::written(nanoseconds)),
            None => self.unread(key, "a length of time such as 3s or 500ms", text, losses),
        }
    }

    fn unread<T>(&self, key: &str, right: &str, found: &str, losses: &mut Losses) -> Option<T> {
        losses.add(self.line(key), self.name(key), format!("has to be {right}, found {found:?}"));
        None
    }

    /// Where a key stands, by its dotted name.
    pub fn place(&self, key: &str) -> Place {
        Place { line: self.line(key), key: self.name(key) }
    }

    /// Where a key stands.
    pub fn line(&self, key: &str) -> usize {
        self.entries.iter().find(|entry| entry.key == key).map_or(1, |entry| entry.line)
    }

    /// A loss, where the key is given at all.
    pub fn lost(&mut self, key: &'static str, why: &str, losses: &mut Losses) {
        if let Some(entry) = self.entry(key) {
            losses.add(entry.line, self.name(key), why);
        }
    }

    /// Keys that nobody asked for.
    pub fn end(self, losses: &mut Losses) {
        for entry in self.entries.iter().filter(|entry| !self.asked.iter().any(|asked| *asked == entry.key)) {
            losses.add(entry.line, self.name(&entry.key), "is not known here");
        }
    }
}
