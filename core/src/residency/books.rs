//! What the planner adds up once for all heads of a pass, so that a head costs no more where many models are loaded: sums over
//! the instances of a device, and searches for victims that found too little.
//!
//! A head of the same class that is younger and has waited less finds no more than another did, so it is not searched for
//! again. Both hold while nothing of a device changes: a load that begins and an eviction have them made anew, and outside of
//! a pass nothing is kept.

use crate::{
    Bytes, Class, DeviceId, InstanceId, JobId, Scheduler, Time, Violation,
    instance::Slot,
    residency::{pending::Guarded, plan::Wanting, victims::Relief},
};

/// What is kept for a device during a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    sums: Option<Sums>,
    fruitless: [Option<Fruitless>; 4],
}

/// Sums over the instances of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    /// What they hold in every state, and what processes that are gone have not given back.
    pub booked: Bytes,
    /// What those that leave will give back, and what is awaited of those that are gone.
    pub coming: Bytes,
    /// What pinned models hold that stay.
    pub pinned: Bytes,
    /// Whether the guard is loading one.
    pub guarded: Guarded,
}

/// On whose behalf victims are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Interactive,
    Background,
    Batch,
    /// Batch work that asks nobody.
    Overdue,
}

/// Whether a pass is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    Yes,
    No,
}

/// A search that found too little.
#[derive(Clone, Copy, Debug)]
struct Fruitless {
    job: JobId,
    progress: Time,
    most: Bytes,
    until: Option<Time>,
}

impl Scheduler {
    /// A pass begins, or something has changed in the middle of one.
    pub(super) fn open_books(&mut self) {
        for id in (0..self.devices.len() as u32).map(DeviceId) {
            let sums = Some(self.add_up(id));
            self.devices[id.index()].books = Books { sums, fruitless: [None; 4] };
        }
    }

    /// The pass is over, or something is about to change; whether a pass is under way.
    pub(super) fn close_books(&mut self) -> Open {
        let open = self.are_books_open();
        self.devices.iter_mut().for_each(|device| device.books = Books::default());
        open
    }

    /// What was about to change has changed.
    pub(super) fn reopen_books(&mut self, before: Open) {
        match before {
            Open::Yes => self.open_books(),
            Open::No => {}
        }
    }

    fn are_books_open(&self) -> Open {
        if self.devices.iter().any(|device| device.books.sums.is_some()) { Open::Yes } else { Open::No }
    }

    pub(crate) fn sums(&self, id: DeviceId) -> Sums {
        self.devices[id.index()].books.sums.unwrap_or_else(|| self.add_up(id))
    }

    pub(crate) fn add_up(&self, id: DeviceId) -> Sums {
        let device = &self.devices[id.index()];
        let left = device.memory.leftovers.iter().fold(Bytes::ZERO, |sum, one| sum.plus(one.bytes));
        let mut sums = Sums { booked: left, coming: left, pinned: Bytes::ZERO, guarded: Guarded::No };
        for one in &device.instances {
            let instance = &self.instances[*one];
            sums.booked = sums.booked.plus(instance.booked);
            if instance.slot.is_leaving() {
                sums.coming = sums.coming.plus(instance.booked);
            } else if self.is_pinned(instance.model) {
                sums.pinned = sums.pinned.plus(instance.booked);
            }
            if instance.guarded == Guarded::Yes && matches!(instance.slot, Slot::Loading { .. }) {
                sums.guarded = Guarded::Yes;
            }
        }
        sums
    }

    /// What is known from a head that was older and had waited longer: victims do not free so much.
    pub(super) fn known_relief(&self, id: DeviceId, search: Search, by: &Wanting, missing: u64) -> Option<Relief> {
        let known = self.devices[id.index()].books.fruitless[search as usize]?;
        let before = known.job <= by.job && known.progress <= by.progress;
        (before && known.most.get() < missing).then_some(Relief::NotYet(known.most, known.until))
    }

    /// Victims free only so much for a head.
    pub(super) fn keep_fruitless(&mut self, id: DeviceId, search: Search, by: &Wanting, relief: &Relief) {
        let books = &mut self.devices[id.index()].books;
        if let (Some(_), &Relief::NotYet(most, until)) = (books.sums, relief) {
            books.fruitless[search as usize] = Some(Fruitless { job: by.job, progress: by.progress, most, until });
        }
    }

    /// Whether what is kept is what is true.
    pub(crate) fn check_books(&self) -> Result<(), Violation> {
        let wrong = |what, kept: usize, counted: usize| {
            Err(Violation::Miscounted { what, kept: kept as u64, counted: counted as u64 })
        };
        if self.are_books_open() == Open::Yes {
            return wrong("devices with books between steps", self.devices.len(), 0);
        }
        let listed = self.models.iter().map(|model| model.instances.len()).sum::<usize>();
        let live = self.devices.iter().flat_map(|device| &device.instances);
        let of_model = |id: &&InstanceId| self.models[self.instances[**id].model.index()].instances.contains(id);
        let known = live.clone().filter(of_model).count();
        if known == live.count() && listed == known { Ok(()) } else { wrong("instances of models", listed, known) }
    }
}

impl Search {
    pub(super) fn of(class: Class, overdue: bool) -> Search {
        match (class, overdue) {
            (Class::Interactive, _) => Search::Interactive,
            (Class::Background, _) => Search::Background,
            (Class::Batch, false) => Search::Batch,
            (Class::Batch, true) => Search::Overdue,
        }
    }
}
