//! Where things lie on a machine: the configuration, the state directory, programs.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The configuration's name in the folder somebody works in.
const HERE: &str = "windtunnel.toml";

/// Where a configuration is looked for if none is named, in order.
pub fn configurations() -> Vec<PathBuf> {
    let user = home_or("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("windtunnel/config.toml"));
    std::iter::once(PathBuf::from(HERE)).chain(user).collect()
}

/// Where state is kept if the configuration names no folder; `None`: nobody knows where this user's home is.
pub fn state_folder() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        return Some(home()?.join("Library/Application Support/windtunnel"));
    }
    Some(home_or("XDG_STATE_HOME", ".local/state")?.join("windtunnel"))
}

/// The file of a program: a bare name is looked for on PATH. `None`: there is no such file, or it is no program.
pub fn program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return is_program(name).then(|| name.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// A folder that a variable names, if it is absolute, else one below the user's home.
fn home_or(variable: &str, below: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(home()?.join(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let shell = program(Path::new("sh")).expect("a system has a shell");
        assert_eq!(program(&shell), Some(shell));
        assert_eq!(program(Path::new("no-such-program-anywhere")), None);
        assert_eq!(program(Path::new("./Cargo.toml")), None, "that can be read but not run");
    }
}
