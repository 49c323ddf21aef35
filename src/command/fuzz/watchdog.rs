//! A step of the scheduler that never returns: its thread cannot say so, and cannot be stopped.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use windtunnel_sim::fuzz::{Findings, Pulses};

/// A step takes microseconds; one that takes this long does not return.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Does `work` and watches its threads. If one of them stands still, `tell` gets what was found up to then and that; it has to
/// end the program, since nothing else ends that thread.
pub fn watched<T>(pulses: &Pulses, tell: impl FnOnce(&Findings) + Send, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (over, is_over) = channel();
        scope.spawn(move || {
            if let Some(findings) = watch(pulses, &is_over, PATIENCE, EVERY) {
                tell(&findings);
            }
        });
        let done = work();
        drop(over);
        done
    })
}

/// What was found when a world has stood still for `patience`; `None` when the work is over.
fn watch(pulses: &Pulses, is_over: &Receiver<()>, patience: Duration, every: Duration) -> Option<Findings> {
    let mut last: Vec<(Option<u64>, Instant)> = Vec::new();
    loop {
        match is_over.recv_timeout(every) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        let beats = pulses.beats();
        last.resize(beats.len(), (None, now));
        for (thread, (beat, (known, since))) in beats.into_iter().zip(&mut last).enumerate() {
            if beat.is_none() || beat != *known {
                (*known, *since) = (beat, now);
            } else if now.duration_since(*since) >= patience
                && let Some(findings) = pulses.findings_with_stuck(thread)
            {
                return Some(findings);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_over_is_watched_no_longer() {
        let pulses = Pulses::new(1);
        let (over, is_over) = channel();
        drop(over);
        assert!(watch(&pulses, &is_over, Duration::ZERO, Duration::from_secs(600)).is_none());
        assert_eq!(watched(&pulses, |_| panic!("nothing stands still"), || 7), 7);
    }
}
