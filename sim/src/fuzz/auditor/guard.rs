//! The guard's share (invariant 5): in any window W guard time is at most share*W + guard_parallel times the longest guard
//! grant in it.

use std::collections::VecDeque;

use windtunnel_core::{Attempt, Ppm, Span, Time};

use super::Breach;

/// So many guard grants of a device are remembered: every window that begins with one of them is looked at.
const REMEMBERED: usize = 32;

/// The guard grants of a device.
#[derive(Clone, Debug, Default)]
pub struct GuardBook {
    under_way: Vec<(Attempt, Time)>,
    ended: VecDeque<(Time, Time)>,
}

impl GuardBook {
    pub fn under_way(&self) -> u32 {
        self.under_way.len() as u32
    }

    pub fn begin(&mut self, attempt: Attempt, now: Time) {
        self.under_way.push((attempt, now));
    }

    /// A grant has ended; the windows that end with it are looked at.
    pub fn end(&mut self, attempt: Attempt, now: Time, share: Ppm, parallel: u32) -> Result<(), Breach> {
        let Some(at) = self.under_way.iter().position(|(own, _)| *own == attempt) else { return Ok(()) };
        let (_, start) = self.under_way.swap_remove(at);
        self.ended.push_back((start, now));
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
        let starts = self.ended.iter().map(|(start, _)| *start);
        starts.min().into_iter().chain(self.ended.iter().map(|(start, _)| *start)).try_for_each(|from| {
            let (used, longest) = self.used(from, now);
            let fair = u128::from(now.since(from).as_nanos()) * u128::from(share.get()) / 1_000_000;
            let most = fair + u128::from(parallel) * u128::from(longest.as_nanos()) + REMEMBERED as u128;
            if u128::from(used.as_nanos()) <= most {
                return Ok(());
            }
            let message = format!("{used} of guard grants between {from} and {now}, the longest {longest}");
            Err(Breach::new("the guard keeps to its share (5)", message))
        })
    }

    /// Guard time between two moments, and the longest grant that touches it. What was forgotten began before.
    fn used(&self, from: Time, to: Time) -> (Span, Span) {
        let running = self.under_way.iter().map(|(_, start)| (*start, to));
        let touching = self.ended.iter().copied().chain(running).filter(|(_, end)| *end > from);
        touching.fold((Span::ZERO, Span::ZERO), |(used, longest), (start, end)| {
            (used.plus(end.min(to).since(start.max(from))), longest.max(end.since(start)))
        })
    }
}
