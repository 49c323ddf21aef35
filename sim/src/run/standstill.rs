//! Whether anything can still help the jobs that are left.
//!
//! A run ends when nothing is left to happen. A monitor in trouble is read for ever, and a scheduler whose jobs wait for a
//! silent monitor or for other programs asks for ever: they would keep a run going that has no horizon, or is to end with its
//! last job. So it ends as well when no request is to come, nothing is about to change beside the cards, and for a long time
//! there was nothing but readings and timers.

use windtunnel_core::{Effect, Effects, Input, Span, Time};

use super::world::{Gate, Told, World};

/// Longer than every time that the scheduler keeps by itself, and than those that are usually configured.
const LONG: Span = Span::from_secs(24 * 60 * 60);

/// When anything but a reading or a timer last happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standstill {
    since: Time,
}

impl Standstill {
    /// Hears what the scheduler was told and wants; whether nothing is to be expected any more.
    #[inline]
    pub fn is_reached(&mut self, world: &World<'_>, told: Told, effects: &Effects) -> bool {
        if world.expects_requests() {
            self.since = world.now;
            return false;
        }
        self.look(world, world.input(told), effects)
    }

    #[cold]
    fn look(&mut self, world: &World<'_>, told: &Input, effects: &Effects) -> bool {
        if is_news(told) || effects.iter().any(is_order) {
            self.since = world.now;
        }
        let bounded = world.gate == Gate::Open && world.setup.scenario().run.horizon.is_some();
        !bounded
            && world.now >= self.since.after(LONG)
            && world.machines.iter().all(|machine| machine.next_change() == Time::MAX)
    }
}

impl World<'_> {
    /// Whether a request is to come, or a client to give up.
    #[inline]
    fn expects_requests(&self) -> bool {
        self.open.next().min(self.agenda.next()) < Time::MAX
    }
}

fn is_news(told: &Input) -> bool {
    match told {
        Input::Snapshot(_) | Input::SnapshotFailed { .. } | Input::TimerDue => false,
        Input::Started(_)
        | Input::Reconfigured(_)
        | Input::Submitted { .. }
        | Input::Cancelled { .. }
        | Input::GrantFinished { .. }
        | Input::GrantFailed { .. }
        | Input::LoadFinished { .. }
        | Input::LoadFailed { .. }
        | Input::Exited { .. }
        | Input::StopFinished { .. }
        | Input::Pressure { .. }
        | Input::OutOfMemory { .. }
        | Input::Operator(_) => true,
    }
}

fn is_order<S>(effect: &Effect<S>) -> bool {
    match effect {
        Effect::Snapshot { .. } | Effect::Note(_) | Effect::Learned(_) => false,
        Effect::Grant(_) | Effect::Load { .. } | Effect::Stop { .. } | Effect::Abort { .. } | Effect::Finish(_) => true,
    }
}
