//! Attempts: every load, stop and grant ends in exactly one fact (invariant 7).

use std::collections::BTreeMap;

use windtunnel_core::{Attempt, InstanceId};

use super::Breach;

/// What an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Load,
    Stop,
    Grant,
}

/// Attempts under way.
#[derive(Debug, Default)]
pub struct Attempts {
    under_way: BTreeMap<Attempt, (Kind, InstanceId)>,
    last: Option<Attempt>,
}

const RULE: &str = "every attempt ends in exactly one fact (7)";

impl Attempts {
    pub fn begin(&mut self, attempt: Attempt, kind: Kind, instance: InstanceId) -> Result<(), Breach> {
        if self.last.is_some_and(|last| attempt <= last) {
            return Err(Breach::new(RULE, format!("{attempt} ({kind:?}) is no new number")));
        }
        self.last = Some(attempt);
        self.under_way.insert(attempt, (kind, instance));
        Ok(())
    }

    pub fn end(&mut self, attempt: Attempt, kind: Kind, instance: InstanceId) -> Result<(), Breach> {
        match self.under_way.remove(&attempt) {
            Some(known) if known == (kind, instance) => Ok(()),
            known => Err(Breach::new(RULE, format!("{attempt} ended as {kind:?} on {instance}; it was {known:?}"))),
        }
    }

    pub fn is_under_way(&self, attempt: Attempt) -> Result<(), Breach> {
        match self.under_way.contains_key(&attempt) {
            true => Ok(()),
            false => Err(Breach::new(RULE, format!("{attempt} is to be broken off and is not under way"))),
        }
    }
}
