//! `windtunnel serve`: the daemon.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    thread,
};

use rustix::process::{Signal, getpid, kill_process};

use windtunnel_live::{
    daemon::{self, Options, Said, Sayer, ServeError, Source, Text, demo},
    places,
};

use crate::{args::ServeArgs, failure::Failure, session::Session};

/// The program that a child becomes at first is this one.
pub fn run(args: &ServeArgs, session: &Session) -> Result<(), Failure> {
    session.only_tables("serve", "prints its address; see /metrics and /admin/status for figures")?;
    let executable =
        std::env::current_exe().map_err(|wrong| Failure::BadInput(format!("find this program: {wrong}")))?;
    let options = Options {
        source: Source { text: text(args)?, overrides: session.overrides.clone() },
        listen: args.listen,
        public: args.public,
        state_dir: args.state_dir.clone(),
        journal: args.journal.clone(),
        executable,
    };
    if args.while_stdin {
        thread::spawn(end_with_stdin);
    }
    let teller = session.teller();
    let say = move |said: Said| match said {
        // Whoever started it may have gone; it serves all the same.
        Said::Listens(address) => {
            let mut out = std::io::stdout().lock();
            drop(writeln!(out, "http://{address}").and_then(|()| out.flush()));
        }
        Said::Remark(remark) => teller.remark(&remark),
        Said::Line { model, line } => teller.line(&model, &line),
    };
    let say: Sayer = Arc::new(say);
    daemon::serve(&options, &say).map_err(|wrong| match wrong {
        ServeError::Config(wrong) => wrong.into(),
        wrong @ (ServeError::Wrong(_) | ServeError::System { .. }) => Failure::BadInput(wrong.to_string()),
    })
}

/// Asks this process to end once stdin does.
fn end_with_stdin() {
    // However it ends, it has ended.
    drop(io::copy(&mut io::stdin(), &mut io::sink()));
    let _ = kill_process(getpid(), Signal::TERM);
}

/// The configuration that is meant.
fn text(args: &ServeArgs) -> Result<Text, Failure> {
    if args.simulated {
        return Ok(Text::Fixed { text: demo::SIMULATED.to_owned(), name: "simulated.toml".into() });
    }
    if args.demo {
        let text = demo::demo(&args.model, args.llama_server.as_deref());
        let text = text.map_err(|wrong| Failure::BadInput(wrong.to_string()))?;
        return Ok(Text::Fixed { text, name: "demo.toml".into() });
    }
    match &args.config {
        Some(path) => Ok(Text::File(path.clone())),
        None => usual().map(Text::File),
    }
}

/// The configuration where it usually is.
fn usual() -> Result<PathBuf, Failure> {
    let looked = places::configurations();
    looked.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let looked = looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ");
        Failure::BadInput(format!(
            "no configuration was found at {looked}; name one with --config FILE, or try --demo (your llama-server and \
             model files, nothing to write) or --simulated (needs nothing at all)"
        ))
    })
}
