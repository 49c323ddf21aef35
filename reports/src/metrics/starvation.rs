//! The longest time that a job of each class made no progress.
//!
//! Progress is a job's arrival and the end of a step of it; while a step runs a job is not starved. Jobs of the lower classes
//! are followed one by one; of interactive jobs only the wait for the first step is known.

use windtunnel_core::{Attempt, Class, Finish, GrantedStep, IdTable, JobId, Outcome};

/// A job number further than this beyond the last makes no sense.
const FAR: u64 = 1 << 16;

/// Follows the jobs that can starve.
#[derive(Clone, Debug, Default)]
pub struct Starvation {
    longest: [u64; 3],
    seen: [bool; 3],
    next: u64,
    jobs: IdTable<Progress>,
    under_way: Vec<(Attempt, Vec<JobId>)>,
    spare: Vec<Vec<JobId>>,
}

#[derive(Clone, Debug)]
struct Progress {
    class: Class,
    last: u64,
    running: u32,
}

impl Starvation {
    /// A job arrives.
    #[inline]
    pub fn submitted(&mut self, job: JobId, class: Class, now: u64) {
        self.seen[class.index()] = true;
        if class != Class::Interactive {
            self.follow(job, class, now);
        }
    }

    fn follow(&mut self, job: JobId, class: Class, now: u64) {
        if job.0 >= self.next && job.0 - self.next <= FAR {
            self.next = job.0.saturating_add(1);
            self.jobs.insert(job.0, Progress { class, last: now, running: 0 });
        }
    }

    /// Steps of a lower class start.
    pub fn granted(&mut self, attempt: Attempt, steps: &[GrantedStep], now: u64) {
        let mut jobs = self.spare.pop().unwrap_or_default();
        for step in steps {
            if let Some(progress) = self.jobs.get_mut(step.job.0) {
                if progress.running == 0 {
                    self.longest[progress.class.index()].raise(now.saturating_sub(progress.last));
                }
                progress.running += 1;
                jobs.push(step.job);
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
        if finish.class != Class::Interactive || finish.outcome != Outcome::Completed {
            self.ended(finish, now);
        }
    }

    fn ended(&mut self, finish: &Finish, now: u64) {
        if finish.class == Class::Interactive {
            let until = finish.started.map_or(now, |started| started.as_nanos());
            self.longest[0].raise(until.saturating_sub(finish.arrived.as_nanos()));
        } else if let Some(progress) = self.jobs.remove(finish.job.0)
            && progress.running == 0
        {
            self.longest[progress.class.index()].raise(now.saturating_sub(progress.last));
        }
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
    use super::*;

    fn step(job: u64) -> GrantedStep {
        GrantedStep { job: JobId(job), step: 0, of: 2, weight: 1 }
    }

    #[test]
    fn a_job_starves_between_its_steps_and_not_while_one_runs() {
        let mut starvation = Starvation::default();
        starvation.submitted(JobId(0), Class::Background, 100);
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
        starvation.submitted(JobId(0), Class::Interactive, 0);
        starvation.submitted(JobId(1), Class::Batch, 5);
        assert_eq!(starvation.longest(300), [Some(0), None, Some(295)]);
    }
}
