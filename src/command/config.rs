//! `windtunnel config import`: the configuration of another program as one of ours.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crate::{
    args::{ConfigArgs, ConfigTask, ImportArgs, ImportFrom},
    failure::Failure,
    import::{Origin, import},
    output::print,
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
        None => print(&imported.text),
        Some(path) if args.force => replace(path, &imported.text),
        Some(path) => create(path, &imported.text),
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
fn create(path: &Path, text: &str) -> Result<(), Failure> {
    let file = private().create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|wrong| match wrong.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::BadInput(format!("{} is there already; --force replaces it", path.display()))
        }
        _ => Failure::file("write", path, &wrong),
    })
}

/// Writes a file; a half-written one never takes the place of an older.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let part = PathBuf::from(format!("{}.part", path.display()));
    let file = private().create(true).truncate(true).open(&part);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| fs::rename(&part, path));
    written.map_err(|wrong| Failure::file("write", path, &wrong))
}

/// How a file is opened that others need not read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
