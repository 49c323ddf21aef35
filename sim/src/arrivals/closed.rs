//! One closed loop: clients that wait for the end of a request before they think of the next.

use windtunnel_config::{Arrivals, Workload};
use windtunnel_core::{Span, Time};

use super::{
    NoiseKinds, Request,
    request::{Content, ContentStreams},
};
use crate::random::{Purpose, Sampler, Seed, Stream};

/// A client whose request ended without having been started, or at the very moment it was sent, sends the next at least
/// this long after it, however short it thinks. Otherwise a client that does not think and is refused, or given up on a
/// nanosecond later, would ask without end while no time passes.
pub const SHORTEST_ROUND: Span = Span::from_millis(1);

/// The clients of one workload. Each has streams of its own, so its n-th request is the same whatever happens to others.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    content: Content,
    think: Sampler,
    clients: Vec<Client>,
    start: Time,
    until: Time,
}

#[derive(Clone, Debug)]
struct Client {
    thinking: Stream,
    streams: ContentStreams,
}

impl ClosedLoop {
    /// The clients of `workload`, which stands at `place`; `None` if it is open.
    pub fn new(workload: &Workload, place: u32, seed: Seed, noise: NoiseKinds) -> Option<ClosedLoop> {
        let Arrivals::Clients { count, think } = &workload.arrivals else { return None };
        let client = |number| {
            let seed = seed.of_client(number);
            Client { thinking: seed.stream(Purpose::Gaps), streams: ContentStreams::new(seed) }
        };
        Some(ClosedLoop {
            content: Content::new(workload, place, noise),
            think: Sampler::new(think),
            clients: (0..*count).map(client).collect(),
            start: Time::ZERO.after(workload.from),
            until: workload.to.map_or(Time::MAX, |to| Time::ZERO.after(to)),
        })
    }

    /// How many clients there are.
    pub fn len(&self) -> u32 {
        self.clients.len() as u32
    }

    /// When the client sends its first request: after the workload's start and a think time.
    pub fn first(&mut self, client: u32) -> Option<Time> {
        let start = self.start;
        self.after_thinking(client, start, start)
    }

    /// When the client sends its next request, after one that was sent at `sent`, started at `started` if it did, and ended at
    /// `ended`; `None`: no more.
    #[inline]
    pub fn next(&mut self, client: u32, sent: Time, started: Option<Time>, ended: Time) -> Option<Time> {
        let served = started.is_some() && ended > sent;
        self.after_thinking(client, ended, if served { ended } else { sent.after(SHORTEST_ROUND) })
    }

    fn after_thinking(&mut self, client: u32, from: Time, earliest: Time) -> Option<Time> {
        let thinking = &mut self.clients.get_mut(client as usize)?.thinking;
        let at = from.after(self.think.draw_span(thinking)).max(earliest);
        (at < self.until).then_some(at)
    }

    /// The next request of the client, sent at `at`.
    #[inline]
    pub fn request(&mut self, client: u32, at: Time) -> Option<Request> {
        let streams = &mut self.clients.get_mut(client as usize)?.streams;
        Some(self.content.request(streams, at, client))
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_config::Distribution;

    use super::*;
    use crate::fixtures::workload;

    fn clients(think: Distribution) -> ClosedLoop {
        let mut workload = workload("w");
        workload.arrivals = Arrivals::Clients { count: 3, think };
        workload.prompt_tokens = Distribution::Uniform { low: 1.0, high: 1e9 };
        workload.from = Span::from_secs(1);
        workload.to = Some(Span::from_secs(100));
        ClosedLoop::new(&workload, 0, Seed::of_workload(1, 0, "w"), NoiseKinds::default()).unwrap()
    }

    #[test]
    fn a_clients_requests_do_not_depend_on_other_clients() {
        let mut alone = clients(Distribution::Exponential { mean: 2.0 });
        let mut crowd = alone.clone();
        for other in [0, 2, 2, 0] {
            crowd.request(other, Time::ZERO);
            crowd.first(other);
        }
        assert_eq!(alone.first(1), crowd.first(1));
        assert_eq!(alone.request(1, Time::ZERO), crowd.request(1, Time::ZERO));
        assert_ne!(alone.request(0, Time::ZERO), alone.request(1, Time::ZERO));
    }

    #[test]
    fn a_request_that_was_not_served_is_followed_by_a_pause() {
        let mut eager = clients(Distribution::Constant(0.0));
        let (then, now) = (Time::from_nanos(2_000_000_000), Time::from_nanos(3_000_000_000));
        let instant = now.after(Span::from_nanos(1));
        assert_eq!(eager.first(0), Some(Time::from_nanos(1_000_000_000)));
        assert_eq!(eager.next(0, then, Some(then), now), Some(now));
        assert_eq!(eager.next(0, then, None, now), Some(now), "it waited longer than the pause");
        assert_eq!(eager.next(0, now, Some(now), now), Some(now.after(SHORTEST_ROUND)));
        assert_eq!(eager.next(0, now, None, instant), Some(now.after(SHORTEST_ROUND)));
        assert_eq!(eager.next(0, then, Some(then), Time::from_nanos(100_000_000_000)), None);
    }
}
