//! What happens next, and what the scheduler is told of it.

use std::sync::PoisonError;

use windtunnel_core::{Input, JobId, Span, Time};

use super::world::{Arrival, Next, Told, World};
use crate::{
    arrivals::{NO_CLIENT, Request},
    events::Event,
};

impl World<'_> {
    /// The next thing to happen, and when, with the scheduler's timer due at `wake`; `None`: nothing that would matter to a
    /// job ever does.
    #[inline]
    pub fn next(&self, wake: Option<Time>) -> Option<(Time, Next)> {
        if !self.facts.is_empty() {
            return Some((self.now, Next::Fact));
        }
        let (arrival, client) = (self.open.next(), self.agenda.next());
        if arrival == Time::MAX && self.agenda.sends() == 0 && self.jobs.is_empty() {
            return None;
        }
        let (mut at, card) = self.due.first();
        let mut next = Next::Card(card);
        if arrival < at {
            (at, next) = (arrival, Next::Arrival);
        }
        if client < at {
            (at, next) = (client, Next::Client);
        }
        if let Some(wake) = wake
            && wake < at
        {
            (at, next) = (wake, Next::Timer);
        }
        (at < Time::MAX).then_some((at, next))
    }

    /// Lets it happen; `None`: there is nothing to tell.
    #[inline]
    pub fn happen(&mut self, next: Next) -> Option<Told> {
        match next {
            Next::Fact => {
                let fact = self.facts.pop_front()?;
                Some(self.tell(fact))
            }
            Next::Card(card) => self.card_got_on(card),
            Next::Arrival => {
                let request = self.open.take()?;
                Some(self.submit(request))
            }
            Next::Client => self.client_acted(),
            Next::Timer => Some(self.tell(Input::TimerDue)),
        }
    }

    #[inline]
    fn card_got_on(&mut self, place: usize) -> Option<Told> {
        let Some(card) = self.cards.get_mut(place) else { return self.machines_got_on() };
        let ended = card.take_due(self.now);
        self.touched = Some(place);
        let Some(ended) = ended else {
            self.note_due();
            return None;
        };
        if self.perilous
            && let Some(told) = self.spoiled(place, ended)
        {
            return Some(told);
        }
        Some(self.tell_ended(ended))
    }

    fn client_acted(&mut self) -> Option<Told> {
        match self.agenda.take()? {
            Event::Sends { closed_loop, client } => {
                let request = self.loops.get_mut(closed_loop as usize)?.request(client, self.now)?;
                Some(self.submit(request))
            }
            Event::GivesUp { job } => match self.jobs.get_mut(job.0) {
                Some(request) => {
                    request.patience = Span::MAX;
                    Some(self.tell(Input::Cancelled { job }))
                }
                None => {
                    self.agenda.met_stale();
                    None
                }
            },
        }
    }

    #[inline]
    fn submit(&mut self, mut request: Request) -> Told {
        let job = JobId(self.arrived);
        if let Some(recorded) = self.setup.requests() {
            request.patience = recorded.patience(job);
        }
        self.arrived += 1;
        let workload = request.workload as usize;
        if let Input::Submitted { job: number, submission } = &mut self.submitted[workload] {
            *number = job;
            submission.inputs = request.inputs;
            submission.prompt_tokens = request.prompt_tokens;
            submission.client = (request.client != NO_CLIENT).then_some(request.client);
        }
        if self.noted.is_some() {
            self.note(&request);
        }
        if request.patience < Span::MAX {
            self.agenda.add(self.now.after(request.patience), Event::GivesUp { job });
        }
        self.jobs.insert(job.0, request);
        Told::Submission(workload)
    }

    #[cold]
    fn note(&mut self, request: &Request) {
        let &Request { workload, inputs, prompt_tokens, output_tokens, .. } = request;
        let (at, slept) = (self.now, self.slept);
        if let Some(noted) = &mut self.noted {
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(Arrival {
                workload,
                at,
                slept,
                inputs,
                prompt_tokens,
                output_tokens,
            });
        }
    }
}
