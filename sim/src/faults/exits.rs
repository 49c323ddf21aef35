//! Faults of processes that end.

use windtunnel_config::FaultKind;
use windtunnel_core::{DeviceId, ModelId, Span, Time};

use super::Faults;

/// A process that does not stop by itself is killed after so long.
pub const KILL_AFTER: Span = Span::from_secs(10);

/// What the end of a process leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitFate {
    /// Its memory stays taken for so long; `None`: as long as on any exit.
    pub lingers: Option<Span>,
    /// In so many readings its memory is shown as in use though it is not listed.
    pub phantom: u32,
}

/// How a process takes the order to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopFate {
    /// So much longer than usual.
    pub extra: Span,
    /// But at least so long.
    pub least: Span,
}

impl Faults {
    /// What a process leaves behind that ends at `now`.
    pub fn exit(&mut self, now: Time, model: ModelId, device: DeviceId) -> ExitFate {
        let polls = |kind: &FaultKind| if let FaultKind::PhantomMemory { polls } = *kind { Some(polls) } else { None };
        let lasts =
            |kind: &FaultKind| if let FaultKind::LingeringMemory { lasts } = *kind { Some(lasts) } else { None };
        ExitFate {
            phantom: self.struck(now, model, device, polls).map(|(polls, _)| polls).max().unwrap_or(0),
            lingers: self.struck(now, model, device, lasts).map(|(lasts, _)| lasts).max(),
        }
    }

    /// How a process takes the order to stop at `now`.
    pub fn stop(&mut self, now: Time, model: ModelId, device: DeviceId) -> StopFate {
        let lasts = |kind: &FaultKind| if let FaultKind::SlowExit { lasts } = *kind { Some(lasts) } else { None };
        let least = |kind: &FaultKind| (*kind == FaultKind::NeverExits).then_some(KILL_AFTER);
        StopFate {
            extra: self.struck(now, model, device, lasts).fold(Span::ZERO, |sum, (lasts, _)| sum.plus(lasts)),
            least: self.struck(now, model, device, least).map(|(least, _)| least).max().unwrap_or(Span::ZERO),
        }
    }
}
