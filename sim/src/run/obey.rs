//! How what the scheduler wants is carried out. None of it can fail: a failure would be a fact of its own.

use windtunnel_core::{
    Attempt, DeviceId, Effect, Effects, Finish, Grant, GrantFailure, GrantedStep, Input, InstanceId, ModelId, Sent,
    Span, Time,
};

use super::world::{Gate, Seated, World};
use crate::{
    arrivals::{NO_CLIENT, Request},
    events::Event,
};

impl World<'_> {
    /// Carries out the effects of the last step, in their order. `due` may have to be told afterwards.
    pub fn obey(&mut self, effects: &Effects) {
        for effect in effects {
            match effect {
                Effect::Grant(grant) => self.begin(grant, effects.steps(grant.steps)),
                Effect::Finish(finish) => self.finish(finish),
                other => self.obey_rarely(other),
            }
        }
    }

    #[inline(never)]
    fn obey_rarely(&mut self, effect: &Effect) {
        match effect {
            Effect::Grant(_) | Effect::Finish(_) | Effect::Note(_) | Effect::Learned(_) => {}
            Effect::Abort { attempt, instance, cause: _ } => self.abort(*attempt, *instance),
            Effect::Load { attempt, instance, model, device, reservation: _ } => {
                self.load(*attempt, *instance, *model, *device);
            }
            Effect::Stop { attempt, instance, cause: _ } => self.stop(*attempt, *instance),
            Effect::Snapshot { device } => self.read(*device),
        }
    }

    #[inline]
    fn begin<S>(&mut self, grant: &Grant<S>, steps: &[GrantedStep]) {
        let Some(&Some(seated)) = self.instances.get(grant.instance.index()) else { return self.came_too_late(grant) };
        let Seated { card, seat, service } = seated;
        let Some(first) = steps.first() else { return };
        let Some(request) = self.jobs.get(first.job.0) else { return };
        let output_tokens = if self.has_output { self.output_of(steps) } else { 0 };
        let noise = match self.setup.requests() {
            None => request.noise.of_step(first.step),
            Some(recorded) => recorded.noise(first.job, first.step),
        };
        let work = service.work(grant.weight, noise, request.prompt_tokens, output_tokens);
        if self.perilous && self.befalls(grant, seated, work) {
            return;
        }
        self.cards[card].begin(self.now, seat, grant.attempt, work, output_tokens);
        self.touch(card);
    }

    /// The process of a grant died before it was ordered, and the scheduler is about to hear of that.
    #[cold]
    fn came_too_late<S>(&mut self, grant: &Grant<S>) {
        let &Grant { attempt, instance, .. } = grant;
        let (cause, sent) = (GrantFailure::Crashed, Sent::Nothing);
        self.facts.push_back(Input::GrantFailed { attempt, instance, cause, sent });
    }

    /// The output of a job comes with the last of its steps.
    #[inline(never)]
    fn output_of(&self, steps: &[GrantedStep]) -> u32 {
        let last = steps.iter().filter(|step| step.step + 1 == step.of);
        last.filter_map(|step| self.jobs.get(step.job.0))
            .fold(0, |sum, request| sum.saturating_add(request.output_tokens))
    }

    #[inline]
    fn finish(&mut self, finish: &Finish) {
        let Some(room) = self.jobs.room_of(finish.job.0) else { return };
        let Some(request) = self.jobs.in_room(room) else { return };
        if request.patience < Span::MAX || request.client != NO_CLIENT {
            let request = *request;
            self.jobs.leave(finish.job.0, room);
            return self.somebody_waited(request, finish.started);
        }
        self.jobs.leave(finish.job.0, room);
    }

    /// A client that would have lost patience, or is to send its next request, has its answer.
    #[inline(never)]
    fn somebody_waited(&mut self, request: Request, started: Option<Time>) {
        let Request { at, patience, workload, client, .. } = request;
        if patience < Span::MAX {
            let jobs = &self.jobs;
            self.agenda.grow_stale(|event| match event {
                Event::GivesUp { job } => jobs.get(job.0).is_some(),
                Event::Sends { .. } => true,
            });
        }
        if client != NO_CLIENT && self.gate == Gate::Open {
            self.send_again(workload, client, at, started);
        }
    }

    fn send_again(&mut self, workload: u32, client: u32, sent: Time, started: Option<Time>) {
        let Some(&Some(closed_loop)) = self.loop_of.get(workload as usize) else { return };
        let Some(clients) = self.loops.get_mut(closed_loop as usize) else { return };
        if let Some(at) = clients.next(client, sent, started, self.now) {
            self.agenda.add(at, Event::Sends { closed_loop, client });
        }
    }

    fn abort(&mut self, attempt: Attempt, instance: InstanceId) {
        if self.abort_load(attempt, instance) || self.abort_held(attempt, instance) {
            return;
        }
        let Some(Seated { card, seat, .. }) = self.seated(instance) else { return };
        let Some(sent) = self.cards[card].abort(self.now, seat, attempt) else { return };
        self.touch(card);
        self.facts.push_back(Input::GrantFailed { attempt, instance, cause: GrantFailure::Aborted, sent });
    }

    /// Seats an instance on its card; `None` if the model has no service there.
    pub fn seat(&mut self, instance: InstanceId, model: ModelId, device: DeviceId) -> Option<()> {
        let service = self.setup.service(model, device)?;
        let card = device.index();
        let seat = self.cards.get_mut(card)?.seat(instance, service);
        if self.instances.len() <= instance.index() {
            self.instances.resize(instance.index() + 1, None);
        }
        self.instances[instance.index()] = Some(Seated { card, seat, service });
        Some(())
    }

    pub fn unseat(&mut self, instance: InstanceId) {
        if let Some(Seated { card, seat, .. }) = self.instances.get_mut(instance.index()).and_then(Option::take) {
            self.cards[card].unseat(seat);
        }
    }
}
