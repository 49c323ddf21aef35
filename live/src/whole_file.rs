//! Files that are there as a whole or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whoever the user lets read what he makes.
    All,
    /// The user alone.
    Owner,
}

/// What a file that was written outlasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlasts {
    /// The program, however that ends.
    TheProgram,
    /// The machine losing power, for which the disk is waited for.
    PowerLoss,
}

/// Writes a file that is not there yet.
///
/// # Errors
/// If it is there, or cannot be written.
pub fn create(path: &Path, bytes: &[u8], readers: Readers, outlasts: Outlasts) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    match outlasts {
        Outlasts::TheProgram => Ok(()),
        Outlasts::PowerLoss => file.sync_all(),
    }
}

/// Writes a file. A half-written one never takes the place of an older, a link goes on to lead where it did, and what is no
/// file, as a terminal, is written as it is.
///
/// # Errors
/// If it cannot be written; what was there before stays.
pub fn replace(path: &Path, bytes: &[u8], readers: Readers, outlasts: Outlasts) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return fs::write(path, bytes);
    }
    let path = led(path);
    let mut part = path.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    // One that was left behind may be readable by others.
    drop(fs::remove_file(&part));
    let written = create(&part, bytes, readers, outlasts).and_then(|()| fs::rename(&part, &path));
    if written.is_err() {
        drop(fs::remove_file(&part));
    }
    written?;
    match outlasts {
        Outlasts::TheProgram => Ok(()),
        Outlasts::PowerLoss => settle_name(&path),
    }
}

/// Waits until the folder of a file knows it by its name after a loss of power, where folders can be waited for.
#[cfg(unix)]
fn settle_name(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn settle_name(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Where a path leads, over a link to nothing too.
fn led(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| fs::read_link(path).map(|link| beside(path, &link))).unwrap_or(path.to_owned())
}

fn beside(path: &Path, link: &Path) -> PathBuf {
    path.parent().map_or_else(|| link.to_owned(), |folder| folder.join(link))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
        process::Command,
        thread,
    };

    use super::{
        Outlasts::TheProgram,
        Readers::{All, Owner},
        *,
    };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("windtunnel-whole-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_link_goes_on_to_lead_where_it_did() {
        let folder = folder("link");
        let (file, link) = (folder.join("file"), folder.join("link"));
        symlink("file", &link).unwrap();
        for text in ["to nothing", "to a file"] {
            replace(&link, text.as_bytes(), All, TheProgram).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_an_earlier_try_left_behind_opens_nothing_to_others() {
        let folder = folder("part");
        let (file, part) = (folder.join("file"), folder.join("file.part"));
        fs::write(&part, "a much longer text than the other").unwrap();
        fs::set_permissions(&part, fs::Permissions::from_mode(0o666)).unwrap();
        replace(&file, b"secret", Owner, TheProgram).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap(), "secret");
        assert!(!part.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        let folder = folder("pipe");
        let pipe = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe)
        });
        replace(&pipe, b"through", All, TheProgram).unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap().unwrap(), "through");

        fs::create_dir(folder.join("taken")).unwrap();
        assert!(replace(&folder.join("taken"), b"text", All, TheProgram).is_err());
        assert!(!folder.join("taken.part").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
