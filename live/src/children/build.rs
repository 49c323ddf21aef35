//! Builds of the server, and which flags they know: each is asked for its help once.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{process::Command, sync::Mutex};

/// A build that has not told within so long never will.
const ANSWERS: Duration = Duration::from_secs(30);

/// A build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    program: PathBuf,
    flags: BTreeSet<String>,
    help: String,
}

/// Builds that were asked already.
#[derive(Debug, Default)]
pub struct Builds {
    known: Mutex<BTreeMap<FileIdentity, Arc<Build>>>,
}

/// A file as it was: another build under its name is another file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileIdentity {
    path: PathBuf,
    bytes: u64,
    changed: Option<SystemTime>,
}

impl Builds {
    /// The build of that name, with the environment it needs to run.
    ///
    /// # Errors
    /// If there is no such program or it does not tell.
    pub async fn get(&self, program: &Path, environment: &[(String, String)]) -> io::Result<Arc<Build>> {
        let path = find(program)?;
        let about = std::fs::metadata(&path)?;
        let identity = FileIdentity { path: path.clone(), bytes: about.len(), changed: about.modified().ok() };
        let mut known = self.known.lock().await;
        if let Some(build) = known.get(&identity) {
            return Ok(Arc::clone(build));
        }
        let build = Arc::new(ask(path, environment).await?);
        known.insert(identity, Arc::clone(&build));
        Ok(build)
    }
}

/// The program's file: a bare name is looked for in `PATH`.
fn find(program: &Path) -> io::Result<PathBuf> {
    if program.components().count() > 1 {
        return Ok(program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no {} in PATH", program.display())))
}

async fn ask(program: PathBuf, environment: &[(String, String)]) -> io::Result<Build> {
    let mut command = Command::new(&program);
    command.arg("--help").envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let told = tokio::time::timeout(ANSWERS, command.output()).await.map_err(|_| {
        let message = format!("{} --help was not done in {} s", program.display(), ANSWERS.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, message)
    })??;
    // Some builds have it on the one side, some on the other.
    let help = [told.stdout, told.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let build = Build::of_help(program, &help);
    if build.knows_flag("--port") {
        return Ok(build);
    }
    let message = format!("{} is no llama-server: its --help knows no --port", build.program.display());
    Err(io::Error::other(message))
}

impl Build {
    /// The build with this help.
    pub(super) fn of_help(program: PathBuf, help: &str) -> Build {
        Build { program, flags: help.lines().flat_map(names).collect(), help: help.to_owned() }
    }

    /// Its file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it knows a flag.
    pub fn knows_flag(&self, name: &str) -> bool {
        self.flags.contains(name)
    }

    /// Whether its help has a word in it.
    pub fn knows_word(&self, word: &str) -> bool {
        self.help.contains(word)
    }
}

/// The flags a line of a help begins with. What stands further in is text.
fn names(line: &str) -> impl Iterator<Item = String> + '_ {
    let words = line.split([' ', ',']).filter(|word| !word.is_empty());
    let listed = if line.starts_with('-') { usize::MAX } else { 0 };
    words.take(listed).take_while(|word| word.starts_with('-')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_what_lines_of_the_help_begin_with() {
        let help = "-h,    --help, --usage                  print usage and exit\n\
            --list-devices                          print list of devices; see --device\n\
            \x20                                       use --list-devices\n\
            -fit,  --fit [on|off]                   whether to adjust\n\
            -kvu, --kv-unified, -no-kvu, --no-kv-unified\n\
            ----- sampling params -----\n";
        let build = Build::of_help("x".into(), help);
        let expected = ["--fit", "--help", "--kv-unified", "--list-devices", "--usage", "-fit", "-h", "-kvu"];
        assert!(expected.iter().all(|name| build.knows_flag(name)), "{:?}", build.flags);
        assert!(!build.knows_flag("--device") && build.knows_word("[on|off]"));
    }
}
