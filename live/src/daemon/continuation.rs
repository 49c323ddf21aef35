//! A new configuration as the continuation of an old one: ids keep their meaning.
//!
//! Ids are places in lists, and the file may list things in another order, leave some out and bring new ones. So the lists
//! of the new configuration are put in the order of the old one: what both name stands at its old place, what only the new
//! one names comes after, and what only the old one names stays where it is under a name nobody can ask for.

use std::collections::BTreeSet;

use windtunnel_config::{ClientKey, Daemon, Secret};
use windtunnel_core::{DeviceId, Family, Model, ModelId, Placement, Variant};

/// A configuration whose ids continue those of another.
#[derive(Clone, Debug)]
pub struct Continued {
    /// The configuration.
    pub daemon: Daemon,
    /// Models that only earlier configurations named.
    pub removed: Vec<ModelId>,
    /// Places of keys that only earlier configurations named.
    pub retired: BTreeSet<usize>,
    /// Models that are new, or whose processes would be started in another way from now on.
    pub renewed: Vec<ModelId>,
}

/// What marks the names of what is gone.
const GONE: &str = " (removed)";

/// `new` with the ids of `old`.
pub fn continued(old: &Daemon, new: Daemon) -> Continued {
    let devices = Places::of(
        old.configuration.devices.iter().map(|one| one.name.as_str()),
        new.configuration.devices.iter().map(|one| one.name.as_str()),
    );
    let models = Places::of(
        old.configuration.models.iter().map(|one| one.name.as_str()),
        new.configuration.models.iter().map(|one| one.name.as_str()),
    );
    let families = Places::of(
        old.configuration.families.iter().map(|one| one.name.as_str()),
        new.configuration.families.iter().map(|one| one.name.as_str()),
    );
    let keys = Places::of(old.keys.iter().map(|key| key.name.as_str()), new.keys.iter().map(|key| key.name.as_str()));

    let mut daemon = new.clone();
    let told = &mut daemon.configuration;
    told.devices = devices.put(&old.configuration.devices, new.configuration.devices, |device| device);
    let own = new.configuration.models.into_iter().map(|model| renumbered(model, &devices)).collect();
    told.models = models.put(&old.configuration.models, own, retired_model);
    let own = new.configuration.families.into_iter().map(|family| revised(family, &models)).collect();
    told.families = families.put(&old.configuration.families, own, retired_family);
    daemon.keys = keys.put(&old.keys, new.keys, retired_key);
    daemon.configuration.labels = labels(&daemon.keys);
    daemon.launches = models.put(&old.launches, new.launches, |launch| launch);
    daemon.footprints = models.put(&old.footprints, new.footprints, |footprint| footprint);
    daemon.sources = devices.put(&old.sources, new.sources, |source| source);
    daemon.cards = devices.put(&old.cards, new.cards, |card| card);
    let width = daemon.configuration.devices.len();
    let wide = |mut row: Vec<_>| {
        row.resize(width, None);
        row
    };
    let own = new.services.into_iter().map(|row| devices.spread(row)).collect();
    let old_services: Vec<_> = old.services.iter().cloned().map(wide).collect();
    daemon.services = models.put(&old_services, own, |row| row);

    let removed: Vec<ModelId> = models.left_out().filter_map(|place| u32::try_from(place).ok().map(ModelId)).collect();
    let renewed = (0..daemon.configuration.models.len()).filter(|&at| is_renewed(old, &daemon, at));
    let renewed =
        renewed.filter_map(|at| u32::try_from(at).ok().map(ModelId)).filter(|id| !removed.contains(id)).collect();
    Continued { daemon, removed, retired: keys.left_out().collect(), renewed }
}

/// The names of labels: whoever has no key, then the keys.
fn labels(keys: &[ClientKey]) -> Vec<String> {
    std::iter::once("anonymous".to_owned()).chain(keys.iter().map(|key| key.name.clone())).collect()
}

/// Whether the processes of the model at a place would be started in another way than before.
fn is_renewed(old: &Daemon, new: &Daemon, at: usize) -> bool {
    let (Some(was), Some(is)) = (old.configuration.models.get(at), new.configuration.models.get(at)) else {
        return true;
    };
    let devices = |daemon: &Daemon, model: &Model| -> Vec<_> {
        model.placements.iter().map(|place| (place.device, daemon.sources.get(place.device.index()).cloned())).collect()
    };
    was.capacity != is.capacity
        || old.launches.get(at) != new.launches.get(at)
        || old.footprints.get(at) != new.footprints.get(at)
        || old.server.llama_server != new.server.llama_server
        || devices(old, was) != devices(new, is)
}

fn renumbered(model: Model, devices: &Places) -> Model {
    let place = |place: Placement| Placement { device: DeviceId(devices.of_new(place.device.0)), ..place };
    Model { placements: model.placements.into_iter().map(place).collect(), ..model }
}

fn revised(family: Family, models: &Places) -> Family {
    let variant = |variant: Variant| Variant { model: ModelId(models.of_new(variant.model.0)), ..variant };
    Family { variants: family.variants.into_iter().map(variant).collect(), ..family }
}

fn retired_model(model: Model) -> Model {
    Model { name: gone(model.name), aliases: Vec::new(), preload: false, pinned: false, ..model }
}

/// A family without variants: what waits for it fails, and nobody can ask for it.
fn retired_family(family: Family) -> Family {
    Family { name: gone(family.name), aliases: Vec::new(), variants: Vec::new() }
}

/// A key that nobody knows.
fn retired_key(key: ClientKey) -> ClientKey {
    let unknown = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
    ClientKey { name: gone(key.name), secret: Secret::Inline(unknown), admin: false, ..key }
}

fn gone(name: String) -> String {
    if name.ends_with(GONE) { name } else { name + GONE }
}

/// Where the things of two lists stand in the list that continues the first.
struct Places {
    /// By place in the old list: the place in the new one.
    kept: Vec<Option<usize>>,
    /// By place in the new list: the place in the continuation.
    places: Vec<usize>,
}

impl Places {
    fn of<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> Places {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.collect(), new.collect());
        let kept = old.iter().map(|name| new.iter().position(|other| other == name)).collect();
        let mut next = old.len();
        let place = |name: &&str| {
            old.iter().position(|other| other == name).unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        Places { kept, places: new.iter().map(place).collect() }
    }

    /// The continuation's number of a thing of the new list.
    fn of_new(&self, number: u32) -> u32 {
        let place = self.places.get(number as usize).copied();
        place.and_then(|place| u32::try_from(place).ok()).unwrap_or(number)
    }

    /// The continuation of `old` by `new`, where `retire` marks what is gone.
    fn put<T: Clone>(&self, old: &[T], new: Vec<T>, retire: impl Fn(T) -> T) -> Vec<T> {
        let mut all: Vec<Option<T>> = old.iter().cloned().map(Some).collect();
        for (one, &kept) in all.iter_mut().zip(&self.kept) {
            if kept.is_none() {
                *one = one.take().map(&retire);
            }
        }
        for (thing, &place) in new.into_iter().zip(&self.places) {
            if all.len() <= place {
                all.resize(place + 1, None);
            }
            all[place] = Some(thing);
        }
        all.into_iter().flatten().collect()
    }

    /// A row of values by place in the new list, by place in the continuation.
    fn spread<T: Clone>(&self, row: Vec<Option<T>>) -> Vec<Option<T>> {
        let width = self.places.iter().map(|place| place + 1).max().unwrap_or(0).max(self.kept.len());
        let mut wide = vec![None; width];
        for (value, &place) in row.into_iter().zip(&self.places) {
            wide[place] = value;
        }
        wide
    }

    /// Places of what only the old list names.
    fn left_out(&self) -> impl Iterator<Item = usize> {
        let gone = self.kept.iter().enumerate().filter(|(_, kept)| kept.is_none());
        gone.map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windtunnel_config::DaemonFile;

    use super::*;

    fn daemon(text: &str) -> Daemon {
        let file = DaemonFile::parse(text, Path::new("windtunnel.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
        file.resolve(&[], &[]).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    const OLD: &str = r#"
        devices = [{ name = "a", backend = "simulated" }, { name = "b", backend = "simulated" }]
        keys = [{ name = "chat", key = "one" }, { name = "index", key = "two" }]
        models.chat = { footprint = "1GiB", service = { kind = "slots", decode_alpha = "10ms" } }
        models.code = { footprint = "2GiB", service = { kind = "slots", decode_alpha = "20ms" } }
        models.more = { footprint = "3GiB", service = { kind = "slots", decode_alpha = "30ms" } }
        families.pair = { variants = [{ model = "chat", quality = "preferred" }, { model = "code", quality = "compact" }] }
    "#;

    const NEW: &str = r#"
        devices = [{ name = "c", backend = "simulated" }, { name = "b", backend = "simulated" }]
        keys = [{ name = "agent", key = "three" }, { name = "chat", key = "one" }]
        models.fresh = { footprint = "4GiB", service = { kind = "slots", decode_alpha = "40ms" } }
        models.more = { footprint = "3GiB", service = { kind = "slots", decode_alpha = "30ms" } }
        models.chat = { footprint = "1.5GiB", service = { kind = "slots", decode_alpha = "10ms" } }
        families.trio = { variants = [{ model = "fresh", quality = "preferred" }, { model = "chat", quality = "compact" }] }
    "#;

    #[test]
    fn what_both_name_keeps_its_place_and_the_rest_comes_after() {
        let (old, next) = (daemon(OLD), continued(&daemon(OLD), daemon(NEW)));
        let names = |daemon: &Daemon| -> Vec<String> {
            daemon.configuration.models.iter().map(|model| model.name.clone()).collect()
        };
        assert_eq!(names(&next.daemon), ["chat", "code (removed)", "more", "fresh"]);
        assert_eq!(next.removed, [ModelId(1)]);
        let devices: Vec<&str> = next.daemon.configuration.devices.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(devices, ["a0", "b0", "c0"]);
        let placed = |model: usize| -> Vec<u32> {
            next.daemon.configuration.models[model].placements.iter().map(|place| place.device.0).collect()
        };
        assert_eq!((placed(0), placed(3)), (vec![2, 1], vec![2, 1]), "as the new file lists its devices");
        let families = &next.daemon.configuration.families;
        assert_eq!((families[0].variants.len(), families[1].name.as_str()), (0, "trio"));
        assert_eq!(families[1].variants.iter().map(|one| one.model.0).collect::<Vec<_>>(), [3, 0]);
        assert_eq!(next.daemon.configuration.labels, ["anonymous", "chat", "index (removed)", "agent"]);
        assert_ne!(next.daemon.keys[1].secret, old.keys[1].secret);
        assert_eq!(next.retired, [1].into());
        for list in [next.daemon.launches.len(), next.daemon.footprints.len(), next.daemon.services.len()] {
            assert_eq!(list, 4);
        }
        assert!(next.daemon.services.iter().all(|row| row.len() == 3));
    }

    #[test]
    fn the_same_file_changes_nothing() {
        let (old, next) = (daemon(OLD), continued(&daemon(OLD), daemon(OLD)));
        assert_eq!((next.removed, next.renewed), (vec![], vec![]));
        assert_eq!(next.daemon, old);
    }

    #[test]
    fn models_with_another_footprint_are_started_anew() {
        let changed = OLD.replace("2GiB", "2.5GiB");
        assert_eq!(continued(&daemon(OLD), daemon(&changed)).renewed, [ModelId(1)]);
    }
}
