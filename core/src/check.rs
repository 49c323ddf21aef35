//! The invariants that hold after every step, recomputed from scratch.

use alloc::collections::BTreeMap;

use crate::{
    Attempt, Capacity, Class, DeviceId, InstanceId, JobId, Mode, Right, Scheduler,
    instance::Instance,
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
}

impl Scheduler {
    /// Looks whether every invariant holds. Takes time proportional to all that waits and runs.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_jobs()?;
        self.check_instances()?;
        self.check_devices()?;
        self.check_counts()?;
        self.check_work_conservation()
    }

    /// Every job waits in exactly its line, or runs, or both; counts and weights agree.
    fn check_jobs(&self) -> Result<(), Violation> {
        let mut running: BTreeMap<JobId, u32> = BTreeMap::new();
        let grants = self.instances.iter().flat_map(|instance| instance.slot.running());
        for step in grants.flat_map(|grant| &grant.steps).filter(|step| self.jobs.get(step.job.0).is_some()) {
            *running.entry(step.job).or_default() += 1;
        }
        let mut waiting = 0;
        for (id, job) in self.jobs.iter() {
            let id = JobId(id);
            agree("running steps of a job", job.running, running.get(&id).copied().unwrap_or(0))?;
            waiting += u64::from(job.line.is_some());
            let expiry = job.expires.is_none_or(|(due, _)| self.expiry.holds(due, id));
            if (job.line.is_none() && job.running == 0) || !expiry {
                return Err(Violation::Lost { job: id });
            }
        }
        for class in Class::ALL {
            let standing: usize = self.lines.iter().map(|line| line.class(class).len()).sum();
            agree("waiting jobs of a class", self.queued[class.index()].jobs, standing as u64)?;
            waiting -= standing as u64;
        }
        agree("jobs in lines", waiting, 0_u64)?;
        let armed = self.jobs.iter().filter(|(_, job)| job.expires.is_some()).count();
        agree("expiries", self.expiry.len() as u64, armed as u64)?;
        self.lines.iter().enumerate().try_for_each(|(number, line)| self.check_line(LineId(number as u32), line))
    }

    fn check_line(&self, id: LineId, line: &Line) -> Result<(), Violation> {
        for class in Class::ALL {
            let mut weight = 0;
            let mut last = None;
            for job in line.class(class).iter() {
                let data = self.jobs.get(job.0).filter(|data| data.line == Some(id)).ok_or(Violation::Lost { job })?;
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
        for (number, instance) in self.instances.iter().enumerate() {
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
                return Err(Violation::Overfull { instance: InstanceId(number as u32), running: heaviest, room });
            }
        }
        Ok(())
    }

    fn check_devices(&self) -> Result<(), Violation> {
        for (number, device) in self.devices.iter().enumerate() {
            let grants = || device.instances.iter().flat_map(|id| self.instances[id.index()].slot.running());
            let interactive = grants().filter(|grant| grant.class == Class::Interactive).count();
            agree("interactive grants of a device", device.interactive, interactive as u32)?;
            let guards = grants().filter(|grant| grant.right == Right::Guard).count();
            agree("guard grants of a device", device.guards, guards as u32)?;
            let limit = device.guard_limit;
            if device.guards > limit {
                let device = DeviceId(number as u32);
                return Err(Violation::GuardParallel { device, running: guards as u32, limit });
            }
        }
        Ok(())
    }

    /// What is counted so that nobody has to look at each instance or device.
    fn check_counts(&self) -> Result<(), Violation> {
        let unengaged = self.devices.iter().filter(|device| !device.is_engaged()).count();
        agree("devices that are not engaged", self.unengaged, unengaged as u32)?;
        for (number, model) in self.models.iter().enumerate() {
            let instances = self.instances.iter().filter(|instance| instance.model.index() == number);
            let open = instances.filter(|instance| instance.free() > 0).count();
            agree("open instances of a model", model.open, open as u32)?;
        }
        Ok(())
    }

    /// No job waits that a free instance would take: interactive always, lower classes in idle mode.
    fn check_work_conservation(&self) -> Result<(), Violation> {
        for device in &self.devices {
            let idle = device.mode == Mode::Idle;
            for &id in &device.instances {
                let instance = &self.instances[id.index()];
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
                    && !self.held_for_load(instance, class, rank.job) =>
            {
                Err(Violation::NotWorkConserving { job: rank.job, class, instance: id })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a head is held for a batch on another instance of its line.
    fn waits_for_held(&self, line: LineId, class: Class) -> bool {
        let line = &self.lines[line.index()];
        let servers = self.servers(line);
        let holds = |id: &InstanceId| {
            let instance = &self.instances[id.index()];
            instance.held.is_some() || matches!(instance.capacity, Capacity::Batch { wait, .. } if !wait.is_zero())
        };
        line.class(class).len() > 0 && servers.as_slice().iter().any(holds)
    }
}

fn agree<T: Into<u64> + Copy + PartialEq>(what: &'static str, kept: T, counted: T) -> Result<(), Violation> {
    if kept == counted {
        Ok(())
    } else {
        Err(Violation::Miscounted { what, kept: kept.into(), counted: counted.into() })
    }
}
