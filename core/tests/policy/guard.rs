//! The guard: bounded starvation under constant chat.

use windtunnel_core::*;

use crate::world::*;

/// A chat that never stops: `chat` has one slot and the next request is always there.
struct Busy {
    world: World,
    chat: u64,
}

fn busy(change: impl FnOnce(&mut Policy)) -> Busy {
    let models = vec![
        model("chat", slots(1), (100, 0), &[0]),
        model("index", batch(32, 0), (100, 0), &[0]),
        model("ocr", slots(1), (100, 0), &[0]),
    ];
    let mut set = configuration(1, models);
    change(&mut set.policy);
    let mut world = World::new(set);
    let chat = world.submit(request(0, Class::Interactive));
    Busy { world, chat }
}

impl Busy {
    /// Goes on in steps of 50 ms; every answer is followed by the next request. Other work ends 100 ms after its start.
    fn until(&mut self, ms: u64) {
        while self.world.now < ms * MS {
            let next = self.world.now / MS + 50;
            self.world.at(next);
            if next.is_multiple_of(100) {
                self.world.finish(self.chat);
                self.chat = self.world.submit(request(0, Class::Interactive));
            }
        }
    }

    fn guards(&self) -> Vec<(Class, Span)> {
        let notes = self.world.notes();
        notes
            .filter_map(
                |note| if let Note::Guard { class, starved, .. } = note { Some((class, starved)) } else { None },
            )
            .collect()
    }
}

#[test]
fn a_starved_job_gets_one_grant_after_three_seconds() {
    let mut busy = busy(|_| ());
    let index = busy.world.submit(request(1, Class::Background));
    busy.until(2_950);
    assert!(!busy.world.runs(index));
    busy.until(3_000);
    assert!(busy.world.runs(index));
    assert_eq!(busy.guards(), [(Class::Background, Span::from_secs(3))]);
}

#[test]
fn the_share_bounds_how_soon_the_next_grant_follows() {
    let mut busy = busy(|policy| policy.background_share = Ppm::new(250_000));
    let first = busy.world.submit(request(1, Class::Background));
    busy.until(50);
    let second = busy.world.submit(request(2, Class::Batch));
    busy.until(3_000);
    assert!(busy.world.runs(first) && !busy.world.runs(second));
    busy.until(3_050);
    busy.world.finish(first);
    busy.until(3_150);
    assert!(!busy.world.runs(second), "50 ms at a share of a quarter are paid off after 200 ms");
    busy.until(3_200);
    assert!(busy.world.runs(second));
}

#[test]
fn a_full_share_runs_grants_back_to_back() {
    let mut busy = busy(|policy| policy.background_share = Ppm::ONE);
    let first = busy.world.submit(request(1, Class::Background));
    let second = busy.world.submit(request(2, Class::Background));
    busy.until(3_100);
    busy.world.finish(first);
    assert!(busy.world.runs(second));
}

#[test]
fn strict_exclusivity_starves_background() {
    let mut busy = busy(|policy| policy.background_max_starvation = Span::ZERO);
    let index = busy.world.submit(request(1, Class::Background));
    let reason = WaitReason::InteractiveMode { device: DeviceId(0), guard_at: None };
    assert_eq!(busy.world.why_waits(index), Some(reason));
    busy.until(60_000);
    assert!(!busy.world.runs(index));
}

#[test]
fn the_oldest_progress_goes_first_across_both_classes() {
    let mut busy = busy(|_| ());
    let batch = busy.world.submit(request(2, Class::Batch));
    busy.until(100);
    let background = busy.world.submit(request(1, Class::Background));
    busy.until(3_050);
    assert!(busy.world.runs(batch) && !busy.world.runs(background));
}

#[test]
fn a_head_that_cannot_run_does_not_block_the_others() {
    let mut busy = busy(|_| ());
    let stuck = busy.world.submit(request(0, Class::Background));
    let index = busy.world.submit(request(1, Class::Background));
    busy.until(3_000);
    assert!(!busy.world.runs(stuck), "the chat model's only slot is taken");
    assert!(busy.world.runs(index));
}

#[test]
fn several_guard_grants_run_side_by_side_if_allowed() {
    let mut busy = busy(|policy| policy.guard_parallel = 2);
    let one = busy.world.submit(request(1, Class::Background));
    let two = busy.world.submit(request(2, Class::Batch));
    busy.until(3_000);
    assert!(busy.world.runs(one) && busy.world.runs(two));
}

#[test]
fn a_job_with_a_running_step_is_not_starved() {
    let mut busy = busy(|_| ());
    let mut long = request(1, Class::Background);
    (long.kind, long.inputs) = (JobKind::Embedding, 64);
    let index = busy.world.submit(long);
    busy.until(3_000);
    assert!(busy.world.runs(index));
    busy.until(9_000);
    assert_eq!(busy.guards().len(), 1);
    busy.world.finish(index);
    busy.until(15_000 - 50);
    assert_eq!(busy.guards().len(), 1, "six seconds at half share are paid off after twelve");
    busy.until(15_000);
    assert_eq!(busy.guards(), [(Class::Background, Span::from_secs(3)), (Class::Background, Span::from_secs(6))]);
}
