//! The latest events as readable lines, for somebody who watches. Lines cost more than the steps they tell of, so they are
//! made only while somebody has asked for them lately.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use windtunnel_core::{Effect, Effects, Input, Span, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header, Lines},
};

use crate::Clock;

/// Lines that are kept.
const KEPT: usize = 500;
/// After so long without a question nobody watches any more.
const PATIENCE: Span = Span::from_secs(15);

/// Where those who watch ask.
#[derive(Clone, Debug)]
pub struct Seen {
    shared: Arc<Shared>,
    clock: Clock,
}

/// Makes the lines.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Shared>,
    lines: Lines,
    watched: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// When somebody last asked, in nanoseconds since the run began; 0: nobody did.
    asked: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the line after the last.
    next: u64,
    lines: VecDeque<String>,
}

impl Watched {
    /// A maker of lines, and where to ask for them.
    pub fn new(clock: Clock) -> (Watched, Seen) {
        let shared = Arc::new(Shared::default());
        let watched = Watched { shared: Arc::clone(&shared), lines: Lines::only(Vec::new()), watched: false };
        (watched, Seen { shared, clock })
    }

    fn look(&mut self, t: Time) {
        let asked = self.shared.asked.load(Ordering::Relaxed);
        let watched = asked > 0 && t < Time::from_nanos(asked).after(PATIENCE);
        if watched != self.watched {
            self.watched = watched;
            let lines = std::mem::take(&mut self.lines);
            self.lines = if watched { lines.with_all_words() } else { lines.with_only(Vec::new()) };
        }
    }

    fn record(&mut self, t: Time, input: &Input, effects: &Effects) {
        let mut made = Vec::new();
        self.lines.input(t, input, &mut |line| made.push(line));
        for effect in effects {
            let steps = if let Effect::Grant(grant) = effect { effects.steps(grant.steps) } else { &[] };
            self.lines.effect(t, effect, steps, &mut |line| made.push(line));
        }
        if self.watched && !made.is_empty() {
            let mut kept = self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            for line in &made {
                kept.push(self.lines.print(line));
            }
        }
    }
}

impl Kept {
    fn push(&mut self, line: String) {
        self.next += 1;
        self.lines.push_back(line);
        if self.lines.len() > KEPT {
            self.lines.pop_front();
        }
    }
}

impl Seen {
    /// The lines from number `from` on that are still kept, and the number of the next. Lines are made from the first
    /// question on.
    pub fn since(&self, from: u64) -> (u64, Vec<String>) {
        self.shared.asked.store(self.clock.now().as_nanos().max(1), Ordering::Relaxed);
        let kept = self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let first = kept.next - kept.lines.len() as u64;
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        (kept.next, kept.lines.iter().skip(skipped).cloned().collect())
    }
}

impl Recorder for Watched {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.lines.begin(header, &mut |_| {});
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.look(t);
        self.record(t, input, effects);
        Ok(())
    }

    fn reads_reasons(&self) -> bool {
        self.watched
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}
