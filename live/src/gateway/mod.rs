//! The HTTP side of the daemon: OpenAI's and Anthropic's paths in front of scheduled models.
//!
//! A request goes through these rooms:
//!
//! 1. `service` looks at its path (`routes`), its host and its key (`access`).
//! 2. `body` takes it in whole, unpacks it, and finds in one pass where the model's name is, what the prompt is like, and
//!    what is asked of the scheduler (`ask`).
//! 3. `exchange` brings a job to the scheduler and waits. A granted job is one request to one child (`upstream`), whose bytes go
//!    through as they come. A client that leaves at any moment drops all of this; the job's claim then says so, and gives the
//!    grant back once the child's slot is free.
//! 4. Texts to be embedded are jobs of several steps, which `batches` runs, possibly with those of other clients.
//! 5. What is not served is said by `refuse`, in the envelope of the path and with one word that is also the label of a metric.
//!
//! It is plain hyper: a `match` is router enough for two dozen paths whose rest may hold `/`, and a framework's layers would
//! cost allocations and nothing would be gained. No part of the gateway decides who runs; nothing here knows prompts but as
//! bytes, and neither prompts nor keys are ever logged.

mod access;
mod admin;
mod answer;
mod ask;
mod batches;
mod body;
mod catalogue;
mod connections;
mod exchange;
mod names;
mod operations;
mod refuse;
mod routes;
mod service;
mod settings;
mod shared;
mod under_way;
mod upstream;

pub use access::may_listen;
pub use batches::Work;
pub use catalogue::{Catalogue, Named};
pub use operations::{Answered, Operations, Phase};
pub use refuse::{reason_of_failure, reason_of_overdue, reason_of_refusal, reason_of_wait, sentence_of_wait};
pub use settings::{Key, Secret, Settings, SlotWatch, WithoutKeys};

use std::sync::Arc;

use tokio::{net::TcpListener, runtime::Handle, sync::mpsc::UnboundedReceiver};
use tokio_util::sync::CancellationToken;

use crate::{BatchOrder, Desk};
use shared::Shared;

/// Serves clients.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

impl Gateway {
    /// A gateway that brings jobs to `desk` and runs the batches it gets. Has to be made inside a tokio runtime, in which its
    /// work goes on.
    pub fn new(
        desk: Desk<Work>,
        settings: Settings,
        catalogue: Catalogue,
        operations: Arc<dyn Operations>,
        batches: UnboundedReceiver<BatchOrder<Work>>,
    ) -> Gateway {
        let shared = Arc::new(Shared::new(desk, settings, catalogue, operations, Handle::current()));
        tokio::spawn(batches::run(Arc::clone(&shared), batches));
        Gateway { shared }
    }

    /// New settings and names; requests under way keep those they came under.
    pub fn replace(&self, settings: Settings, catalogue: Catalogue) {
        self.shared.replace(settings, catalogue);
    }

    /// Serves until `shutdown` goes off, and then until what runs has ended or [`Settings::drain`] has passed: new and
    /// waiting requests are refused meanwhile, and answers that are still under way at the end are told so in their stream.
    ///
    /// # Errors
    /// If the listener may not be open without keys.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> std::io::Result<()> {
        connections::serve(&self.shared, listener, shutdown).await
    }

    /// Lets nothing under way go on once `shutdown` has gone off: clients are told in their streams.
    pub fn cut(&self) {
        connections::cut(&self.shared);
    }
}
