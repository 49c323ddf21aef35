//! Profiles as files: one a subject, in JSON.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use windtunnel_core::{Bytes, DeviceId, ModelId, Ppm, Profile, Span};

use super::Subject;
use crate::whole_file::{self, Outlasts, Readers};

/// The form of a file; others are set aside.
const SCHEMA: u32 = 1;
/// No profile is larger, in bytes.
const LARGEST: u64 = 1 << 20;

/// What is known of a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    schema: u32,
    /// What it is about.
    pub subject: Subject,
    /// Actual over predicted service time.
    pub factor: Ppm,
    /// Finished steps that stands on.
    pub observations: u64,
    /// What an instance was measured to take.
    pub footprint: Option<Bytes>,
    /// How long its last load took.
    pub load_time: Option<Span>,
    /// When it was stored, in seconds since 1970.
    pub stored: u64,
}

/// The folder of profiles, read.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    known: BTreeMap<String, Stored>,
}

/// A profile that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Its file.
    pub file: PathBuf,
    /// What it was about; `None`: a file that was set aside as damaged.
    pub about: Option<Subject>,
}

impl Stored {
    /// It as the scheduler takes it.
    pub fn profile(&self, model: ModelId, device: DeviceId) -> Profile {
        let &Stored { factor, observations, footprint, load_time, .. } = self;
        Profile { model, device, factor, observations, footprint, load_time }
    }
}

impl Store {
    /// Reads every profile in `folder`, which is made when something is stored. What cannot be understood is set aside,
    /// and comes back as remarks.
    ///
    /// # Errors
    /// If the folder is there and cannot be read.
    pub fn open(folder: &Path) -> io::Result<(Store, Vec<String>)> {
        let mut store = Store { folder: folder.to_owned(), known: BTreeMap::new() };
        let mut remarks = Vec::new();
        for path in files(folder, "json")? {
            match read(&path) {
                Ok(stored) => drop(store.known.insert(stored.subject.key(), stored)),
                Err(why) => remarks.push(set_aside(&path, &why)),
            }
        }
        Ok((store, remarks))
    }

    /// What is known of a subject.
    pub fn get(&self, subject: &Subject) -> Option<&Stored> {
        self.known.get(&subject.key())
    }

    /// Everything that is known, by model and device.
    pub fn all(&self) -> Vec<&Stored> {
        let mut all: Vec<&Stored> = self.known.values().collect();
        all.sort_by_key(|one| (&one.subject.model, &one.subject.device, one.stored));
        all
    }

    /// Keeps a profile.
    ///
    /// # Errors
    /// If the disk does not take it; what was kept before stays.
    pub fn put(&mut self, subject: &Subject, profile: &Profile) -> io::Result<()> {
        let &Profile { factor, observations, footprint, load_time, .. } = profile;
        let stored = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let subject = subject.clone();
        let key = subject.key();
        let stored = Stored { schema: SCHEMA, subject, factor, observations, footprint, load_time, stored };
        fs::create_dir_all(&self.folder)?;
        let (file, text) = (self.folder.join(format!("{key}.json")), serde_json::to_vec_pretty(&stored)?);
        whole_file::replace(&file, &text, Readers::All, Outlasts::PowerLoss)?;
        self.known.insert(key, stored);
        Ok(())
    }

    /// Removes what is about files that are gone or have changed, and what was set aside as damaged.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn prune(&mut self) -> io::Result<Vec<Pruned>> {
        let mut pruned = Vec::new();
        let gone: Vec<String> =
            self.known.iter().filter(|(_, stored)| !stored.subject.is_current()).map(|(key, _)| key.clone()).collect();
        for key in gone {
            let file = self.folder.join(format!("{key}.json"));
            fs::remove_file(&file)?;
            pruned.push(Pruned { file, about: self.known.remove(&key).map(|stored| stored.subject) });
        }
        for kind in ["damaged", "part"] {
            for file in files(&self.folder, kind)? {
                fs::remove_file(&file)?;
                pruned.push(Pruned { file, about: None });
            }
        }
        Ok(pruned)
    }
}

/// The files of that extension in order of their names; none if the folder is not there.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(wrong) if wrong.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let fits = |path: &PathBuf| path.extension().is_some_and(|one| one == extension);
    let mut paths: Vec<PathBuf> = paths.into_iter().filter(fits).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Stored, String> {
    let size = fs::metadata(path).map_err(|wrong| wrong.to_string())?.len();
    if size > LARGEST {
        return Err(format!("it has {size} bytes, and no profile has more than {LARGEST}"));
    }
    let text = fs::read(path).map_err(|wrong| wrong.to_string())?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|wrong| wrong.to_string())?;
    if stored.schema != SCHEMA {
        return Err(format!("it has schema {}, and {SCHEMA} is read", stored.schema));
    }
    if stored.factor.get() == 0 {
        return Err("it says that work takes no time".to_owned());
    }
    let name = format!("{}.json", stored.subject.key());
    if path.file_name().and_then(|name| name.to_str()) != Some(name.as_str()) {
        return Err(format!("it is about a subject whose file is {name}"));
    }
    Ok(stored)
}

/// Takes a file out of the way; what is said of it.
fn set_aside(path: &Path, why: &str) -> String {
    let aside = path.with_extension("damaged");
    let done = match fs::rename(path, &aside) {
        Ok(()) => format!("it is kept as {}", aside.display()),
        Err(wrong) => format!("it cannot be moved away: {wrong}"),
    };
    format!("the profile {} is not used: {why}; {done}", path.display())
}
