//! One open workload as a sorted stream of requests.

use std::sync::Arc;

use windtunnel_config::{Arrivals, Dejitter, Workload};
use windtunnel_core::{Span, Time};

use super::{
    NO_CLIENT, NoiseKinds, Request,
    gaps::Gaps,
    request::{Content, ContentStreams, GivenSizes},
};
use crate::{
    random::{Purpose, Seed, Stream},
    trace::Row,
};

/// The requests of one open workload, in the order of their moments.
#[derive(Clone, Debug)]
pub struct OpenSource {
    content: Content,
    streams: ContentStreams,
    moments: Moments,
    /// Those of the next request, where they are given.
    sizes: Option<GivenSizes>,
    next: Time,
    until: Time,
}

#[derive(Clone, Debug)]
enum Moments {
    Gaps { gaps: Gaps, clock: Clock, scale: f64 },
    Given { requests: Vec<windtunnel_config::Request>, at: usize, start: Time, scale: f64 },
    Recorded(Recorded),
    Never,
}

/// A moment and its fraction of a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Clock {
    whole: u64,
    fraction: f64,
}

/// A recorded trace, played back.
#[derive(Clone, Debug)]
struct Recorded {
    rows: Arc<[Row]>,
    at: usize,
    start: Time,
    scale: f64,
    dejitter: Dejitter,
    stream: Stream,
    /// The moments of the equal stamps that come next, latest first.
    spread: Vec<u64>,
}

impl OpenSource {
    /// The requests of `workload`, which stands at `place`; `rows` is its trace, where it has one. `None` for a closed loop.
    pub fn new(
        workload: &Workload,
        place: u32,
        seed: Seed,
        noise: NoiseKinds,
        rows: Option<Arc<[Row]>>,
    ) -> Option<OpenSource> {
        let mut source = OpenSource {
            content: Content::new(workload, place, noise),
            streams: ContentStreams::new(seed),
            moments: Moments::new(workload, seed, rows)?,
            sizes: None,
            next: Time::MAX,
            until: workload.to.map_or(Time::MAX, |to| Time::ZERO.after(to)),
        };
        source.advance();
        Some(source)
    }

    /// When the next request is sent; [`Time::MAX`]: none is.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Writes the next request. To be asked for only once, and only while there is one.
    #[inline(always)]
    pub fn write(&mut self, request: &mut Request) {
        self.content.write(request, &mut self.streams, self.next, NO_CLIENT, self.sizes);
    }

    /// The next request, going on to the one after it.
    pub fn take(&mut self) -> Request {
        let mut request = Request::default();
        self.write(&mut request);
        self.advance();
        request
    }

    /// Lets the requests that are to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.next = self.next.after(by);
        self.until = self.until.after(by);
        match &mut self.moments {
            Moments::Gaps { clock, .. } => clock.whole = clock.whole.saturating_add(by.as_nanos()),
            Moments::Given { start, .. } | Moments::Recorded(Recorded { start, .. }) => *start = start.after(by),
            Moments::Never => {}
        }
    }

    /// Goes on to the request after it.
    #[inline]
    pub fn advance(&mut self) {
        let next = match &mut self.moments {
            Moments::Gaps { gaps, clock, scale } => {
                let gap = gaps.draw();
                clock.advance(if *scale == 1.0 { gap } else { gap / *scale })
            }
            Moments::Given { .. } | Moments::Recorded(_) | Moments::Never => self.given(),
        };
        self.next = if next < self.until { next } else { Time::MAX };
    }

    /// The next moment of those that are given, along with its sizes.
    fn given(&mut self) -> Time {
        match &mut self.moments {
            Moments::Gaps { .. } | Moments::Never => Time::MAX,
            Moments::Given { requests, at, start, scale } => match requests.get(*at) {
                Some(request) => {
                    *at += 1;
                    let (inputs, prompt_tokens, output_tokens) =
                        (request.inputs, request.prompt_tokens, request.output_tokens);
                    self.sizes = Some(GivenSizes { inputs, prompt_tokens, output_tokens });
                    start.after(scaled(request.at.as_nanos(), *scale))
                }
                None => Time::MAX,
            },
            Moments::Recorded(recorded) => match recorded.advance() {
                Some((moment, row)) => {
                    let (prompt_tokens, output_tokens) = (Some(row.prompt_tokens), Some(row.output_tokens));
                    self.sizes = Some(GivenSizes { inputs: None, prompt_tokens, output_tokens });
                    moment
                }
                None => Time::MAX,
            },
        }
    }
}

impl Moments {
    fn new(workload: &Workload, seed: Seed, rows: Option<Arc<[Row]>>) -> Option<Moments> {
        let start = Time::ZERO.after(workload.from);
        let scale = workload.rate_scale;
        Some(match &workload.arrivals {
            Arrivals::Clients { .. } => return None,
            Arrivals::At(requests) => {
                let mut requests = requests.clone();
                requests.sort_by_key(|request| request.at);
                Moments::Given { requests, at: 0, start, scale }
            }
            Arrivals::Trace(trace) => Moments::Recorded(Recorded {
                rows: rows.unwrap_or_default(),
                at: 0,
                start,
                scale: scale * trace.time_scale,
                dejitter: trace.dejitter,
                stream: seed.stream(Purpose::Dejitter),
                spread: Vec::new(),
            }),
            arrivals @ (Arrivals::Poisson { .. }
            | Arrivals::Constant { .. }
            | Arrivals::Gamma { .. }
            | Arrivals::Mmpp { .. }) => match Gaps::new(arrivals, seed) {
                Some(gaps) => Moments::Gaps { gaps, clock: Clock { whole: start.as_nanos(), fraction: 0.0 }, scale },
                None => Moments::Never,
            },
        })
    }
}

impl Clock {
    #[inline]
    fn advance(&mut self, gap: f64) -> Time {
        let sum = gap + self.fraction;
        // Gaps are never negative; the signed conversion is the one that processors have an instruction for.
        let whole = sum as i64;
        self.fraction = sum - whole as f64;
        self.whole = self.whole.saturating_add(whole as u64);
        Time::from_nanos(self.whole)
    }
}

impl Recorded {
    fn advance(&mut self) -> Option<(Time, Row)> {
        let row = *self.rows.get(self.at)?;
        if self.spread.is_empty() && self.dejitter == Dejitter::Uniform {
            self.spread_equal_stamps(row.at);
        }
        let at = self.spread.pop().unwrap_or(row.at);
        self.at += 1;
        Some((self.start.after(scaled(at, self.scale)), row))
    }

    /// Two or more rows with the stamp `at` go to independent uniform moments before the next stamp; the last ones stay.
    fn spread_equal_stamps(&mut self, at: u64) {
        let rest = &self.rows[self.at..];
        let equal = rest.partition_point(|row| row.at == at);
        let Some(next) = rest.get(equal) else { return };
        if equal > 1 {
            let width = (next.at - at) as usize;
            self.spread.extend((0..equal).map(|_| at + self.stream.below(width) as u64));
            self.spread.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}

/// `nanos` of a recording at `scale` times its speed, rounded to the nearest nanosecond; exact at a scale of 1.
fn scaled(nanos: u64, scale: f64) -> Span {
    if scale == 1.0 {
        return Span::from_nanos(nanos);
    }
    Span::from_nanos((nanos as f64 / scale).round() as u64)
}

#[cfg(test)]
mod tests {
    use windtunnel_config::Trace;

    use super::*;
    use crate::fixtures::workload;

    fn source(workload: &Workload, rows: &[Row]) -> OpenSource {
        let seed = Seed::of_workload(1, 0, &workload.name);
        OpenSource::new(workload, 0, seed, NoiseKinds::default(), Some(rows.into())).unwrap()
    }

    fn moments(source: &mut OpenSource, count: usize) -> Vec<u64> {
        (0..count).map(|_| source.take().at.as_nanos()).collect()
    }

    fn trace(dejitter: Dejitter, time_scale: f64) -> Arrivals {
        Arrivals::Trace(Trace {
            file: "unused".into(),
            format: windtunnel_config::TraceFormat::Auto,
            time_scale,
            from: Span::ZERO,
            to: None,
            dejitter,
        })
    }

    #[test]
    fn a_scale_divides_the_gaps_of_the_same_draws() {
        let mut plain = workload("w");
        plain.arrivals = Arrivals::Poisson { rate: 1000.0 };
        let mut fourfold = plain.clone();
        fourfold.rate_scale = 4.0;
        let slow = moments(&mut source(&plain, &[]), 10_000);
        let fast = moments(&mut source(&fourfold, &[]), 10_000);
        assert!(slow.iter().zip(&fast).all(|(slow, fast)| slow / 4 == *fast));
    }

    #[test]
    fn constant_rates_do_not_drift() {
        let mut thirds = workload("w");
        thirds.arrivals = Arrivals::Constant { rate: 3.0 };
        let moments = moments(&mut source(&thirds, &[]), 3_000_001);
        assert_eq!(moments[3_000_000] - moments[0], 1_000_000_000_000_000);
    }

    #[test]
    fn requests_come_only_inside_the_window() {
        let mut windowed = workload("w");
        windowed.arrivals = Arrivals::Constant { rate: 1.0 };
        windowed.from = Span::from_secs(10);
        windowed.to = Some(Span::from_secs(13));
        let mut source = source(&windowed, &[]);
        let moments = moments(&mut source, 3);
        assert!(moments[0] >= 10_000_000_000 && moments[2] < 13_000_000_000);
        assert_eq!(source.next(), Time::MAX);
    }

    #[test]
    fn given_sizes_replace_draws() {
        let mut given = workload("w");
        let request = |at, output_tokens| windtunnel_config::Request {
            at: Span::from_nanos(at),
            inputs: None,
            prompt_tokens: None,
            output_tokens,
        };
        given.arrivals = Arrivals::At(vec![request(30, None), request(10, Some(9))]);
        let mut source = source(&given, &[]);
        let (first, second) = (source.take(), source.take());
        assert_eq!((first.at.as_nanos(), first.output_tokens), (10, 9));
        assert_eq!((second.at.as_nanos(), second.output_tokens), (30, 1));
        assert_eq!(source.next(), Time::MAX);
    }

    #[test]
    fn a_trace_is_played_back_with_its_sizes_at_its_scale() {
        let mut traced = workload("w");
        traced.arrivals = trace(Dejitter::None, 2.0);
        traced.from = Span::from_nanos(1000);
        let row = |at, prompt_tokens| Row { at, prompt_tokens, output_tokens: 2 };
        let mut source = source(&traced, &[row(0, 7), row(100, 8)]);
        let (first, second) = (source.take(), source.take());
        assert_eq!((first.at.as_nanos(), first.prompt_tokens, first.output_tokens), (1000, 7, 2));
        assert_eq!((second.at.as_nanos(), second.prompt_tokens), (1050, 8));
    }

    #[test]
    fn equal_stamps_are_spread_up_to_the_next_one() {
        let mut traced = workload("w");
        traced.arrivals = trace(Dejitter::Uniform, 1.0);
        let row = |at| Row { at, prompt_tokens: 1, output_tokens: 1 };
        let rows = [row(0), row(3000), row(3000), row(3000), row(6000), row(6000)];
        let spread = moments(&mut source(&traced, &rows), 6);
        assert_eq!((spread[0], spread[4], spread[5]), (0, 6000, 6000));
        assert!(spread.is_sorted() && spread[1..4].iter().all(|at| (3000..6000).contains(at)), "{spread:?}");
        assert!(spread[1] < spread[3]);
    }
}
