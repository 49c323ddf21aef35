//! What the gateway asks of the daemon around it, and what it tells it.

use std::time::Duration;

use windtunnel_core::{Class, JobId, LabelId, ModelId, View};

/// The rest of the daemon, as far as clients ask for it through the gateway.
pub trait Operations: Send + Sync {
    /// Everything measured, in the text form of Prometheus, with a picture of the moment. Must not wait.
    fn metrics(&self, view: &View) -> String;

    /// Readable lines of the steps numbered `after` and later that are still kept, and the number of the next step.
    fn events(&self, after: u64) -> (u64, Vec<String>);

    /// Reads the configuration again; may block.
    ///
    /// # Errors
    /// Says what is wrong with the file and where; nothing has changed then.
    fn reload(&self) -> Result<String, String>;

    /// Where the daemon is in its life.
    fn phase(&self) -> Phase;

    /// A request for inference was answered, refused or left, or any other was refused. Must not wait.
    fn answered(&self, answered: &Answered) {
        let _ = answered;
    }
}

/// Where the daemon is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not everything is there yet; nothing is served.
    Starting,
    /// It serves.
    Serving,
    /// What runs may end; nothing new is taken.
    Draining,
}

/// One request for inference, or one of any other kind that was refused, after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its job; `None`: it never became one.
    pub job: Option<JobId>,
    /// Who sent it.
    pub label: LabelId,
    /// Its class, where it is known.
    pub class: Option<Class>,
    /// The model that answered.
    pub model: Option<ModelId>,
    /// The status the client got; 0: it left before it got any.
    pub status: u16,
    /// `ok`, `left`, or the word of the reason header.
    pub reason: &'static str,
    /// From its arrival to its first grant.
    pub queued: Option<Duration>,
    /// From its arrival to the first byte of an answer.
    pub first_byte: Option<Duration>,
    /// From its arrival to its end.
    pub total: Duration,
}

impl Phase {
    /// Its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Serving => "serving",
            Phase::Draining => "draining",
        }
    }
}
