//! How a model can be had on a device, and on which of them best.

use super::{
    books::Search,
    pending::Guarded,
    plan::Wanting,
    victims::{Relief, Victims},
};
use crate::{Bytes, Class, DeviceId, Effects, ModelId, MonitorHealth, Scheduler, Time, WaitReason};

/// How a model can be had on a device.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// It fits.
    Fits,
    /// It fits once what is leaving has left; so much is missing until then.
    Coming(Bytes),
    /// These have to go first: so much is missing now, and so much when all that is leaving has left.
    Evict(Victims, Bytes, Bytes),
    /// Not now; perhaps from then on.
    No(WaitReason, Option<Time>),
}

/// Whether a load may cost anybody their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Only what is free.
    Free,
    /// What may be evicted, too.
    Any,
}

impl Scheduler {
    /// The best way to a model over the devices it may be placed on: where it fits, the least busy first; where it will; the
    /// cheapest eviction. Ties go by the order of devices. `None`: it has a leaving instance wherever it may be placed.
    pub(super) fn best_way(
        &mut self,
        by: &Wanting,
        means: Means,
        effects: &mut Effects,
    ) -> Option<(DeviceId, Way, Guarded)> {
        let &model = by.models.first()?;
        let mut devices = self.places(model);
        devices.retain(|&device| !self.has_instance(model, device));
        if let Some(at) = devices.iter().position(|&device| self.pending(device, model).is_some()) {
            let waits = devices.remove(at);
            // Memory is being freed for it there: nobody goes elsewhere, but it need not wait where it fits by now.
            let fits = |scheduler: &mut Scheduler, device: DeviceId, effects: &mut Effects| {
                matches!(scheduler.way_on(device, by, Means::Free, effects).0, Way::Fits)
            };
            devices.retain(|&device| fits(self, device, effects) && !self.loads_are_full(device));
            devices.push(waits);
        }
        let mut best: Option<(DeviceId, Way, Guarded)> = None;
        for device in devices {
            let (way, guarded) = self.way_on(device, by, means, effects);
            if best.as_ref().is_none_or(|(known, kept, _)| self.is_better((device, &way), (*known, kept))) {
                best = Some((device, way, guarded));
            }
        }
        best
    }

    fn is_better(&self, (device, way): (DeviceId, &Way), (known, kept): (DeviceId, &Way)) -> bool {
        match (way, kept) {
            (way, kept) if self.may_fit(device, way) && self.may_fit(known, kept) => {
                self.business(device) < self.business(known)
            }
            (way, _) if self.may_fit(device, way) => true,
            (_, kept) if self.may_fit(known, kept) => false,
            (Way::Evict(victims, ..), Way::Evict(others, ..)) => victims.price < others.price,
            (Way::No(_, Some(at)), Way::No(_, known)) => known.is_none_or(|known| *at < known),
            _ => way.order() < kept.order(),
        }
    }

    /// Whether it fits, or a reading that was asked for a moment ago may show that it does: nobody goes to a busier device, or
    /// has to leave one, because that answers first.
    fn may_fit(&self, device: DeviceId, way: &Way) -> bool {
        match way {
            Way::Fits => true,
            Way::No(WaitReason::MonitorStale { .. }, _) => {
                self.devices[device.index()].memory.health == MonitorHealth::Alive
            }
            Way::Coming(_) | Way::Evict(..) | Way::No(..) => false,
        }
    }

    /// How busy a device is: the grants under way on it, then its models.
    fn business(&self, id: DeviceId) -> (usize, usize) {
        let instances = &self.devices[id.index()].instances;
        let grants = instances.iter().map(|one| self.instances[*one].slot.running().len()).sum();
        (grants, instances.len())
    }

    /// How a model can be had on one device, and on whose account.
    pub(crate) fn way_on(
        &mut self,
        device: DeviceId,
        by: &Wanting,
        means: Means,
        effects: &mut Effects,
    ) -> (Way, Guarded) {
        let guarded = match self.may_load(device, by) {
            Ok(guarded) => guarded,
            Err(reason) => {
                self.keep_wanted(device, by);
                return (Way::No(reason, None), Guarded::No);
            }
        };
        if !self.is_fresh(device, effects) {
            if self.devices[device.index()].memory.health == MonitorHealth::Alive {
                // It was asked, and will answer.
                self.keep_wanted(device, by);
            }
            let again = self.asks_again(device);
            return (Way::No(WaitReason::MonitorStale { device }, again), guarded);
        }
        (self.way_by_memory(device, by, means), guarded)
    }

    /// A load for which memory is being freed stays wanted while it is held up for other reasons: its victims would have gone in
    /// vain.
    fn keep_wanted(&mut self, device: DeviceId, by: &Wanting) {
        for &model in &by.models {
            let needs = self.need(model, device);
            let mut pending = self.devices[device.index()].pending.iter_mut();
            if let Some(one) = pending.find(|one| one.model == model) {
                one.claim(by.precedence);
                one.needs = needs;
            }
        }
    }

    pub(crate) fn way_by_memory(&mut self, device: DeviceId, by: &Wanting, means: Means) -> Way {
        let Some(&model) = by.models.first() else { return Way::No(WaitReason::NotLoaded, None) };
        let need = i128::from(self.need(model, device).get());
        let available = self.available(device, model, by);
        if available >= need {
            return Way::Fits;
        }
        let missing = bytes(need - available);
        let short = need - available - i128::from(self.coming(device).get());
        if short <= 0 {
            return Way::Coming(missing);
        }
        if means == Means::Free {
            return Way::No(WaitReason::NoRoom { device, until: None }, None);
        }
        match self.relief(device, by, bytes(short).get()) {
            Relief::Enough(victims) => Way::Evict(victims, missing, bytes(short)),
            Relief::NotYet(most, until) => {
                if self.is_unsettled(model, device, available) {
                    return Way::No(WaitReason::FreeingMemory { device, missing }, until);
                }
                let foreign = self.devices[device.index()].memory.foreign;
                if i128::from(foreign.plus(most).get()) >= short {
                    // Others may have left meanwhile: a reading that has grown old is asked for again.
                    let look = until.or(self.stale_at(device));
                    let hope = self.may_come_back(device, bytes(short).minus(most));
                    if let Some(end) = hope {
                        // What went for it may not have given everything back yet.
                        self.keep_wanted(device, by);
                        self.wake_by(end);
                    }
                    return Way::No(WaitReason::ForeignMemory { device, used: foreign }, look);
                }
                Way::No(WaitReason::NoRoom { device, until }, until)
            }
        }
    }

    /// Who could go for a head, if that frees so much.
    fn relief(&mut self, device: DeviceId, by: &Wanting, missing: u64) -> Relief {
        let search = Search::of(by.class, self.is_overdue_on(device, by));
        if let Some(known) = self.known_relief(device, search, by, missing) {
            return known;
        }
        if by.class == Class::Interactive {
            self.contest(device, by.job);
        }
        let relief = self.victims(device, by, missing);
        self.keep_fruitless(device, search, by, &relief);
        relief
    }

    /// Whether a model lacks memory only because its last load ran out, and it is not known yet why. What it needs is believed to
    /// be more than there was; if what leaves would do for what was tried, nobody is in its way.
    fn is_unsettled(&self, model: ModelId, device: DeviceId, available: i128) -> bool {
        let coming = i128::from(self.coming(device).get());
        let open = self.raised(model, device).and_then(|raised| raised.open);
        open.is_some_and(|open| i128::from(open.tried.get()) <= available + coming)
    }
}

impl Way {
    fn order(&self) -> u32 {
        match self {
            Way::Fits => 0,
            Way::Coming(_) => 1,
            Way::Evict(..) => 2,
            Way::No(_, Some(_)) => 3,
            Way::No(_, None) => 4,
        }
    }
}

fn bytes(count: i128) -> Bytes {
    Bytes::new(u64::try_from(count.max(0)).unwrap_or(u64::MAX))
}
