//! The driver: it owns the clock, tells the scheduler what happens and carries out what it wants.
//!
//! Virtual time jumps from one thing that happens to the next. What can happen: a card gets something done, a request of
//! an open workload is sent, a client of a closed loop sends its next one or gives up, the scheduler's timer is due. At
//! one moment they come in this order, and the scheduler decides after each:
//!
//! 1. facts that answer an order of that very moment: an aborted grant has failed, memory was read;
//! 2. ends on cards, by device (and on a card as [`crate::cards`] says), then what is due beside them: faults, then loads,
//!    stops, memory and its readings, by device (and on a device as [`crate::memory`] says);
//! 3. requests of open workloads, by workload;
//! 4. requests of closed loops, in the order in which their clients were free to send; so the next request of a client
//!    that does not think comes after the batch that its last one made room for has been formed;
//! 5. clients that give up, in the order of their requests;
//! 6. the timer.
//!
//! The driver makes no scheduling decision. It keeps what the scheduler must not know (the true output length, the noise,
//! the patience of a job) from the job's arrival to its end and not longer, so its memory is in proportion to the jobs in
//! flight.
//!
//! A run ends at its horizon, after its number of arrivals, or when nothing is left to happen ([`standstill`]). Everything up to and
//! including the horizon happens. With `drain`, arrivals stop there instead and the run goes on until no job is left.

mod arrange;
mod happen;
mod machines;
mod obey;
mod perils;
mod standstill;
mod watch;
mod world;

use windtunnel_core::{Effects, Input, Scheduler, Started, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, EndCause},
};

use crate::{Control, SimError, fuzz::Noted, setup::Setup};
use standstill::Standstill;
pub(crate) use watch::Rigour;
use watch::Watch;
pub(crate) use world::Arrival;
use world::{Gate, Told, World};

/// One run under way.
struct Run<'a, R> {
    world: World<'a>,
    scheduler: Scheduler,
    effects: Effects,
    recorder: &'a mut R,
    watch: Watch<'a>,
    standstill: Standstill,
    /// When the scheduler's state is next recorded.
    next_checkpoint: Time,
}

impl Setup {
    /// Runs one replication and tells `recorder` of every step.
    ///
    /// # Errors
    /// If the recorder cannot write.
    pub fn run<R: Recorder>(&self, replication: u32, recorder: &mut R, control: &Control) -> Result<End, SimError> {
        recorder.begin(&self.header(replication))?;
        Run::new(self, replication, recorder, control).run()
    }

    /// The same for a run whose arrivals are wanted as well.
    pub(crate) fn run_noting<R: Recorder>(
        &self,
        recorder: &mut R,
        noted: Noted,
        control: &Control,
    ) -> Result<End, SimError> {
        recorder.begin(&self.header(0))?;
        let mut run = Run::new(self, 0, recorder, control);
        run.world.noted = Some(noted);
        run.go()
    }
}

impl<'a, R: Recorder> Run<'a, R> {
    fn new(setup: &'a Setup, replication: u32, recorder: &'a mut R, control: &'a Control) -> Run<'a, R> {
        Run {
            world: World::new(setup, replication),
            scheduler: Scheduler::new(),
            effects: if recorder.reads_reasons() { Effects::new() } else { Effects::brief() },
            recorder,
            watch: Watch::new(&setup.scenario().run, setup.rigour(), control),
            standstill: Standstill::default(),
            next_checkpoint: setup.checkpoints().map_or(Time::MAX, |every| Time::ZERO.after(every)),
        }
    }

    fn run(mut self) -> Result<End, SimError> {
        self.go()
    }

    fn go(&mut self) -> Result<End, SimError> {
        let run = &self.world.setup.scenario().run;
        let horizon = run.horizon.map_or(Time::MAX, |horizon| Time::ZERO.after(horizon));
        let jobs = run.jobs.unwrap_or(u64::MAX);
        self.start()?;
        let cause = loop {
            let (at, next) = self.world.next(self.scheduler.wake_at().unwrap_or(Time::MAX));
            if at == Time::MAX {
                break self.nothing_left(horizon);
            }
            let at = at.max(self.world.now);
            if at > horizon && self.world.gate == Gate::Open {
                if self.stops_at(horizon) { break EndCause::Horizon } else { continue }
            }
            self.world.now = at;
            let Some(told) = self.world.happen(next) else { continue };
            self.step(told)?;
            if self.standstill.is_reached(&self.world, told, &self.effects) {
                break self.nothing_left(horizon);
            }
            if self.world.arrived == jobs && self.world.gate == Gate::Open && self.stops_at(self.world.now) {
                break EndCause::Jobs;
            }
            if self.watch.is_interrupted() {
                break EndCause::Interrupted;
            }
        };
        let end = self.watch.end(self.world.now, cause, &self.scheduler);
        self.recorder.end(&end)?;
        Ok(end)
    }

    fn start(&mut self) -> Result<(), SimError> {
        let setup = self.world.setup;
        let told = self.world.tell(Input::Started(Box::new(Started {
            configuration: setup.scenario().configuration.clone(),
            profiles: setup.profiles(),
            estimates: setup.estimates(),
            residents: setup.residents(),
        })));
        self.step(told)
    }

    /// Tells the scheduler, and has what it wants recorded and carried out. Part of the loop, of which every instruction
    /// counts.
    #[inline(always)]
    fn step(&mut self, told: Told) -> Result<(), SimError> {
        let now = self.world.now;
        let input = self.world.input(told);
        self.scheduler.step(now, input, &mut self.effects);
        self.recorder.step(now, input, &self.effects)?;
        if !self.effects.is_empty() {
            self.world.obey(&self.effects);
        }
        self.world.note_due();
        if now >= self.next_checkpoint {
            self.checkpoint(now)?;
        }
        self.watch.step(now, self.world.arrived, &self.scheduler);
        Ok(())
    }

    #[cold]
    fn checkpoint(&mut self, now: Time) -> Result<(), SimError> {
        let Some(every) = self.world.setup.checkpoints() else { return Ok(()) };
        self.recorder.checkpoint(now, &self.scheduler.checkpoint())?;
        self.next_checkpoint = now.after(every);
        Ok(())
    }

    /// The end of arrivals has come, at `at`: whether it is the end of the run as well.
    fn stops_at(&mut self, at: Time) -> bool {
        if self.world.setup.scenario().run.drain {
            self.world.close();
            return false;
        }
        self.world.now = at;
        true
    }

    /// Jobs that nothing will ever help wait on until the horizon, where there is one.
    fn nothing_left(&mut self, horizon: Time) -> EndCause {
        match (self.world.gate, self.world.jobs.is_empty()) {
            (Gate::Open, false) if horizon < Time::MAX => {
                self.world.now = horizon;
                EndCause::Horizon
            }
            (Gate::Draining, true) => EndCause::Drained,
            (Gate::Draining, false) | (Gate::Open, _) => EndCause::Exhausted,
        }
    }
}

#[cfg(test)]
mod peril_tests;
#[cfg(test)]
mod tests;
