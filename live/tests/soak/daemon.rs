//! The daemon as a process, and what it holds.

use std::{
    fmt,
    fs::{File, read_dir, read_to_string},
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use windtunnel_live::daemon::{Options, Said, Source, Text, serve};

use crate::{LONG, http};

/// Names its folder to a process that is to be the daemon.
pub const FOLDER: &str = "WINDTUNNEL_SOAK_DAEMON";
const FAKE: &str = env!("CARGO_BIN_EXE_fake-llama-server");

pub struct Daemon {
    process: Child,
    pub address: SocketAddr,
}

/// What it holds of what there is to be given back.
pub struct Held {
    pub files: usize,
    pub threads: u64,
    pub memory: u64,
}

/// Is the daemon, in this process.
pub fn be(folder: &Path) {
    let source = Source { text: Text::File(folder.join("windtunnel.toml")), overrides: Vec::new() };
    let options = Options {
        source,
        listen: Some(([127, 0, 0, 1], 0).into()),
        public: false,
        state_dir: Some(folder.join("state")),
        journal: Some(folder.join("run.jsonl")),
        executable: FAKE.into(),
    };
    std::env::set_current_dir(folder).expect("the folder is there");
    let say = |said| match said {
        Said::Listens(address) => println!("\nlistens {address}"),
        Said::Remark(remark) => eprintln!("daemon: {remark}"),
        Said::Line { .. } => {}
    };
    serve(&options, &(Arc::new(say) as _)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

impl Daemon {
    pub fn start(folder: &Path) -> Daemon {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", "nothing_is_left_behind", "--nocapture"]).env(FOLDER, folder);
        let log = File::create(folder.join("daemon.log")).expect("the folder can be written");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().expect("it starts");
        let mut out = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let address = loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).expect("it says something") > 0, "it never listened");
            if let Some(address) = line.strip_prefix("listens ") {
                break address.trim().parse().expect("an address");
            }
        };
        // What it says later is read, so that it never waits for a reader.
        thread::spawn(move || out.read_to_end(&mut Vec::new()));
        Daemon { process, address }
    }

    /// Has it read its configuration again.
    pub fn reload(&self) {
        signal(self.process.id(), "-HUP");
    }

    /// Its processes, dead ones that nobody has waited for included.
    pub fn children(&self) -> Vec<u32> {
        let entries = read_dir("/proc").expect("this is Linux").flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|pid| parent(*pid) == Some(self.process.id())).collect()
    }

    /// Gives an order concerning a model.
    pub async fn order(&self, model: &str, order: &str) {
        let request = http::Request::post(&format!("/admin/models/{model}/{order}"), "");
        http::ask(self.address, &request, LONG).await.expect("it answers");
    }

    /// `None` where nothing is under way and nothing is loaded; else what is.
    pub async fn rests(&self) -> Option<String> {
        let answer = http::ask(self.address, &http::Request::get("/admin/status"), LONG).await.expect("it answers");
        let status: serde_json::Value = serde_json::from_slice(&answer.body).expect("it is JSON");
        let empty = |value: &serde_json::Value| value.as_array().is_some_and(Vec::is_empty);
        let devices = status["devices"].as_array().expect("there are devices");
        let rests = devices.iter().all(|device| empty(&device["residents"])) && empty(&status["queues"]);
        (!rests).then(|| status.to_string())
    }

    /// A figure without labels.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let answer = http::ask(self.address, &http::Request::get("/metrics"), LONG).await.expect("it answers");
        let text = String::from_utf8(answer.body).expect("it is text");
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    pub fn holds(&self) -> Held {
        let pid = self.process.id();
        let status = read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        let figure = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the figure is there");
            line.trim().trim_end_matches(" kB").parse().expect("it is a number")
        };
        let files = read_dir(format!("/proc/{pid}/fd")).expect("it lives").count();
        Held { files, threads: figure("Threads:"), memory: figure("VmRSS:") << 10 }
    }

    /// Ends it in good order: its exit code, and who of its processes is left.
    pub fn end(mut self) -> (Option<i32>, Vec<u32>) {
        let children = self.children();
        signal(self.process.id(), "-TERM");
        let started = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("it can be waited for") {
                break status;
            }
            assert!(started.elapsed() < LONG, "it does not end");
            thread::sleep(Duration::from_millis(20));
        };
        (status.code(), children.into_iter().filter(|pid| parent(*pid).is_some()).collect())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub fn signal(pid: u32, signal: &str) {
    // It may have ended just now.
    drop(Command::new("kill").args([signal, &pid.to_string()]).stderr(Stdio::null()).status());
}

fn parent(pid: u32) -> Option<u32> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} open files, {} threads, {} MiB", self.files, self.threads, self.memory >> 20)
    }
}
