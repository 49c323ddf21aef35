//! Jobs: each ends exactly once, and within class and target they are served in order (invariants 7 and 8).

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_core::{
    Class, Finish, GrantedStep, JobId, Needs, Order, Outcome, Overdue, Policy, Quality, Routing, Span, Submission,
    Time, Wanted,
};

use super::Breach;

/// Jobs that ask for the same share a queue.
type Queue = (Class, Wanted, Option<Quality>, Needs);

/// A place in the order.
type Place = (Time, JobId);

/// Every job of the run.
#[derive(Debug)]
pub struct Jobs {
    all: Vec<Job>,
    waiting: BTreeMap<Queue, BTreeSet<Place>>,
    in_flight: u64,
    orders: [Order; 3],
    hopeless: [bool; 3],
    default_class: Class,
    shared: bool,
    longest: [Span; 3],
}

/// What is known of a job.
#[derive(Clone, Debug)]
pub struct Job {
    pub submission: Submission,
    pub class: Class,
    arrived: Time,
    /// Its arrival, or the end of its last step.
    pub progress: Time,
    /// Steps under way.
    pub running: u32,
    steps: Vec<Step>,
    ended: bool,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Waits,
    Runs,
    Done,
}

const ONCE: &str = "every job ends exactly once (7)";

impl Jobs {
    pub fn new(policy: &Policy) -> Jobs {
        Jobs {
            all: Vec::new(),
            waiting: BTreeMap::new(),
            in_flight: 0,
            orders: policy.classes.each_ref().map(|class| class.order),
            hopeless: policy.classes.each_ref().map(|class| class.drop_hopeless),
            default_class: policy.default_class,
            shared: policy.routing == Routing::Shared,
            longest: [Span::ZERO; 3],
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The longest any job of each class went without progress, so far.
    pub fn longest(&self) -> [Span; 3] {
        self.longest
    }

    pub fn oldest(&self) -> String {
        let left = self.all.iter().position(|job| !job.ended);
        left.map_or_else(String::new, |at| format!("{} ({})", JobId(at as u64), self.all[at].class.name()))
    }

    /// Those that have not ended.
    pub fn left(&self) -> impl Iterator<Item = &Job> {
        self.all.iter().filter(|job| !job.ended)
    }

    pub fn get(&self, job: JobId) -> Option<&Job> {
        self.all.get(job.0 as usize)
    }

    pub fn submitted(&mut self, job: JobId, submission: &Submission, now: Time) -> Result<(), Breach> {
        let class = submission.class.unwrap_or(self.default_class);
        self.all.push(Job {
            submission: *submission,
            class,
            arrived: now,
            progress: now,
            running: 0,
            steps: Vec::new(),
            ended: false,
        });
        self.in_flight += 1;
        self.wait(job);
        Ok(())
    }

    fn queue(&self, job: JobId) -> Option<(Queue, Place)> {
        let Job { submission, class, arrived, .. } = self.get(job)?;
        let due = match self.orders[class.index()] {
            Order::Fifo => Time::ZERO,
            Order::Edf => submission.deadline.map_or(Time::MAX, |deadline| arrived.after(deadline)),
        };
        Some(((*class, submission.wanted, submission.quality, submission.needs), (due, job)))
    }

    fn wait(&mut self, job: JobId) {
        if let Some((queue, place)) = self.queue(job) {
            self.waiting.entry(queue).or_default().insert(place);
        }
    }

    fn leave(&mut self, job: JobId) {
        if let Some((queue, place)) = self.queue(job)
            && let Some(waiting) = self.waiting.get_mut(&queue)
        {
            waiting.remove(&place);
        }
    }

    /// Whether a job of this class that asks for that very model, and nothing else, waits.
    pub fn waits(&self, class: Class, wanted: Wanted) -> Option<JobId> {
        let first = (class, wanted, None, Needs::NONE);
        let same = self.waiting.range(first..).take_while(|((of, what, ..), _)| (*of, *what) == (class, wanted));
        let mut waiting = same.filter_map(|(_, waiting)| waiting.first());
        waiting.next().map(|(_, job)| *job)
    }

    /// A step of a job is granted.
    pub fn granted(&mut self, step: &GrantedStep, class: Class, now: Time, sleeps: bool) -> Result<(), Breach> {
        let id = step.job;
        let (queue, place) = self.queue(id).ok_or_else(|| unknown(id))?;
        if self.shared
            && let Some(first) = self.waiting.get(&queue).and_then(BTreeSet::first)
            && first < &place
        {
            let message = format!("{id} is granted before {}", first.1);
            return Err(Breach::new("grants follow the order (8)", message));
        }
        let hopeless = self.hopeless[class.index()];
        let job = self.all.get_mut(id.0 as usize).ok_or_else(|| unknown(id))?;
        if job.ended || job.class != class {
            let message = format!("{id} of class {:?} is granted as {class:?}, ended: {}", job.class, job.ended);
            return Err(Breach::new(ONCE, message));
        }
        if job.running == 0 && !sleeps {
            job.still_wanted(id, hopeless, now)?;
        }
        if job.running == 0 {
            let longest = &mut self.longest[class.index()];
            *longest = (*longest).max(now.since(job.progress));
        }
        job.steps.resize(step.of as usize, Step::Waits);
        match job.steps.get_mut(step.step as usize) {
            Some(known @ Step::Waits) => *known = Step::Runs,
            known => {
                let message = format!("step {} of {id} is granted; it was {known:?}", step.step);
                return Err(Breach::new("every step runs once (7)", message));
            }
        }
        job.running += 1;
        if !job.steps.contains(&Step::Waits) {
            self.leave(id);
        }
        Ok(())
    }

    /// A step of a job is done, or has come to nothing and waits again; its job may have ended before.
    pub fn step_ended(&mut self, step: &GrantedStep, done: bool, now: Time) {
        let Some(job) = self.all.get_mut(step.job.0 as usize) else { return };
        job.running -= 1;
        job.progress = now;
        if let Some(known) = job.steps.get_mut(step.step as usize) {
            *known = if done { Step::Done } else { Step::Waits };
        }
        if !done && !job.ended {
            self.wait(step.job);
        }
    }

    pub fn finished(&mut self, finish: &Finish, now: Time, sleeps: bool) -> Result<(), Breach> {
        let id = finish.job;
        let job = self.all.get_mut(id.0 as usize).ok_or_else(|| unknown(id))?;
        if job.ended {
            return Err(Breach::new(ONCE, format!("{id} ends again, as {:?}", finish.outcome)));
        }
        job.ended = true;
        let undone = job.steps.is_empty() || job.steps.iter().any(|&step| step != Step::Done);
        if finish.outcome.is_completed() && undone {
            return Err(Breach::new("a completed job ran every step (7)", format!("{id}: {:?}", job.steps)));
        }
        if (finish.arrived, finish.class) != (job.arrived, job.class) {
            return Err(Breach::new(ONCE, format!("{id} ends as another job: {finish:?}")));
        }
        if let (Outcome::TimedOut(Overdue::MaxWait), Some(most)) = (finish.outcome, job.submission.max_wait)
            && (now < job.progress.after(most) || job.running > 0)
        {
            let message = format!("{id} timed out after {}, may wait {most}", now.since(job.progress));
            return Err(Breach::new("no job times out early", message));
        }
        if let Some(most) = job.submission.max_wait.filter(|_| job.running == 0 && !sleeps)
            && now > job.progress.after(most)
        {
            return Err(Breach::new("max_wait bounds a wait", format!("{id} ends after {}", now.since(job.progress))));
        }
        if job.running == 0 {
            let longest = &mut self.longest[job.class.index()];
            *longest = (*longest).max(now.since(job.progress));
        }
        self.in_flight -= 1;
        self.leave(id);
        Ok(())
    }
}

impl Job {
    /// Whether it may still be started after its wait.
    fn still_wanted(&self, id: JobId, hopeless: bool, now: Time) -> Result<(), Breach> {
        let late = |due: Option<Span>, from: Time| due.is_some_and(|due| now > from.after(due));
        if late(self.submission.max_wait, self.progress) {
            return Err(Breach::new(
                "max_wait bounds a wait",
                format!("{id} starts after {}", now.since(self.progress)),
            ));
        }
        if self.submission.drop_hopeless.unwrap_or(hopeless) && late(self.submission.deadline, self.arrived) {
            return Err(Breach::new("a hopeless job starts nothing", format!("{id} starts past its deadline")));
        }
        Ok(())
    }
}

fn unknown(job: JobId) -> Breach {
    Breach::new(ONCE, format!("{job} was never submitted"))
}
