//! The requests of a scenario without the cards: for whoever sends them somewhere else.
//!
//! [`Callers`] hands out what the workloads of one replication ask, in order of time, with the very draws that the simulator
//! makes: both take their sources from [`Sources`]. What open workloads send is known in advance; the next request of a
//! client in a closed loop is known when its last one has ended, so that has to be told ([`Callers::ended`]).

use windtunnel_core::{Span, Time};

use crate::{
    arrivals::{ClosedLoop, Merge, NO_CLIENT, NoiseKinds, OpenSource},
    events::{Agenda, Event},
    random::Seed,
    setup::Setup,
};

/// Where the requests of one replication come from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Open workloads, in their order.
    pub open: Vec<OpenSource>,
    /// Closed loops, in their order.
    pub loops: Vec<ClosedLoop>,
    /// The place of each workload's closed loop among `loops`.
    pub loop_of: Vec<Option<u32>>,
}

/// Everybody who asks something in one replication of a scenario.
#[derive(Clone, Debug)]
pub struct Callers {
    open: Merge,
    loops: Vec<ClosedLoop>,
    loop_of: Vec<Option<u32>>,
    agenda: Agenda,
}

/// A request, as far as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it is to be sent.
    pub at: Time,
    /// After how long its client gives up; `None`: never.
    pub patience: Option<Span>,
    /// The place of its workload in the scenario.
    pub workload: usize,
    /// Which client of a closed loop sends it; `None` in an open workload.
    pub client: Option<u32>,
    /// Inputs, at least 1.
    pub inputs: u32,
    /// Prompt tokens of each input.
    pub prompt_tokens: u32,
    /// Output tokens.
    pub output_tokens: u32,
}

impl Sources {
    /// Those of one replication of `setup`.
    pub fn new(setup: &Setup, replication: u32) -> Sources {
        let scenario = setup.scenario();
        let (mut open, mut loops, mut loop_of) = (Vec::new(), Vec::new(), Vec::new());
        for (place, workload) in scenario.workloads.iter().enumerate() {
            let seed = Seed::of_workload(scenario.run.seed, replication, &workload.name);
            let noise = NoiseKinds::of(scenario, workload);
            let rows = setup.recording(place).map(|recording| recording.rows.clone());
            open.extend(OpenSource::new(workload, place as u32, seed, noise, rows));
            let closed = ClosedLoop::new(workload, place as u32, seed, noise);
            loop_of.push(closed.is_some().then_some(loops.len() as u32));
            loops.extend(closed);
        }
        Sources { open, loops, loop_of }
    }
}

impl Setup {
    /// The requests of one replication.
    pub fn callers(&self, replication: u32) -> Callers {
        let Sources { open, mut loops, loop_of } = Sources::new(self, replication);
        let mut agenda = Agenda::default();
        for (closed_loop, clients) in (0..).zip(&mut loops) {
            for client in 0..clients.len() {
                if let Some(at) = clients.first(client) {
                    agenda.add(at, Event::Sends { closed_loop, client });
                }
            }
        }
        Callers { open: Merge::new(open), loops, loop_of, agenda }
    }
}

impl Callers {
    /// When the next request is to be sent, as far as is known; `None`: none is, unless one that is under way ends.
    pub fn next(&self) -> Option<Time> {
        let next = self.open.next().min(self.agenda.next());
        (next < Time::MAX).then_some(next)
    }

    /// The next request; at equal times those of open workloads come first, as in the simulator.
    pub fn take(&mut self) -> Option<Call> {
        let at = self.agenda.next();
        let request = if self.open.next() <= at {
            let source = self.open.first_mut()?;
            let request = source.take();
            self.open.find_first();
            request
        } else {
            match self.agenda.take()? {
                Event::Sends { closed_loop, client } => {
                    self.loops.get_mut(closed_loop as usize)?.request(client, at)?
                }
                Event::GivesUp { .. } => return None,
            }
        };
        Some(Call {
            at: request.at,
            patience: (request.patience < Span::MAX).then_some(request.patience),
            workload: request.workload as usize,
            client: (request.client != NO_CLIENT).then_some(request.client),
            inputs: request.inputs,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
        })
    }

    /// `call` has ended at `ended`, after it was started at `started` if it was: its client thinks and asks again.
    pub fn ended(&mut self, call: &Call, started: Option<Time>, ended: Time) {
        let (Some(client), Some(&Some(closed_loop))) = (call.client, self.loop_of.get(call.workload)) else { return };
        let Some(clients) = self.loops.get_mut(closed_loop as usize) else { return };
        if let Some(at) = clients.next(client, call.at, started, ended) {
            self.agenda.add(at, Event::Sends { closed_loop, client });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use windtunnel_config::{Arrivals, Distribution};
    use windtunnel_core::{Effect, Effects, Finish, Input, Submission};
    use windtunnel_reports::{
        Recorder,
        journal::{End, Header},
    };

    use super::*;
    use crate::{
        Control,
        fixtures::{Asking, poisson, scenario, workload},
    };

    fn setup() -> Setup {
        let mut asked = poisson("open", 400.0);
        asked.inputs = Distribution::Uniform { low: 1.0, high: 9.0 };
        asked.prompt_tokens = Distribution::Lognormal { median: 50.0, cv: 1.0 };
        let mut clients = workload("clients");
        clients.arrivals = Arrivals::Clients { count: 4, think: Distribution::Exponential { mean: 0.05 } };
        clients.prompt_tokens = Distribution::Exponential { mean: 30.0 };
        clients.patience = Some(Distribution::Exponential { mean: 0.002 });
        Setup::new(scenario(1).asked_by(asked).asked_by(clients)).unwrap()
    }

    /// What was submitted and how it ended, in order.
    #[derive(Default)]
    struct Story(Vec<(Time, Option<Submission>, Vec<Finish>)>);

    impl Recorder for Story {
        fn begin(&mut self, _header: &Header) -> io::Result<()> {
            Ok(())
        }

        fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
            let submitted = if let Input::Submitted { submission, .. } = input { Some(*submission) } else { None };
            let finished = |effect: &Effect| if let Effect::Finish(finish) = effect { Some(*finish) } else { None };
            self.0.push((t, submitted, effects.iter().filter_map(finished).collect()));
            Ok(())
        }

        fn end(&mut self, _end: &End) -> io::Result<()> {
            Ok(())
        }
    }

    /// The simulator's ends are told to callers of the same replication, who have to send the simulator's requests.
    #[test]
    fn callers_send_what_the_simulator_sends() {
        let setup = setup();
        let mut story = Story::default();
        setup.run(3, &mut story, &Control::new()).unwrap();
        let mut callers = setup.callers(3);
        let mut sent = Vec::new();
        let mut told = [0, 0];
        for (t, submitted, finished) in story.0 {
            if let Some(submission) = submitted {
                let call = callers.take().unwrap();
                let sizes = (call.workload as u32, call.client, call.inputs, call.prompt_tokens);
                let same = (submission.label.0, submission.client, submission.inputs, submission.prompt_tokens);
                assert_eq!((call.at, sizes), (t, same));
                told[call.workload] += 1;
                sent.push(call);
            }
            for finish in finished {
                callers.ended(&sent[finish.job.0 as usize], finish.started, t);
            }
        }
        assert!(told[0] > 3_000 && told[1] > 300, "{told:?}");
        assert!(sent.iter().any(|call| call.patience.is_some()));
    }

    #[test]
    fn a_client_that_was_not_told_of_an_end_stays_silent() {
        let mut callers = setup().callers(0);
        let first: Vec<Call> =
            std::iter::from_fn(|| callers.take()).take(400).filter(|call| call.client.is_some()).collect();
        assert_eq!(first.len(), 4);
        let end = first[0].at.after(Span::from_secs(3));
        callers.ended(&first[0], Some(first[0].at), end);
        let again = std::iter::from_fn(|| callers.take()).find(|call| call.client.is_some()).unwrap();
        assert_eq!(again.client, first[0].client);
        assert!(again.at >= end);
    }
}
