//! Models, families and their aliases share one space of names.

use std::collections::BTreeMap;

use windtunnel_core::{ModelId, Wanted};

use crate::decode::Section;
use crate::source::Place;

/// Who has which name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeMap<String, (Wanted, String)>,
}

impl Names {
    /// Gives `name` and the aliases of a section to `wanted`; complains about those that are taken.
    pub fn register(&mut self, section: &Section<'_>, name: &str, place: Place, wanted: Wanted) {
        self.take(section, name, place, wanted);
        for (alias, place) in section.texts("aliases").unwrap_or_default() {
            self.take(section, alias, place, wanted);
        }
    }

    fn take(&mut self, section: &Section<'_>, name: &str, place: Place, wanted: Wanted) {
        match self.taken.get(name) {
            Some((_, owner)) => {
                let message = format!("the name {name:?} belongs to `{owner}` already");
                section.context.complain(place, message, Vec::new());
            }
            None => {
                self.taken.insert(name.to_owned(), (wanted, section.trail.clone()));
            }
        }
    }

    /// What `name` stands for.
    pub fn get(&self, name: &str) -> Option<Wanted> {
        self.taken.get(name).map(|(wanted, _)| *wanted)
    }

    /// The model that `name` stands for.
    pub fn model(&self, name: &str) -> Option<ModelId> {
        match self.get(name)? {
            Wanted::Model(model) => Some(model),
            Wanted::Family(_) => None,
        }
    }

    /// All names of models.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().filter(|(_, (wanted, _))| matches!(wanted, Wanted::Model(_))).map(|(name, _)| name.as_str())
    }

    /// All names of families.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().filter(|(_, (wanted, _))| matches!(wanted, Wanted::Family(_))).map(|(name, _)| name.as_str())
    }
}
