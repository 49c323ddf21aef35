//! The list of children on disk, and what a daemon does with the list of one that crashed: it ends those that still carry
//! its marks. A process counts as listed only if its number, its start and its mark all are, and nobody of a daemon that
//! lives is touched.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::platform::{self, Ending};
use crate::whole_file::{self, Outlasts, Readers};

/// From TERM to KILL, and from KILL until nobody waits any more.
const GRACE: Duration = Duration::from_secs(2);

/// The list of one daemon.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    list: List,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    daemon: Listed,
    children: Vec<Child>,
}

/// A process, by its number and its start, since numbers come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    pid: u32,
    start: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Child {
    #[serde(flatten)]
    process: Listed,
    mark: String,
    model: String,
}

/// A process that an earlier daemon left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its number.
    pub pid: u32,
    /// Its model.
    pub model: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has ended.
    Ended,
    /// It could not be killed and still holds what it has.
    Remains,
}

impl Listed {
    fn new(pid: u32) -> Listed {
        Listed { pid, start: platform::start_of(pid) }
    }

    fn lives(self) -> bool {
        self.start.is_some() && platform::start_of(self.pid) == self.start
    }
}

impl Ledger {
    /// Begins a list in `folder`, after the children of an earlier one there were ended. May take seconds.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn begin(folder: &Path) -> io::Result<(Ledger, Vec<Orphan>)> {
        fs::create_dir_all(folder)?;
        let path = folder.join("children.json");
        let earlier = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<List>(&bytes).ok());
        let orphans = earlier.map(List::end).unwrap_or_default();
        let list = List { daemon: Listed::new(std::process::id()), children: Vec::new() };
        let ledger = Ledger { path, list };
        ledger.write()?;
        Ok((ledger, orphans))
    }

    /// A child was started.
    ///
    /// # Errors
    /// If that cannot be written down.
    pub fn add(&mut self, pid: u32, mark: String, model: String) -> io::Result<()> {
        self.list.children.push(Child { process: Listed::new(pid), mark, model });
        self.write()
    }

    /// A child is gone.
    ///
    /// # Errors
    /// If that cannot be written down.
    pub fn remove(&mut self, pid: u32) -> io::Result<()> {
        self.list.children.retain(|child| child.process.pid != pid);
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        // A machine that loses power has no children afterwards.
        whole_file::replace(&self.path, &serde_json::to_vec(&self.list)?, Readers::All, Outlasts::TheProgram)
    }
}

impl List {
    /// Ends who is left of it.
    fn end(self) -> Vec<Orphan> {
        if self.daemon.lives() {
            return Vec::new();
        }
        let left: Vec<Child> = self.children.into_iter().filter(Child::is_left).collect();
        left.iter().for_each(|child| child.signal(Ending::Term));
        wait(&left);
        left.iter().filter(|child| child.is_left()).for_each(|child| child.signal(Ending::Kill));
        wait(&left);
        // What they started themselves carries their marks.
        let marks: Vec<&str> = left.iter().map(|child| child.mark.as_str()).collect();
        end_marked(&marks);
        left.iter().map(Child::orphan).collect()
    }
}

impl Child {
    fn is_left(&self) -> bool {
        self.process.lives() && platform::marked(&[&self.mark]).contains(&self.process.pid)
    }

    #[cfg(unix)]
    fn signal(&self, ending: Ending) {
        platform::kill(self.process.pid, ending);
    }

    /// Nobody is found again here.
    #[cfg(not(unix))]
    fn signal(&self, _ending: Ending) {}

    fn orphan(&self) -> Orphan {
        let fate = if self.is_left() { Fate::Remains } else { Fate::Ended };
        Orphan { pid: self.process.pid, model: self.model.clone(), fate }
    }
}

fn wait(left: &[Child]) {
    let started = Instant::now();
    while left.iter().any(|child| child.process.lives()) && started.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills whoever carries one of these marks.
pub fn end_marked(marks: &[&str]) {
    if marks.is_empty() {
        return;
    }
    for pid in platform::marked(marks) {
        #[cfg(unix)]
        platform::kill(pid, Ending::Kill);
        #[cfg(not(unix))]
        let _nobody = pid;
    }
}
