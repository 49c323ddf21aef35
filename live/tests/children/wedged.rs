//! Processes that do not get on, and those that only look so.

use std::time::Duration;

use windtunnel_core::{ExitCause, Input, ModelId};
use windtunnel_live::Sight;

use crate::nursery::{FIRST, lives, model, nursery_with, process, until};

const SILENCE: Duration = Duration::from_millis(800);

#[test]
fn silent_and_idle_with_work_under_way_is_given_up() {
    let mut nursery = nursery_with("wedged", model(&["--fake-term", "ignored"]), |limits| limits.silence = SILENCE);
    let (pid, _) = process(&nursery.loaded());
    let progress = nursery.handle.progress(FIRST).unwrap();
    let flight = progress.begin();
    assert_eq!(nursery.fact(), Input::Exited { instance: FIRST, cause: ExitCause::Wedged });
    until("requests under way are told", || progress.given_up().is_cancelled());
    drop(flight);
    until("the process is gone", || !lives(pid));
    let text = nursery.handle.failure(ModelId(0)).unwrap().text;
    assert_eq!(text, "it was silent and idle for 0.8 s with work under way");
    nursery.close();
}

#[test]
fn who_has_nothing_to_do_or_sends_bytes_is_left_alone() {
    let mut nursery = nursery_with("well", model(&[]), |limits| limits.silence = SILENCE);
    let (pid, _) = process(&nursery.loaded());
    std::thread::sleep(SILENCE * 2);
    let progress = nursery.handle.progress(FIRST).unwrap();
    let mut flight = progress.begin();
    for _ in 0..32 {
        flight.touch();
        flight.wait();
        std::thread::sleep(SILENCE / 16);
    }
    drop(flight);
    assert_eq!(progress.sight(), Sight { waits: false, signs: 32 });
    nursery.silent();
    assert!(lives(pid));
    nursery.close();
}
