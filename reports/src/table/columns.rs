//! Aligned columns and wrapped text.

use std::fmt::Write;

use super::WIDTH;

/// A name longer than this is cut in the middle.
const LONGEST_NAME: usize = 24;

/// Rows under a heading; the first column is aligned left, the others right. A column without any entry is left out.
#[derive(Debug)]
pub(super) struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Columns with these headings.
    pub fn new(headings: &[&str]) -> Columns {
        Columns { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row; the first cell is a name.
    pub fn row(&mut self, name: &str, cells: Vec<String>) {
        let mut row = vec![shortened(name)];
        row.extend(cells);
        self.rows.push(row);
    }

    /// Whether there is nothing but the headings.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The text, each line with a line feed.
    pub fn text(&self) -> String {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(|at| self.width(at)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, width) in widths.iter().enumerate().filter(|(_, width)| **width > 0) {
                let cell = row.get(at).map_or("", String::as_str);
                let _ = if at == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The width of a column, 0 when nothing stands in it.
    fn width(&self, at: usize) -> usize {
        let cell = |row: &Vec<String>| row.get(at).map_or(0, |cell| cell.chars().count());
        let entries = self.rows.iter().skip(1).map(cell).max().unwrap_or(0);
        if entries == 0 { 0 } else { entries.max(self.rows.first().map_or(0, cell)) }
    }
}

fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let (head, tail) = (LONGEST_NAME / 2, LONGEST_NAME - LONGEST_NAME / 2 - 2);
    letters[..head].iter().chain(&['.', '.']).chain(&letters[letters.len() - tail..]).collect()
}

/// `text` in lines that begin with `first` or `next`, broken between words.
pub(super) fn wrapped(text: &str, first: &str, next: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut fresh = true;
    for word in text.split_whitespace() {
        if !fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = next.to_owned();
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other_and_empty_columns_go() {
        let mut columns = Columns::new(&["", "a", "nothing", "long heading"]);
        columns.row("x", vec!["1".into(), String::new(), "2".into()]);
        columns.row("a name that is far too long to be shown", vec!["1000".into()]);
        assert_eq!(
            columns.text(),
            "                             a  long heading\n\
             x                            1             2\n\
             a name that ..o be shown  1000\n"
        );
    }

    #[test]
    fn text_is_broken_between_words() {
        let text = "word ".repeat(30);
        let lines = wrapped(&text, "* ", "  ");
        assert!(lines.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(lines.lines().count(), 2);
        assert!(lines.starts_with("* word") && lines.lines().nth(1).unwrap().starts_with("  word"));
    }
}
