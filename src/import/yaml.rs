//! YAML as a tree in which everything knows its line, so that whoever is told of a setting can find it.
//!
//! Scalars stay the text that they are: whether `16384` is a number or a name is for whoever asks. Anchors, aliases and merge
//! keys (`<<`) are resolved. A file is a few hundred lines that somebody wrote, and one that pretends to be more is refused
//! before it grows: aliases can make gigabytes of a hundred bytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use saphyr_parser::{Event, Parser, ScalarStyle};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// From 1.
    pub line: usize,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// Of the key.
    pub line: usize,
    pub node: Node,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    pub line: usize,
    pub what: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The most values of a file, those that aliases repeat counted again.
const MOST: usize = 100_000;
/// The most bytes that their texts and keys may have together, those that aliases repeat counted again.
pub const LONGEST: usize = 8 << 20;
/// The deepest that values may lie within each other.
const DEEPEST: usize = 64;

/// The only document of `text`; nothing at all is [`Value::Null`].
pub fn parse(text: &str) -> Result<Node, YamlError> {
    let mut building = Building::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|wrong| YamlError {
            line: wrong.marker().line(),
            what: format!("is no YAML: {}", wrong.info()),
        })?;
        building.take(event, span.start.line())?;
    }
    Ok(building.whole.unwrap_or(Node { line: 1, value: Value::Null }))
}

#[derive(Default)]
struct Building {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    whole: Option<Node>,
    size: Size,
}

/// How much a file holds.
#[derive(Clone, Copy, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

/// A list or mapping that has not ended.
struct Open {
    line: usize,
    anchor: usize,
    holds: Holds,
}

enum Holds {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, names: BTreeSet<String>, merged: Vec<Node>, key: Option<(String, usize)> },
}

impl Building {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                self.count(Size { values: 1, bytes: text.len() }, line)?;
                let plain = style == ScalarStyle::Plain;
                let value = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if plain => Value::Null,
                    _ => Value::Text(text.into_owned()),
                };
                self.close(Node { line, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(line, anchor, Holds::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let (entries, names, merged) = (Vec::new(), BTreeSet::new(), Vec::new());
                self.open(line, anchor, Holds::Map { entries, names, merged, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { line, anchor, holds: Holds::List(list) }) => {
                    self.close(Node { line, value: Value::List(list) }, anchor)
                }
                Some(Open { line, anchor, holds: Holds::Map { entries, names, merged, .. } }) => {
                    let value = Value::Map(with_merged(entries, names, &merged)?);
                    self.close(Node { line, value }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let meant = self.anchors.get(&anchor).cloned();
                let meant = meant.ok_or_else(|| wrong(line, "an alias stands within what it stands for"))?;
                // It is counted before it is copied once more.
                self.count(size(&meant), line)?;
                self.close(meant, 0)
            }
            Event::DocumentStart(_) if self.whole.is_some() => {
                Err(wrong(line, "a second document begins, and a configuration is one"))
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn open(&mut self, line: usize, anchor: usize, holds: Holds) -> Result<(), YamlError> {
        if self.open.len() == DEEPEST {
            return Err(wrong(line, &format!("lies more than {DEEPEST} levels deep")));
        }
        self.count(Size { values: 1, bytes: 0 }, line)?;
        self.open.push(Open { line, anchor, holds });
        Ok(())
    }

    /// A value is complete: it goes where it belongs.
    fn close(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        // Zero is the parser's word for none.
        if anchor != 0 {
            self.count(size(&node), node.line)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.holds) {
            None => self.whole = Some(node),
            Some(Holds::List(list)) => list.push(node),
            Some(Holds::Map { entries, names, merged, key }) => match key.take() {
                None => *key = Some(key_of(&node)?),
                Some((name, _)) if name == "<<" => merged.push(node),
                Some((name, line)) => {
                    if !names.insert(name.clone()) {
                        return Err(wrong(line, &format!("`{name}` is given twice")));
                    }
                    entries.push(Entry { key: name, line, node });
                }
            },
        }
        Ok(())
    }
}

impl Building {
    fn count(&mut self, more: Size, line: usize) -> Result<(), YamlError> {
        self.size = self.size.and(more);
        if self.size.values > MOST {
            return Err(wrong(line, &format!("the file has more than {MOST} values")));
        }
        if self.size.bytes > LONGEST {
            return Err(wrong(line, &format!("the file's values have more than {LONGEST} bytes")));
        }
        Ok(())
    }
}

impl Size {
    fn and(self, other: Size) -> Size {
        Size { values: self.values + other.values, bytes: self.bytes + other.bytes }
    }
}

fn key_of(node: &Node) -> Result<(String, usize), YamlError> {
    match &node.value {
        Value::Text(text) => Ok((text.clone(), node.line)),
        Value::Null => Ok(("null".to_owned(), node.line)),
        Value::List(_) | Value::Map(_) => Err(wrong(node.line, "a key has to be a text")),
    }
}

/// The entries, and those of `merged` mappings whose keys they do not have.
fn with_merged(mut entries: Vec<Entry>, mut names: BTreeSet<String>, merged: &[Node]) -> Result<Vec<Entry>, YamlError> {
    for node in merged {
        let maps = match &node.value {
            Value::List(list) => list.as_slice(),
            Value::Map(_) | Value::Null | Value::Text(_) => std::slice::from_ref(node),
        };
        for map in maps {
            let Value::Map(more) = &map.value else { return Err(wrong(map.line, "`<<` takes mappings")) };
            entries.extend(more.iter().filter(|entry| names.insert(entry.key.clone())).cloned());
        }
    }
    Ok(entries)
}

fn size(node: &Node) -> Size {
    let own = Size { values: 1, bytes: 0 };
    match &node.value {
        Value::Null => own,
        Value::Text(text) => Size { bytes: text.len(), ..own },
        Value::List(list) => list.iter().map(size).fold(own, Size::and),
        Value::Map(entries) => {
            let each = entries.iter().map(|entry| size(&entry.node).and(Size { values: 0, bytes: entry.key.len() }));
            each.fold(own, Size::and)
        }
    }
}

fn wrong(line: usize, what: &str) -> YamlError {
    YamlError { line, what: what.to_owned() }
}

impl Node {
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Null | Value::Text(_) | Value::List(_) => &[],
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(list) => list,
            Value::Null | Value::Text(_) | Value::Map(_) => &[],
        }
    }

    /// What a person would call it.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get<'n>(node: &'n Node, key: &str) -> &'n Node {
        &node.entries().iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key}")).node
    }

    #[test]
    fn everything_knows_its_line_and_merged_keys_yield_to_own_ones() {
        let text = "base: &base\n  a: 1\n  b: [x, 'y']\n\nown:\n  <<: *base\n  a: 2\nnone: ~\n";
        let root = parse(text).unwrap();
        assert_eq!(get(get(&root, "own"), "a").text(), Some("2"));
        assert_eq!(get(get(&root, "own"), "b").items().len(), 2);
        assert_eq!(get(&root, "own").entries()[0].line, 7);
        assert_eq!(get(&root, "none").value, Value::Null);
        assert_eq!(parse("").unwrap().value, Value::Null);
        assert!(parse("---\na: 1\n...\n").is_ok());
    }

    #[test]
    fn what_is_no_tree_of_a_reasonable_size_is_refused_with_its_line() {
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, at| {
            format!("{text}a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 10].join(","))
        });
        let long = format!("a: &a {}\nb: [{}]\nc: [*a, *a]\n", "x".repeat(1 << 20), ["*a"; 5].join(", "));
        for (text, line, part) in [
            ("a: 1\nb: 2\na: 3\n", 3, "given twice"),
            ("a: [1\nb: 2", 2, "is no YAML"),
            (bomb.as_str(), 5, "more than 100000 values"),
            (long.as_str(), 3, "more than 8388608 bytes"),
            (&"[".repeat(100), 1, "levels deep"),
            ("<<: 3\n", 1, "takes mappings"),
            ("? [a]\n: 1\n", 1, "a key has to be a text"),
            ("a: &a [*a]\n", 1, "alias"),
            ("a: 1\n---\nb: 2\n", 2, "second document"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.what.contains(part), "{wrong}");
            assert_eq!(wrong.line, line, "{wrong}");
        }
    }
}
