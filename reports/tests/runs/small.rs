//! A driver small enough to be read at a glance: cards with batch service times, and arrivals that are listed.

use std::{cmp::Reverse, collections::BinaryHeap};

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use windtunnel_core::*;
use windtunnel_reports::{
    Recorder,
    journal::{DeviceFacts, End, EndCause, Header, ModelFacts, SCHEMA, Source, WarmupRule, WorkloadFacts},
};

/// A card for model `m`, batches of `max`, taking alpha + beta * B.
#[derive(Clone, Debug)]
pub struct Small {
    pub cards: u32,
    pub max: u32,
    pub alpha: Span,
    pub beta: Span,
    pub admission: Admission,
    pub warmup: WarmupRule,
    pub horizon: Option<Span>,
    pub jobs: Option<u64>,
    pub seed: u64,
    pub replication: u32,
    /// When jobs arrive, and in which class; cancelled after the last, where there is one.
    pub arrivals: Vec<(u64, Class, Option<Span>)>,
    pub deadline: Option<Span>,
    /// Whether background jobs come from a workload of their own, `v`.
    pub background_label: bool,
    /// After which background jobs are starved; zero: never.
    pub starvation: Span,
}

impl Small {
    pub fn new(max: u32) -> Small {
        Small {
            cards: 1,
            max,
            alpha: Span::from_millis(1),
            beta: Span::from_micros(500),
            admission: Admission::None,
            warmup: WarmupRule::Auto,
            horizon: None,
            jobs: None,
            seed: 1,
            replication: 0,
            arrivals: Vec::new(),
            deadline: None,
            background_label: false,
            starvation: Policy::default().background_max_starvation,
        }
    }

    /// Interactive jobs with exponential gaps for the whole horizon.
    pub fn poisson(mut self, rate: f64, horizon: Span, replication: u32) -> Small {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed * 1000 + u64::from(replication));
        let mut t = 0.0;
        self.arrivals = std::iter::from_fn(|| {
            let gap: f64 = Exp1.sample(&mut rng);
            t += gap / rate;
            Some(((t * 1e9) as u64, Class::Interactive, None))
        })
        .take_while(|(t, _, _)| *t <= horizon.as_nanos())
        .collect();
        (self.horizon, self.replication) = (Some(horizon), replication);
        self
    }

    pub fn header(&self) -> Header {
        let capacity = f64::from(self.max) / (seconds(self.alpha) + seconds(self.beta) * f64::from(self.max));
        let device = |card| DeviceFacts { name: format!("gpu{card}"), used: true, side_by_side: 1.0 };
        Header {
            schema: SCHEMA,
            program: "0.0.0".to_owned(),
            source: Source::Sim,
            title: "a small card".to_owned(),
            seed: self.seed,
            replication: self.replication,
            horizon: self.horizon,
            jobs: self.jobs,
            warmup: self.warmup,
            wall_clock: None,
            devices: (0..self.cards).map(device).collect(),
            models: vec![ModelFacts {
                name: "m".to_owned(),
                capacity: vec![Some(capacity); self.cards as usize],
                at_once: self.max,
            }],
            workloads: self
                .labels()
                .map(|(name, class)| WorkloadFacts {
                    name: name.to_owned(),
                    arrivals: "as listed".to_owned(),
                    closed_loop: false,
                    class,
                    capacity: Some(capacity * f64::from(self.cards)),
                })
                .collect(),
            remarks: std::collections::BTreeMap::new(),
        }
    }

    fn labels(&self) -> impl Iterator<Item = (&'static str, Class)> {
        let background = self.background_label.then_some(("v", Class::Background));
        std::iter::once(("w", Class::Interactive)).chain(background)
    }

    /// Runs it into `recorder`.
    pub fn run(&self, recorder: &mut impl Recorder) {
        recorder.begin(&self.header()).unwrap();
        let mut run = Run {
            small: self,
            scheduler: Scheduler::new(),
            effects: Effects::new(),
            ends: BinaryHeap::new(),
            cancels: BinaryHeap::new(),
            under_way: 0,
            now: Time::ZERO,
        };
        run.step(Input::Started(Box::new(self.started())), recorder);
        let cause = run.play(recorder);
        let end = End {
            t: run.now,
            cause,
            invariants_checked: 0,
            violations: Vec::new(),
            remarks: std::collections::BTreeMap::new(),
        };
        recorder.end(&end).unwrap();
    }

    fn started(&self) -> Started {
        let capacity = Capacity::Batch { max: self.max, wait: Span::ZERO };
        let predicted = ServiceTimes::Batch { alpha: self.alpha, beta: self.beta };
        let ids = 0..self.cards;
        let mut policy = Policy { background_max_starvation: self.starvation, ..Policy::default() };
        policy.classes.iter_mut().for_each(|class| class.admission = self.admission);
        let configuration = Configuration {
            policy,
            devices: ids.clone().map(|card| Device::new(format!("gpu{card}"), DeviceKind::Discrete, None)).collect(),
            models: vec![Model {
                name: "m".to_owned(),
                aliases: Vec::new(),
                capabilities: Vec::new(),
                capacity,
                replicas: Replicas::All,
                placements: ids.clone().map(|card| Placement { device: DeviceId(card), predicted }).collect(),
                prediction: Prediction::Configured,
                pinned: false,
                preload: false,
                idle_ttl: None,
            }],
            families: Vec::new(),
            labels: self.labels().map(|(name, _)| name.to_owned()).collect(),
            seed: self.seed,
        };
        let residents = ids.map(|card| Resident { model: ModelId(0), device: DeviceId(card) }).collect();
        Started { configuration, profiles: Vec::new(), estimates: Vec::new(), residents }
    }

    fn submission(&self, class: Class) -> Submission {
        Submission {
            label: LabelId(u32::from(self.background_label && class == Class::Background)),
            wanted: Wanted::Model(ModelId(0)),
            class: Some(class),
            kind: JobKind::Chat,
            inputs: 1,
            prompt_tokens: 0,
            max_tokens: None,
            deadline: self.deadline,
            max_wait: None,
            drop_hopeless: None,
            quality: None,
            needs: Needs::NONE,
            body: Bytes::ZERO,
            client: None,
            affinity: None,
        }
    }
}

struct Run<'a> {
    small: &'a Small,
    scheduler: Scheduler,
    effects: Effects,
    ends: BinaryHeap<Reverse<(Time, Attempt, InstanceId)>>,
    cancels: BinaryHeap<Reverse<(Time, JobId)>>,
    under_way: usize,
    now: Time,
}

impl Run<'_> {
    fn play(&mut self, recorder: &mut impl Recorder) -> EndCause {
        let mut next = 0;
        loop {
            let arrival = self.small.arrivals.get(next).map_or(Time::MAX, |(t, _, _)| Time::from_nanos(*t));
            let end = self.ends.peek().map_or(Time::MAX, |Reverse((t, _, _))| *t);
            let cancel = self.cancels.peek().map_or(Time::MAX, |Reverse((t, _))| *t);
            let timer =
                self.scheduler.wake_at().filter(|_| self.under_way > 0 || arrival < Time::MAX).unwrap_or(Time::MAX);
            let first = end.min(arrival).min(cancel).min(timer);
            if let Some(horizon) = self.small.horizon
                && first > Time::ZERO.after(horizon)
            {
                self.now = Time::ZERO.after(horizon);
                return EndCause::Horizon;
            }
            if first == Time::MAX {
                return EndCause::Exhausted;
            }
            self.now = first;
            let input = if first == end {
                let Reverse((_, attempt, instance)) = self.ends.pop().unwrap();
                let measured = Measured { first_token: None, output_tokens: 0 };
                Input::GrantFinished { attempt, instance, measured }
            } else if first == arrival {
                let (_, class, cancel) = self.small.arrivals[next];
                let job = JobId(next as u64);
                self.cancels.extend(cancel.map(|after| Reverse((self.now.after(after), job))));
                next += 1;
                self.under_way += 1;
                Input::Submitted { job, submission: self.small.submission(class) }
            } else if first == cancel {
                let Reverse((_, job)) = self.cancels.pop().unwrap();
                Input::Cancelled { job }
            } else {
                Input::TimerDue
            };
            self.step(input, recorder);
            if Some(next as u64) == self.small.jobs {
                return EndCause::Jobs;
            }
        }
    }

    fn step(&mut self, input: Input, recorder: &mut impl Recorder) {
        self.scheduler.step(self.now, &input, &mut self.effects);
        recorder.step(self.now, &input, &self.effects).unwrap();
        let mut aborted = Vec::new();
        for effect in &self.effects {
            match effect {
                Effect::Grant(grant) => {
                    let took = self.small.alpha.plus(self.small.beta.times(u64::from(grant.weight)));
                    self.ends.push(Reverse((self.now.after(took), grant.attempt, grant.instance)));
                }
                Effect::Finish(_) => self.under_way -= 1,
                Effect::Abort { attempt, instance, .. } => aborted.push((*attempt, *instance)),
                Effect::Load { .. }
                | Effect::Stop { .. }
                | Effect::Snapshot { .. }
                | Effect::Learned(_)
                | Effect::Note(_) => {}
            }
        }
        for (attempt, instance) in aborted {
            self.ends.retain(|Reverse((_, one, _))| *one != attempt);
            let (cause, sent) = (GrantFailure::Aborted, Sent::Nothing);
            self.step(Input::GrantFailed { attempt, instance, cause, sent }, recorder);
        }
    }
}

pub fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}
