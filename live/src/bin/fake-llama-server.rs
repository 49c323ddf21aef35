//! A `llama-server` that only pretends: see `windtunnel_live::fake`. Called as the daemon's program is, it becomes a child.

use std::{ffi::OsString, process::ExitCode};

use windtunnel_live::{
    children::{BECOME_CHILD, become_child},
    fake::process,
};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [first, rest @ ..] = &arguments[..]
        && first == BECOME_CHILD
    {
        eprintln!("error: {}", become_child(rest));
        return ExitCode::FAILURE;
    }
    let arguments: Vec<String> = arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
    process::run(&arguments)
}
