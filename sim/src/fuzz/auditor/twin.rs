//! A second scheduler, restored from the latest checkpoint: it has to want the same for the rest (invariant 12).

use windtunnel_core::{Checkpoint, Effect, Effects, GrantedStep, Input, Scheduler, Time};

use super::Breach;

const RULE: &str = "a restored checkpoint goes on alike (12)";

/// The restored scheduler, once there is one.
#[derive(Debug, Default)]
pub struct Twin {
    scheduler: Option<Scheduler>,
    effects: Effects,
}

impl Twin {
    /// Starts anew from a checkpoint that was written down and read again.
    pub fn restore(&mut self, state: &Checkpoint) -> Result<(), Breach> {
        let unsound =
            |wrong: &dyn std::fmt::Display| Breach::new(RULE, format!("a checkpoint is not taken back: {wrong}"));
        let text = serde_json::to_vec(state).map_err(|wrong| unsound(&wrong))?;
        let state = serde_json::from_slice(&text).map_err(|wrong| unsound(&wrong))?;
        self.scheduler = Some(Scheduler::restore(state).map_err(|wrong| unsound(&wrong))?);
        Ok(())
    }

    pub fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> Result<(), Breach> {
        let Some(scheduler) = &mut self.scheduler else { return Ok(()) };
        scheduler.step(t, input, &mut self.effects);
        if same(&self.effects, effects) {
            return Ok(());
        }
        let (own, other) = (listed(&self.effects), listed(effects));
        let message = format!("after {input:?} the restored scheduler wants {own:?}, the other {other:?}");
        Err(Breach::new(RULE, message))
    }
}

fn same(one: &Effects, other: &Effects) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(own, its)| match (own, its) {
            (Effect::Grant(a), Effect::Grant(b)) => {
                own.map_steps(|_| ()) == its.map_steps(|_| ()) && one.steps(a.steps) == other.steps(b.steps)
            }
            _ => own == its,
        })
}

fn listed(effects: &Effects) -> Vec<Effect<Vec<GrantedStep>>> {
    effects.iter().map(|effect| effect.map_steps(|range| effects.steps(range).to_vec())).collect()
}
