//! Loads, stops and memory: what is done beside the cards, and what the scheduler hears of it.

use windtunnel_core::{Attempt, DeviceId, ExitCause, GrantFailure, Input, InstanceId, LoadFailure, ModelId};

use super::world::{Seated, Told, World};
use crate::{
    faults::Faults,
    memory::{Happened, LoadFate, Machine},
};

impl World<'_> {
    /// Starts a process.
    pub fn load(&mut self, attempt: Attempt, instance: InstanceId, model: ModelId, device: DeviceId) {
        let (now, footprint) = (self.now, self.setup.footprint(model));
        let served = self.setup.service(model, device).is_some();
        match self.machines.get_mut(device.index()).filter(|_| served) {
            Some(machine) => {
                let recorded = self.setup.recorded_load(model, device);
                let fate = LoadFate { recorded, ..self.faults.load(now, model, device) };
                machine.load(now, attempt, (instance, model), footprint, fate);
                self.got_on(device);
            }
            None => self.facts.push_back(Input::LoadFailed { attempt, instance, cause: LoadFailure::NotStarted }),
        }
    }

    /// Stops a process. Grants it has under way are broken off first.
    pub fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        self.break_off(instance, GrantFailure::Aborted);
        self.unseat(instance);
        let now = self.now;
        let stopping = self.machine_of(instance).and_then(|(machine, faults)| {
            let fate = faults.stop(now, machine.model_of(instance)?, machine.device);
            machine.stop(now, instance, attempt, (fate.extra, fate.least)).then_some(machine.device)
        });
        match stopping {
            Some(device) => self.got_on(device),
            None => self.facts.push_back(Input::StopFinished { attempt, instance }),
        }
    }

    /// Breaks a load off; whether it was one.
    pub fn abort_load(&mut self, attempt: Attempt, instance: InstanceId) -> bool {
        let now = self.now;
        let Some((machine, _)) = self.machine_of(instance) else { return false };
        let device = machine.device;
        let aborted = machine.abort(now, instance, attempt);
        if aborted {
            self.got_on(device);
        }
        aborted
    }

    /// Reads the memory of a device because the scheduler asks.
    pub fn read(&mut self, device: DeviceId) {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(device.index()) else { return };
        let reading = machine.read(now);
        self.facts.extend(reading);
        self.got_on(device);
    }

    /// Something is due beside the cards.
    pub fn machines_got_on(&mut self) -> Option<Told> {
        self.faults_strike();
        self.perils_strike();
        for place in 0..self.machines.len() {
            if self.machines[place].next() <= self.now {
                self.got_on(self.machines[place].device);
            }
        }
        self.note_machines();
        let fact = self.facts.pop_front()?;
        Some(self.tell(fact))
    }

    /// Lets everything happen that is due on a machine at this moment.
    pub fn got_on(&mut self, device: DeviceId) {
        let now = self.now;
        while let Some(happened) =
            self.machines.get_mut(device.index()).and_then(|machine| machine.get_on(now, &mut self.faults))
        {
            match happened {
                Happened::Loaded { attempt, instance, model, footprint } => {
                    self.seat(instance, model, device);
                    self.facts.push_back(Input::LoadFinished { attempt, instance, footprint });
                }
                Happened::Exited { instance, cause } => self.died(instance, cause, GrantFailure::OutOfMemory),
                Happened::Told(input) => self.facts.push_back(input),
            }
        }
        self.note_machines();
    }

    /// A process is gone: first that is said, then what became of its grants.
    pub fn died(&mut self, instance: InstanceId, cause: ExitCause, failure: GrantFailure) {
        self.facts.push_back(Input::Exited { instance, cause });
        self.break_off(instance, failure);
        self.unseat(instance);
    }

    /// A process dies of something that is not its memory.
    pub fn killed(&mut self, instance: InstanceId, cause: ExitCause, failure: GrantFailure) {
        self.died(instance, cause, failure);
        let now = self.now;
        let Some((machine, faults)) = self.machine_of(instance) else { return };
        machine.exit(now, instance, faults);
        let device = machine.device;
        self.got_on(device);
    }

    /// Where a process is, and what may go wrong with it.
    fn machine_of(&mut self, instance: InstanceId) -> Option<(&mut Machine, &mut Faults)> {
        let machine = self.machines.iter_mut().find(|machine| machine.model_of(instance).is_some())?;
        Some((machine, &mut self.faults))
    }

    /// Ends every grant of an instance that is under way.
    fn break_off(&mut self, instance: InstanceId, cause: GrantFailure) {
        self.release_wedged(instance, cause);
        let Some(Seated { card, seat, .. }) = self.seated(instance) else { return };
        for attempt in self.cards[card].attempts(seat) {
            let Some(sent) = self.cards[card].abort(self.now, seat, attempt) else { continue };
            self.facts.push_back(Input::GrantFailed { attempt, instance, cause, sent });
        }
        self.touch(card);
        self.note_due();
    }
}
