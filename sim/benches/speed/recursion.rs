//! The least that a computer has to do for these queues: Lindley's recursion (1952) and its likes, with the simulator's own
//! generator and streams, no events, no scheduler, no records.

use std::hint::black_box;

use windtunnel_sim::random::{Purpose, Seed, Stream};

/// What is found out about the waits and latencies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Their mean.
    Mean,
    /// Their exact p99 too.
    Quantile,
}

/// Sums up times, and keeps them where their quantile is wanted.
struct Times {
    sum: f64,
    all: Vec<f64>,
    detail: Detail,
}

impl Times {
    fn new(requests: u64, detail: Detail) -> Times {
        let room = if detail == Detail::Quantile { requests as usize } else { 0 };
        Times { sum: 0.0, all: Vec::with_capacity(room), detail }
    }

    #[inline]
    fn take(&mut self, time: f64) {
        self.sum += time;
        if self.detail == Detail::Quantile {
            self.all.push(time);
        }
    }

    fn finish(mut self) {
        if self.detail == Detail::Quantile && !self.all.is_empty() {
            let place = (self.all.len() * 99).div_ceil(100) - 1;
            let (_, p99, _) = self.all.select_nth_unstable_by(place, f64::total_cmp);
            black_box(*p99);
        }
        black_box(self.sum);
    }
}

fn stream(purpose: Purpose) -> Stream {
    Seed::of_workload(1, 0, "interactive").stream(purpose)
}

/// M/M/4 at load 0.9 (Kiefer and Wolfowitz, 1955): each request takes the server that is free first.
pub fn mm4(requests: u64, detail: Detail) {
    let (mut gaps, mut services) = (stream(Purpose::Gaps), stream(Purpose::ExponentialNoise));
    let mut free_at = [0.0_f64; 4];
    let mut now = 0.0;
    let mut times = Times::new(requests, detail);
    for _ in 0..requests {
        now += gaps.exponential() / 3600.0;
        let mut first = 0;
        for server in 1..4 {
            if free_at[server] < free_at[first] {
                first = server;
            }
        }
        let end = free_at[first].max(now) + services.exponential() / 1000.0;
        free_at[first] = end;
        times.take(end - now);
    }
    times.finish();
}

/// Batches of up to 32 that take 1 ms + 0.5 ms for each request, at 1500/s: all that have come by the end of a batch make
/// the next.
pub fn batches(requests: u64, detail: Detail) {
    let mut gaps = stream(Purpose::Gaps);
    let mut times = Times::new(requests, detail);
    let mut waiting = std::collections::VecDeque::with_capacity(64);
    let mut next = gaps.exponential() / 1500.0;
    let mut free_at = 0.0_f64;
    let mut done = 0;
    while done < requests {
        if waiting.is_empty() {
            free_at = free_at.max(next);
        }
        while next <= free_at {
            waiting.push_back(next);
            next += gaps.exponential() / 1500.0;
        }
        let batch = waiting.len().min(32);
        free_at += 0.001 + 0.0005 * batch as f64;
        for arrived in waiting.drain(..batch) {
            times.take(free_at - arrived);
        }
        done += batch as u64;
    }
    times.finish();
}
