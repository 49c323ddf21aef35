//! Pressure: how scarce the host says memory is. It is raised at once and lowered after ten seconds of lower readings.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Effects, Note, PressureLevel, Scheduler, Span, Time};

/// How long readings have to be lower.
const LOWER_AFTER: Span = Span::from_secs(10);

/// The level that is acted on, and what was read since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pressure {
    pub level: PressureLevel,
    /// What was read last, and since when it has been read.
    pub read: (PressureLevel, Time),
    /// The highest level read since all have been lower, and since when.
    pub lower: Option<(PressureLevel, Time)>,
}

impl Default for Pressure {
    fn default() -> Pressure {
        Pressure { level: PressureLevel::Normal, read: (PressureLevel::Normal, Time::ZERO), lower: None }
    }
}

impl Scheduler {
    pub(crate) fn pressed(&mut self, id: DeviceId, read: PressureLevel, effects: &mut Effects) {
        let now = self.now;
        let Some(device) = self.devices.get_mut(id.index()) else {
            return effects.note(Note::Ignored { cause: crate::Nonsense::NoSuchPlacement });
        };
        let pressure = &mut device.memory.pressure;
        if read != pressure.read.0 {
            pressure.read = (read, now);
        }
        if read < pressure.level {
            let (highest, since) = pressure.lower.unwrap_or((read, now));
            pressure.lower = Some((highest.max(read), since));
            return;
        }
        pressure.lower = None;
        if read > pressure.level {
            pressure.level = read;
            effects.note(Note::Pressure { device: id, level: read });
            self.relieve(id, effects);
        }
    }

    /// Lowers the level once every reading was lower for long enough.
    pub(crate) fn lapse_pressure(&mut self, id: DeviceId, effects: &mut Effects) {
        let pressure = &mut self.devices[id.index()].memory.pressure;
        if let Some((level, since)) = pressure.lower
            && self.now >= since.after(LOWER_AFTER)
        {
            pressure.level = level;
            pressure.lower = (pressure.read.0 < level).then_some(pressure.read);
            effects.note(Note::Pressure { device: id, level });
        }
    }

    pub(crate) fn pressure_due(&self, id: DeviceId) -> Option<Time> {
        self.devices[id.index()].memory.pressure.lower.map(|(_, since)| since.after(LOWER_AFTER))
    }
}
