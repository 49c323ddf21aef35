//! File descriptors: how many this process may have, and what it means to have none left.
//!
//! Every connection takes one, and so do pipes of children, connections to them, and files. Where clients could take them all,
//! nothing could be started or asked any more, so a share is kept from them.

use std::io;

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Kept from clients at the least, for files, children and their pipes.
const KEPT: usize = 64;

/// Allows this process as many descriptors as it may allow itself, and says how many that are. Children inherit this, which
/// does them no harm: theirs have low numbers as before.
pub fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // macOS allows fewer than it says.
        Err(_) => limit.current,
    };
    now.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// How many connections clients may have open together where there are `all` descriptors: a request that runs has another
/// connection to its child, so that half would do for requests; but most that are open wait or rest.
pub fn for_clients(all: usize) -> usize {
    all.saturating_sub((all / 4).max(KEPT)).max(1)
}

/// Whether something failed because there is no descriptor left: nobody's fault but ours, and it passes.
pub fn are_used_up(wrong: &io::Error) -> bool {
    let number = wrong.raw_os_error();
    number == Some(Errno::MFILE.raw_os_error()) || number == Some(Errno::NFILE.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_some_for_others() {
        assert_eq!(for_clients(1024), 768);
        assert_eq!(for_clients(128), 64);
        assert_eq!(for_clients(10), 1, "nobody is served otherwise");
    }

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        let most = raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current.map_or(usize::MAX, |now| now as usize), most);
        assert!(limit.current == limit.maximum || cfg!(target_os = "macos"));
    }

    #[test]
    fn only_missing_descriptors_are_ours() {
        assert!(are_used_up(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error())));
        assert!(!are_used_up(&io::Error::from_raw_os_error(Errno::CONNREFUSED.raw_os_error())));
    }
}
