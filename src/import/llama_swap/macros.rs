//! Snippets of text that a file defines once and names as `${name}`.

use std::collections::BTreeMap;

use crate::import::{
    losses::Losses,
    yaml::{Entry, Node, Value},
};

/// The snippets in force, by name: own ones come before those around them.
#[derive(Debug, Default)]
pub struct Macros<'m> {
    around: Option<&'m Macros<'m>>,
    texts: BTreeMap<String, String>,
}

/// Stays in texts: which port a process gets is only known when it starts.
pub const PORT: &str = "${PORT}";

/// More replacements than that in one text are a snippet that names itself.
const MOST: usize = 1000;
/// No text of a configuration is longer.
const LONGEST: usize = 1 << 20;

impl Macros<'_> {
    /// These, and those of the mapping called `trail`, which come first.
    pub fn with(&self, more: &[Entry], trail: &str, losses: &mut Losses) -> Macros<'_> {
        let mut all = Macros { around: Some(self), texts: BTreeMap::new() };
        for Entry { key, line, node } in more {
            match node.text() {
                Some(text) => all.set(key, text.trim()),
                None => {
                    let why = format!("has to be a single value, found {}", node.kind());
                    losses.add(*line, format!("{trail}.{key}"), why);
                }
            }
        }
        all
    }

    pub fn set(&mut self, name: &str, text: &str) {
        self.texts.insert(name.to_owned(), text.to_owned());
    }

    fn text(&self, name: &str) -> Option<&str> {
        let own = self.texts.get(name).map(String::as_str);
        own.or_else(|| self.around.and_then(|around| around.text(name)))
    }

    /// The text with every snippet put in; an error names one that there is none of.
    pub fn expand(&self, text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut done = String::new();
        let mut rest = text.to_owned();
        for _ in 0..MOST {
            let Some((before, name, after)) = first(&rest) else {
                done.push_str(&rest);
                return Ok(done);
            };
            let put = match name.strip_prefix("env.") {
                Some(variable) => environment(variable)
                    .ok_or_else(|| format!("needs the environment variable {variable}, which is not set"))?,
                None if name == "PORT" || name == "PID" => {
                    done.push_str(&format!("{before}${{{name}}}"));
                    rest = after.to_owned();
                    continue;
                }
                None => self
                    .text(name)
                    .map(str::to_owned)
                    .ok_or_else(|| format!("names a macro ${{{name}}} that is not defined"))?,
            };
            done.push_str(before);
            rest = format!("{put}{after}");
            if rest.len() > LONGEST {
                break;
            }
        }
        Err("has macros that name themselves".to_owned())
    }

    /// A value with every text in it expanded; texts that cannot be, or for which there is no `room`, are told of and stay.
    pub fn expanded(
        &self,
        node: &Node,
        environment: &dyn Fn(&str) -> Option<String>,
        room: &mut usize,
        tell: &mut dyn FnMut(usize, String),
    ) -> Node {
        let value = match &node.value {
            Value::Null => Value::Null,
            Value::Text(text) => {
                let put = self.expand(text, environment).and_then(|put| within(put, room));
                Value::Text(put.unwrap_or_else(|wrong| {
                    tell(node.line, wrong);
                    text.clone()
                }))
            }
            Value::List(list) => {
                Value::List(list.iter().map(|item| self.expanded(item, environment, room, tell)).collect())
            }
            Value::Map(entries) => Value::Map(
                entries
                    .iter()
                    .map(|Entry { key, line, node }| Entry {
                        key: self.expand(key, environment).and_then(|key| within(key, room)).unwrap_or(key.clone()),
                        line: *line,
                        node: self.expanded(node, environment, room, tell),
                    })
                    .collect(),
            ),
        };
        Node { line: node.line, value }
    }
}

/// The text, if there is room for it.
fn within(text: String, room: &mut usize) -> Result<String, String> {
    let left = room.checked_sub(text.len());
    *room = left.ok_or("is longer than a whole file may be, with all macros put in")?;
    Ok(text)
}

/// The text before the first `${name}`, the name, and the text after it.
fn first(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_may_hold_snippets_but_not_themselves() {
        let mut macros = Macros::default();
        macros.set("server", "/opt/llama-server --port ${PORT}");
        macros.set("all", "${server} -c ${ctx}");
        macros.set("ctx", "4096");
        macros.set("loop", "x${loop}");
        let environment = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let expand = |text: &str| macros.expand(text, &environment);
        assert_eq!(
            expand("${all} -m ${env.HOME}/a.gguf").unwrap(),
            "/opt/llama-server --port ${PORT} -c 4096 -m /home/me/a.gguf"
        );
        assert_eq!(expand("$x {y} ${unfinished").unwrap(), "$x {y} ${unfinished");
        assert!(expand("${none}").unwrap_err().contains("${none}"));
        assert!(expand("${env.NONE}").unwrap_err().contains("NONE"));
        assert!(expand("${loop}").unwrap_err().contains("themselves"));
        let text = Node { line: 3, value: Value::Text("${ctx}".to_owned()) };
        let (mut room, mut told) = (10, Vec::new());
        let list = Node { line: 2, value: Value::List(vec![text; 3]) };
        let put = macros.expanded(&list, &environment, &mut room, &mut |line, _| told.push(line));
        let put: Vec<&str> = put.items().iter().filter_map(Node::text).collect();
        assert_eq!((put, told), (vec!["4096", "4096", "${ctx}"], vec![3]));
    }
}
