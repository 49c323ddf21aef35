//! Connections to instances, kept for a moment between two requests.
//!
//! A connection costs more of a small request than anything else, so one whose answer has come whole waits for the next
//! request to the same instance. But a `llama-server` closes idle connections after some seconds, and all after a number of requests
//! that differs from build to build; and its HTTP library holds a thread for each that is open. Therefore:
//!
//! * none is used again that has been idle for two seconds, or for less where the server says so, nor for more requests
//!   than the server says, four where it says nothing ([`Terms`]);
//! * no more of them wait than the instance has slots, and those whose time is over are closed whether somebody comes or
//!   not, by one timer an instance ([`Lines`]);
//! * they are closed at once when the instance is asked to stop, and gone when it is.
//!
//! Nobody but the task of the request that it carries drives a connection, so who drops the request drops the connection; and
//! nobody drives one that waits. Whether the server has closed it meanwhile is looked at when it is taken, and shows at the
//! latest when it is used: [`LineError::Unheard`] says that a request may be tried again.

mod line;
mod shelf;
mod terms;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{runtime::Handle, time::Instant};

pub(crate) use line::{Line, LineError, Pieces};
pub(crate) use terms::Terms;

use shelf::{Put, Shelf};

/// No connection is used again that has been idle for longer.
const LONGEST_IDLE: Duration = Duration::from_secs(2);

/// The connections to one instance that wait for a request.
#[derive(Debug)]
pub struct Lines {
    idle: Duration,
    shelf: Mutex<Shelf<Box<Line>>>,
}

impl Lines {
    /// Keeps as many as `most`, the slots of the instance, for two seconds at the longest.
    pub fn new(most: u32) -> Lines {
        Lines::lasting(most, LONGEST_IDLE)
    }

    /// The same for another time at the longest.
    pub fn lasting(most: u32, idle: Duration) -> Lines {
        Lines { idle, shelf: Mutex::new(Shelf::new(usize::try_from(most).unwrap_or(usize::MAX))) }
    }

    /// One on which a request can be sent, as far as one can see.
    pub(crate) fn take(&self) -> Option<Box<Line>> {
        loop {
            let mut line = self.shelf().take(Instant::now())?;
            if line.is_free() {
                return Some(line);
            }
        }
    }

    /// Takes one back whose answer has come whole; closes it if it is not to be used again.
    pub(crate) fn put(self: &Arc<Lines>, mut line: Box<Line>, terms: Terms) {
        if line.requests() >= terms.requests || !line.is_free() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let until = Instant::now() + terms.idle.min(self.idle);
        let put = self.shelf().put(line, until);
        match put {
            Put::First => drop(runtime.spawn(sweep(Arc::downgrade(self)))),
            Put::Beside | Put::Refused(_) => {}
        }
    }

    /// Closes those that wait, and keeps none from now on: the instance is asked to stop.
    pub(crate) fn close(&self) {
        let idle = self.shelf().close();
        drop(idle);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Box<Line>>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes those whose time is over for as long as any wait.
async fn sweep(lines: Weak<Lines>) {
    while let Some(next) = lines.upgrade().and_then(|lines| lines.shelf().sweep(Instant::now())) {
        tokio::time::sleep_until(next).await;
    }
}
