//! `windtunnel config import`: the configuration of another program as one of ours.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use crate::{
    args::{ConfigArgs, ConfigTask, ImportArgs, ImportFrom},
    failure::Failure,
    import::{Origin, import},
    output::{Readers, create, print, replace},
    session::Session,
};

pub fn run(args: &ConfigArgs, session: &Session) -> Result<(), Failure> {
    session.only_tables("config import", "writes a configuration, which is TOML")?;
    match &args.task {
        ConfigTask::Import(args) => rewrite(args, session),
    }
}

fn rewrite(args: &ImportArgs, session: &Session) -> Result<(), Failure> {
    let origin = match args.from {
        ImportFrom::GridCore => Origin::GridCore,
        ImportFrom::LlamaSwap => Origin::LlamaSwap,
    };
    let text = read(&args.file).map_err(|wrong| Failure::file("read", &args.file, &wrong))?;
    let name = args.file.display().to_string();
    let environment = |name: &str| std::env::var(name).ok();
    let imported =
        import(origin, &text, &name, &environment).map_err(|why| Failure::BadInput(format!("{name}: {why}")))?;
    for loss in &imported.losses {
        session.remark(&format!("{name}:{}: {loss}", loss.line));
    }
    match &args.output {
        Some(path) if path.as_os_str() != "-" => match args.force {
            true => replace(path, &imported.text, Readers::Owner),
            false => fresh(path, &imported.text),
        },
        Some(_) | None => print(&imported.text),
    }
}

fn read(path: &Path) -> io::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(path)
}

/// Writes a file that is not there yet.
fn fresh(path: &Path, text: &str) -> Result<(), Failure> {
    create(path, text, Readers::Owner).map_err(|wrong| match wrong.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::BadInput(format!("{} is there already; --force replaces it", path.display()))
        }
        _ => Failure::file("write", path, &wrong),
    })
}
