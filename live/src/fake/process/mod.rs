//! The fake server as a process: the flags of the real one, its log, and what a process can do wrong.
//!
//! Faults are flags that begin with `--fake-`, or environment variables of the same name (`FAKE_LOAD_ENDS` is
//! `--fake-load-ends`); `arguments` lists them. As with the real one, a process that was told that somebody holds its
//! stdin (`LLAMA_SERVER_ROUTER_PORT`) ends when that ends, and after a TERM only when it has been told to there as well.

mod arguments;
mod flags;
mod load;
mod mischief;

use std::{io::Write, process::ExitCode, sync::Arc, thread, time::Instant};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use self::{
    arguments::{Arguments, Asked, Term},
    mischief::Itself,
};
use super::{FakeServer, Process};

/// Says that whoever started the process holds its stdin open, and is gone when that ends.
const HELD: &str = "LLAMA_SERVER_ROUTER_PORT";

/// Runs the process with these arguments, the program's name left out.
pub fn run(arguments: &[String]) -> ExitCode {
    let asked = match arguments::read(arguments) {
        Ok(asked) => asked,
        Err(wrong) => {
            eprintln!("error: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    match asked {
        Asked::Help(text) | Asked::Devices(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Asked::Version => {
            eprintln!("version: 10068 (fake)\nbuilt with rustc for tests");
            ExitCode::SUCCESS
        }
        Asked::Idle(time) => mischief::idle(time),
        Asked::Serve(arguments) => {
            match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
                Ok(runtime) => runtime.block_on(serve(*arguments)),
                Err(wrong) => {
                    eprintln!("error: {wrong}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}

async fn serve(arguments: Arguments) -> ExitCode {
    let itself = Arc::new(Itself::new(Instant::now()));
    mischief::note_start(&arguments);
    let listener = match bind(&arguments).await {
        Ok(listener) => listener,
        Err(message) => {
            itself.log(&message);
            itself.log("srv  llama_server: exiting due to HTTP server error");
            return ExitCode::FAILURE;
        }
    };
    let term = arguments.term;
    let held = std::env::var_os(HELD).is_some();
    if held {
        // Reads block, so they have a thread to themselves, which ends with the process.
        thread::spawn(move || watch_stdin(term));
    }
    let server =
        match FakeServer::start(listener, arguments.server.clone(), None, Arc::clone(&itself) as Arc<dyn Process>) {
            Ok(server) => server,
            Err(wrong) => {
                itself.log(&format!("srv         start: {wrong}"));
                return ExitCode::FAILURE;
            }
        };
    tokio::spawn(async move {
        if !load::load(&arguments, &itself, &server).await {
            std::process::exit(1);
        }
        mischief::begin(&arguments, &itself).await;
    });
    let ended = wait_for_term(term).await;
    if held { std::future::pending().await } else { ended }
}

async fn bind(arguments: &Arguments) -> Result<TcpListener, String> {
    let (host, port) = (&arguments.host, arguments.port);
    let failed = format!("srv         start: couldn't bind HTTP server socket, hostname: {host}, port: {port}");
    if arguments.load_ends == arguments::LoadEnds::NotBound {
        return Err(failed);
    }
    TcpListener::bind((host.as_str(), port)).await.map_err(|_| failed)
}

fn watch_stdin(term: Term) {
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    let told = lines.any(|line| line == "cmd_router_to_child:exit");
    match (term, told) {
        (Term::Ignored, _) => {}
        (Term::Ends, true) => {
            eprintln!("srv    operator(): exit command received, exiting...");
            std::process::exit(0);
        }
        (Term::Ends, false) => {
            eprintln!("srv    operator(): EOF on stdin detected, forcing shutdown...");
            std::process::exit(1);
        }
    }
}

async fn wait_for_term(term: Term) -> ExitCode {
    let Ok(mut signals) = signal(SignalKind::terminate()) else { return ExitCode::FAILURE };
    while signals.recv().await.is_some() {
        match term {
            Term::Ends => break,
            Term::Ignored => {}
        }
    }
    // The log may have nobody who reads it any more.
    let _unread = std::io::stderr().write_all(b"srv    operator(): operator(): cleaning up before exit...\n");
    ExitCode::SUCCESS
}
