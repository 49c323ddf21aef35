//! The `windtunnel` command: reads the command line, runs one subcommand, and turns what went wrong into a message and an
//! exit code. One file a subcommand; none of them decides anything about scheduling or figures.

mod args;
mod bench;
mod command;
mod embedded;
mod failure;
mod imagined;
mod import;
mod inventory;
mod output;
mod progress;
mod reading;
mod rows;
mod session;
mod status;

use std::process::ExitCode;

use clap::Parser;
use windtunnel_live::children::{BECOME_CHILD, become_child};

use args::{Arguments, Command};
use failure::Failure;
use session::{Session, Signals};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == BECOME_CHILD) {
        // Only comes back if it could not become what it was to be.
        eprintln!("error: {}", become_child(&words.collect::<Vec<_>>()));
        return ExitCode::from(127);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(wrong) => {
            let code = if wrong.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
            // Nobody is left to be told that the message could not be printed.
            let _ = wrong.print();
            return code;
        }
    };
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let signals = match arguments.command {
        // The daemon knows what to do with each of them.
        Command::Serve(_) => Signals::Own,
        _ => Signals::Stop,
    };
    let session = Session::new(&arguments.common, signals)?;
    match arguments.command {
        Command::Sim(args) => command::sim::run(&args, &session),
        Command::Sweep(args) => command::sweep::run(&args, &session),
        Command::Test(args) => command::test::run(&args, &session),
        Command::Report(args) => command::report::run(&args, &session),
        Command::Events(args) => command::events::run(&args, &session),
        Command::Replay(args) => command::replay::run(&args, &session),
        Command::Fuzz(args) => command::fuzz::run(&args, &session),
        Command::Whatif(args) => command::whatif::run(&args, &session),
        Command::Serve(args) => command::serve::run(&args, &session),
        Command::Status(args) => command::status::run(&args, &session),
        Command::Check(args) => command::check::run(&args, &session),
        Command::Models(args) => command::models::run(&args, &session),
        Command::Bench(args) => command::bench::run(&args, &session),
        Command::Profiles(args) => command::profiles::run(&args, &session),
        Command::Config(args) => command::config::run(&args, &session),
        Command::Load(args) => command::load::run(&args, &session),
        Command::Selftest => command::selftest::run(&session),
        Command::Schema(args) => command::schema::run(&args, &session),
    }
}
