//! The longest time that a job of each class, and of each model or family, made no progress, and what kept it.
//!
//! Progress is a job's arrival and the end of a step of it; while a step runs a job is not starved. Jobs of the lower classes
//! are followed one by one; of interactive jobs only the wait for the first step is known.

use windtunnel_core::{Attempt, Class, Finish, GrantedStep, IdTable, JobId, Span, WaitReason, Wanted};

/// A job number further than this beyond the last makes no sense.
const FAR: u64 = 1 << 16;

/// So many models and families are followed; the jobs of others count for their class alone.
const MOST: usize = 1 << 12;

/// Follows the jobs that can starve.
#[derive(Clone, Debug, Default)]
pub struct Starvation {
    longest: [u64; 3],
    seen: [bool; 3],
    queues: Vec<Queue>,
    next: u64,
    jobs: IdTable<Progress>,
    under_way: Vec<(Attempt, Vec<JobId>)>,
    spare: Vec<Vec<JobId>>,
}

/// The jobs of a lower class that ask for the same.
#[derive(Clone, Copy, Debug)]
struct Queue {
    wanted: Wanted,
    class: Class,
    longest: u64,
    /// What keeps it now, and what did when it was kept longest.
    why: Option<WaitReason>,
    kept_by: Option<WaitReason>,
}

/// How long the jobs of a class that asked for the same made no progress at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starved {
    /// What they asked for.
    pub wanted: Wanted,
    /// Their class; of interactive jobs nothing is told here.
    pub class: Class,
    /// The longest time.
    pub longest: Span,
    /// What the scheduler said last when that time ended.
    pub why: Option<WaitReason>,
}

#[derive(Clone, Debug)]
struct Progress {
    class: Class,
    queue: usize,
    last: u64,
    running: u32,
}

impl Default for Progress {
    fn default() -> Self {
        Progress { class: Class::Background, queue: 0, last: 0, running: 0 }
    }
}

impl Starvation {
    /// A job arrives.
    #[inline]
    pub fn submitted(&mut self, job: JobId, class: Class, wanted: Wanted, now: u64) {
        self.seen[class.index()] = true;
        if class != Class::Interactive {
            self.follow(job, class, wanted, now);
        }
    }

    fn follow(&mut self, job: JobId, class: Class, wanted: Wanted, now: u64) {
        if job.0 >= self.next && job.0 - self.next <= FAR {
            self.next = job.0.saturating_add(1);
            let queue = self.queue(class, wanted);
            self.jobs.insert(job.0, Progress { class, queue, last: now, running: 0 });
        }
    }

    fn queue(&mut self, class: Class, wanted: Wanted) -> usize {
        let known = self.queues.iter().position(|queue| (queue.class, queue.wanted) == (class, wanted));
        known.unwrap_or_else(|| {
            if self.queues.len() < MOST {
                self.queues.push(Queue { wanted, class, longest: 0, why: None, kept_by: None });
            }
            self.queues.len() - 1
        })
    }

    /// A job made no progress until now.
    fn stood(&mut self, progress: &Progress, now: u64) {
        let stood = now.saturating_sub(progress.last);
        self.longest[progress.class.index()].raise(stood);
        if let Some(queue) = self.queues.get_mut(progress.queue)
            && stood > queue.longest
        {
            (queue.longest, queue.kept_by) = (stood, queue.why);
        }
    }

    /// The scheduler says why a job waits.
    pub fn waits(&mut self, job: JobId, reason: WaitReason) {
        if matches!(reason, WaitReason::Behind { .. }) {
            return;
        }
        if let Some(queue) = self.jobs.get(job.0).and_then(|progress| self.queues.get_mut(progress.queue)) {
            queue.why = Some(reason);
        }
    }

    /// Steps of a lower class start.
    pub fn granted(&mut self, attempt: Attempt, steps: &[GrantedStep], now: u64) {
        let mut jobs = self.spare.pop().unwrap_or_default();
        for step in steps {
            if let Some(progress) = self.jobs.get_mut(step.job.0) {
                let before = progress.clone();
                progress.running += 1;
                jobs.push(step.job);
                if before.running == 0 {
                    self.stood(&before, now);
                }
            }
        }
        self.under_way.push((attempt, jobs));
    }

    /// A grant ends; its jobs have made progress by `now`, unless it came to nothing.
    #[inline]
    pub fn settled(&mut self, attempt: Attempt, progress: Option<u64>) {
        if !self.under_way.is_empty() {
            self.settle(attempt, progress);
        }
    }

    fn settle(&mut self, attempt: Attempt, reached: Option<u64>) {
        let Some(at) = self.under_way.iter().position(|(one, _)| *one == attempt) else { return };
        let (_, mut jobs) = self.under_way.swap_remove(at);
        for job in jobs.drain(..) {
            if let Some(progress) = self.jobs.get_mut(job.0) {
                progress.running = progress.running.saturating_sub(1);
                progress.last = reached.unwrap_or(progress.last);
            }
        }
        self.spare.push(jobs);
    }

    /// The guard says for how long a job of this class had been starved.
    pub fn noted(&mut self, class: Class, starved: u64) {
        self.longest[class.index()].raise(starved);
    }

    /// A job ends. Interactive ones count here only when they were not completed; the waits of the others are known anyway.
    #[inline]
    pub fn finished(&mut self, finish: &Finish, now: u64) {
        if finish.class != Class::Interactive || !finish.outcome.is_completed() {
            self.ended(finish, now);
        }
    }

    fn ended(&mut self, finish: &Finish, now: u64) {
        if finish.class == Class::Interactive {
            let until = finish.started.map_or(now, |started| started.as_nanos());
            self.longest[0].raise(until.saturating_sub(finish.arrived.as_nanos()));
        } else if let Some(progress) = self.jobs.get(finish.job.0).cloned() {
            self.jobs.discard(finish.job.0);
            if progress.running == 0 {
                self.stood(&progress, now);
            }
        }
    }

    /// The longest times by class and what was asked for, when the run ends now.
    pub fn queues(&self, now: u64) -> Vec<Starved> {
        let mut all = self.clone();
        for (_, progress) in self.jobs.iter().filter(|(_, progress)| progress.running == 0) {
            all.stood(progress, now);
        }
        let starved = |queue: &Queue| Starved {
            wanted: queue.wanted,
            class: queue.class,
            longest: Span::from_nanos(queue.longest),
            why: queue.kept_by,
        };
        all.queues.iter().map(starved).collect()
    }

    /// The longest time without progress by class in nanoseconds, `None` for a class without jobs, when the run ends now.
    pub fn longest(&self, now: u64) -> [Option<u64>; 3] {
        let mut longest = self.longest;
        for (_, progress) in self.jobs.iter().filter(|(_, progress)| progress.running == 0) {
            longest[progress.class.index()].raise(now.saturating_sub(progress.last));
        }
        Class::ALL.map(|class| self.seen[class.index()].then_some(longest[class.index()]))
    }
}

trait Raise {
    fn raise(&mut self, to: Self);
}

impl Raise for u64 {
    #[inline]
    fn raise(&mut self, to: u64) {
        *self = (*self).max(to);
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_core::{DeviceId, ModelId};

    use super::*;

    const ONE: Wanted = Wanted::Model(ModelId(0));

    fn step(job: u64) -> GrantedStep {
        GrantedStep { job: JobId(job), step: 0, of: 2, weight: 1 }
    }

    #[test]
    fn a_job_starves_between_its_steps_and_not_while_one_runs() {
        let mut starvation = Starvation::default();
        starvation.submitted(JobId(0), Class::Background, ONE, 100);
        starvation.granted(Attempt(0), &[step(0)], 150);
        starvation.settled(Attempt(0), Some(1_000));
        assert_eq!(starvation.longest(1_000), [None, Some(50), None]);
        assert_eq!(starvation.longest(1_300), [None, Some(300), None]);
        starvation.granted(Attempt(1), &[step(0)], 1_200);
        assert_eq!(starvation.longest(9_000), [None, Some(200), None]);
    }

    #[test]
    fn a_class_that_never_got_anything_is_named() {
        let mut starvation = Starvation::default();
        starvation.submitted(JobId(0), Class::Interactive, ONE, 0);
        starvation.submitted(JobId(1), Class::Batch, ONE, 5);
        assert_eq!(starvation.longest(300), [Some(0), None, Some(295)]);
    }

    #[test]
    fn a_model_is_named_with_what_kept_it_when_it_was_kept_longest() {
        let mut starvation = Starvation::default();
        let (device, other) = (DeviceId(0), Wanted::Model(ModelId(1)));
        starvation.submitted(JobId(0), Class::Background, ONE, 0);
        starvation.submitted(JobId(1), Class::Background, other, 0);
        starvation.waits(JobId(1), WaitReason::NoRoom { device, until: None });
        starvation.granted(Attempt(0), &[step(0)], 50);
        starvation.settled(Attempt(0), Some(60));
        let longest = |wanted| {
            let all = starvation.queues(1_000);
            let one = all.iter().find(|one| one.wanted == wanted).expect("it was asked for");
            (one.longest.as_nanos(), one.why)
        };
        assert_eq!(longest(ONE), (940, None));
        assert_eq!(longest(other), (1_000, Some(WaitReason::NoRoom { device, until: None })));
    }
}
