//! The configuration as it is written: sections of keys with comments, in the order of a file.

use toml_edit::{Array, InlineTable, Value};

/// A whole file.
#[derive(Debug, Default)]
pub struct Draft {
    sections: Vec<Block>,
}

/// A table with its header.
#[derive(Clone, Debug)]
pub struct Block {
    header: String,
    remarks: Vec<String>,
    entries: Vec<(String, Value)>,
    shown: Shown,
}

/// Whether a table is part of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    InForce,
    /// Every line is a comment: something has to be said first.
    AsComment,
}

impl Draft {
    /// Adds a table, unless it says nothing.
    pub fn push(&mut self, block: Block) {
        if !block.entries.is_empty() || !block.remarks.is_empty() || block.header.starts_with("[models.") {
            self.sections.push(block);
        }
    }

    /// The file, `head` being what it says of itself.
    pub fn text(&self, head: &[String]) -> String {
        let mut text: String = head.iter().map(|line| comment(line)).collect();
        for section in &self.sections {
            text.push('\n');
            section.remarks.iter().for_each(|line| text.push_str(&comment(line)));
            let own = section.own();
            match section.shown {
                Shown::InForce => text.push_str(&own),
                Shown::AsComment => own.lines().for_each(|line| text.push_str(&comment(line))),
            }
        }
        text
    }
}

fn comment(text: &str) -> String {
    let lines =
        text.lines().map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("# {}\n", clean(line)) });
    lines.collect()
}

/// A comment may hold no control characters.
fn clean(line: &str) -> String {
    line.chars().map(|letter| if letter.is_control() && letter != '\t' { '?' } else { letter }).collect()
}

impl Block {
    pub fn table(name: &str) -> Block {
        Block::with(format!("[{name}]"))
    }

    /// One table of an array of tables.
    pub fn element(name: &str) -> Block {
        Block::with(format!("[[{name}]]"))
    }

    /// A table under a name of the user's choice.
    pub fn named(group: &str, name: &str) -> Block {
        Block::with(format!("[{group}.{}]", toml_edit::Key::new(name).display_repr()))
    }

    fn with(header: String) -> Block {
        Block { header, remarks: Vec::new(), entries: Vec::new(), shown: Shown::InForce }
    }

    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.entries.push((key.to_owned(), value.into()));
    }

    /// Sets a key if there is something to set.
    pub fn set_some<V: Into<Value>>(&mut self, key: &str, value: Option<V>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a list, unless it is empty.
    pub fn set_list<T: AsRef<str>>(&mut self, key: &str, items: &[T]) {
        if !items.is_empty() {
            self.set(key, items.iter().map(AsRef::as_ref).collect::<Array>());
        }
    }

    /// Sets a table of texts, unless it is empty.
    pub fn set_texts(&mut self, key: &str, items: &[(String, String)]) {
        if !items.is_empty() {
            let table: InlineTable = items.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            self.set(key, table);
        }
    }

    /// Says something above the table.
    pub fn remark(&mut self, line: impl Into<String>) {
        self.remarks.push(line.into());
    }

    /// Turns the table into a comment.
    pub fn put_aside(&mut self) {
        self.shown = Shown::AsComment;
    }

    pub fn is_in_force(&self) -> bool {
        self.shown == Shown::InForce
    }

    fn own(&self) -> String {
        let entries = self.entries.iter().map(|(key, value)| format!("{key} = {}\n", value.to_string().trim()));
        format!("{}\n{}", self.header, entries.collect::<String>())
    }
}
