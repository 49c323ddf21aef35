//! What happens next, and what the scheduler is told of it.

use std::sync::PoisonError;

use windtunnel_core::{Input, JobId, Span, Time};

use super::world::{Arrival, Next, Told, World};
use crate::{
    arrivals::{NO_CLIENT, Request},
    events::Event,
};

impl World<'_> {
    /// The next thing to happen, and when, with the scheduler's timer due at `wake`; [`Time::MAX`]: nothing that would
    /// matter to a job ever does.
    #[inline(always)]
    pub fn next(&self, wake: Time) -> (Time, Next) {
        let (end, card) = self.due.first();
        let arrival = self.open.next();
        let beside = self.agenda.next().min(wake);
        let (at, next) = if arrival < end { (arrival, Next::Arrival) } else { (end, Next::Card(card)) };
        // Most of what happens is an arrival or an end on a card, and then nothing else has to be asked.
        if beside < at || arrival == Time::MAX || !self.facts.is_empty() {
            return self.next_of_all(wake);
        }
        (at, next)
    }

    fn next_of_all(&self, wake: Time) -> (Time, Next) {
        if !self.facts.is_empty() {
            return (self.now, Next::Fact);
        }
        let (arrival, client) = (self.open.next(), self.agenda.next());
        let (mut at, card) = self.due.first();
        let mut next = Next::Card(card);
        if arrival == Time::MAX && self.agenda.sends() == 0 && self.jobs.is_empty() {
            return (Time::MAX, next);
        }
        for (other, kind) in [(arrival, Next::Arrival), (client, Next::Client), (wake, Next::Timer)] {
            if other < at {
                (at, next) = (other, kind);
            }
        }
        (at, next)
    }

    /// Lets it happen; `None`: there is nothing to tell.
    #[inline(always)]
    pub fn happen(&mut self, next: Next) -> Option<Told> {
        match next {
            Next::Card(card) => self.card_got_on(card),
            Next::Arrival => self.arrives(),
            other => self.happens_rarely(other),
        }
    }

    fn happens_rarely(&mut self, next: Next) -> Option<Told> {
        match next {
            Next::Fact => {
                let fact = self.facts.pop_front()?;
                Some(self.tell(fact))
            }
            Next::Client => self.client_acted(),
            Next::Timer => Some(self.tell(Input::TimerDue)),
            Next::Card(_) | Next::Arrival => None,
        }
    }

    /// Something on a card is due, or in the machines behind them.
    #[inline]
    fn card_got_on(&mut self, place: usize) -> Option<Told> {
        // Nearly always it is the end of the only grant, and nothing can have befallen it.
        if !self.perilous
            && let Some(card) = self.cards.get_mut(place)
            && let Some(ended) = card.take_only(self.now)
        {
            self.touched = Some(place);
            return Some(self.tell_ended(ended));
        }
        self.got_on_any(place)
    }

    #[inline(never)]
    fn got_on_any(&mut self, place: usize) -> Option<Told> {
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
                self.jobs.insert(self.arrived, request);
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

    /// The next request of an open workload is sent.
    fn arrives(&mut self) -> Option<Told> {
        let (source, mut sent) = (self.open.first_mut()?, Request::default());
        self.jobs.insert_over(self.arrived, Request::default, |request| {
            source.write(request);
            sent = *request;
        });
        source.advance();
        self.open.find_first();
        Some(self.submit(sent))
    }

    /// Tells of the request that was put at the next job's number.
    #[inline(always)]
    fn submit(&mut self, mut request: Request) -> Told {
        let job = JobId(self.arrived);
        self.arrived += 1;
        if self.setup.requests().is_some() {
            request.patience = self.recorded_patience(job);
        }
        let workload = request.workload as usize;
        if let Input::Submitted { job: number, submission } = &mut self.submitted[workload] {
            *number = job;
            submission.inputs = request.inputs;
            submission.prompt_tokens = request.prompt_tokens;
            submission.client = (request.client != NO_CLIENT).then_some(request.client);
        }
        if request.patience < Span::MAX {
            self.agenda.add(self.now.after(request.patience), Event::GivesUp { job });
        }
        if self.noted.is_some() {
            self.note(job);
        }
        Told::Submission(workload)
    }

    /// The patience of a job of a recorded run, which it has from now on.
    #[cold]
    fn recorded_patience(&mut self, job: JobId) -> Span {
        let patience = self.setup.requests().map_or(Span::MAX, |recorded| recorded.patience(job));
        if let Some(request) = self.jobs.get_mut(job.0) {
            request.patience = patience;
        }
        patience
    }

    #[cold]
    fn note(&mut self, job: JobId) {
        let Some(&request) = self.jobs.get(job.0) else { return };
        let Request { workload, inputs, prompt_tokens, output_tokens, .. } = request;
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
