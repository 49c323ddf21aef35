//! Targets: the ordered lists of model variants that jobs may use. Jobs with equal lists share a queue.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    Capacity, Choice, Class, Configuration, InstanceId, ModelId, Needs, Refusal, Scheduler, WaitReason, Wanted,
    job::Ask,
    queue::{Line, LineId, Scope},
    residency::Residency,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// In order of preference.
    pub variants: Vec<ModelId>,
    /// The queue of jobs that no routing has bound to an instance.
    pub shared: LineId,
    /// Ready instances, by variant, then by device.
    pub servers: Vec<InstanceId>,
    /// The variant chosen last, by class: an event is written when it changes.
    pub chosen: [Option<ModelId>; 3],
    /// The variant that waiting heads of a class are for, by class, and why not the best.
    pub assigned: [Assigned; 3],
    pub because: [Choice; 3],
    /// Why the head of a class waits for a model, by class.
    pub why: [Option<WaitReason>; 3],
    /// Jobs routed in turn so far.
    pub routed: u64,
    /// The most inputs that a batch of any variant takes; `None` where none batches.
    pub smallest_batch: Option<u32>,
    /// Smoothed output tokens of finished steps by class, in 1/1024 tokens.
    pub outputs: [Option<u64>; 3],
}

/// Which variants the planner has given to the waiting head of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Assigned {
    /// It has not looked yet, or nobody waits.
    #[default]
    Unsaid,
    /// Any that has a slot for it, since no better one can be had.
    Any,
    To(ModelId),
}

impl Scheduler {
    /// The target of what a client asked for; made when it is first asked for.
    #[inline]
    pub(crate) fn target_of(&mut self, ask: Ask) -> Result<u32, Refusal> {
        if let Wanted::Model(model) = ask.wanted
            && ask.needs.is_empty()
            && self.models.get(model.index()).is_some_and(|state| !state.removed)
        {
            return Ok(model.0);
        }
        let variants = self.variants_of(ask)?;
        match self.targets.iter().position(|target| target.variants == variants) {
            Some(known) => Ok(known as u32),
            None => Ok(self.add_target(variants)),
        }
    }

    fn variants_of(&self, ask: Ask) -> Result<Vec<ModelId>, Refusal> {
        let variants = match ask.wanted {
            Wanted::Model(model) => model_variants(&self.configuration, model, ask.needs)?,
            Wanted::Family(_) => family_variants(&self.configuration, ask)?,
        };
        let left: Vec<ModelId> = variants.into_iter().filter(|model| !self.models[model.index()].removed).collect();
        if left.is_empty() { Err(Refusal::UnknownModel) } else { Ok(left) }
    }

    /// A target for each model alone stands at the model's own number, so that the common case needs no search.
    pub(crate) fn add_target(&mut self, variants: Vec<ModelId>) -> u32 {
        let number = self.targets.len() as u32;
        let shared = self.add_line(number, Scope::Shared);
        let smallest_batch = self.smallest_batch(&variants);
        self.targets.push(Target {
            variants,
            shared,
            servers: Vec::new(),
            chosen: [None; 3],
            assigned: [Assigned::Unsaid; 3],
            because: [Choice::Best; 3],
            why: [None; 3],
            routed: 0,
            smallest_batch,
            outputs: [None; 3],
        });
        self.connect(number);
        number
    }

    pub(crate) fn smallest_batch(&self, variants: &[ModelId]) -> Option<u32> {
        let models = variants.iter().filter_map(|&model| self.configuration.model(model));
        let batches = models.filter_map(|model| match model.capacity {
            Capacity::Batch { max, .. } => Some(max),
            Capacity::Slots { .. } => None,
        });
        batches.min()
    }

    pub(crate) fn add_line(&mut self, target: u32, scope: Scope) -> LineId {
        let line = Line::new(target, scope, &self.configuration.policy.classes);
        if let Some(spare) = self.spare_lines.pop() {
            self.lines[spare.index()] = line;
            return spare;
        }
        self.lines.push(line);
        LineId(self.lines.len() as u32 - 1)
    }

    /// Brings a target's list of servers up to date, and lets every instance of its variants take from its queue.
    pub(crate) fn connect(&mut self, number: u32) {
        let target = &self.targets[number as usize];
        let servers = self.ready_instances(&target.variants);
        let shared = target.shared;
        for id in &servers {
            let lines = &mut self.instances[*id].lines;
            if !lines.contains(&shared) {
                lines.push(shared);
            }
        }
        self.targets[number as usize].servers = servers;
    }

    /// The ready instances of these models, by variant, then by device.
    pub(crate) fn ready_instances(&self, variants: &[ModelId]) -> Vec<InstanceId> {
        let mut servers = Vec::new();
        for &variant in variants {
            let place = |id: &InstanceId| self.instances[*id].device;
            let ready = |id: &InstanceId| self.instances[*id].slot.is_ready();
            let mut here: Vec<InstanceId> = self.instances_of(variant).filter(ready).collect();
            here.sort_by_key(|id| (place(id), *id));
            servers.extend(here);
        }
        servers
    }

    /// Brings every target that may use `model` up to date.
    pub(crate) fn connect_model(&mut self, model: ModelId) {
        for number in 0..self.targets.len() {
            if self.targets[number].variants.contains(&model) {
                self.connect(number as u32);
            }
        }
        self.count_open(model);
    }

    /// Counts a model's ready instances that have a free slot.
    pub(crate) fn count_open(&mut self, model: ModelId) {
        let open = self.instances_of(model).filter(|id| self.instances[*id].free() > 0).count();
        self.models[model.index()].open = open as u32;
    }

    /// Whether any instance that takes jobs from a line has a free slot.
    #[inline]
    pub(crate) fn any_open(&self, line: &Line) -> bool {
        match line.scope {
            Scope::Shared => {
                let variants = &self.targets[line.target as usize].variants;
                variants.iter().any(|model| self.models[model.index()].open > 0)
            }
            Scope::Instance(one) => self.instances[one].free() > 0,
        }
    }

    /// Instances of a model that are not gone.
    pub(crate) fn instances_of(&self, model: ModelId) -> impl Iterator<Item = InstanceId> {
        self.models.get(model.index()).map_or(&[][..], |state| &state.instances).iter().copied()
    }

    /// The instances that take jobs from a line.
    #[inline]
    pub(crate) fn servers(&self, line: &Line) -> ServerList<'_> {
        match line.scope {
            Scope::Shared => ServerList::Shared(&self.targets[line.target as usize].servers),
            Scope::Instance(one) => ServerList::One(one),
        }
    }

    /// Whether a class may take this variant from a line: what was routed to an instance stays with it, all else is as
    /// [`Scheduler::serves`] says.
    #[inline]
    pub(crate) fn suits(&self, line: &Line, class: Class, model: ModelId) -> bool {
        line.scope != Scope::Shared || self.serves(line.target, class, model)
    }

    /// Whether a class of a target may use this variant: interactive work the one it is meant for; lower classes any, but one
    /// that a user is talking to only where the planner says so, or where all variants are there for good.
    #[inline]
    pub(crate) fn serves(&self, target: u32, class: Class, model: ModelId) -> bool {
        let target = &self.targets[target as usize];
        if target.variants.len() == 1 {
            return true;
        }
        let assigned = target.assigned[class.index()];
        if class != Class::Interactive {
            let given = matches!(assigned, Assigned::Any) || assigned == Assigned::To(model);
            return given || !self.hot(model) || self.residency == Residency::Fixed;
        }
        match assigned {
            Assigned::To(meant) => meant == model,
            Assigned::Unsaid | Assigned::Any => {
                target.variants.iter().find(|&&variant| self.is_present(variant)) == Some(&model)
            }
        }
    }

    /// Whether a model has an instance that takes work, or will.
    pub(crate) fn is_present(&self, model: ModelId) -> bool {
        self.instances_of(model).any(|id| {
            let slot = &self.instances[id].slot;
            slot.is_ready() || matches!(slot, crate::instance::Slot::Loading { then: None, .. })
        })
    }
}

/// The instances that take jobs from a line.
pub(crate) enum ServerList<'a> {
    Shared(&'a [InstanceId]),
    One(InstanceId),
}

impl ServerList<'_> {
    #[inline]
    pub fn as_slice(&self) -> &[InstanceId] {
        match self {
            ServerList::Shared(list) => list,
            ServerList::One(one) => core::slice::from_ref(one),
        }
    }
}

fn model_variants(configuration: &Configuration, id: ModelId, needs: Needs) -> Result<Vec<ModelId>, Refusal> {
    let model = configuration.model(id).ok_or(Refusal::UnknownModel)?;
    if model.can(needs) { Ok(alloc::vec![id]) } else { Err(Refusal::NoSuchVariant) }
}

fn family_variants(configuration: &Configuration, ask: Ask) -> Result<Vec<ModelId>, Refusal> {
    let Wanted::Family(id) = ask.wanted else { return Err(Refusal::UnknownModel) };
    let family = configuration.families.get(id.index()).ok_or(Refusal::UnknownModel)?;
    let good = family.variants.iter().filter(|variant| ask.quality.is_none_or(|least| variant.quality <= least));
    let able = good.filter(|variant| configuration.model(variant.model).is_some_and(|model| model.can(ask.needs)));
    let variants: Vec<ModelId> = able.map(|variant| variant.model).collect();
    if variants.is_empty() { Err(Refusal::NoSuchVariant) } else { Ok(variants) }
}
