//! Several open workloads as one stream.

use windtunnel_core::{Span, Time};

use super::OpenSource;

/// Hands out the earliest request of all sources; at equal times that of the earlier source. Looking for it takes time in
/// proportion to the number of sources, of which there are few; with one source it costs nothing.
#[derive(Clone, Debug)]
pub struct Merge {
    sources: Vec<OpenSource>,
    first: usize,
    next: Time,
}

impl Merge {
    /// The requests of all `sources`, which stand in the order of their workloads.
    pub fn new(sources: Vec<OpenSource>) -> Merge {
        let mut merge = Merge { sources, first: 0, next: Time::MAX };
        merge.find_first();
        merge
    }

    /// When the next request is sent; [`Time::MAX`]: no more are.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The source of the next request, whoever advances which has the first found anew; `None`: no more are sent.
    #[inline]
    pub fn first_mut(&mut self) -> Option<&mut OpenSource> {
        if self.next == Time::MAX {
            return None;
        }
        self.sources.get_mut(self.first)
    }

    /// Lets the requests that are to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.sources.iter_mut().for_each(|source| source.delay(by));
        self.find_first();
    }

    /// Finds the source of the next request.
    #[inline]
    pub fn find_first(&mut self) {
        if let [only] = &self.sources[..] {
            self.next = only.next();
            return;
        }
        let mut earliest = Time::MAX;
        for (place, source) in self.sources.iter().enumerate() {
            if source.next() < earliest {
                earliest = source.next();
                self.first = place;
            }
        }
        self.next = earliest;
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_config::Arrivals;

    use super::*;
    use crate::{arrivals::NoiseKinds, fixtures::workload, random::Seed};

    fn at(place: u32, moments: &[u64]) -> OpenSource {
        let mut workload = workload("w");
        let request = |&at| windtunnel_config::Request {
            at: Span::from_nanos(at),
            inputs: None,
            prompt_tokens: None,
            output_tokens: None,
        };
        workload.arrivals = Arrivals::At(moments.iter().map(request).collect());
        OpenSource::new(&workload, place, Seed::of_workload(1, 0, "w"), NoiseKinds::default(), None).unwrap()
    }

    #[test]
    fn equal_times_go_by_the_place_of_the_workload() {
        let mut merge = Merge::new(vec![at(0, &[5, 9]), at(1, &[1, 5, 5]), at(2, &[])]);
        let mut order = Vec::new();
        while let Some(source) = merge.first_mut() {
            let request = source.take();
            order.push((request.at.as_nanos(), request.workload));
            merge.find_first();
        }
        assert_eq!(order, [(1, 1), (5, 0), (5, 1), (5, 1), (9, 0)]);
        assert_eq!(merge.next(), Time::MAX);
    }
}
