//! Where a daemon that only measures keeps things: a folder of its own in the user's state, with a copy of what is known. Nothing
//! else of the state is touched, so a daemon that serves meanwhile keeps its list of processes, and a journal holds what users
//! did. Only the profiles of what was measured go back.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use windtunnel_core::ModelId;
use windtunnel_live::profiles::{self, Store, Subjects};

/// The folder.
#[derive(Debug)]
pub struct Apart {
    folder: PathBuf,
    /// Locked for as long as this measures, however it ends.
    _lock: File,
}

impl Apart {
    /// Makes it in `state`. Of an earlier measurement nothing is left there but the list of its processes, which the daemon
    /// looks through.
    ///
    /// # Errors
    /// If it cannot be made, or somebody else measures there: two at once would measure each other as well.
    pub fn prepare(state: &Path, known: &Store, subjects: &Subjects) -> io::Result<Apart> {
        let folder = state.join("bench");
        let apart = Apart { _lock: locked(&folder)?, folder };
        apart.clear()?;
        let mut copy = apart.store()?;
        for (&(model, device), subject) in subjects {
            if let Some(stored) = known.get(subject) {
                copy.put(subject, &stored.profile(model, device))?;
            }
        }
        Ok(apart)
    }

    /// What the daemon takes as its state.
    pub fn state(&self) -> &Path {
        &self.folder
    }

    /// Where the daemon writes its journal if it has to write one.
    pub fn journal(&self) -> PathBuf {
        self.folder.join("journal").join("run.jsonl")
    }

    /// Keeps in `store` what the daemon, which has ended, learned of `measured`.
    pub fn hand_over(&self, store: &mut Store, subjects: &Subjects, measured: &BTreeSet<ModelId>) -> io::Result<()> {
        let learned = self.store()?;
        for (&(model, device), subject) in subjects.iter().filter(|((model, _), _)| measured.contains(model)) {
            if let Some(stored) = learned.get(subject) {
                store.put(subject, &stored.profile(model, device))?;
            }
        }
        self.clear()
    }

    /// What cannot be read there was said when it was copied.
    fn store(&self) -> io::Result<Store> {
        Store::open(&profiles::folder(&self.folder)).map(|(store, _)| store)
    }

    fn clear(&self) -> io::Result<()> {
        for folder in [profiles::folder(&self.folder), self.folder.join("journal")] {
            match fs::remove_dir_all(folder) {
                Err(wrong) if wrong.kind() != io::ErrorKind::NotFound => return Err(wrong),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn locked(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let file = File::options().write(true).create(true).truncate(false).open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other("another `windtunnel bench` measures there; wait for its end"))
        }
        Err(TryLockError::Error(wrong)) => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_config::DaemonFile;
    use windtunnel_core::{DeviceId, Ppm, Profile};

    use super::*;
    use crate::inventory;

    fn profile(model: ModelId, observations: u64) -> Profile {
        let (factor, footprint, load_time) = (Ppm::ONE, None, None);
        Profile { model, device: DeviceId(0), factor, observations, footprint, load_time }
    }

    #[test]
    fn what_is_known_is_there_and_only_what_was_measured_comes_back() {
        let state = std::env::temp_dir().join(format!("windtunnel-apart-{}", std::process::id()));
        drop(fs::remove_dir_all(&state));
        fs::create_dir_all(&state).unwrap();
        let text = "[models.a]\nfootprint = '1GiB'\n[models.b]\nfootprint = '1GiB'\n";
        let file = DaemonFile::parse(text, &state.join("windtunnel.toml")).unwrap();
        let daemon = file.resolve(&[], &[inventory::no_device()]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let subjects = profiles::subjects(&daemon, |_| None);
        let (a, b) = (ModelId(0), ModelId(1));
        let of = |model| &subjects[&(model, DeviceId(0))];
        let open = |state: &Path| Store::open(&profiles::folder(state)).unwrap().0;
        let mut known = open(&state);
        known.put(of(a), &profile(a, 1)).unwrap();

        let apart = Apart::prepare(&state, &known, &subjects).unwrap();
        let second = Apart::prepare(&state, &known, &subjects).unwrap_err().to_string();
        assert_eq!(second, "another `windtunnel bench` measures there; wait for its end");
        let mut learned = open(apart.state());
        assert_eq!(learned.get(of(a)).map(|one| one.observations), Some(1));
        learned.put(of(a), &profile(a, 5)).unwrap();
        learned.put(of(b), &profile(b, 7)).unwrap();
        apart.hand_over(&mut known, &subjects, &BTreeSet::from([b])).unwrap();

        let kept = open(&state);
        assert_eq!(kept.get(of(a)).map(|one| one.observations), Some(1));
        assert_eq!(kept.get(of(b)).map(|one| one.observations), Some(7));
        assert!(open(apart.state()).all().is_empty(), "nothing is left for the next measurement");
        drop(apart);
        Apart::prepare(&state, &known, &subjects).unwrap();
        fs::remove_dir_all(&state).unwrap();
    }
}
