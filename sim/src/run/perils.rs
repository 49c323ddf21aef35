//! What befalls grants: processes that die or get stuck, connections that break, memory that is not there, a host that sleeps.

use windtunnel_config::Card as CardFacts;
use windtunnel_core::{
    Attempt, DeviceId, ExitCause, Grant, GrantFailure, Input, InstanceId, ModelId, Sent, Span, Time,
};

use super::world::{Seated, Told, World};
use crate::{
    cards::{Ended, Work},
    faults::{Peril, Strike},
};

/// The number of the signal of a process that touched memory it must not.
const SEGMENTATION_FAULT: i32 = 11;

/// What is going to befall grants, and what holds some of them.
#[derive(Clone, Debug, Default)]
pub struct Perils {
    strikes: Vec<Due>,
    wedged: Vec<Wedged>,
    /// Grants of each instance on its connection.
    served: Vec<u32>,
}

/// A peril of a grant under way.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Time,
    instance: InstanceId,
    attempt: Attempt,
    peril: Peril,
}

/// An instance that gets no further, and its grants.
#[derive(Clone, Debug)]
struct Wedged {
    instance: InstanceId,
    until: Time,
    held: Vec<(Attempt, Sent)>,
}

impl Perils {
    /// When something befalls a grant next; [`Time::MAX`]: nothing does.
    pub fn next(&self) -> Time {
        let strikes = self.strikes.iter().map(|due| due.at);
        strikes.chain(self.wedged.iter().map(|wedged| wedged.until)).min().unwrap_or(Time::MAX)
    }

    fn delay(&mut self, by: Span) {
        self.strikes.iter_mut().for_each(|due| due.at = due.at.after(by));
        self.wedged.iter_mut().for_each(|wedged| wedged.until = wedged.until.after(by));
    }

    /// The grants of a wedged instance.
    fn held(&mut self, instance: InstanceId) -> Option<&mut Vec<(Attempt, Sent)>> {
        self.wedged.iter_mut().find(|wedged| wedged.instance == instance).map(|wedged| &mut wedged.held)
    }

    /// Counts a grant; whether the connection of its instance has had `limit` before it, and is new again now.
    fn breaks(&mut self, instance: InstanceId, limit: u32) -> bool {
        if self.served.len() <= instance.index() {
            self.served.resize(instance.index() + 1, 0);
        }
        let served = &mut self.served[instance.index()];
        let breaks = *served >= limit;
        *served = if breaks { 0 } else { *served + 1 };
        breaks
    }
}

impl World<'_> {
    /// A grant is about to begin on its card; whether it does not, because it ends or is stuck at once.
    #[cold]
    pub fn befalls<S>(&mut self, grant: &Grant<S>, seated: Seated<'_>, work: Work) -> bool {
        let &Grant { attempt, instance, model, device, .. } = grant;
        if let Some(held) = self.perils.held(instance) {
            held.push((attempt, Sent::Nothing));
            return true;
        }
        if let Some(limit) = self.faults.connection_limit(self.now, model, device)
            && self.perils.breaks(instance, limit)
        {
            let (cause, sent) = (GrantFailure::Disconnected, Sent::Nothing);
            self.facts.push_back(Input::GrantFailed { attempt, instance, cause, sent });
            return true;
        }
        if let Some(Strike { peril, share }) = self.faults.grant(self.now, model, device) {
            let speed = self.speed(device).max(f64::MIN_POSITIVE);
            let nanos = share * seated.service.alone(work) / speed;
            let at = self.now.after(Span::from_nanos(nanos as u64));
            self.perils.strikes.push(Due { at, instance, attempt, peril });
            self.note_machines();
        }
        false
    }

    /// A grant has come to its end on a device: where more memory is promised than there is, it has failed.
    #[cold]
    pub fn spoiled(&mut self, card: usize, ended: Ended) -> Option<Told> {
        let machine = self.machines.get(card).filter(|machine| machine.is_overcommitted(self.now))?;
        let (device, Ended { attempt, instance, .. }) = (machine.device, ended);
        let (cause, sent) = (GrantFailure::OutOfMemory, Sent::Nothing);
        self.facts.push_back(Input::GrantFailed { attempt, instance, cause, sent });
        Some(self.tell(Input::OutOfMemory { device, instance }))
    }

    /// The grant of a wedged instance is broken off; whether it was one.
    pub fn abort_held(&mut self, attempt: Attempt, instance: InstanceId) -> bool {
        let Some(held) = self.perils.held(instance) else { return false };
        let Some(place) = held.iter().position(|(own, _)| *own == attempt) else { return false };
        let (_, sent) = held.remove(place);
        self.facts.push_back(Input::GrantFailed { attempt, instance, cause: GrantFailure::Aborted, sent });
        true
    }

    /// An instance is wedged no longer: its grants end.
    pub fn release_wedged(&mut self, instance: InstanceId, cause: GrantFailure) {
        let Some(place) = self.perils.wedged.iter().position(|wedged| wedged.instance == instance) else { return };
        for (attempt, sent) in self.perils.wedged.remove(place).held {
            self.facts.push_back(Input::GrantFailed { attempt, instance, cause, sent });
        }
    }

    /// Perils whose time has come.
    pub fn perils_strike(&mut self) {
        while let Some(place) = self.perils.strikes.iter().position(|due| due.at <= self.now) {
            let Due { instance, attempt, peril, .. } = self.perils.strikes.swap_remove(place);
            if self.running(instance).contains(&attempt) {
                self.meet(instance, peril);
            }
        }
        while let Some(wedged) = self.perils.wedged.iter().find(|wedged| wedged.until <= self.now) {
            self.killed(wedged.instance, ExitCause::Wedged, GrantFailure::Wedged);
        }
    }

    /// Faults that strike by themselves.
    pub fn faults_strike(&mut self) {
        while let Some(by) = self.faults.sleep(self.now) {
            self.sleep(by);
        }
        if self.faults.slow_devices() {
            (0..self.cards.len()).for_each(|card| self.set_speed(card));
        }
        while let Some((fault, bytes, over)) = self.faults.growth(self.now) {
            for place in 0..self.machines.len() {
                let device = self.machines[place].device;
                self.machines[place].grow(self.now, bytes, over, |model| fault.concerns(model, device));
                self.got_on(device);
            }
        }
        loop {
            let running = self.all_running();
            let places: Vec<(ModelId, DeviceId)> = running.iter().map(|&(_, place)| place).collect();
            let Some((peril, at)) = self.faults.strike(self.now, &places) else { return };
            self.meet(running[at].0, peril);
        }
    }

    fn meet(&mut self, instance: InstanceId, peril: Peril) {
        match peril {
            Peril::Crash => self.killed(instance, ExitCause::Signal(SEGMENTATION_FAULT), GrantFailure::Crashed),
            Peril::Wedge(lasts) => self.wedge(instance, lasts),
        }
    }

    /// The grants of an instance leave its card and are held.
    fn wedge(&mut self, instance: InstanceId, lasts: Span) {
        let Some(Seated { card, seat, .. }) = self.seated(instance) else { return };
        let attempts = self.cards[card].attempts(seat);
        let held =
            attempts.iter().filter_map(|&attempt| Some((attempt, self.cards[card].abort(self.now, seat, attempt)?)));
        let held = held.collect();
        self.touch(card);
        self.note_due();
        self.perils.wedged.push(Wedged { instance, until: self.now.after(lasts), held });
    }

    fn running(&self, instance: InstanceId) -> Vec<Attempt> {
        self.seated(instance).map_or_else(Vec::new, |seated| self.cards[seated.card].attempts(seated.seat))
    }

    /// Every instance with a grant under way, by device and instance.
    fn all_running(&self) -> Vec<(InstanceId, (ModelId, DeviceId))> {
        let loaded = self
            .machines
            .iter()
            .flat_map(|machine| machine.loaded().map(move |(instance, model)| (instance, (model, machine.device))));
        loaded.filter(|(instance, _)| !self.running(*instance).is_empty()).collect()
    }

    fn speed(&self, device: DeviceId) -> f64 {
        self.setup.scenario().cards.get(device.index()).map_or(1.0, |card: &CardFacts| card.speed)
    }

    fn set_speed(&mut self, card: usize) {
        let device = self.machines[card].device;
        let speed = self.speed(device) / self.faults.slowness(self.now, device);
        self.cards[card].set_speed(self.now, speed);
        self.touch(card);
        self.note_due();
    }

    /// The host sleeps: all that is to come is later.
    fn sleep(&mut self, by: Span) {
        for card in 0..self.cards.len() {
            self.cards[card].delay(self.now, by);
            self.touch(card);
        }
        self.note_due();
        self.machines.iter_mut().for_each(|machine| machine.delay(self.now, by));
        self.faults.delay(by);
        self.perils.delay(by);
        self.open.delay(by);
        self.agenda.delay(by);
        self.now = self.now.after(by);
        self.slept = self.slept.plus(by);
    }
}
