//! The driver: it owns the clock, tells the scheduler what happens and carries out what it wants.
//!
//! Virtual time jumps from one thing that happens to the next. What can happen: a card gets something done, a request of
//! an open workload is sent, a client of a closed loop sends its next one or gives up, the scheduler's timer is due. At
//! one moment they come in this order, and the scheduler decides after each:
//!
//! 1. facts that answer an order of that very moment: an aborted grant has failed, a stopped instance is gone;
//! 2. ends on cards, by device (and on a card as [`crate::cards`] says);
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
//! A run ends at its horizon, after its number of arrivals, or when nothing is left to happen. Everything up to and
//! including the horizon happens. With `drain`, arrivals stop there instead and the run goes on until no job is left.

mod arrange;
mod happen;
mod obey;
mod watch;

use windtunnel_core::{Effects, IdTable, Input, InstanceId, Scheduler, Started, Submission, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, EndCause},
};

use crate::{
    Control, SimError,
    arrivals::{ClosedLoop, Merge, Request},
    cards::{Card, Seat, ServiceModel},
    events::{Agenda, Earliest},
    setup::Setup,
};
use watch::Watch;

/// One run under way.
struct Run<'a, R> {
    setup: &'a Setup,
    scheduler: Scheduler,
    effects: Effects,
    recorder: &'a mut R,
    watch: Watch<'a>,
    now: Time,

    cards: Vec<Card>,
    due: Earliest,
    /// A card whose next end may have changed since `due` was told.
    touched: Option<usize>,
    instances: Vec<Option<Seated<'a>>>,

    open: Merge,
    loops: Vec<ClosedLoop>,
    /// The place of each workload's closed loop.
    loop_of: Vec<Option<u32>>,
    agenda: Agenda,
    /// Whether arrivals have been stopped.
    gate: Gate,

    jobs: IdTable<Request>,
    arrived: u64,
    submissions: Vec<Submission>,
    has_output: bool,
    /// Facts of this very moment, to be told before everything else.
    facts: std::collections::VecDeque<Input>,
}

/// An instance on its card.
#[derive(Clone, Copy, Debug)]
struct Seated<'a> {
    card: usize,
    seat: Seat,
    service: &'a ServiceModel,
}

/// Whether requests are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    /// They have stopped; jobs in flight are waited for.
    Draining,
}

/// Something that happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Fact,
    Card(usize),
    Arrival,
    Client,
    Timer,
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
}

impl<R: Recorder> Run<'_, R> {
    fn run(mut self) -> Result<End, SimError> {
        let run = &self.setup.scenario().run;
        let horizon = run.horizon.map_or(Time::MAX, |horizon| Time::ZERO.after(horizon));
        let jobs = run.jobs.unwrap_or(u64::MAX);
        self.step(Input::Started(Box::new(Started {
            configuration: self.setup.scenario().configuration.clone(),
            profiles: Vec::new(),
            estimates: Vec::new(),
            residents: self.setup.residents(),
        })))?;
        let cause = loop {
            let Some((at, next)) = self.next() else { break self.nothing_left(horizon) };
            if at > horizon && self.gate == Gate::Open {
                if self.stops_at(horizon) { break EndCause::Horizon } else { continue }
            }
            self.now = at;
            let Some(input) = self.happen(next) else { continue };
            self.step(input)?;
            if self.arrived == jobs && self.gate == Gate::Open && self.stops_at(self.now) {
                break EndCause::Jobs;
            }
            if self.watch.is_interrupted() {
                break EndCause::Interrupted;
            }
        };
        let end = self.watch.end(self.now, cause, &self.scheduler);
        self.recorder.end(&end)?;
        Ok(end)
    }

    fn step(&mut self, input: Input) -> Result<(), SimError> {
        self.scheduler.step(self.now, &input, &mut self.effects);
        self.recorder.step(self.now, &input, &self.effects)?;
        self.obey();
        self.note_due();
        self.watch.step(self.now, self.arrived, &self.scheduler);
        Ok(())
    }

    /// Tells `due` of the next end on the card that was touched.
    #[inline]
    fn note_due(&mut self) {
        if let Some(card) = self.touched.take() {
            self.due.set(card, self.cards[card].next());
        }
    }

    /// The card is about to change: one that was touched before is told of first.
    #[inline]
    fn touch(&mut self, card: usize) {
        if self.touched != Some(card) {
            self.note_due();
            self.touched = Some(card);
        }
    }

    /// The end of arrivals has come, at `at`: whether it is the end of the run as well.
    fn stops_at(&mut self, at: Time) -> bool {
        if self.setup.scenario().run.drain {
            self.gate = Gate::Draining;
            self.open = Merge::new(Vec::new());
            self.agenda.stop_sending();
            return false;
        }
        self.now = at;
        true
    }

    /// Jobs that nothing will ever help wait on until the horizon, where there is one.
    fn nothing_left(&mut self, horizon: Time) -> EndCause {
        match (self.gate, self.jobs.is_empty()) {
            (Gate::Open, false) if horizon < Time::MAX => {
                self.now = horizon;
                EndCause::Horizon
            }
            (Gate::Draining, true) => EndCause::Drained,
            (Gate::Draining, false) | (Gate::Open, _) => EndCause::Exhausted,
        }
    }
}

/// Where instance `id` is.
fn seated<'a, 'b>(instances: &'b [Option<Seated<'a>>], id: InstanceId) -> Option<&'b Seated<'a>> {
    instances.get(id.index())?.as_ref()
}

#[cfg(test)]
mod tests;
