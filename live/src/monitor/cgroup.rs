//! Limits that a control group sets on the memory of this process, in both versions of the kernel's interface.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a control group says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The most it may use, in bytes.
    pub limit: u64,
    /// What it uses, without pages of files that can be had again, in bytes; `None`: it does not say.
    pub used: Option<u64>,
    /// Where that stands.
    pub source: &'static str,
}

/// How one version of the interface names its files.
struct Names {
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` about pages of files that nobody used lately.
    inactive: &'static str,
    source: &'static str,
}

const SECOND: Names =
    Names { limit: "memory.max", used: "memory.current", inactive: "inactive_file", source: "cgroup memory.max" };
const FIRST: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
    source: "cgroup memory.limit_in_bytes",
};

/// What stands for no limit in the first version is about this much.
const UNLIMITED: u64 = 1 << 60;

/// The tightest limit over this process, from its group up to the root; `None`: there is none.
pub(super) fn limit(root: &Path) -> Option<Group> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut tightest: Option<Group> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let found = match controllers {
            "" => up(&root.join("sys/fs/cgroup"), path, &SECOND),
            one if one.split(',').any(|one| one == "memory") => up(&root.join("sys/fs/cgroup/memory"), path, &FIRST),
            _ => None,
        };
        tightest = match (tightest, found) {
            (Some(one), Some(other)) => Some(if other.limit < one.limit { other } else { one }),
            (one, other) => one.or(other),
        };
    }
    tightest
}

/// The tightest limit from `path` below `mount` up to `mount`. In a container the path may lead nowhere below the mount;
/// then the mount itself is the group.
fn up(mount: &Path, path: &str, names: &Names) -> Option<Group> {
    let mut folder: PathBuf = mount.join(path.trim_start_matches('/'));
    let mut tightest: Option<Group> = None;
    while folder.starts_with(mount) {
        if let Some(group) = group(&folder, names)
            && tightest.is_none_or(|other| group.limit < other.limit)
        {
            tightest = Some(group);
        }
        if !folder.pop() {
            break;
        }
    }
    tightest
}

fn group(folder: &Path, names: &Names) -> Option<Group> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(names.limit).filter(|limit| *limit < UNLIMITED)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let inactive = stat.lines().find_map(|line| line.strip_prefix(names.inactive)?.trim().parse::<u64>().ok());
    let used = number(names.used).map(|used| used.saturating_sub(inactive.unwrap_or(0)));
    Some(Group { limit, used, source: names.source })
}
