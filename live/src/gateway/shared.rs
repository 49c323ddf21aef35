//! What everybody in the gateway works with.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use windtunnel_core::Wanted;

use super::{
    access::{Cors, Hosts, KeyRing},
    batches::Work,
    catalogue::Catalogue,
    operations::{Operations, Phase},
    settings::Settings,
    under_way::UnderWay,
};
use crate::{Desk, dispatcher::Trouble};

/// One gateway's state.
pub(super) struct Shared {
    pub desk: Desk<Work>,
    pub operations: Arc<dyn Operations>,
    /// Where work goes on that outlives its request.
    pub runtime: Handle,
    pub under_way: UnderWay,
    /// Goes off when the daemon begins to end.
    pub draining: CancellationToken,
    /// Goes off when it ends.
    pub cut: CancellationToken,
    rules: ArcSwap<Rules>,
    requests: AtomicU64,
    /// Tells the requests of one run from those of another.
    run: u64,
}

/// What a reload replaces; a request keeps those it came under.
pub(super) struct Rules {
    pub settings: Settings,
    pub catalogue: Catalogue,
    pub keys: KeyRing,
    pub hosts: Hosts,
    pub cors: Cors,
}

impl Rules {
    fn of(settings: Settings, catalogue: Catalogue, before: &KeyRing) -> Rules {
        let keys = KeyRing::of(&settings, before);
        let (hosts, cors) = (Hosts::of(&settings.hosts), Cors::of(&settings.origins));
        Rules { settings, catalogue, keys, hosts, cors }
    }
}

impl Shared {
    pub(super) fn new(
        desk: Desk<Work>,
        settings: Settings,
        catalogue: Catalogue,
        operations: Arc<dyn Operations>,
        runtime: Handle,
    ) -> Shared {
        Shared {
            desk,
            operations,
            runtime,
            under_way: UnderWay::default(),
            draining: CancellationToken::new(),
            cut: CancellationToken::new(),
            rules: ArcSwap::from_pointee(Rules::of(settings, catalogue, &KeyRing::default())),
            requests: AtomicU64::new(0),
            run: rand::random(),
        }
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    pub(super) fn replace(&self, settings: Settings, catalogue: Catalogue) {
        let rules = Rules::of(settings, catalogue, &self.rules.load().keys);
        self.rules.store(Arc::new(rules));
    }

    /// What is wrong with what was asked for: of the variants of a family, with the one that is tried again first.
    pub(super) fn trouble(&self, rules: &Rules, wanted: Wanted) -> Option<Trouble> {
        match wanted {
            Wanted::Model(model) => self.desk.trouble(model),
            Wanted::Family(family) => {
                let variants = rules.catalogue.variants(family).iter();
                let troubles = variants.filter_map(|model| self.desk.trouble(*model));
                troubles.min_by_key(|trouble| (trouble.next_try.is_none(), trouble.next_try))
            }
        }
    }

    /// Where the daemon is in its life; once the gateway ends, so does it.
    pub(super) fn phase(&self) -> Phase {
        if self.draining.is_cancelled() { Phase::Draining } else { self.operations.phase() }
    }

    /// A name for a request whose client gave it none.
    pub(super) fn new_request_id(&self) -> HeaderValue {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let name = format!("req_{:08x}{number:08x}", self.run as u32);
        HeaderValue::try_from(name).unwrap_or_else(|_| HeaderValue::from_static("req"))
    }
}
