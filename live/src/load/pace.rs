//! The loop that sends every call at its time and takes in what became of the others.

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};
use windtunnel_config::{Scenario, Workload};
use windtunnel_core::{
    Attempt, Class, DeviceId, Effect, Finish, Grant, GrantedStep, Input, InstanceId, JobId, JobKind, LabelId, Measured,
    ModelId, Right, Span, Submission, Time, Wanted,
};
use windtunnel_reports::journal::{End, EndCause, Header, Record};

use super::{
    Call, Gauge, Lag, Length, LoadError, Plan, Recording, Rest, Settings,
    connections::Connections,
    exchange::{Line, Seen, Word, ask},
    question::Question,
    recording::{HOLD, Rank},
    tally::Tally,
    verdict,
};
use crate::{Clock, descriptors};

/// A wish to stop is heard, and records are written, at least this often.
const TICK: Duration = Duration::from_millis(50);

/// After so long an endpoint should have noticed that clients have gone, where another run may follow.
const NOTICED: Duration = Duration::from_secs(1);

/// Nobody knows on which instance a client's request runs.
const SOMEWHERE: InstanceId = InstanceId(u32::MAX);

/// Puts the load of `plan` on an endpoint, tells `recording` what a client sees of it, and returns how late it was itself.
/// `stop` is asked now and then whether to stop; what was seen by then is kept.
///
/// The workloads of `scenario` say what calls look like and `header` what the run is called; when it began is filled in.
///
/// # Errors
/// If nobody answers at the address, a workload cannot be sent, or the journal cannot be written.
pub fn run(
    settings: &Settings,
    scenario: &Scenario,
    header: Header,
    length: Length,
    plan: &mut dyn Plan,
    recording: &mut Recording,
    watch: Watch<'_>,
) -> Result<Lag, LoadError> {
    let questions = Question::all(scenario, settings)?;
    // A request in flight has a connection, and many systems allow 1,024 open files unless a program asks for more. What
    // cannot be had is seen when a connection cannot be opened.
    descriptors::raise();
    let runtime = threads()?;
    let connections = Connections::new(settings.address.clone());
    let unreachable = |cause| LoadError::Unreachable { address: settings.address.connect().to_owned(), cause };
    let link = runtime.block_on(connections.open()).map_err(unreachable)?;
    connections.keep(link);
    let line = Arc::new(Line { clock: Clock::start(), connections, questions, timeout: settings.timeout });
    let (tell, words) = mpsc::channel();
    let mut pace = Pace {
        line,
        runtime: &runtime,
        scenario,
        length,
        plan,
        recording,
        watch,
        tell,
        words,
        under_way: BTreeMap::new(),
        sent: 0,
        tally: Tally::default(),
        gate: Gate::Open,
        shown: 0,
    };
    let done = pace.go(header, settings.cool_down);
    let (lag, left) = (pace.tally.lag, pace.under_way.len());
    // Whatever is still under way is broken off: its connection closes.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if left > 0 && !settings.cool_down.is_zero() {
        thread::sleep(NOTICED);
    }
    done.map(|()| lag)
}

/// Who watches a run.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Whether it is to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Where it shows how far it has come.
    pub gauge: &'a Gauge,
}

fn threads() -> Result<Runtime, LoadError> {
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    let runtime =
        Builder::new_multi_thread().worker_threads(cores.clamp(2, 8)).enable_all().thread_name("load").build();
    runtime.map_err(LoadError::Threads)
}

struct Pace<'a> {
    line: Arc<Line>,
    runtime: &'a Runtime,
    scenario: &'a Scenario,
    length: Length,
    plan: &'a mut dyn Plan,
    recording: &'a mut Recording,
    watch: Watch<'a>,
    tell: Sender<Word>,
    words: Receiver<Word>,
    under_way: BTreeMap<u64, Open>,
    sent: u64,
    tally: Tally,
    gate: Gate,
    /// Millionths of the run that were shown.
    shown: u64,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    call: Call,
    /// What its submission says.
    submission: Submission,
    /// When it was started, where the answer has told.
    started: Option<Time>,
    model: Option<ModelId>,
}

/// Whether calls are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    Draining,
}

impl Pace<'_> {
    fn go(&mut self, header: Header, cool_down: Duration) -> Result<(), LoadError> {
        let wall_clock = Some(self.line.clock.wall_clock());
        let header = Header { wall_clock, ..header };
        self.recording.hold(Time::ZERO, Rank::Head, Record::Header(Box::new(header)));
        let (cause, at) = self.until_over()?;
        self.end(cause, at)?;
        if cause != EndCause::Interrupted {
            self.cool_down(cool_down);
        }
        Ok(())
    }

    /// Sends and listens until the run is over; why it is, and since when.
    fn until_over(&mut self) -> Result<(EndCause, Time), LoadError> {
        loop {
            while let Ok(word) = self.words.try_recv() {
                self.hear(word);
            }
            let now = self.line.clock.now();
            if (self.watch.stop)() {
                return Ok((EndCause::Interrupted, now));
            }
            if let Some(over) = self.send_due(now) {
                return Ok(over);
            }
            self.show(now);
            self.recording.write_before(self.told_before(now))?;
            match self.words.recv_timeout(self.sleep(self.line.clock.now())) {
                Ok(word) => self.hear(word),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Nothing will be told any more of what happened before this: what is due is sent as of when it was due.
    fn told_before(&self, now: Time) -> Time {
        now.before(HOLD).min(self.due().unwrap_or(now))
    }

    /// When the next call is due, while calls are sent.
    fn due(&self) -> Option<Time> {
        match self.gate {
            Gate::Open => self.plan.next(),
            Gate::Draining => None,
        }
    }

    fn horizon(&self) -> Time {
        self.length.horizon.map_or(Time::MAX, |horizon| Time::ZERO.after(horizon))
    }

    /// Sends what is due; what the end is if the run is over.
    fn send_due(&mut self, now: Time) -> Option<(EndCause, Time)> {
        let horizon = self.horizon();
        while self.gate == Gate::Open && self.plan.next().is_some_and(|due| due <= now.min(horizon)) {
            let call = self.plan.take()?;
            self.send(call);
            if self.length.jobs.is_some_and(|jobs| self.sent >= jobs) {
                match self.length.rest {
                    Rest::Unfinished => return Some((EndCause::Jobs, call.at)),
                    Rest::Awaited => self.gate = Gate::Draining,
                }
            }
        }
        if self.gate == Gate::Open && now > horizon {
            match self.length.rest {
                Rest::Unfinished => return Some((EndCause::Horizon, horizon)),
                Rest::Awaited => self.gate = Gate::Draining,
            }
        }
        match (self.gate, self.under_way.is_empty()) {
            (Gate::Draining, true) => Some((EndCause::Drained, now)),
            (Gate::Open, true) if self.plan.next().is_none() => Some((EndCause::Exhausted, now)),
            (Gate::Draining | Gate::Open, _) => None,
        }
    }

    /// For how long nothing has to be done.
    fn sleep(&self, now: Time) -> Duration {
        Duration::from_nanos(self.due().unwrap_or(Time::MAX).since(now).as_nanos()).min(TICK)
    }

    fn send(&mut self, call: Call) {
        let number = self.sent;
        self.sent += 1;
        let Some(workload) = self.scenario.workloads.get(call.workload) else { return };
        let submission = submission(workload, &call, self.scenario.configuration.policy.default_class);
        let at = self.recording.moment(call.at);
        let input = Input::Submitted { job: JobId(number), submission };
        self.recording.hold(at, Rank::Sent, Record::Input { t: at, input });
        self.under_way.insert(number, Open { call, submission, started: None, model: None });
        let (line, tell) = (Arc::clone(&self.line), self.tell.clone());
        // Once the run is over nobody listens.
        self.runtime.spawn(ask(line, call, number, move |word| drop(tell.send(word))));
        self.watch.gauge.count_sent();
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Began { number, at, queued, model } => {
                self.tally.began(queued.is_some());
                let model = model.and_then(|name| self.model(&name));
                self.began(number, at, queued, model);
            }
            Word::Ended(seen) => self.ended(&seen),
        }
    }

    fn model(&self, name: &str) -> Option<ModelId> {
        let models = &self.scenario.configuration.models;
        let place =
            models.iter().position(|model| model.name == name || model.aliases.iter().any(|alias| alias == name))?;
        Some(ModelId(place as u32))
    }

    /// The answer told how long the request had waited: so it was started then, and that is known from now on.
    fn began(&mut self, number: u64, at: Time, queued: Option<Span>, model: Option<ModelId>) {
        let at = self.recording.moment(at);
        let Some(open) = self.under_way.get_mut(&number) else { return };
        let asked = if let Wanted::Model(model) = open.submission.wanted { Some(model) } else { None };
        open.model = model.or(asked);
        let (Some(queued), Some(model)) = (queued, open.model) else { return };
        open.started = Some(open.call.at.after(queued).min(at));
        let weight = open.submission.inputs;
        let grant = Grant {
            attempt: Attempt(number),
            instance: SOMEWHERE,
            model,
            device: DeviceId(u32::MAX),
            class: open.submission.class.unwrap_or(Class::Interactive),
            right: Right::Order,
            weight,
            steps: vec![GrantedStep { job: JobId(number), step: 0, of: 1, weight }],
        };
        self.recording.hold(at, Rank::Happened, Record::Effect { t: at, effect: Effect::Grant(grant) });
    }

    fn ended(&mut self, seen: &Seen) {
        let at = self.recording.moment(seen.ended);
        let Some(open) = self.under_way.remove(&seen.number) else { return };
        let Open { call, submission, started, model } = open;
        self.tally.lag.record(call.at, seen.sent);
        self.tally.ended(seen, submission.max_tokens);
        let outcome = verdict::outcome(seen);
        let job = JobId(seen.number);
        let cancelled = (outcome == windtunnel_core::Outcome::Cancelled).then_some(Input::Cancelled { job });
        let settled = started.map(|_| match verdict::failure(outcome) {
            None => Input::GrantFinished {
                attempt: Attempt(seen.number),
                instance: SOMEWHERE,
                measured: Measured { first_token: seen.first_token, output_tokens: seen.tokens.unwrap_or(0) },
            },
            Some(cause) => Input::GrantFailed {
                attempt: Attempt(seen.number),
                instance: SOMEWHERE,
                cause,
                sent: verdict::sent(seen),
            },
        });
        for input in cancelled.into_iter().chain(settled) {
            self.recording.hold(at, Rank::Happened, Record::Input { t: at, input });
        }
        let finish = Finish {
            job,
            outcome,
            label: submission.label,
            class: submission.class.unwrap_or(Class::Interactive),
            model,
            arrived: call.at,
            started,
            first_token: seen.first_token,
            deadline: submission.deadline.map(|deadline| call.at.after(deadline)),
        };
        self.recording.hold(at, Rank::Happened, Record::Effect { t: at, effect: Effect::Finish(finish) });
        let served = started.or((outcome == windtunnel_core::Outcome::Completed).then_some(call.at));
        self.plan.ended(&call, served, at);
        self.watch.gauge.count_ended();
    }

    fn end(&mut self, cause: EndCause, at: Time) -> Result<(), LoadError> {
        while let Ok(word) = self.words.try_recv() {
            self.hear(word);
        }
        let at = self.recording.moment(at);
        self.recording.forget_after(at);
        let remarks = self.tally.remarks();
        let end = End { t: at, cause, invariants_checked: 0, violations: Vec::new(), remarks };
        self.recording.hold(at, Rank::Last, Record::End(end));
        self.recording.close()?;
        self.show_millionths(1_000_000);
        Ok(())
    }

    /// Waits until nothing is under way, or for so long.
    fn cool_down(&mut self, most: Duration) {
        let until = self.line.clock.now().after(Span::from_nanos(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)));
        while !self.under_way.is_empty() && self.line.clock.now() < until && !(self.watch.stop)() {
            if let Ok(Word::Ended(seen)) = self.words.recv_timeout(TICK) {
                self.under_way.remove(&seen.number);
            }
        }
    }

    fn show(&mut self, now: Time) {
        let of = |part: u64, whole: Option<u64>| whole.map_or(0.0, |whole| part as f64 / whole.max(1) as f64);
        let share = of(now.as_nanos(), self.length.horizon.map(Span::as_nanos)).max(of(self.sent, self.length.jobs));
        self.show_millionths((share.min(1.0) * 1e6) as u64);
    }

    fn show_millionths(&mut self, millionths: u64) {
        self.watch.gauge.advance(self.shown, millionths);
        self.shown = self.shown.max(millionths);
    }
}

/// What a scheduler would have been told.
fn submission(workload: &Workload, call: &Call, default_class: Class) -> Submission {
    let generates = matches!(workload.kind, JobKind::Chat | JobKind::Completion);
    Submission {
        label: LabelId(call.workload as u32),
        wanted: workload.wanted,
        class: Some(workload.class.unwrap_or(default_class)),
        kind: workload.kind,
        inputs: call.inputs,
        prompt_tokens: call.prompt_tokens,
        max_tokens: generates.then_some(call.output_tokens.max(1)),
        deadline: workload.deadline,
        max_wait: workload.max_wait,
        drop_hopeless: workload.drop_hopeless,
        quality: workload.quality,
        needs: workload.needs,
        body: windtunnel_core::Bytes::ZERO,
        client: call.client,
        affinity: None,
    }
}
