//! Which device of a scenario is which of a recording.
//!
//! Names decide. A scenario numbers the cards of a group, so a recorded device whose name has no number, such as a daemon's
//! `cpu`, is the first card of the group of that name.

use windtunnel_core::{Configuration, DeviceId};

/// The devices that a recording and a scenario share.
#[derive(Clone, Debug)]
pub struct SameDevices {
    /// By recorded device: the scenario's.
    ours: Vec<Option<usize>>,
}

impl SameDevices {
    /// Those of `recorded` among those of `ours`.
    pub fn of(recorded: &Configuration, ours: &Configuration) -> SameDevices {
        let named = |name: &str| ours.devices.iter().position(|other| other.name == name);
        let exact: Vec<Option<usize>> = recorded.devices.iter().map(|device| named(&device.name)).collect();
        let first = |name: &str| named(&format!("{name}0")).filter(|at| !exact.contains(&Some(*at)));
        let matched = exact.iter().zip(&recorded.devices).map(|(found, device)| found.or_else(|| first(&device.name)));
        SameDevices { ours: matched.collect() }
    }

    /// The scenario's device that `recorded` is.
    pub fn here(&self, recorded: DeviceId) -> Option<DeviceId> {
        self.ours.get(recorded.index()).copied().flatten().map(|at| DeviceId(at as u32))
    }

    /// The recorded device that the scenario's is.
    pub fn recorded(&self, here: DeviceId) -> Option<DeviceId> {
        self.ours.iter().position(|at| *at == Some(here.index())).map(|at| DeviceId(at as u32))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windtunnel_config::ScenarioFile;

    use super::*;

    fn with_devices(groups: &str) -> Configuration {
        let text = format!(
            r#"{groups}
            [run]
            horizon = "1s"
            [models.m]
            service = {{ kind = "batch", alpha = "1ms" }}
            [[workload]]
            name = "w"
            model = "m"
            arrivals = {{ process = "at", times = ["0s"] }}
            "#
        );
        let file = ScenarioFile::parse(&text, Path::new("devices.toml")).unwrap();
        file.resolve(&[]).unwrap().configuration
    }

    fn renamed(mut configuration: Configuration, names: &[&str]) -> Configuration {
        for (device, name) in configuration.devices.iter_mut().zip(names) {
            device.name = (*name).to_owned();
        }
        configuration
    }

    #[test]
    fn names_decide_and_one_without_a_number_is_the_first_of_its_group() {
        let ours = with_devices("[[devices]]\nname = \"cpu\"\n[[devices]]\nname = \"gpu\"\ncount = 2");
        let recorded = renamed(with_devices("[[devices]]\nname = \"x\"\ncount = 4"), &["gpu1", "cpu", "gpu", "tpu"]);
        let same = SameDevices::of(&recorded, &ours);
        let here: Vec<_> = (0..4).map(|id| same.here(DeviceId(id))).collect();
        let places = ours.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>();
        assert_eq!(places, ["cpu0", "gpu0", "gpu1"]);
        assert_eq!(here, [Some(DeviceId(2)), Some(DeviceId(0)), Some(DeviceId(1)), None]);
        assert_eq!(same.recorded(DeviceId(2)), Some(DeviceId(0)));
        assert_eq!(same.here(DeviceId(9)), None);
    }

    #[test]
    fn the_first_of_a_group_that_was_recorded_itself_is_nobody_else() {
        let ours = with_devices("[[devices]]\nname = \"gpu\"\ncount = 2");
        let recorded = renamed(with_devices("[[devices]]\nname = \"x\"\ncount = 2"), &["gpu", "gpu0"]);
        let same = SameDevices::of(&recorded, &ours);
        assert_eq!([same.here(DeviceId(0)), same.here(DeviceId(1))], [None, Some(DeviceId(0))]);
    }
}
