//! Names and aliases share one space: names come before aliases, and else who comes second loses.

use std::collections::BTreeMap;

use super::{losses::Losses, yaml::Entry};

/// Who has which name.
#[derive(Debug, Default)]
pub struct Names {
    taken: BTreeMap<String, String>,
}

/// Whether a model or family has the name that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    Had,
    /// Somebody else has it, or nobody can ask for it.
    Refused,
}

impl Names {
    /// Enters the names of all models or families of a group.
    pub fn owners(&mut self, group: &str, entries: &[Entry], losses: &mut Losses) -> Vec<Naming> {
        let naming = entries.iter().map(|entry| {
            match self.take(&entry.key, entry.line, &format!("{group}.{}", entry.key), losses) {
                true => Naming::Had,
                false => Naming::Refused,
            }
        });
        naming.collect()
    }

    /// Enters a name. `false` if it cannot be had, which is said.
    fn take(&mut self, name: &str, line: usize, key: &str, losses: &mut Losses) -> bool {
        if name.trim().is_empty() || name.contains('@') {
            losses.add(line, key, format!("a name that is empty or holds @ cannot be asked for: {name:?}"));
            return false;
        }
        if let Some(owner) = self.taken.get(name) {
            losses.add(line, key, format!("the name {name:?} belongs to {owner} already"));
            return false;
        }
        self.taken.insert(name.to_owned(), key.to_owned());
        true
    }

    /// Those of `aliases` that can be had.
    pub fn aliases(&mut self, aliases: &[String], line: usize, key: &str, losses: &mut Losses) -> Vec<String> {
        let free = aliases.iter().filter(|alias| self.take(alias, line, key, losses));
        free.cloned().collect()
    }
}
