//! Names for ids, as far as the records so far tell them.

use windtunnel_core::{
    Capacity, Class, Configuration, DeviceId, Family, FamilyId, InstanceId, JobKind, LabelId, ModelId, Started,
    Submission, Wanted,
};

use super::record::Header;

/// What is known of names and of what instances are.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    devices: Vec<String>,
    models: Vec<String>,
    families: Vec<String>,
    labels: Vec<String>,
    instances: Vec<Option<(ModelId, DeviceId)>>,
    default_class: Option<Class>,
    chunk: u32,
    /// The most inputs of a batch of each model, and the models of each family.
    batches: Vec<Option<u32>>,
    variants: Vec<Vec<ModelId>>,
}

/// An instance id further than this beyond those known makes no sense.
const FAR: usize = 1 << 16;

impl Names {
    pub fn of(header: &Header) -> Names {
        Names {
            devices: header.devices.iter().map(|device| device.name.clone()).collect(),
            models: header.models.iter().map(|model| model.name.clone()).collect(),
            labels: header.workloads.iter().map(|workload| workload.name.clone()).collect(),
            ..Names::default()
        }
    }

    pub fn start(&mut self, started: &Started) {
        self.configure(&started.configuration);
        for (at, resident) in (0u32..).zip(&started.residents) {
            self.appear(InstanceId(at), resident.model, resident.device);
        }
    }

    pub fn configure(&mut self, configuration: &Configuration) {
        self.devices = configuration.devices.iter().map(|device| device.name.clone()).collect();
        self.models = configuration.models.iter().map(|model| model.name.clone()).collect();
        self.families = configuration.families.iter().map(|family| family.name.clone()).collect();
        self.labels = configuration.labels.clone();
        self.default_class = Some(configuration.policy.default_class);
        self.chunk = configuration.policy.embedding_chunk;
        let batch = |capacity| match capacity {
            Capacity::Batch { max, .. } => Some(max),
            Capacity::Slots { .. } => None,
        };
        self.batches = configuration.models.iter().map(|model| batch(model.capacity)).collect();
        let variants = |family: &Family| family.variants.iter().map(|variant| variant.model).collect();
        self.variants = configuration.families.iter().map(variants).collect();
    }

    pub fn appear(&mut self, instance: InstanceId, model: ModelId, device: DeviceId) {
        let at = instance.index();
        if at < self.instances.len() + FAR {
            self.instances.resize(self.instances.len().max(at + 1), None);
            self.instances[at] = Some((model, device));
        }
    }

    pub fn device(&self, id: DeviceId) -> &str {
        named(&self.devices, id.index())
    }

    pub fn model(&self, id: ModelId) -> &str {
        named(&self.models, id.index())
    }

    pub fn label(&self, id: LabelId) -> &str {
        named(&self.labels, id.index())
    }

    pub fn wanted(&self, wanted: Wanted) -> &str {
        match wanted {
            Wanted::Model(id) => self.model(id),
            Wanted::Family(FamilyId(id)) => named(&self.families, id as usize),
        }
    }

    /// The model and the device of an instance.
    pub fn instance(&self, id: InstanceId) -> Option<(ModelId, DeviceId)> {
        self.instances.get(id.index()).copied().flatten()
    }

    /// `m on gpu0`.
    pub fn place(&self, id: InstanceId) -> String {
        match self.instance(id) {
            Some((model, device)) => format!("{} on {}", self.model(model), self.device(device)),
            None => id.to_string(),
        }
    }

    pub fn class(&self, submission: &Submission) -> Class {
        submission.class.or(self.default_class).unwrap_or(Class::Interactive)
    }

    /// How many steps a job has: embeddings are cut, and no step is heavier than a batch of any variant.
    pub fn steps(&self, submission: &Submission) -> u32 {
        let variants = match &submission.wanted {
            Wanted::Model(model) => core::slice::from_ref(model),
            Wanted::Family(family) => self.variants.get(family.index()).map_or(&[][..], Vec::as_slice),
        };
        let batches = variants.iter().filter_map(|model| self.batches.get(model.index()).copied().flatten());
        let chunk = batches.fold(self.chunk, u32::min).max(1);
        match submission.kind {
            JobKind::Embedding => submission.inputs.div_ceil(chunk).max(1),
            JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => 1,
        }
    }
}

fn named(names: &[String], at: usize) -> &str {
    names.get(at).map_or("?", String::as_str)
}
