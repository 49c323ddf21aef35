//! Notices that a file has changed, by looking at it once a second.

use std::{fs, path::PathBuf, time::Duration, time::SystemTime};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// A file that is watched.
#[derive(Debug)]
pub(super) struct Changes {
    path: Option<PathBuf>,
    seen: Option<State>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    size: u64,
    modified: Option<SystemTime>,
}

impl Changes {
    /// Watches a file from now on; nothing is ever noticed where there is none.
    pub fn of(path: Option<PathBuf>) -> Changes {
        let seen = path.as_ref().and_then(state);
        Changes { path, seen }
    }

    /// Waits until the file is another one and has rested for a moment: an editor may still be writing.
    pub async fn next(&mut self) {
        let Some(path) = self.path.clone() else { return std::future::pending().await };
        let mut before = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = state(&path);
            if now.is_some() && now != self.seen && now == before {
                self.seen = now;
                return;
            }
            before = now;
        }
    }

    /// The file has just been read, whoever asked for it.
    pub fn read(&mut self) {
        self.seen = self.path.as_ref().and_then(state);
    }
}

fn state(path: &PathBuf) -> Option<State> {
    let facts = fs::metadata(path).ok()?;
    Some(State { size: facts.len(), modified: facts.modified().ok() })
}
