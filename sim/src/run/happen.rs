//! What happens next, and what the scheduler is told of it.

use windtunnel_core::{Input, JobId, Span, Time};
use windtunnel_reports::Recorder;

use super::{Next, Run};
use crate::{
    arrivals::{NO_CLIENT, Request},
    events::Event,
};

impl<R: Recorder> Run<'_, R> {
    /// The next thing to happen, and when; `None`: nothing that would matter to a job ever does.
    #[inline]
    pub(super) fn next(&self) -> Option<(Time, Next)> {
        if !self.facts.is_empty() {
            return Some((self.now, Next::Fact));
        }
        if self.jobs.is_empty() && self.open.next() == Time::MAX && self.agenda.sends() == 0 {
            return None;
        }
        let (mut at, card) = self.due.first();
        let mut next = Next::Card(card);
        let others = [
            (self.open.next(), Next::Arrival),
            (self.agenda.next(), Next::Client),
            (self.scheduler.wake_at().unwrap_or(Time::MAX), Next::Timer),
        ];
        for (other, what) in others {
            if other < at {
                (at, next) = (other, what);
            }
        }
        (at < Time::MAX).then_some((at, next))
    }

    /// Lets it happen; `None`: there is nothing to tell.
    #[inline]
    pub(super) fn happen(&mut self, next: Next) -> Option<Input> {
        match next {
            Next::Fact => self.facts.pop_front(),
            Next::Card(card) => self.card_got_on(card),
            Next::Arrival => {
                let request = self.open.take()?;
                Some(self.submit(request))
            }
            Next::Client => self.client_acted(),
            Next::Timer => Some(Input::TimerDue),
        }
    }

    #[inline]
    fn card_got_on(&mut self, place: usize) -> Option<Input> {
        let card = self.cards.get_mut(place)?;
        let ended = card.take_due(self.now);
        self.touched = Some(place);
        let Some(ended) = ended else {
            self.note_due();
            return None;
        };
        Some(Input::GrantFinished { attempt: ended.attempt, instance: ended.instance, measured: ended.measured })
    }

    fn client_acted(&mut self) -> Option<Input> {
        match self.agenda.take()? {
            Event::Sends { closed_loop, client } => {
                let request = self.loops.get_mut(closed_loop as usize)?.request(client, self.now)?;
                Some(self.submit(request))
            }
            Event::GivesUp { job } => match self.jobs.get_mut(job.0) {
                Some(request) => {
                    request.patience = Span::MAX;
                    Some(Input::Cancelled { job })
                }
                None => {
                    self.agenda.met_stale();
                    None
                }
            },
        }
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Input {
        let job = JobId(self.arrived);
        self.arrived += 1;
        self.jobs.insert(job.0, request);
        if request.patience < Span::MAX {
            self.agenda.add(self.now.after(request.patience), Event::GivesUp { job });
        }
        let mut submission = self.submissions[request.workload as usize];
        submission.inputs = request.inputs;
        submission.prompt_tokens = request.prompt_tokens;
        submission.client = (request.client != NO_CLIENT).then_some(request.client);
        Input::Submitted { job, submission }
    }
}
