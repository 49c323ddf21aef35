//! The first moments of a child: it sees to it that it dies with its parent, then becomes what it was started for.
//!
//! The signal follows the thread that started it, so that thread has to live as long as the daemon; and between the start
//! and the request for the signal the parent may be gone already, so it is looked at afterwards.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{Command, Stdio},
};

use super::{launch::Launch, platform};

/// The first argument of the daemon's program that is to become a child.
pub const BECOME_CHILD: &str = "become-child";

/// Becomes the program that `arguments` name (what follows [`BECOME_CHILD`]); returns only where that fails.
pub fn become_child(arguments: &[OsString]) -> io::Error {
    let [parent, program, rest @ ..] = arguments else {
        return io::Error::new(io::ErrorKind::InvalidInput, "a parent's number and a program are wanted");
    };
    let Some(parent) = parent.to_str().and_then(|parent| parent.parse().ok()) else {
        return io::Error::new(io::ErrorKind::InvalidInput, format!("{parent:?} is no number of a process"));
    };
    if let Err(wrong) = platform::die_with(parent) {
        return wrong;
    }
    become_program(program, rest)
}

#[cfg(unix)]
fn become_program(program: &OsString, arguments: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    let wrong = Command::new(program).args(arguments).exec();
    io::Error::new(wrong.kind(), format!("{}: {wrong}", Path::new(program).display()))
}

#[cfg(not(unix))]
fn become_program(program: &OsString, _arguments: &[OsString]) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{}: nothing can become it here", Path::new(program).display()))
}

/// The command that starts `launch` by way of `own_program`, with everything it says in pipes.
pub fn command(own_program: &Path, launch: &Launch) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(own_program);
    command.arg(BECOME_CHILD).arg(std::process::id().to_string()).arg(&launch.program).args(&launch.arguments);
    command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command
}
