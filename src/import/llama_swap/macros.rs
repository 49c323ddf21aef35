//! Snippets of text that a file defines once and names as `${name}`.

use std::collections::BTreeMap;

use crate::import::{
    losses::Losses,
    yaml::{Entry, Node, Value},
};

/// The snippets in force, by name.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    texts: BTreeMap<String, String>,
}

/// Stays in texts: which port a process gets is only known when it starts.
pub const PORT: &str = "${PORT}";

/// More replacements than that in one text are a snippet that names itself.
const MOST: usize = 1000;
/// No text of a configuration is longer.
const LONGEST: usize = 1 << 20;

impl Macros {
    /// These, and those of the mapping called `trail`, which come first.
    pub fn with(&self, more: &[Entry], trail: &str, losses: &mut Losses) -> Macros {
        let mut all = self.clone();
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
                    .texts
                    .get(name)
                    .cloned()
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

    /// A value with every text in it expanded; texts that cannot be are told of and stay.
    pub fn expanded(
        &self,
        node: &Node,
        environment: &dyn Fn(&str) -> Option<String>,
        tell: &mut dyn FnMut(usize, String),
    ) -> Node {
        let value = match &node.value {
            Value::Null => Value::Null,
            Value::Text(text) => Value::Text(self.expand(text, environment).unwrap_or_else(|wrong| {
                tell(node.line, wrong);
                text.clone()
            })),
            Value::List(list) => Value::List(list.iter().map(|item| self.expanded(item, environment, tell)).collect()),
            Value::Map(entries) => Value::Map(
                entries
                    .iter()
                    .map(|Entry { key, line, node }| Entry {
                        key: self.expand(key, environment).unwrap_or_else(|_| key.clone()),
                        line: *line,
                        node: self.expanded(node, environment, tell),
                    })
                    .collect(),
            ),
        };
        Node { line: node.line, value }
    }
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
    }
}
