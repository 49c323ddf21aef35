//! Plain tables: the same rows as text for people, as CSV, or as JSON.

use serde_json::{Map, Value};

/// Rows of named cells. Every row has a cell for every heading.
pub struct Rows {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    pub fn new(headings: &[&'static str]) -> Rows {
        Rows { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub fn push(&mut self, cells: Vec<Value>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns as wide as their widest cell; headings that end in `bytes` show sizes a person can read.
    pub fn text(&self) -> String {
        let heading = |name: &&'static str| name.trim_end_matches("_bytes").replace('_', " ");
        let mut lines: Vec<Vec<String>> = vec![self.headings.iter().map(heading).collect()];
        lines.extend(self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.headings);
            cells.map(|(cell, heading)| shown(cell, heading)).collect()
        }));
        let width = |column: usize| lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max();
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| width(column).unwrap_or(0)).collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        lines.iter().map(line).collect()
    }

    pub fn csv(&self) -> String {
        let mut text = format!("{}\n", self.headings.join(","));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(field).collect();
            text.push_str(&format!("{}\n", cells.join(",")));
        }
        text
    }

    pub fn json(&self) -> Value {
        let object = |row: &Vec<Value>| {
            let entries = self.headings.iter().map(|heading| (*heading).to_owned()).zip(row.iter().cloned());
            Value::Object(entries.collect::<Map<String, Value>>())
        };
        self.rows.iter().map(object).collect()
    }
}

fn shown(cell: &Value, heading: &str) -> String {
    match cell {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if heading.ends_with("bytes") => number.as_u64().map_or_else(String::new, size),
        Value::Number(number) => number.to_string(),
        Value::Array(list) => list.iter().map(|one| shown(one, heading)).collect::<Vec<_>>().join(", "),
        Value::Object(_) => cell.to_string(),
    }
}

fn field(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        Value::Bool(_) | Value::Number(_) => cell.to_string(),
        Value::Array(_) | Value::Object(_) => quoted(&shown(cell, "")),
    }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A size in GiB or MiB with two decimals at most.
pub fn size(bytes: u64) -> String {
    let (scale, name) = if bytes >= 1 << 30 { (30, "GiB") } else { (20, "MiB") };
    format!("{:.2} {name}", bytes as f64 / f64::from(1_u32 << scale))
}
