//! Who descends from whom: a process that was started may have started others, which serve its model too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Every process of the moment with its parent and its group.
#[derive(Debug, Default)]
pub(super) struct Kin {
    /// By parent, and by the leader of their group.
    below: BTreeMap<u32, Vec<u32>>,
}

impl Kin {
    /// Looks at every process below `root/proc`; those that vanish meanwhile are left out.
    pub fn look(root: &Path) -> Kin {
        let mut kin = Kin::default();
        for entry in fs::read_dir(root.join("proc")).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((parent, group)) = parent_and_group(&stat) else { continue };
            kin.add(pid, parent, group);
        }
        kin
    }

    /// The same from lines of `PID PARENT GROUP`.
    pub fn listed(text: &str) -> Kin {
        let mut kin = Kin::default();
        for line in text.lines() {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            if let (Some(Ok(pid)), Some(Ok(parent)), Some(Ok(group))) = (numbers.next(), numbers.next(), numbers.next())
            {
                kin.add(pid, parent, group);
            }
        }
        kin
    }

    fn add(&mut self, pid: u32, parent: u32, group: u32) {
        self.below.entry(parent).or_default().push(pid);
        self.below.entry(group).or_default().push(pid);
    }

    /// A process and everybody below it, each once. A child whose parent is gone is found by their group.
    pub fn of(&self, pid: u32) -> Vec<u32> {
        let mut met = BTreeSet::from([pid]);
        let mut family = vec![pid];
        let mut at = 0;
        while let Some(&one) = family.get(at) {
            let below = self.below.get(&one).into_iter().flatten();
            family.extend(below.filter(|pid| met.insert(**pid)).copied().collect::<Vec<u32>>());
            at += 1;
        }
        family
    }
}

/// The fourth and fifth field of `stat`. The second is the program's name in brackets, and may hold anything.
fn parent_and_group(stat: &str) -> Option<(u32, u32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(1).map(str::parse::<u32>);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_hides_nothing() {
        assert_eq!(parent_and_group("17 (a) b (c) S 4 17 17 0 -1"), Some((4, 17)));
        assert_eq!(parent_and_group("17 (a S 4 17"), None);
        assert_eq!(parent_and_group(""), None);
    }

    #[test]
    fn a_family_has_everybody_once() {
        let pairs = [(1, vec![2, 3]), (2, vec![4]), (4, vec![1])];
        let kin = Kin { below: BTreeMap::from(pairs) };
        assert_eq!(kin.of(1), [1, 2, 3, 4]);
        assert_eq!(kin.of(9), [9]);
        let listed = Kin::listed("  1   0   1\n 20   1  20\n 21  20  20\n 22   1  20\nno line\n");
        assert_eq!(listed.of(20), [20, 21, 22]);
    }
}
