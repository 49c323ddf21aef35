//! How a run is put together.

use std::collections::VecDeque;

use windtunnel_core::{DeviceId, IdTable, Input, InstanceId, JobId, Resident, Span, Time};

use super::{
    perils::Perils,
    world::{Gate, World},
};
use crate::{
    arrivals::Merge,
    callers::Sources,
    cards::Card,
    events::{Agenda, Earliest, Event},
    faults::Faults,
    memory::Machine,
    setup::Setup,
};

impl<'a> World<'a> {
    /// The world of one replication before anything has happened.
    pub fn new(setup: &'a Setup, replication: u32) -> World<'a> {
        let scenario = setup.scenario();
        let Sources { open, loops, loop_of } = Sources::new(setup, replication);
        let faults = Faults::new(scenario, replication);
        let machine = |device| Machine::new(scenario, device, &faults);
        let machines: Vec<Machine> = (0..).map(DeviceId).take(scenario.cards.len()).map(machine).collect();
        let perilous = faults.imperil() || machines.iter().any(Machine::can_overcommit);
        let mut world = World {
            setup,
            now: Time::ZERO,
            cards: scenario.cards.iter().map(Card::new).collect(),
            due: Earliest::new(scenario.cards.len() + 1),
            touched: None,
            machines,
            perilous,
            faults,
            perils: Perils::default(),
            instances: Vec::new(),
            open: Merge::new(open),
            loops,
            loop_of,
            agenda: Agenda::default(),
            gate: Gate::Open,
            jobs: IdTable::new(),
            arrived: 0,
            submitted: setup.submissions().into_iter().map(first_submission).collect(),
            has_output: setup.has_output(),
            fact: Input::TimerDue,
            facts: VecDeque::new(),
            slept: Span::ZERO,
            noted: None,
        };
        for (resident, id) in setup.residents().into_iter().zip(0..) {
            world.settle_in(InstanceId(id), resident);
        }
        world.note_machines();
        world.wake_clients();
        world
    }

    /// Seats a model that is loaded when the run starts.
    fn settle_in(&mut self, instance: InstanceId, Resident { model, device }: Resident) {
        if self.seat(instance, model, device).is_some() {
            let fate = self.faults.resident(model, device);
            self.machines[device.index()].settle_in(instance, model, self.setup.footprint(model), fate);
        }
    }

    fn wake_clients(&mut self) {
        for (closed_loop, clients) in (0..).zip(&mut self.loops) {
            for client in 0..clients.len() {
                if let Some(at) = clients.first(client) {
                    self.agenda.add(at, Event::Sends { closed_loop, client });
                }
            }
        }
    }
}

fn first_submission(submission: windtunnel_core::Submission) -> Input {
    Input::Submitted { job: JobId(0), submission }
}
