//! A table being read: each key by the type its form gives it.
//!
//! Sections are read after the whole document was checked against its forms, so a reading that fails has been reported
//! already and gives `None`, as does a key left out.

use std::net::SocketAddr;
use std::path::PathBuf;

use windtunnel_core::{Bytes, Ppm, Span};

use super::{Context, units};
use crate::form::{Form, Scalar, Shape, scalar};
use crate::source::{Node, Place, Table};

/// A table of the document with its form.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    table: &'a Table,
    /// Where it stands.
    pub place: Place,
    form: &'static Form,
    /// Its dotted name.
    pub trail: String,
    /// What all sections share.
    pub context: &'a Context<'a>,
}

impl<'a> Section<'a> {
    pub fn root(table: &'a Table, place: Place, form: &'static Form, context: &'a Context<'a>) -> Section<'a> {
        Section { table, place, form, trail: String::new(), context }
    }

    /// The node of a key, and what the form says it is.
    fn read(&self, key: &str) -> Option<(&'a Node, Shape)> {
        let known = self.form.key(key);
        debug_assert!(known.is_some(), "{} has no key {key}", self.form.name);
        #[cfg(test)]
        self.context.read.borrow_mut().insert((self.form.name, key.to_owned()));
        Some((self.table.get(key)?, known?.shape))
    }

    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.read(key).map(|(node, _)| node)
    }

    pub fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// Whether its form has such a key.
    pub fn takes(&self, key: &str) -> bool {
        self.form.key(key).is_some()
    }

    /// Those of `keys` that are given.
    pub fn given<'k>(&self, keys: &[&'k str]) -> Vec<&'k str> {
        keys.iter().copied().filter(|key| self.has(key)).collect()
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.node(key)?.as_text()
    }

    pub fn texts(&self, key: &str) -> Option<Vec<(&'a str, Place)>> {
        let list = self.node(key)?.as_list()?;
        Some(list.iter().filter_map(|node| Some((node.as_text()?, node.place))).collect())
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        scalar::flag(self.node(key)?).ok()
    }

    pub fn span(&self, key: &str) -> Option<Span> {
        scalar::span(self.node(key)?).ok()
    }

    /// One length of time, or a list of them.
    pub fn span_or_spans(&self, key: &str) -> Option<Vec<Span>> {
        match self.node(key)?.as_list() {
            Some(_) => self.spans(key),
            None => Some(vec![self.span(key)?]),
        }
    }

    /// A list of moments, each with a value that `read` makes of its node.
    pub fn couples<T>(&self, key: &str, read: impl Fn(&Node) -> Option<T>) -> Option<Vec<(Span, T)>> {
        let couple = |node: &Node| match node.as_list()? {
            [at, value] => Some((scalar::span(at).ok()?, read(value)?)),
            _ => None,
        };
        self.node(key)?.as_list()?.iter().map(couple).collect()
    }

    pub fn spans(&self, key: &str) -> Option<Vec<Span>> {
        self.node(key)?.as_list()?.iter().map(|node| scalar::span(node).ok()).collect()
    }

    pub fn size(&self, key: &str) -> Option<Bytes> {
        scalar::size(self.node(key)?).ok()
    }

    /// Bytes per second.
    pub fn bandwidth(&self, key: &str) -> Option<Bytes> {
        units::bandwidth(self.text(key)?).ok()
    }

    pub fn ratio(&self, key: &str) -> Option<Ppm> {
        scalar::ratio(self.node(key)?).ok()
    }

    pub fn percent(&self, key: &str) -> Option<f64> {
        scalar::percent(self.node(key)?).ok()
    }

    pub fn figure(&self, key: &str) -> Option<f64> {
        scalar::figure(self.node(key)?).ok()
    }

    pub fn figures(&self, key: &str) -> Option<Vec<f64>> {
        self.node(key)?.as_list()?.iter().map(|node| scalar::figure(node).ok()).collect()
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        scalar::number(self.node(key)?, scalar::Interval::Finite).ok()
    }

    pub fn numbers(&self, key: &str) -> Option<Vec<f64>> {
        let list = self.node(key)?.as_list()?;
        list.iter().map(|node| scalar::number(node, scalar::Interval::Finite).ok()).collect()
    }

    pub fn count(&self, key: &str) -> Option<u64> {
        scalar::count(self.node(key)?, 0, u64::MAX).ok()
    }

    pub fn count32(&self, key: &str) -> Option<u32> {
        u32::try_from(self.count(key)?).ok()
    }

    /// A file, relative to the folder of the scenario.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(|text| self.context.folder.join(text))
    }

    /// A file, relative to the folder of the file in which the key stands.
    pub fn path_beside(&self, key: &str) -> Option<PathBuf> {
        let node = self.node(key)?;
        Some(self.context.path(node.place, node.as_text()?))
    }

    /// A program: a bare name is looked for where programs are, anything else is a path as in [`Section::path_beside`].
    pub fn program(&self, key: &str) -> Option<PathBuf> {
        let text = self.text(key)?;
        if text.contains(['/', '\\']) { self.path_beside(key) } else { Some(PathBuf::from(text)) }
    }

    /// An address with a port.
    pub fn address(&self, key: &str) -> Option<SocketAddr> {
        scalar::address(self.node(key)?).ok()
    }

    /// A table of texts, in the order of the file.
    pub fn named_texts(&self, key: &str) -> Vec<(String, String)> {
        let entries = self.node(key).and_then(Node::as_table).map(|table| table.entries.as_slice()).unwrap_or_default();
        entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.node.as_text()?.to_owned()))).collect()
    }

    /// The value that stands in `values` where the word stands in the form.
    pub fn choice<T: Copy, const N: usize>(&self, key: &str, values: [T; N]) -> Option<T> {
        let (node, shape) = self.read(key)?;
        let Shape::Scalar(Scalar::Word(words)) = shape else {
            return None;
        };
        debug_assert_eq!(words.len(), N);
        values.get(scalar::word(node, words).ok()?).copied()
    }

    /// The same for a list of words, with the place of each.
    pub fn choices<T: Copy, const N: usize>(&self, key: &str, values: [T; N]) -> Option<Vec<T>> {
        let (node, shape) = self.read(key)?;
        let (Shape::List(Shape::Scalar(Scalar::Word(words))) | Shape::Any(Shape::Scalar(Scalar::Word(words)))) = shape
        else {
            return None;
        };
        debug_assert_eq!(words.len(), N);
        node.as_list()?.iter().map(|node| values.get(scalar::word(node, words).ok()?).copied()).collect()
    }

    /// The table of a key.
    pub fn section(&self, key: &str) -> Option<Section<'a>> {
        let (node, shape) = self.read(key)?;
        self.inner(node, shape.table_form()?, key)
    }

    /// The table of a key with variants, and which it is.
    pub fn tagged(&self, key: &str) -> Option<(&'a str, Section<'a>)> {
        let (node, shape) = self.read(key)?;
        let Shape::Tagged(tagged) = shape else { return None };
        let tag = node.as_table()?.get(tagged.tag)?.as_text()?;
        Some((tag, self.inner(node, tagged.variant(tag)?, key)?))
    }

    /// The tables of an array whose elements have variants, and which each is.
    pub fn tagged_list(&self, key: &str) -> Vec<(&'a str, Section<'a>)> {
        let Some((node, Shape::Any(Shape::Tagged(tagged)))) = self.read(key) else { return Vec::new() };
        let variant = |(at, node): (usize, &'a Node)| {
            let table = node.as_table()?;
            let tag = table.get(tagged.tag)?.as_text()?;
            let step = format!("{key}.{}", table.name().map_or_else(|| format!("[{at}]"), str::to_owned));
            Some((tag, self.inner(node, tagged.variant(tag)?, &step.replace(".[", "["))?))
        };
        node.as_list().unwrap_or_default().iter().enumerate().filter_map(variant).collect()
    }

    /// The tables of an array.
    pub fn sections(&self, key: &str) -> Vec<Section<'a>> {
        let Some((node, Shape::Tables(form))) = self.read(key) else { return Vec::new() };
        let named = |node: &'a Node| self.inner(node, form, key).map(|section| section.under(node));
        node.as_list().unwrap_or_default().iter().filter_map(named).collect()
    }

    /// The tables of a list of values that are tables.
    pub fn tables(&self, key: &str) -> Vec<Section<'a>> {
        let Some((node, Shape::List(Shape::Table(form)))) = self.read(key) else { return Vec::new() };
        node.as_list().unwrap_or_default().iter().filter_map(|node| self.inner(node, form, key)).collect()
    }

    fn under(mut self, node: &Node) -> Section<'a> {
        if let Some(name) = node.as_table().and_then(Table::name) {
            self.trail = format!("{}.{name}", self.trail);
        }
        self
    }

    /// The tables under names, in the order of the file.
    pub fn named(&self, key: &str) -> Vec<(&'a str, Place, Section<'a>)> {
        let Some((node, Shape::Named(form))) = self.read(key) else { return Vec::new() };
        let entries = node.as_table().map(|table| table.entries.as_slice()).unwrap_or_default();
        let within = |name: &str| format!("{key}.{name}");
        entries
            .iter()
            .filter_map(|entry| {
                Some((entry.key.as_str(), entry.place, self.inner(&entry.node, form, &within(&entry.key))?))
            })
            .collect()
    }

    fn inner(&self, node: &'a Node, form: &'static Form, step: &str) -> Option<Section<'a>> {
        let trail = if self.trail.is_empty() { step.to_owned() } else { format!("{}.{step}", self.trail) };
        Some(Section { table: node.as_table()?, place: node.place, form, trail, context: self.context })
    }

    /// The line of the file where it stands, from 1.
    pub fn line(&self) -> usize {
        self.context.line(self.place)
    }

    /// Where a key stands, or the table where it is left out.
    pub fn place_of(&self, key: &str) -> Place {
        self.table.entry(key).map_or(self.place, |entry| entry.node.place)
    }

    /// Says what is wrong with a key, the message beginning after its name.
    pub fn wrong(&self, key: &str, message: &str) {
        let trail = if self.trail.is_empty() { key.to_owned() } else { format!("{}.{key}", self.trail) };
        self.context.complain(self.place_of(key), format!("`{trail}` {message}"), Vec::new());
    }

    /// Says what is wrong with the table as a whole.
    pub fn complain(&self, message: &str) {
        self.context.complain(self.place, format!("`{}` {message}", self.trail), Vec::new());
    }
}
