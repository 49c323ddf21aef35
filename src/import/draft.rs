//! The configuration as it is written: sections of keys with comments, in the order of a file.

use toml_edit::{Array, InlineTable, Value};

use super::losses::Place;

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
    entries: Vec<Entry>,
    shown: Shown,
    /// Where what is set next was read.
    from: Option<Place>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    value: Value,
    from: Option<Place>,
}

/// A file as it is written, and where its lines come from.
#[derive(Debug, Default)]
pub struct Written {
    pub text: String,
    lines: usize,
    /// The lines at which something begins, from 1 and in order, with where that was read.
    begins: Vec<(usize, Option<Place>)>,
}

impl Written {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.lines += text.matches('\n').count();
    }

    fn begin(&mut self, from: Option<Place>) {
        self.begins.push((self.lines + 1, from));
    }

    /// Where that was read which stands in a line.
    pub fn place(&self, line: usize) -> Option<&Place> {
        let begun = self.begins.partition_point(|(first, _)| *first <= line);
        self.begins.get(begun.checked_sub(1)?)?.1.as_ref()
    }
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
    pub fn written(&self, head: &[String]) -> Written {
        let mut written = Written::default();
        head.iter().for_each(|line| written.push(&comment(line)));
        for section in &self.sections {
            written.push("\n");
            section.remarks.iter().for_each(|line| written.push(&comment(line)));
            section.write(&mut written);
        }
        written
    }
}

fn comment(text: &str) -> String {
    // An empty text is an empty line, which `lines` does not know.
    let lines = text.lines().chain(text.is_empty().then_some(""));
    lines.map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("# {}\n", clean(line)) }).collect()
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
        Block { header, remarks: Vec::new(), entries: Vec::new(), shown: Shown::InForce, from: None }
    }

    /// Says where what is set from now on was read.
    pub fn from(&mut self, place: Place) -> &mut Block {
        self.from = Some(place);
        self
    }

    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.entries.push(Entry { key: key.to_owned(), value: value.into(), from: self.from.clone() });
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

    fn write(&self, written: &mut Written) {
        written.begin(self.entries.first().and_then(|entry| entry.from.clone()));
        self.line(&self.header, written);
        for Entry { key, value, from } in &self.entries {
            written.begin(from.clone());
            self.line(&format!("{key} = {}", value.to_string().trim()), written);
        }
    }

    fn line(&self, text: &str, written: &mut Written) {
        match self.shown {
            Shown::InForce => written.push(&format!("{text}\n")),
            Shown::AsComment => text.lines().for_each(|line| written.push(&comment(line))),
        }
    }
}
