//! Which real device a configured one is: by backend and id among those that the machine was found to have.

use std::collections::BTreeSet;

use crate::daemon::{Backend, DeviceSource, FoundDevice};
use crate::decode::Section;

/// What the machine has, and who has been given which of it.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    found: &'a [FoundDevice],
    taken: BTreeSet<usize>,
}

impl<'a> Machine<'a> {
    pub fn new(found: &'a [FoundDevice]) -> Machine<'a> {
        Machine { found, taken: BTreeSet::new() }
    }

    /// Everything, for a file that names no devices.
    pub fn all(&self) -> &'a [FoundDevice] {
        self.found
    }

    /// The next device that a section can mean, which nobody else is given then.
    pub fn take(&mut self, section: &Section<'_>) -> (DeviceSource, Option<&'a FoundDevice>) {
        let backend = section.choice("backend", Backend::ALL);
        let id = id(section);
        if backend == Some(Backend::Simulated) {
            return (DeviceSource { backend, id, found: true }, None);
        }
        let fits = |device: &&(usize, &FoundDevice)| backend.is_none_or(|backend| device.1.backend == backend);
        let all: Vec<(usize, &'a FoundDevice)> = self.found.iter().enumerate().collect();
        let able: Vec<(usize, &'a FoundDevice)> = all.iter().filter(fits).copied().collect();
        let place = match &id {
            Some(id) => named(&able, id),
            None => able.iter().find(|(at, _)| !self.taken.contains(at)).copied(),
        };
        let Some((at, device)) = place.filter(|(at, _)| !self.taken.contains(at)) else {
            return (DeviceSource { backend, id, found: false }, None);
        };
        self.taken.insert(at);
        let id = device.id.clone().or(id);
        (DeviceSource { backend: Some(device.backend), id, found: true }, Some(device))
    }
}

/// The device of that UUID, or of that number.
fn named<'a>(able: &[(usize, &'a FoundDevice)], id: &str) -> Option<(usize, &'a FoundDevice)> {
    let called = able.iter().find(|(_, device)| device.id.as_deref() == Some(id));
    let numbered = || id.parse::<usize>().ok().and_then(|number| able.get(number));
    called.or_else(numbered).copied()
}

fn id(section: &Section<'_>) -> Option<String> {
    section.text("id").map(str::to_owned).or_else(|| section.count("id").map(|number| number.to_string()))
}
