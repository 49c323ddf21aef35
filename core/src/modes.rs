//! Modes: a device is interactive while somebody is served or waits for a slot of it, and for a while after.

use crate::{Class, DeviceId, Effects, Mode, Note, Scheduler, Time};

impl Scheduler {
    /// Brings a device's mode up to date. The end of the window is acted on by the timer of that very moment.
    #[inline]
    pub(crate) fn update_mode(&mut self, id: DeviceId, effects: &mut Effects) {
        let device = &self.devices[id.index()];
        if device.mode == Mode::Interactive && device.interactive > 0 {
            return;
        }
        let windowed = device.mode == Mode::Interactive && !self.policy().interactive_idle.is_zero();
        let open = windowed && (self.now < device.window || (self.now == device.window && !self.lapsing));
        let mode =
            if device.interactive > 0 || open || self.interactive_waits(id) { Mode::Interactive } else { Mode::Idle };
        if mode != device.mode {
            self.touched.all = true;
            self.change_device(id, |device| device.mode = mode);
            effects.note(Note::Mode { device: id, mode });
        }
    }

    /// Whether an interactive job waits for a slot of a ready instance of the device.
    pub(crate) fn interactive_waits(&self, id: DeviceId) -> bool {
        if self.queued[Class::Interactive.index()].jobs == 0 {
            return false;
        }
        self.devices[id.index()].instances.iter().any(|instance| {
            let instance = &self.instances[*instance];
            instance.slot.is_ready() && self.head(instance, Class::Interactive).is_some()
        })
    }

    /// When a device leaves interactive mode if nothing else happens.
    #[inline]
    pub(crate) fn window_end(&self, id: DeviceId) -> Option<Time> {
        let device = &self.devices[id.index()];
        let counting = device.mode == Mode::Interactive && device.interactive == 0;
        let due = device.window > self.now || (device.window == self.now && !self.interactive_waits(id));
        (counting && due).then_some(device.window)
    }
}
