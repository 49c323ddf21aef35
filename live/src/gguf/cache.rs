//! Headers that were read before.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use super::{error::GgufError, header::Header};

/// Remembers headers by the identity of their files, so that each is parsed once and a file that was replaced is read
/// again. May be shared between threads.
#[derive(Debug, Default)]
pub struct HeaderCache {
    known: Mutex<BTreeMap<PathBuf, (Identity, Arc<Header>)>>,
}

/// What tells a file from another one that took its name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and inode, where the system has them.
    node: Option<(u64, u64)>,
}

impl HeaderCache {
    /// A cache that knows nothing.
    pub fn new() -> HeaderCache {
        HeaderCache::default()
    }

    /// The header of the file at `path`, read if it is new or has changed.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is damaged. Failures are not remembered.
    pub fn header(&self, path: &Path) -> Result<Arc<Header>, GgufError> {
        let about = fs::metadata(path).map_err(|wrong| GgufError::io(path, 0, &wrong))?;
        let identity = Identity::of(&about);
        if let Some(header) = self.remembered(path, &identity) {
            return Ok(header);
        }
        // The lock is not held while the file is read: two threads may read one file, and both are right.
        let header = Arc::new(Header::open(path)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path.to_owned(), (identity, Arc::clone(&header)));
        Ok(header)
    }

    fn remembered(&self, path: &Path, identity: &Identity) -> Option<Arc<Header>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, header) = known.get(path)?;
        (before == identity).then(|| Arc::clone(header))
    }
}

impl Identity {
    fn of(about: &Metadata) -> Identity {
        Identity { bytes: about.len(), modified: about.modified().ok(), node: node(about) }
    }
}

#[cfg(unix)]
fn node(about: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn node(_about: &Metadata) -> Option<(u64, u64)> {
    None
}
