//! A new configuration takes the place of the old one: what waits is sorted into new lines, what runs goes on.

use alloc::vec::Vec;

use crate::{
    Configuration, Effects, Estimate, Failure, InstanceId, JobId, Nonsense, Note, Outcome, Reconfiguration, Scheduler,
    StopCause,
};

impl Scheduler {
    pub(crate) fn reconfigure(&mut self, change: &Reconfiguration, effects: &mut Effects) {
        if !self.is_continued_by(&change.configuration) {
            return effects.note(Note::Ignored { cause: Nonsense::UnsoundConfiguration });
        }
        let waiting: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.line().is_some()).map(|(id, _)| JobId(id)).collect();
        for &job in &waiting {
            self.leave_line(job);
        }
        self.configuration = change.configuration.clone();
        self.add_devices();
        self.mark_removed(&change.removed);
        self.rebuild_targets();
        self.renew_estimates(&change.estimates);
        self.refresh_instances();
        self.look_for_holds();
        self.look_for_margins();
        self.look_for_residency();
        self.look_for_short_ways();
        self.drain_removed(effects);
        for job in waiting {
            self.sort_in(job, effects);
        }
        self.retarget_running();
        self.settle_all(effects);
    }

    /// Whether a configuration is sound and keeps the places of models and devices.
    fn is_continued_by(&self, other: &Configuration) -> bool {
        let kept = other.models.len() >= self.models.len() && other.devices.len() >= self.devices.len();
        kept && other.check().is_ok()
    }

    fn mark_removed(&mut self, removed: &[crate::ModelId]) {
        for (number, state) in self.models.iter_mut().enumerate() {
            state.removed = removed.iter().any(|model| model.index() == number);
        }
    }

    /// Forgets all targets and lines and makes those of single models anew; families follow as jobs ask for them.
    fn rebuild_targets(&mut self) {
        let learned: Vec<_> = self.targets.drain(..).map(|target| (target.variants, target.outputs)).collect();
        self.lines.clear();
        self.spare_lines.clear();
        for (_, instance) in self.instances.iter_mut() {
            instance.lines.clear();
            instance.held = None;
        }
        for number in 0..self.models.len() as u32 {
            self.add_target(alloc::vec![crate::ModelId(number)]);
        }
        self.add_models(&[]);
        for (variants, outputs) in learned {
            let known = self.targets.iter().position(|target| target.variants == variants);
            let place = known.unwrap_or_else(|| self.add_target(variants) as usize);
            self.targets[place].outputs = outputs;
        }
    }

    /// Models that are new, or started in another way from now on.
    fn renew_estimates(&mut self, estimates: &[Estimate]) {
        let known = self.devices.len();
        for estimate in estimates.iter().filter(|estimate| estimate.device.index() < known) {
            if let Some(needs) = self.needs_mut(estimate.model, estimate.device) {
                (needs.measured, needs.raised) = (None, None);
            }
            self.learn_estimate(estimate);
        }
    }

    /// An instance keeps the capacity its process was started with; what is believed of its service may change.
    fn refresh_instances(&mut self) {
        let all: Vec<InstanceId> = self.instances.iter().map(|(id, _)| id).collect();
        for id in all {
            let (model, device) = (self.instances[id].model, self.instances[id].device);
            let Some(configured) = self.configuration.model(model) else { continue };
            let Some(times) = configured.predicted_on(device) else { continue };
            let (prediction, factor) = (configured.prediction, self.factor(model, device));
            let instance = &mut self.instances[id];
            (instance.times, instance.prediction, instance.factor) = (times, prediction, factor);
        }
    }

    /// Lets every instance go that serves a removed model or stands where its model may no longer be placed.
    fn drain_removed(&mut self, effects: &mut Effects) {
        let live: Vec<InstanceId> = self.devices.iter().flat_map(|device| device.instances.iter().copied()).collect();
        for id in live {
            let instance = &self.instances[id];
            let model = self.configuration.model(instance.model);
            let placed = model.is_some_and(|model| model.predicted_on(instance.device).is_some());
            if !placed || self.models[instance.model.index()].removed {
                self.drain(id, StopCause::Removed, effects);
            }
        }
    }

    /// Targets have new numbers: jobs that only run get theirs. One whose target is gone keeps that of the model it runs on.
    fn retarget_running(&mut self) {
        let running: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.line().is_none()).map(|(id, _)| JobId(id)).collect();
        for id in running {
            let Some((ask, model)) = self.jobs.get(id.0).map(|job| (job.ask(), job.model())) else { continue };
            let target = self.target_of(ask).ok().or(model.map(|model| model.0));
            if let (Some(job), Some(target)) = (self.jobs.get_mut(id.0), target) {
                job.set_target(target);
            }
        }
    }

    /// Finds a waiting job its place again; one whose model is gone fails, and one is refused whose steps were cut for larger
    /// batches than those of a variant that came back.
    fn sort_in(&mut self, id: JobId, effects: &mut Effects) {
        let Some((ask, class)) = self.jobs.get(id.0).map(|job| (job.ask(), job.class)) else { return };
        match self.target_of(ask) {
            Ok(target) => {
                if let Some(job) = self.jobs.get_mut(id.0) {
                    job.set_target(target);
                }
                let refusal = self.jobs.get(id.0).and_then(|job| self.fits(job).err());
                if let Some(refusal) = refusal {
                    return self.drop_job(id, Outcome::Refused(refusal), effects);
                }
                let line = self.route(id, class, target);
                self.enqueue(id, line);
            }
            Err(_) => self.drop_job(id, Outcome::Failed(Failure::ModelRemoved), effects),
        }
    }
}
