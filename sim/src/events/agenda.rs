//! Events that are set once and come by themselves.

use windtunnel_core::{JobId, Span, Time};

const ARITY: usize = 4;

/// Something a client is going to do. The order of declaration is the order within one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A client of a closed loop sends its next request.
    Sends {
        /// The place of the closed loop among all.
        closed_loop: u32,
        /// The client.
        client: u32,
    },
    /// The client of a job gives up, unless the job has ended before.
    GivesUp {
        /// The job.
        job: JobId,
    },
}

/// A heap of events, each node with four children. Events of one moment come by kind, within a kind in the order in which
/// they were added.
#[derive(Clone, Debug, Default)]
pub struct Agenda {
    heap: Vec<Entry>,
    added: u64,
    /// Entries whose job has ended.
    stale: usize,
    /// Entries of clients that will send.
    sends: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    /// The kind in the top bit, then the number of the addition.
    order: u64,
    event: Event,
}

impl Agenda {
    /// When something comes next; [`Time::MAX`]: nothing does.
    #[inline]
    pub fn next(&self) -> Time {
        self.heap.first().map_or(Time::MAX, |entry| entry.at)
    }

    /// Adds an event.
    pub fn add(&mut self, at: Time, event: Event) {
        let entry = self.entry(at, event);
        self.sends += usize::from(matches!(event, Event::Sends { .. }));
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
    }

    /// Takes the next event out.
    pub fn take(&mut self) -> Option<Event> {
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        if let Some(top) = self.heap.first_mut() {
            *top = last;
            self.sink(0);
        }
        self.sends -= usize::from(matches!(first.event, Event::Sends { .. }));
        Some(first.event)
    }

    /// Lets every event be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.heap.iter_mut().for_each(|entry| entry.at = entry.at.after(by));
    }

    /// How many clients will send.
    #[inline]
    pub fn sends(&self) -> usize {
        self.sends
    }

    /// Takes out every client that would send.
    pub fn stop_sending(&mut self) {
        self.keep(|event| match event {
            Event::Sends { .. } => false,
            Event::GivesUp { .. } => true,
        });
        self.sends = 0;
    }

    /// How many events it holds.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// One of the events that are still here no longer matters. Once most do not, those that do not pass `matters` are
    /// thrown out, so that the agenda stays in proportion to what matters.
    pub fn grow_stale(&mut self, matters: impl Fn(Event) -> bool) {
        self.stale += 1;
        if self.stale > 64 + self.heap.len() / 2 {
            self.keep(matters);
            self.stale = 0;
        }
    }

    fn keep(&mut self, matters: impl Fn(Event) -> bool) {
        self.heap.retain(|entry| matters(entry.event));
        for place in (0..self.heap.len().div_ceil(ARITY)).rev() {
            self.sink(place);
        }
    }

    /// An event that no longer mattered has come.
    pub fn met_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    fn entry(&mut self, at: Time, event: Event) -> Entry {
        self.added += 1;
        let kind = match event {
            Event::Sends { .. } => 0,
            Event::GivesUp { .. } => 1 << 63,
        };
        Entry { at, order: kind | self.added, event }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= self.heap[place] {
                return;
            }
            self.heap.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = ARITY * place + 1..(ARITY * place + 1 + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| (self.heap[child].at, self.heap[child].order)) else {
                return;
            };
            if self.heap[place] <= self.heap[least] {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn sends(client: u32) -> Event {
        Event::Sends { closed_loop: 0, client }
    }

    fn gives_up(job: u64) -> Event {
        Event::GivesUp { job: JobId(job) }
    }

    #[test]
    fn events_come_by_time_then_kind_then_addition() {
        let mut agenda = Agenda::default();
        let mut stream = Stream::from_seed(1);
        let mut expected = Vec::new();
        for number in 0..3000 {
            let at = Time::from_nanos(stream.bits() % 300);
            let event = if stream.below(2) == 0 { sends(number) } else { gives_up(u64::from(number)) };
            agenda.add(at, event);
            expected.push((at, matches!(event, Event::GivesUp { .. }), number, event));
        }
        expected.sort_by_key(|&(at, kind, number, _)| (at, kind, number));
        for (at, _, _, event) in expected {
            assert_eq!((agenda.next(), agenda.take()), (at, Some(event)));
        }
        assert_eq!((agenda.next(), agenda.take()), (Time::MAX, None));
    }

    #[test]
    fn events_that_no_longer_matter_do_not_pile_up() {
        let mut agenda = Agenda::default();
        for job in 0..100_000 {
            agenda.add(Time::from_nanos(1_000_000 - job), gives_up(job));
            if job >= 10 {
                agenda.grow_stale(|event| event > gives_up(job - 10));
            }
            assert!(agenda.len() < 200);
        }
        let rest: Vec<_> = std::iter::from_fn(|| agenda.take()).filter(|&event| event > gives_up(99_989)).collect();
        assert_eq!(rest, (99_990..100_000).rev().map(gives_up).collect::<Vec<_>>());
    }
}
