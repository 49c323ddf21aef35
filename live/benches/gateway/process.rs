//! The daemon and the server as processes, and what the system says of them.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use windtunnel_live::{
    children::{BECOME_CHILD, become_child},
    daemon::{self, Options, Said, Source, Text},
};

use crate::client::Client;

/// Makes this program the daemon.
const DAEMON: &str = "be-the-daemon";
const SERVER: &str = env!("CARGO_BIN_EXE_fake-llama-server");
/// Answers at once, a hundred times on each connection.
const FAULTLESS: [&str; 2] = ["--fake-answer-tokens", "8"];
/// For a client that never connects again.
const FOR_EVER: [&str; 2] = ["--fake-requests-a-connection", "1000000000"];

/// What `/proc` counts processor time in.
const TICK: f64 = 0.01;

/// Becomes another part, if the arguments say so.
pub fn is_part(arguments: &[String]) -> Option<ExitCode> {
    match arguments.get(1).map(String::as_str) {
        Some(BECOME_CHILD) => {
            let rest: Vec<OsString> = std::env::args_os().skip(2).collect();
            eprintln!("error: {}", become_child(&rest));
            Some(ExitCode::FAILURE)
        }
        Some(DAEMON) => Some(be_the_daemon()),
        _ => None,
    }
}

/// A card that other programs have something of, whatever that is: `chat` has room beside it, `large` would need all of it.
/// The server reads no file, but the daemon wants to see one.
fn configuration(file: &Path) -> String {
    let file = file.display();
    let arguments = FAULTLESS.map(|argument| format!("{argument:?}")).join(", ");
    format!(
        r#"
[server]
llama_server = "{SERVER}"
[[devices]]
name = "card"
backend = "cpu"
memory = "512GiB"
headroom = "0B"
[models.chat]
gguf = "{file}"
footprint = "1GiB"
slots = 128
args = [{arguments}]
[models.paced]
gguf = "{file}"
footprint = "1GiB"
args = ["--fake-service", "slots:1ms,0ms,5ms,0ms,16ms", {arguments}]
[models.large]
gguf = "{file}"
footprint = "524287MiB"
slots = 1
"#
    )
}

fn be_the_daemon() -> ExitCode {
    let folder = folder();
    let file = folder.join("model.gguf");
    fs::write(&file, b"").expect("the folder can be written");
    let executable = std::env::current_exe().expect("this program is somewhere");
    let options = Options {
        source: Source {
            text: Text::Fixed { text: configuration(&file), name: "bench.toml".into() },
            overrides: Vec::new(),
        },
        listen: Some(([127, 0, 0, 1], 0).into()),
        public: false,
        state_dir: Some(folder.join("state")),
        journal: Some(folder.join("run.jsonl")),
        executable,
    };
    let say: daemon::Sayer = Arc::new(|said| match said {
        Said::Listens(address) => {
            println!("{address}");
            drop(std::io::stdout().flush());
        }
        Said::Remark(remark) => eprintln!("{remark}"),
        Said::Line { .. } => {}
    });
    match daemon::serve(&options, &say) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("error: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-gateway")
}

/// A daemon, ended when it is dropped.
pub struct Daemon {
    pub process: Process,
    pub address: SocketAddr,
}

impl Daemon {
    pub fn start() -> Daemon {
        drop(fs::remove_dir_all(folder()));
        fs::create_dir_all(folder()).expect("the target folder can be written");
        let mut command = Command::new(std::env::current_exe().expect("this program is somewhere"));
        let mut child = command.arg(DAEMON).stdout(Stdio::piped()).spawn().expect("a process can be started");
        let mut first = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut first).expect("it says something");
        Daemon { process: Process(child), address: first.trim().parse().expect("it says where it listens") }
    }

    /// The processor time of the servers that it has started, in seconds.
    pub fn processor_of_servers(&self) -> f64 {
        let id = self.process.0.id();
        let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
        let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().map(processor).collect::<Vec<_>>()).sum()
    }

    /// Waits until so many requests wait.
    pub async fn until_waiting(&self, count: u64) {
        let mut client = Client::connect(self.address).await;
        while self.waiting(&mut client).await != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn waiting(&self, client: &mut Client) -> u64 {
        client.send(b"GET /admin/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        let status: serde_json::Value = serde_json::from_slice(&client.answer().await).expect("the status is JSON");
        let queues = status["queues"].as_array().expect("queues are listed");
        queues.iter().filter_map(|queue| queue["jobs"].as_u64()).sum()
    }
}

/// A server without a daemon.
pub struct Server {
    pub address: SocketAddr,
    _process: Process,
}

impl Server {
    pub fn start() -> Server {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("an address can be had");
        let mut command = Command::new(SERVER);
        command
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string(), "--parallel", "128"])
            .args(FAULTLESS)
            .args(FOR_EVER);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = Process(child.expect("a process can be started"));
        while std::net::TcpStream::connect(address).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Server { address, _process: process }
    }
}

/// A process, ended when it is dropped.
pub struct Process(Child);

impl Process {
    /// The processor time that it has used, in seconds.
    pub fn processor(&self) -> f64 {
        processor(&self.0.id().to_string())
    }

    /// The memory it has in use, in KiB.
    pub fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).expect("its memory is told")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The processor time of this process, in seconds.
pub fn own_processor() -> f64 {
    processor("self")
}

fn processor(id: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) * TICK
}
