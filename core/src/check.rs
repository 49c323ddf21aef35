//! The invariants that hold after every step, recomputed from scratch.

use alloc::collections::BTreeMap;

use crate::{
    Attempt, Capacity, Class, DeviceId, InstanceId, JobId, Mode, ModelId, Right, Scheduler, Tier, Time,
    instance::Instance,
    job::Job,
    queue::{Line, LineId},
};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// More runs on an instance than it has room for.
    #[error("{instance} runs {running} at once, room is {room}")]
    Overfull {
        /// The instance.
        instance: InstanceId,
        /// Steps or inputs that run.
        running: u64,
        /// Steps or inputs that may.
        room: u64,
    },
    /// A job waits that a rule would start.
    #[error("{job} ({class:?}) waits although {instance} would take it")]
    NotWorkConserving {
        /// The job.
        job: JobId,
        /// Its class.
        class: Class,
        /// An instance that would take it.
        instance: InstanceId,
    },
    /// A count does not agree with what is counted.
    #[error("{what}: {kept} kept, {counted} counted")]
    Miscounted {
        /// What is counted.
        what: &'static str,
        /// The number kept.
        kept: u64,
        /// The number found.
        counted: u64,
    },
    /// A job is in no line and does not run, or stands where it should not.
    #[error("{job} is lost: it neither waits nor runs, or stands in a line that is not its own")]
    Lost {
        /// The job.
        job: JobId,
    },
    /// Two grants have the same attempt.
    #[error("{attempt} is under way twice")]
    Twice {
        /// The attempt.
        attempt: Attempt,
    },
    /// More guard grants run side by side than may.
    #[error("{device} runs {running} guard grants, {limit} may")]
    GuardParallel {
        /// The device.
        device: DeviceId,
        /// Guard grants under way.
        running: u32,
        /// How many may be.
        limit: u32,
    },
    /// An instance was told to stop while it had steps in flight.
    #[error("{instance} was stopped with {running} steps in flight")]
    StoppedBusy {
        /// The instance.
        instance: InstanceId,
        /// Steps in flight.
        running: u64,
    },
    /// A load was begun for which there was no memory.
    #[error("{instance} was loaded on {device} although {short} bytes are missing")]
    Overcommitted {
        /// What is loaded.
        instance: InstanceId,
        /// Where.
        device: DeviceId,
        /// What is missing by the scheduler's own books.
        short: u64,
    },
    /// An instance was evicted that may never be.
    #[error("{instance} ({tier:?}) was evicted for {class:?} work")]
    WrongVictim {
        /// The victim.
        instance: InstanceId,
        /// How dear it is.
        tier: Tier,
        /// For whom.
        class: Class,
    },
    /// One of the victims could have stayed.
    #[error("{instance} was evicted although the others free enough")]
    NeedlessVictim {
        /// The victim.
        instance: InstanceId,
    },
    /// A step of a lower class was started against the rules.
    #[error("{job} ({class:?}) was started on {instance} against higher work")]
    OutOfTurn {
        /// The job.
        job: JobId,
        /// Its class.
        class: Class,
        /// Where.
        instance: InstanceId,
    },
    /// The guard started a grant although its share of the time was used up, or as many were under way as may be.
    #[error(
        "{instance} was given a guard grant while {running} of {limit} were under way and none was due before {due}"
    )]
    GuardTooEarly {
        /// Where.
        instance: InstanceId,
        /// Guard grants under way on its device.
        running: u32,
        /// How many may be.
        limit: u32,
        /// When the next was due.
        due: Time,
    },
    /// The account of the guard's share cannot be right: a grant is under way that it would not have allowed.
    #[error("the guard's account of {device} has its next grant at {next}, but one began at {began}")]
    GuardAccount {
        /// The device.
        device: DeviceId,
        /// When the next grant may begin.
        next: Time,
        /// When the one under way began.
        began: Time,
    },
    /// Bytes are owed to a load of a model that has them.
    #[error("{model} waits for memory of {device}, where it has some already")]
    OwedTwice {
        /// The model.
        model: ModelId,
        /// The device.
        device: DeviceId,
    },
    /// More loads of a device are under way than may be.
    #[error("{device} has {loading} loads under way, {limit} may be")]
    TooManyLoads {
        /// The device.
        device: DeviceId,
        /// Loads under way.
        loading: u32,
        /// How many may be.
        limit: u32,
    },
}

impl Scheduler {
    /// Looks whether every invariant holds. Takes time proportional to all that waits and runs.
    pub fn check(&self) -> Result<(), Violation> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        self.check_who_lives()?;
        self.check_jobs()?;
        self.check_instances()?;
        self.check_devices()?;
        self.check_counts()?;
        self.check_books()?;
        self.check_pending()?;
        self.check_work_conservation()
    }

    /// The instances that live are those on the devices, each on its own and on no other.
    fn check_who_lives(&self) -> Result<(), Violation> {
        self.instances.check()?;
        let mut listed = 0;
        for (number, device) in self.devices.iter().enumerate() {
            let here = |id: &&InstanceId| self.instances.get(**id).is_some_and(|one| one.device.index() == number);
            let found = device.instances.iter().filter(here).count();
            agree("instances of a device", device.instances.len() as u64, found as u64)?;
            let ordered = device.instances.windows(2).filter(|pair| pair[0] < pair[1]).count();
            agree("instances of a device in order", ordered as u64, found.saturating_sub(1) as u64)?;
            listed += found;
        }
        agree("instances on devices", self.instances.len() as u64, listed as u64)
    }

    /// How many steps of each job are under way.
    fn running_steps(&self) -> BTreeMap<JobId, u32> {
        let mut running = BTreeMap::new();
        let grants = self.instances.iter().flat_map(|(_, instance)| instance.slot.running());
        for step in grants.flat_map(|grant| &grant.steps).filter(|step| self.jobs.get(step.job.0).is_some()) {
            *running.entry(step.job).or_default() += 1;
        }
        running
    }

    /// Every job waits in exactly its line, or runs, or both; counts and weights agree.
    fn check_jobs(&self) -> Result<(), Violation> {
        if self.are_jobs_sound() { Ok(()) } else { self.find_unsound_job() }
    }

    /// Whether that is so. A long queue lies in no cache, so each of its jobs is fetched once, in the order of its line; what
    /// is wrong where something is, is found out afterwards.
    pub(crate) fn are_jobs_sound(&self) -> bool {
        let running = self.running_steps();
        let (mut found, mut armed) = (0, 0);
        let mut is_armed = |id: JobId, job: &Job| {
            armed += usize::from(job.expires().is_some());
            job.expires().is_none_or(|(due, _)| self.expiry.holds(due, id))
        };
        for class in Class::ALL {
            let (order, mut waiting) = (self.policy().classes[class.index()].order, 0);
            for (place, line) in self.lines.iter().enumerate() {
                let (place, queue) = (Some(LineId(place as u32)), line.class(class));
                let (mut count, mut weight, mut last) = (0, 0, None);
                for id in queue.iter() {
                    let Some(job) = self.jobs.get(id.0) else { return false };
                    let rank = Some(job.rank(id, order));
                    let is_here = job.line() == place && job.class == class && rank > last;
                    if !is_here || !(job.running == 0 || running.contains_key(&id)) || !is_armed(id, job) {
                        return false;
                    }
                    (count, weight, last) = (count + 1, weight + job.waiting_weight(), rank);
                }
                if (count, weight) != (queue.len(), queue.weight()) {
                    return false;
                }
                waiting += count;
            }
            if self.queued[class.index()].jobs != waiting as u64 {
                return false;
            }
            found += waiting;
        }
        for (&id, &steps) in &running {
            let Some(job) = self.jobs.get(id.0).filter(|job| job.running == steps) else { return false };
            let only_runs = job.line().is_none();
            if only_runs && !is_armed(id, job) {
                return false;
            }
            found += usize::from(only_runs);
        }
        found == self.jobs.len() && armed == self.expiry.len()
    }

    /// The first thing that is wrong with the jobs, in the order of their ids.
    pub(crate) fn find_unsound_job(&self) -> Result<(), Violation> {
        let running = self.running_steps();
        let mut waiting = 0;
        for (id, job) in self.jobs.iter() {
            let id = JobId(id);
            agree("running steps of a job", job.running, running.get(&id).copied().unwrap_or(0))?;
            waiting += u64::from(job.line().is_some());
            let expiry = job.expires().is_none_or(|(due, _)| self.expiry.holds(due, id));
            if (job.line().is_none() && job.running == 0) || !expiry {
                return Err(Violation::Lost { job: id });
            }
        }
        let mut standing = 0;
        for class in Class::ALL {
            let here = self.lines.iter().map(|line| line.class(class).len() as u64).sum();
            agree("waiting jobs of a class", self.queued[class.index()].jobs, here)?;
            standing += here;
        }
        agree("jobs in lines", standing, waiting)?;
        let armed = self.jobs.iter().filter(|(_, job)| job.expires().is_some()).count();
        agree("expiries", self.expiry.len() as u64, armed as u64)?;
        self.lines.iter().enumerate().try_for_each(|(number, line)| self.check_line(LineId(number as u32), line))
    }

    fn check_line(&self, id: LineId, line: &Line) -> Result<(), Violation> {
        for class in Class::ALL {
            let mut weight = 0;
            let mut last = None;
            for job in line.class(class).iter() {
                let data =
                    self.jobs.get(job.0).filter(|data| data.line() == Some(id)).ok_or(Violation::Lost { job })?;
                let rank = Some(data.rank(job, self.policy().classes[class.index()].order));
                if rank <= last {
                    return Err(Violation::Lost { job });
                }
                last = rank;
                weight += data.waiting_weight();
            }
            agree("inputs waiting in a line", line.class(class).weight(), weight)?;
        }
        Ok(())
    }

    fn check_instances(&self) -> Result<(), Violation> {
        let mut attempts = alloc::collections::BTreeSet::new();
        for (id, instance) in self.instances.iter() {
            let running = instance.slot.running();
            if let Some(twice) = running.iter().find(|grant| !attempts.insert(grant.attempt)) {
                return Err(Violation::Twice { attempt: twice.attempt });
            }
            let room = instance.at_once();
            let heaviest = match instance.capacity {
                Capacity::Slots { .. } => running.len() as u64,
                Capacity::Batch { .. } if running.len() > 1 => u64::MAX,
                Capacity::Batch { .. } => running.first().map_or(0, |grant| u64::from(grant.weight)),
            };
            if heaviest > room && instance.slot.is_ready() {
                return Err(Violation::Overfull { instance: id, running: heaviest, room });
            }
        }
        Ok(())
    }

    fn check_devices(&self) -> Result<(), Violation> {
        for (number, device) in self.devices.iter().enumerate() {
            let grants = || device.instances.iter().flat_map(|id| self.instances[*id].slot.running());
            let interactive = grants().filter(|grant| grant.class == Class::Interactive).count();
            agree("interactive grants of a device", device.interactive, interactive as u32)?;
            let guards = grants().filter(|grant| grant.right == Right::Guard).count();
            agree("guard grants of a device", device.guards, guards as u32)?;
            let limit = device.guard_limit;
            let id = DeviceId(number as u32);
            if device.guards > limit {
                return Err(Violation::GuardParallel { device: id, running: guards as u32, limit });
            }
            // Where they follow one another, nothing has been charged since the one under way began.
            let alone = grants().find(|grant| grant.right == Right::Guard && limit == 1);
            if let Some(began) = alone.map(|grant| grant.start).filter(|&began| began < device.guard_next) {
                return Err(Violation::GuardAccount { device: id, next: device.guard_next, began });
            }
        }
        Ok(())
    }

    /// What is counted so that nobody has to look at each instance or device.
    fn check_counts(&self) -> Result<(), Violation> {
        let unengaged = self.devices.iter().filter(|device| !device.is_engaged()).count();
        agree("devices that are not engaged", self.unengaged, unengaged as u32)?;
        for (number, model) in self.models.iter().enumerate() {
            let instances = self.instances.iter().filter(|(_, instance)| instance.model.index() == number);
            let open = instances.filter(|(_, instance)| instance.free() > 0).count();
            agree("open instances of a model", model.open, open as u32)?;
        }
        Ok(())
    }

    /// No job waits that a free instance would take: interactive always, lower classes in idle mode.
    fn check_work_conservation(&self) -> Result<(), Violation> {
        // What is due at this very moment waits for its timer.
        if self.wake == Some(self.now) {
            return Ok(());
        }
        for device in &self.devices {
            let idle = device.mode == Mode::Idle;
            for &id in &device.instances {
                let instance = &self.instances[id];
                let classes = Class::ALL.into_iter().filter(|&class| idle || class == Class::Interactive);
                for class in classes.filter(|_| instance.held.is_none()) {
                    self.check_idle(id, instance, class)?;
                }
            }
        }
        Ok(())
    }

    fn check_idle(&self, id: InstanceId, instance: &Instance, class: Class) -> Result<(), Violation> {
        match self.head(instance, class) {
            Some((line, rank))
                if self.has_room(instance, class)
                    && !self.waits_for_held(line, class)
                    && !self.may_be_held_for_load(instance, class) =>
            {
                Err(Violation::NotWorkConserving { job: rank.job, class, instance: id })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether lower work may be held back by a load that interactive work waits for: what it is predicted to take changes
    /// with every finished step.
    fn may_be_held_for_load(&self, instance: &Instance, class: Class) -> bool {
        class != Class::Interactive && self.devices[instance.device.index()].interactive_load.is_some()
    }

    /// Whether a head is held for a batch on another instance of its line.
    fn waits_for_held(&self, line: LineId, class: Class) -> bool {
        let line = &self.lines[line.index()];
        let servers = self.servers(line);
        let holds = |id: &InstanceId| {
            let instance = &self.instances[*id];
            instance.held.is_some() || matches!(instance.capacity, Capacity::Batch { wait, .. } if !wait.is_zero())
        };
        line.class(class).len() > 0 && servers.as_slice().iter().any(holds)
    }
}

pub(crate) fn agree<T: Into<u64> + Copy + PartialEq>(what: &'static str, kept: T, counted: T) -> Result<(), Violation> {
    if kept == counted {
        Ok(())
    } else {
        Err(Violation::Miscounted { what, kept: kept.into(), counted: counted.into() })
    }
}
