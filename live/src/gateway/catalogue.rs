//! The names clients use, and what they stand for.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde_json::{Value, json};
use windtunnel_core::{Capability, Class, Configuration, DeviceId, FamilyId, ModelId, Wanted};

/// Names of models, families and their aliases, as of one configuration.
#[derive(Clone, Debug)]
pub struct Catalogue {
    names: BTreeMap<String, Entry>,
    models: Vec<String>,
    families: Vec<(String, Vec<ModelId>)>,
    devices: Vec<String>,
    placements: Vec<Vec<DeviceId>>,
    capabilities: Vec<Vec<Capability>>,
    listing: Bytes,
}

#[derive(Clone, Debug)]
struct Entry {
    wanted: Wanted,
    described: Bytes,
}

/// A name a client used, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it stands for.
    pub wanted: Wanted,
    /// The class behind the name, as in `name@batch`.
    pub class: Option<Class>,
}

impl Default for Catalogue {
    /// No names.
    fn default() -> Catalogue {
        let mut catalogue = Catalogue {
            names: BTreeMap::new(),
            models: Vec::new(),
            families: Vec::new(),
            devices: Vec::new(),
            placements: Vec::new(),
            capabilities: Vec::new(),
            listing: Bytes::new(),
        };
        catalogue.list();
        catalogue
    }
}

impl Catalogue {
    /// The names of `configuration`, without those of models that were `removed` from it.
    pub fn of(configuration: &Configuration, removed: &[ModelId]) -> Catalogue {
        let mut catalogue = Catalogue {
            models: configuration.models.iter().map(|model| model.name.clone()).collect(),
            families: configuration
                .families
                .iter()
                .map(|family| (family.name.clone(), family.variants.iter().map(|variant| variant.model).collect()))
                .collect(),
            devices: configuration.devices.iter().map(|device| device.name.clone()).collect(),
            placements: configuration
                .models
                .iter()
                .map(|model| model.placements.iter().map(|place| place.device).collect())
                .collect(),
            capabilities: configuration.models.iter().map(|model| model.capabilities.clone()).collect(),
            ..Catalogue::default()
        };
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for (id, model) in (0..).map(ModelId).zip(&configuration.models) {
            if !removed.contains(&id) {
                catalogue.enter(Wanted::Model(id), "model", &model.name, &model.aliases, created);
            }
        }
        for (id, family) in (0..).map(FamilyId).zip(&configuration.families) {
            catalogue.enter(Wanted::Family(id), "family", &family.name, &family.aliases, created);
        }
        catalogue.list();
        catalogue
    }

    fn enter(&mut self, wanted: Wanted, kind: &str, name: &str, aliases: &[String], created: u64) {
        let own = json!({"kind": kind, "aliases": aliases});
        self.add(wanted, name, created, own);
        for alias in aliases {
            self.add(wanted, alias, created, json!({"kind": "alias", "of": name}));
        }
    }

    fn add(&mut self, wanted: Wanted, name: &str, created: u64, own: Value) {
        let described =
            json!({"id": name, "object": "model", "created": created, "owned_by": "windtunnel", "windtunnel": own});
        self.names.entry(name.to_owned()).or_insert(Entry { wanted, described: described.to_string().into() });
    }

    fn list(&mut self) {
        let entries: Vec<&[u8]> = self.names.values().map(|entry| entry.described.as_ref()).collect();
        let listing = [br#"{"object":"list","data":["#.as_slice(), &entries.join(&b","[..]), b"]}"].concat();
        self.listing = listing.into();
    }

    /// What a client means by `name`: a name as it is, else one with a class behind its last `@`.
    pub fn find(&self, name: &str) -> Option<Named> {
        if let Some(entry) = self.names.get(name) {
            return Some(Named { wanted: entry.wanted, class: None });
        }
        let (name, class) = name.rsplit_once('@')?;
        let class = Class::ALL.into_iter().find(|known| known.name() == class)?;
        self.names.get(name).map(|entry| Named { wanted: entry.wanted, class: Some(class) })
    }

    /// The only model or family there is; `None`: there are several, or none.
    pub(super) fn only(&self) -> Option<Named> {
        let mut all = self.names.values().map(|entry| entry.wanted);
        let first = all.next()?;
        all.all(|other| other == first).then_some(Named { wanted: first, class: None })
    }

    /// The name of a model; empty for one that never was.
    pub fn model(&self, id: ModelId) -> &str {
        self.models.get(id.index()).map_or("", String::as_str)
    }

    /// The name of a family; empty for one that never was.
    pub fn family(&self, id: FamilyId) -> &str {
        self.families.get(id.index()).map_or("", |(name, _)| name)
    }

    /// The variants of a family, best first.
    pub(super) fn variants(&self, id: FamilyId) -> &[ModelId] {
        self.families.get(id.index()).map_or(&[], |(_, variants)| variants)
    }

    /// The name of a device; empty for one that never was.
    pub fn device(&self, id: DeviceId) -> &str {
        self.devices.get(id.index()).map_or("", String::as_str)
    }

    /// Where a model may be placed, best first.
    pub(super) fn places(&self, id: ModelId) -> &[DeviceId] {
        self.placements.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// What a model says that it can do; empty: nothing is said.
    pub(super) fn capabilities(&self, id: ModelId) -> &[Capability] {
        self.capabilities.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// The device of that name.
    pub(super) fn device_named(&self, name: &str) -> Option<DeviceId> {
        let number = self.devices.iter().position(|device| device == name)?;
        u32::try_from(number).ok().map(DeviceId)
    }

    /// Every name that clients may use, aliases among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Every name, as clients ask for it at `/v1/models`.
    pub(super) fn listing(&self) -> Bytes {
        self.listing.clone()
    }

    /// One name, as clients ask for it at `/v1/models/{id}`.
    pub(super) fn described(&self, name: &str) -> Option<Bytes> {
        self.names.get(name).map(|entry| entry.described.clone())
    }
}
