//! What differs between operating systems: what can be learnt of a process, and how it dies with its parent.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod plain;

#[cfg(target_os = "linux")]
pub use linux::{die_with, marked, processor_time, resident, start_of};
#[cfg(not(target_os = "linux"))]
pub use plain::{die_with, marked, processor_time, resident, start_of};

#[cfg(unix)]
pub use unix::{kill, kill_group};

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to.
    Term,
    /// It is made to.
    Kill,
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    use super::Ending;

    /// Signals a process. That there may be none is what whoever waits for its end finds out.
    pub fn kill(pid: u32, ending: Ending) {
        if let Some(pid) = named(pid) {
            let _nobody = kill_process(pid, signal(ending));
        }
    }

    /// Signals a process and everybody in its group.
    pub fn kill_group(pid: u32, ending: Ending) {
        if let Some(pid) = named(pid) {
            let _nobody = kill_process_group(pid, signal(ending));
        }
    }

    fn named(pid: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(pid).ok()?)
    }

    fn signal(ending: Ending) -> Signal {
        match ending {
            Ending::Term => Signal::TERM,
            Ending::Kill => Signal::KILL,
        }
    }
}
