//! A `llama-server` that is started to read what it prints, and ended.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// A server program and the device it found.
pub struct Server {
    program: PathBuf,
    pub version: String,
    pub device: Option<String>,
}

/// Bytes that a run printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported {
    pub device: u64,
    pub host: u64,
    /// What the process took of the host's memory when it was ready, where that was waited for.
    pub resident: Option<u64>,
}

/// How far a run goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The buffers are allocated.
    Buffers,
    /// It answers requests.
    Ready,
    /// It has told what it would take.
    Projection,
}

impl Server {
    pub fn new(program: PathBuf) -> Result<Server, Box<dyn Error>> {
        let run = |argument: &str| Command::new(&program).arg(argument).stdin(Stdio::null()).output();
        let text = |out: std::process::Output| {
            let text = [out.stdout, out.stderr].concat();
            String::from_utf8_lossy(&text).into_owned()
        };
        let version = text(run("--version")?);
        let version = version.lines().find_map(|line| line.strip_prefix("version: ")).unwrap_or("an unknown version");
        let version = format!("llama-server, version {version}");
        let devices = text(run("--list-devices")?);
        let device = devices.lines().skip_while(|line| !line.starts_with("Available devices")).nth(1);
        let device = device.map(|line| line.trim().to_owned()).filter(|line| line.contains(": "));
        Ok(Server { program, version, device })
    }

    pub fn device_name(&self) -> &str {
        self.device.as_deref().unwrap_or("none")
    }

    /// Starts the server, reads until it has said enough, and ends it.
    pub fn run(&self, model: &Path, arguments: &[String], until: Until) -> Result<Reported, Box<dyn Error>> {
        let port = free_port()?;
        let fit = if until == Until::Projection { "on" } else { "off" };
        let mut command = Command::new(&self.program);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--no-webui", "--verbose"]);
        command.args(["--no-warmup", "--fit", fit, "-m"]).arg(model).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let read = follow(&mut child, until, port);
        let _ = child.kill();
        child.wait()?;
        read
    }
}

fn free_port() -> Result<u16, Box<dyn Error>> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn follow(child: &mut Child, until: Until, port: u16) -> Result<Reported, Box<dyn Error>> {
    let output = child.stderr.take().ok_or("the server's output is not there")?;
    let mut lines = BufReader::new(output);
    let (mut reported, mut last) = (Reported::default(), String::new());
    loop {
        let mut bytes = Vec::new();
        if lines.read_until(b'\n', &mut bytes)? == 0 {
            return Err(format!("the server ended: {}", last.trim()).into());
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        if line.contains(" E ") || line.contains("error") {
            last.clone_from(&line);
        }
        let enough = match until {
            Until::Projection => projected(&line, &mut reported),
            Until::Buffers | Until::Ready => {
                buffer(&line, &mut reported);
                let done = if until == Until::Ready { "listening on" } else { "reserve took" };
                line.contains(done)
            }
        };
        if enough {
            // The server must not block on a full pipe before it is ended.
            thread::spawn(move || std::io::copy(&mut lines.by_ref(), &mut std::io::sink()));
            if until == Until::Ready {
                complete(port)?;
                reported.resident = resident(child.id());
            }
            return Ok(reported);
        }
    }
}

/// Has a long prompt computed, so that every buffer has been used.
fn complete(port: u16) -> Result<(), Box<dyn Error>> {
    let tokens: Vec<String> = (0..1024).map(|at| (at % 200 + 10).to_string()).collect();
    let body = format!("{{\"prompt\": [{}], \"n_predict\": 0}}", tokens.join(","));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    let length = body.len();
    write!(
        stream,
        "POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let good = answer.starts_with("HTTP/1.1 200");
    if good {
        Ok(())
    } else {
        Err(format!("a completion failed: {}", answer.lines().next().unwrap_or_default()).into())
    }
}

/// A line such as `Vulkan0 model buffer size =    92.10 MiB`.
fn buffer(line: &str, reported: &mut Reported) {
    let Some((before, after)) = line.split_once(" buffer size =") else { return };
    let mut words = before.rsplit(' ').filter(|word| !word.is_empty());
    let (_kind, name) = (words.next(), words.next().unwrap_or_default());
    let mib: Option<f64> = after.trim().strip_suffix(" MiB").and_then(|number| number.trim().parse().ok());
    let bytes = (mib.unwrap_or(0.0) * f64::from(1 << 20)) as u64;
    let host = name.starts_with("CPU") || name.ends_with("_Host");
    *(if host { &mut reported.host } else { &mut reported.device }) += bytes;
}

/// Lines of the table `memory breakdown`, in whole MiB: model, context and compute. Output buffers are not in it. The
/// line of the host is the last one.
fn projected(line: &str, reported: &mut Reported) -> bool {
    if line.contains("output buffer size") {
        buffer(line, reported);
    }
    let Some((_, row)) = line.split_once("memory_breakdown_print: |   - ") else { return false };
    let (name, figures) = row.split_once('|').unwrap_or((row, ""));
    let inside =
        figures.split_once('=').map_or("", |(_, after)| after.rsplit_once('=').map_or(after, |(_, last)| last));
    let mib = inside.split(['+', ')', '|']).map_while(|word| word.trim().parse::<u64>().ok()).take(3).sum::<u64>();
    let host = name.trim() == "Host" || name.starts_with("CPU");
    *(if host { &mut reported.host } else { &mut reported.device }) += mib << 20;
    name.trim() == "Host"
}

/// The resident memory of a process, on Linux.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
