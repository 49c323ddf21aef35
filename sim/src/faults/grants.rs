//! Faults of grants under way.

use windtunnel_config::FaultKind;
use windtunnel_core::{DeviceId, ModelId, Span, Time};

use super::Faults;

/// What befalls an instance in the middle of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peril {
    /// Its process dies.
    Crash,
    /// It gets no further, and is killed after so long.
    Wedge(Span),
}

/// A peril of a grant that begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strike {
    pub peril: Peril,
    /// When, as a share of the time the grant takes at full speed, in [0, 1).
    pub share: f64,
}

impl Faults {
    /// Whether grants are ever in peril.
    pub fn imperil(&self) -> bool {
        self.plagues.iter().any(|plague| {
            matches!(
                plague.fault.kind,
                FaultKind::Crash
                    | FaultKind::Wedge { .. }
                    | FaultKind::ConnectionLimit { .. }
                    | FaultKind::SilentOvercommit
            )
        })
    }

    /// What befalls a grant that begins at `now`: the first fault of the file that strikes it.
    pub fn grant(&mut self, now: Time, model: ModelId, device: DeviceId) -> Option<Strike> {
        let struck = self.struck(now, model, device, peril);
        struck.fold(None, |first, (peril, mut draws)| first.or_else(|| Some(Strike { peril, share: draws.uniform() })))
    }

    /// Strikes at `now`, where a moment has come, the first of `running`; where none of them is concerned, the next grant that
    /// is will be struck. To be asked until nothing comes out.
    pub fn strike(&mut self, now: Time, running: &[(ModelId, DeviceId)]) -> Option<(Peril, usize)> {
        for plague in &mut self.plagues {
            let Some(peril) = peril(&plague.fault.kind) else { continue };
            while plague.take_moment(now) {
                match running.iter().position(|&(model, device)| plague.fault.concerns(model, device)) {
                    Some(place) => return Some((peril, place)),
                    None => plague.armed += 1,
                }
            }
        }
        None
    }

    /// After how many grants an instance closes its connection.
    pub fn connection_limit(&self, now: Time, model: ModelId, device: DeviceId) -> Option<u32> {
        let limits = self.plagues.iter().filter(|plague| plague.fault.concerns(model, device) && plague.is_open(now));
        let limits = limits.filter_map(|plague| {
            let FaultKind::ConnectionLimit { requests } = plague.fault.kind else { return None };
            Some(requests)
        });
        limits.min()
    }
}

fn peril(kind: &FaultKind) -> Option<Peril> {
    if let FaultKind::Wedge { lasts } = *kind {
        return Some(Peril::Wedge(lasts));
    }
    (*kind == FaultKind::Crash).then_some(Peril::Crash)
}
