//! The auditor: it hears what the scheduler hears, sees what the scheduler wants, and keeps books of its own.
//!
//! It shares no code with the scheduler and does not look into it, so what it finds cannot be excused by the state that
//! led to it. It is stricter where a rule can be told from outside alone and silent where it cannot: queues are compared
//! where jobs find instances through one shared queue, memory by the least that each process can be booked with.

mod attempts;
mod grants;
mod guard;
mod instances;
mod jobs;
mod residency;
mod twin;

use std::{collections::BTreeMap, io};

use windtunnel_core::{
    Attempt, Checkpoint, Class, Configuration, Effect, Effects, GrantedStep, Input, ModelId, Note, Placement,
    PressureLevel, Span, Time, Wanted,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, EndCause, Header},
};

use attempts::Attempts;
use guard::GuardBook;
use instances::Instances;
use jobs::Jobs;
use residency::ModelBook;
use twin::Twin;

use super::{pulse::Pulse, tally::Tally};

/// A rule that does not hold, and how that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule; the same for every breach of it.
    pub rule: String,
    /// What happened.
    pub message: String,
}

impl Breach {
    fn new(rule: &str, message: String) -> Breach {
        Breach { rule: rule.to_owned(), message }
    }

    /// The scheduler gave up.
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> Breach {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Breach::new("nothing panics", said.unwrap_or("no message").to_owned())
    }

    /// What [`windtunnel_core::Scheduler::check`] found: the rule is its sentence without the numbers.
    fn of_check(text: &str) -> Breach {
        let sentence = text.split_once(": ").map_or(text, |(_, sentence)| sentence);
        let words = sentence.split(|one: char| one.is_ascii_digit()).filter(|part| !part.is_empty());
        let rule = words.map(str::trim).collect::<Vec<_>>().join(" ");
        Breach { rule: format!("check: {rule}"), message: text.to_owned() }
    }
}

/// When everything has to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    /// From then on nothing arrives and nothing goes wrong.
    pub from: Time,
    /// So long may it take in any case,
    pub fixed: Span,
    /// and so long for every job that is left.
    pub per_job: Span,
    /// Whether the host ever sleeps, so that timers may be late.
    pub sleeps: bool,
}

/// So many steps at one moment mean that time stands still.
const STANDSTILL: u64 = 50_000;

/// So many steps make up no world that gets on: they are some 600 as a rule, and loads or grants that bring nothing
/// repeat themselves long before a job is too late.
const MOST: u64 = 300_000;

/// The auditor of one run.
#[derive(Debug)]
pub struct Auditor<'a> {
    /// Who is told of every step.
    pulse: Option<&'a Pulse>,
    book: Option<Book>,
    twin: Twin,
    calm: Calm,
    due: Option<Time>,
    standing: u64,
    /// Nothing more will come of this world.
    pub enough: bool,
    /// What was found first, and when.
    pub found: Option<(Time, Breach)>,
    pub tally: Tally,
}

/// What the auditor knows of the run so far.
#[derive(Debug)]
struct Book {
    now: Time,
    configuration: Configuration,
    jobs: Jobs,
    attempts: Attempts,
    /// The grants under way.
    running: BTreeMap<Attempt, (Class, Vec<GrantedStep>)>,
    instances: Instances,
    devices: Vec<DeviceBook>,
    models: Vec<ModelBook>,
    /// When a step was last done on a device whose memory was scarce.
    eked: Option<Time>,
}

/// What is kept of a device.
#[derive(Clone, Debug, Default)]
struct DeviceBook {
    /// Interactive grants under way.
    interactive: u32,
    /// Interactive mode lasts at least until then.
    window: Time,
    guard: GuardBook,
    stale: bool,
    /// The latest it reported.
    pressure: Option<PressureLevel>,
}

impl<'a> Auditor<'a> {
    /// Of a run in which everything has to end as `calm` says; `pulse` is told of every step.
    pub fn new(calm: Calm, pulse: Option<&'a Pulse>) -> Auditor<'a> {
        Auditor {
            pulse,
            book: None,
            twin: Twin::default(),
            calm,
            due: None,
            standing: 0,
            enough: false,
            found: None,
            tally: Tally::default(),
        }
    }

    /// Keeps the first breach; what it is told as.
    fn broken(&mut self, t: Time, breach: Breach) -> io::Error {
        self.found.get_or_insert((t, breach));
        io::Error::other("a rule does not hold")
    }

    fn audit(&mut self, t: Time, input: &Input, effects: &Effects) -> Result<(), Breach> {
        self.tally.steps += 1;
        if let Input::Started(started) = input {
            self.book = Some(Book::new(started));
        }
        let Some(book) = &mut self.book else { return Ok(()) };
        self.standing = if book.now == t { self.standing + 1 } else { 0 };
        book.now = t;
        if self.standing > STANDSTILL {
            return Err(Breach::new("time goes on", format!("{STANDSTILL} steps at {t}, the last for {input:?}")));
        }
        if self.tally.steps == MOST {
            let left = book.jobs.in_flight();
            return Err(Breach::new("a world gets on", format!("{MOST} steps by {t}, and {left} jobs have not ended")));
        }
        book.hear(input)?;
        for effect in effects {
            self.tally.count(effect);
            book.see(effect, effects, self.calm.sleeps)?;
        }
        self.tally.waited(book.jobs.longest());
        self.twin.step(t, input, effects)?;
        self.end_in_time(t)
    }

    fn end_in_time(&mut self, t: Time) -> Result<(), Breach> {
        let Some(book) = &self.book else { return Ok(()) };
        if t < self.calm.from || book.jobs.in_flight() == 0 {
            return Ok(());
        }
        let Calm { fixed, per_job, .. } = self.calm;
        let due = *self.due.get_or_insert_with(|| t.after(fixed).after(per_job.times(book.jobs.in_flight())));
        // Where a model makes memory scarce by being there, relief lets it do a step at a time.
        let due = book.eked.map_or(due, |eked| due.max(eked.after(per_job)));
        if t > due && book.is_excused() {
            self.tally.scarce += u64::from(!self.enough);
            self.enough = true;
        } else if t > due {
            return Err(book.endless(&format!("at {t}, due by {due}")));
        }
        Ok(())
    }
}

impl Book {
    fn new(started: &windtunnel_core::Started) -> Book {
        let configuration = started.configuration.clone();
        Book {
            now: Time::ZERO,
            jobs: Jobs::new(&configuration.policy),
            attempts: Attempts::default(),
            running: BTreeMap::new(),
            instances: Instances::new(&started.residents),
            devices: vec![DeviceBook::default(); configuration.devices.len()],
            models: vec![ModelBook::default(); configuration.models.len()],
            eked: None,
            configuration,
        }
    }

    fn hear(&mut self, input: &Input) -> Result<(), Breach> {
        match input {
            Input::Submitted { job, submission } => self.jobs.submitted(*job, submission, self.now),
            Input::GrantFinished { attempt, instance, .. } => self.grant_ended(*attempt, *instance, grants::Fate::Done),
            Input::GrantFailed { attempt, instance, .. } => self.grant_ended(*attempt, *instance, grants::Fate::Failed),
            Input::LoadFinished { attempt, instance, footprint } => self.loaded(*attempt, *instance, *footprint),
            Input::LoadFailed { attempt, instance, cause } => self.load_failed(*attempt, *instance, *cause),
            Input::StopFinished { attempt, instance } => self.stopped(*attempt, *instance),
            Input::Exited { instance, .. } => {
                self.instances.exited(*instance);
                Ok(())
            }
            Input::Snapshot(snapshot) => {
                self.instances.read(snapshot);
                Ok(())
            }
            Input::Pressure { device, level } => {
                self.devices[device.index()].pressure = Some(*level);
                Ok(())
            }
            Input::Started(_)
            | Input::Reconfigured(_)
            | Input::Cancelled { .. }
            | Input::SnapshotFailed { .. }
            | Input::OutOfMemory { .. }
            | Input::Operator(_)
            | Input::TimerDue => Ok(()),
        }
    }

    fn see(&mut self, effect: &Effect, effects: &Effects, sleeps: bool) -> Result<(), Breach> {
        match effect {
            Effect::Grant(grant) => self.granted(grant, effects.steps(grant.steps), sleeps),
            Effect::Load { attempt, instance, model, device, reservation } => {
                self.attempts.begin(*attempt, attempts::Kind::Load, *instance)?;
                self.loads(*instance, *model, *device, *reservation)
            }
            Effect::Stop { attempt, instance, cause: _ } => {
                self.attempts.begin(*attempt, attempts::Kind::Stop, *instance)?;
                self.stops(*instance)
            }
            Effect::Abort { attempt, instance, .. } => {
                self.attempts.is_under_way(*attempt)?;
                self.instances.get_mut(*instance)?.broken_off();
                Ok(())
            }
            Effect::Finish(finish) => self.jobs.finished(finish, self.now, sleeps),
            Effect::Note(note) => self.noted(note),
            Effect::Snapshot { .. } | Effect::Learned(_) => Ok(()),
        }
    }

    /// Every fact of a simulated world makes sense: one that is ignored was lost track of.
    fn noted(&mut self, note: &Note) -> Result<(), Breach> {
        if let Note::Ignored { cause } = note {
            return Err(Breach::new("no fact is ignored", format!("{cause:?}")));
        }
        self.resides(note)
    }

    /// Lower classes load nothing on a device while its memory is scarce, and models that nobody uses may keep it so: that is
    /// no fault that ends, so jobs that could go there may wait as long.
    fn is_excused(&self) -> bool {
        self.jobs.left().all(|job| job.class > Class::Interactive && self.meets_scarcity(job.submission.wanted))
    }

    /// Whether a device that could serve what is wanted reports that memory is scarce.
    fn meets_scarcity(&self, wanted: Wanted) -> bool {
        let scarce = |place: &Placement| {
            let pressure = self.devices.get(place.device.index()).and_then(|device| device.pressure);
            pressure.is_some_and(|level| level > PressureLevel::Normal)
        };
        let on = |model: ModelId| self.configuration.model(model).is_some_and(|one| one.placements.iter().any(scarce));
        match wanted {
            Wanted::Model(model) => on(model),
            Wanted::Family(family) => {
                let family = self.configuration.families.get(family.index());
                family.is_some_and(|family| family.variants.iter().any(|variant| on(variant.model)))
            }
        }
    }

    fn endless(&self, when: &str) -> Breach {
        let (left, oldest) = (self.jobs.in_flight(), self.jobs.oldest());
        Breach::new("every job ends (10)", format!("{left} jobs have not ended {when}; the oldest is {oldest}"))
    }
}

impl Recorder for Auditor<'_> {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.pulse.into_iter().for_each(|pulse| pulse.beat(t));
        match self.audit(t, input, effects) {
            Ok(()) if self.enough => Err(io::Error::other("nothing more comes of it")),
            Ok(()) => Ok(()),
            Err(breach) => Err(self.broken(t, breach)),
        }
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        self.twin.restore(state).map_err(|breach| self.broken(t, breach))
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let left = self.book.as_ref().filter(|book| book.jobs.in_flight() > 0);
        let breach = match (end.violations.first(), left) {
            (Some(violation), _) => Some(Breach::of_check(violation)),
            (None, Some(book)) if book.is_excused() => {
                self.tally.scarce += 1;
                None
            }
            (None, Some(book)) if end.cause != EndCause::Interrupted => {
                Some(book.endless("when nothing was left to happen"))
            }
            (None, _) => None,
        };
        if let Some(breach) = breach {
            self.found.get_or_insert((end.t, breach));
        }
        Ok(())
    }
}
