//! Where models answer, for those who ask without a grant.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use windtunnel_core::{InstanceId, ModelId};

use crate::Endpoint;

/// The instances that are loaded and not about to be stopped. Kept up to date by the dispatcher, read by anybody.
#[derive(Debug, Default)]
pub struct Ready {
    instances: ArcSwap<BTreeMap<InstanceId, (ModelId, Arc<Endpoint>)>>,
}

impl Ready {
    /// Where a model answers; `None`: it is not loaded.
    pub fn endpoint_of(&self, model: ModelId) -> Option<Arc<Endpoint>> {
        let instances = self.instances.load();
        instances.values().find(|(of, _)| *of == model).map(|(_, endpoint)| Arc::clone(endpoint))
    }

    /// Whether an instance is there.
    pub fn has(&self, instance: InstanceId) -> bool {
        self.instances.load().contains_key(&instance)
    }

    pub(super) fn enter(&self, instance: InstanceId, model: ModelId, endpoint: Arc<Endpoint>) {
        self.change(|instances| {
            instances.insert(instance, (model, endpoint));
        });
    }

    /// Nobody is sent there any more, and nobody keeps a connection to it.
    pub(super) fn leave(&self, instance: InstanceId) {
        let Some((_, endpoint)) = self.instances.load().get(&instance).cloned() else { return };
        endpoint.lines.close();
        self.change(|instances| {
            instances.remove(&instance);
        });
    }

    /// Closes the connections that wait, and keeps none from now on: nobody is sent anywhere any more.
    pub(crate) fn close_lines(&self) {
        self.instances.load().values().for_each(|(_, endpoint)| endpoint.lines.close());
    }

    /// There is one writer, the dispatcher's thread.
    fn change(&self, with: impl FnOnce(&mut BTreeMap<InstanceId, (ModelId, Arc<Endpoint>)>)) {
        let mut instances = BTreeMap::clone(&self.instances.load());
        with(&mut instances);
        self.instances.store(Arc::new(instances));
    }
}
