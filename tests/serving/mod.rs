//! The daemon as a process, for tests that need one.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of what is here")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A daemon that is ended when it is dropped.
pub struct Serving {
    pub child: Child,
    /// Where it listens.
    pub url: String,
}

impl Serving {
    /// Runs `command`, which is to serve on any port.
    pub fn start(command: &mut Command) -> Serving {
        Serving::start_with(command, Stdio::null())
    }

    /// The same with that as its stdin.
    pub fn start_with(command: &mut Command, stdin: Stdio) -> Serving {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut first = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut first).expect("it says where it listens");
        let url = first.trim().to_owned();
        let serving = Serving { child, url };
        assert!(serving.url.starts_with("http://"), "no address in {first:?}");
        serving
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An empty folder of a test.
pub fn folder(test: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test).join(name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
