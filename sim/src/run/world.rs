//! Everything the scheduler is not: the cards with the work on them, the clients, and what only they know of their jobs.

use std::collections::VecDeque;

use windtunnel_core::{IdTable, Input, InstanceId, Span, Time};

use super::perils::Perils;
use crate::{
    arrivals::{ClosedLoop, Merge, Request},
    cards::{Card, Ended, Seat, ServiceModel},
    events::{Agenda, Earliest},
    faults::Faults,
    fuzz::Noted,
    memory::Machine,
    setup::Setup,
};

/// The simulated world at one moment.
pub struct World<'a> {
    pub setup: &'a Setup,
    pub now: Time,

    pub cards: Vec<Card>,
    pub due: Earliest,
    /// A card whose next end may have changed since `due` was told.
    pub touched: Option<usize>,
    /// What goes on beside each card.
    pub machines: Vec<Machine>,
    pub faults: Faults,
    pub perils: Perils,
    /// Whether anything can befall a grant but its end.
    pub perilous: bool,
    pub instances: Vec<Option<Seated<'a>>>,

    pub open: Merge,
    pub loops: Vec<ClosedLoop>,
    /// The place of each workload's closed loop.
    pub loop_of: Vec<Option<u32>>,
    pub agenda: Agenda,
    pub gate: Gate,

    /// What was drawn for the jobs in flight.
    pub jobs: IdTable<Request>,
    pub arrived: u64,
    /// The latest submission of each workload, in which only what differs is written anew.
    pub submitted: Vec<Input>,
    /// Whether any job has output tokens.
    pub has_output: bool,
    /// The latest thing to tell that is no submission.
    pub fact: Input,
    /// Facts of this very moment, to be told before everything else.
    pub facts: VecDeque<Input>,

    /// For so long the host has slept, all in all.
    pub slept: Span,
    /// Every request so far, where that is wanted.
    pub noted: Option<Noted>,
}

/// A request as it came, and what only the world knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The workload's place.
    pub workload: u32,
    /// When it came.
    pub at: Time,
    /// How long the host had slept before.
    pub slept: Span,
    pub inputs: u32,
    pub prompt_tokens: u32,
    pub output_tokens: u32,
}

/// An instance on its card.
#[derive(Clone, Copy, Debug)]
pub struct Seated<'a> {
    pub card: usize,
    pub seat: Seat,
    pub service: &'a ServiceModel,
}

/// Whether requests are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// They are.
    Open,
    /// They have stopped; jobs in flight are waited for.
    Draining,
}

/// Something that happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A fact that answers an order of this moment.
    Fact,
    /// Something ends on this card, or is due beside the cards if there is no such card.
    Card(usize),
    /// A request of an open workload is sent.
    Arrival,
    /// A client of a closed loop sends, or one gives up.
    Client,
    /// The scheduler's timer is due.
    Timer,
}

/// What the scheduler is told; where it lies in the [`World`], so that nothing large is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The latest submission of this workload.
    Submission(usize),
    /// The latest other thing.
    Fact,
}

impl<'a> World<'a> {
    /// What the scheduler is told, as it gets it.
    #[inline]
    pub fn input(&self, told: Told) -> &Input {
        match told {
            Told::Submission(workload) => &self.submitted[workload],
            Told::Fact => &self.fact,
        }
    }

    /// Has `fact` told.
    #[inline]
    pub fn tell(&mut self, fact: Input) -> Told {
        self.fact = fact;
        Told::Fact
    }

    /// Has the end of a grant told, written over the last one where that was the latest fact.
    #[inline]
    pub fn tell_ended(&mut self, ended: Ended) -> Told {
        if let Input::GrantFinished { attempt, instance, measured } = &mut self.fact {
            (*attempt, *instance, *measured) = (ended.attempt, ended.instance, ended.measured);
            return Told::Fact;
        }
        let Ended { attempt, instance, measured } = ended;
        self.tell(Input::GrantFinished { attempt, instance, measured })
    }

    /// Stops arrivals.
    pub fn close(&mut self) {
        self.gate = Gate::Draining;
        self.open = Merge::new(Vec::new());
        self.agenda.stop_sending();
    }

    /// Where instance `id` is.
    #[inline]
    pub fn seated(&self, id: InstanceId) -> Option<Seated<'a>> {
        *self.instances.get(id.index())?
    }

    /// Tells `due` when something is due beside the cards, which stand before it there.
    pub fn note_machines(&mut self) {
        let machines = self.machines.iter().map(Machine::next).min().unwrap_or(Time::MAX);
        self.due.set(self.cards.len(), machines.min(self.faults.next()).min(self.perils.next()));
    }

    /// Tells `due` of the next end on the card that was touched.
    #[inline(always)]
    pub fn note_due(&mut self) {
        if let Some(card) = self.touched.take() {
            self.due.set(card, self.cards[card].next());
        }
    }

    /// The next end on `card` may have changed. Another card that was touched before is told of first.
    #[inline]
    pub fn touch(&mut self, card: usize) {
        if self.touched != Some(card) {
            self.note_due();
            self.touched = Some(card);
        }
    }
}
