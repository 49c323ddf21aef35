//! What the process is asked to do, and to do wrong.
//!
//! | fault | values |
//! |---|---|
//! | `--fake-load` | how long the load takes: `500ms`, `2s` |
//! | `--fake-load-says` | `progress` (default), `nothing`, `memory` (nothing, but it takes some) |
//! | `--fake-load-ends` | `ready` (default), `stalls`, `code=N`, `signal=N`, `out-of-memory`, `out-of-memory-healthy`, `not-bound` |
//! | `--fake-once` | a path: of the faults, those of the load hold only for the first process that can create it |
//! | `--fake-key` | `wanted` (default), `ignored`: it answers anybody |
//! | `--fake-term` | `ends` (default), `ignored`: nothing but a KILL ends it, the end of stdin neither |
//! | `--fake-grandchild` | how long a process lives that this one leaves in a session of its own: `60s` |
//! | `--fake-balloon`, `--fake-balloon-over` | bytes taken after the load: `64MiB`, within so long |
//! | `--fake-answers` | `mute`, `busy:4s`, `closed`, `garbage`, `out-of-memory`, `broken:N`, `dies:N:code=N`, `dies:N:signal=N` |
//! | `--fake-spared`, `--fake-times` | so many requests are answered well first; so many badly then |
//! | `--fake-watching`, `--fake-frames` | `blocked`; `split` |
//! | `--fake-service` | `slots:PREFILL_FIXED,PREFILL_PER_TOKEN,DECODE_ALPHA,DECODE_BETA,SLICE` or `batch:ALPHA,BETA` |
//! | `--fake-answer-tokens`, `--fake-dimensions`, `--fake-requests-a-connection`, `--fake-idle` | as in [`Settings`] |
//! | `--fake-counting` | `words` (default), `four-bytes` |
//! | `--fake-hide` | flags of the real server, with commas between, that this build does not know |
//! | `--fake-devices` | what `--list-devices` lists |
//! | `--fake-starts` | a file to which every start adds a line: its process and its arguments |

use std::{collections::BTreeMap, path::PathBuf, str::FromStr, time::Duration};

use windtunnel_core::{ServiceTimes, Span};

use super::flags;
use crate::fake::{AnswerFault, Counting, Death, Frames, Kind, Pace, Settings, Watching};

/// What the process is asked to do.
#[derive(Debug)]
pub enum Asked {
    Help(String),
    Version,
    Devices(String),
    /// To do nothing for so long, in a session of its own.
    Idle(Duration),
    Serve(Box<Arguments>),
}

/// How it serves.
#[derive(Debug)]
pub struct Arguments {
    pub host: String,
    pub port: u16,
    pub server: Settings,
    pub load: Duration,
    pub load_says: LoadSays,
    pub load_ends: LoadEnds,
    pub term: Term,
    pub grandchild: Option<Duration>,
    pub balloon: Option<(usize, Duration)>,
    pub starts: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadSays {
    Progress,
    Nothing,
    /// Nothing, but it takes memory.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnds {
    Ready,
    Stalls,
    Dies(Death),
    OutOfMemory,
    OutOfMemoryHealthy,
    NotBound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    Ends,
    Ignored,
}

/// Values by the name of their flag: the first name of a real one, a fault without its dashes.
struct Values(BTreeMap<String, String>);

const FAULTS: [&str; 23] = [
    "key",
    "load",
    "load-says",
    "load-ends",
    "once",
    "term",
    "grandchild",
    "balloon",
    "balloon-over",
    "answers",
    "spared",
    "times",
    "watching",
    "frames",
    "service",
    "answer-tokens",
    "dimensions",
    "requests-a-connection",
    "idle",
    "counting",
    "hide",
    "devices",
    "starts",
];

/// Reads the arguments, and the environment for faults and the key.
///
/// # Errors
/// What the real server says of a flag that it does not know or that lacks its value.
pub fn read(arguments: &[String]) -> Result<Asked, String> {
    if let [first, time] = arguments
        && first == "--fake-be-idle"
    {
        return Ok(Asked::Idle(duration(time)?));
    }
    let mut values = Values::of_environment();
    values.take(arguments)?;
    if values.0.contains_key("-h") {
        return Ok(Asked::Help(flags::help(&values.hidden())));
    }
    if values.0.contains_key("--version") {
        return Ok(Asked::Version);
    }
    if values.0.contains_key("--list-devices") {
        let listed = values.get("devices").map(|devices| format!("\n  {devices}")).unwrap_or_default();
        return Ok(Asked::Devices(format!("Available devices:{listed}")));
    }
    values.serving().map(|arguments| Asked::Serve(Box::new(arguments)))
}

impl Values {
    fn of_environment() -> Values {
        let name = |fault: &str| format!("FAKE_{}", fault.to_uppercase().replace('-', "_"));
        let fault = |fault: &&str| Some(((*fault).to_owned(), std::env::var(name(fault)).ok()?));
        let mut values: BTreeMap<String, String> = FAULTS.iter().filter_map(fault).collect();
        if let Ok(key) = std::env::var("LLAMA_API_KEY") {
            values.insert("--api-key".to_owned(), key);
        }
        Values(values)
    }

    /// Faults first, since they say which flags there are.
    fn take(&mut self, arguments: &[String]) -> Result<(), String> {
        let mut real = Vec::new();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            match name.strip_prefix("--fake-").filter(|fault| FAULTS.contains(fault)) {
                Some(fault) => self.insert(fault, rest.next().ok_or_else(|| lacks_value(name))?),
                None => real.push(name),
            }
        }
        let hidden = self.get("hide").unwrap_or_default().to_owned();
        let hidden: Vec<&str> = hidden.split(',').collect();
        let mut rest = real.into_iter();
        while let Some(name) = rest.next() {
            let flag = flags::find(name, &hidden).ok_or(format!("invalid argument: {name}"))?;
            let value = if flag.takes.is_some() { rest.next().ok_or_else(|| lacks_value(name))? } else { name };
            self.insert(flag.names.first().copied().unwrap_or_default(), value);
        }
        Ok(())
    }

    fn insert(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn hidden(&self) -> Vec<&str> {
        self.get("hide").map(|names| names.split(',').collect()).unwrap_or_default()
    }

    fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, String> {
        let parse = |text: &str| text.parse().map_err(|_| format!("{name}: {text:?} is not a number that fits"));
        self.get(name).map(parse).transpose()
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, String> {
        self.get(name).map(duration).transpose()
    }

    fn serving(&self) -> Result<Arguments, String> {
        // The faults of a load are for the first process only, where that is said.
        let first = self.get("once").is_none_or(|path| std::fs::File::create_new(path).is_ok());
        let balloon = self.get("balloon").map(bytes).transpose()?;
        let over = self.duration("balloon-over")?.unwrap_or_default();
        Ok(Arguments {
            host: self.get("--host").unwrap_or("127.0.0.1").to_owned(),
            port: self.number("--port")?.unwrap_or(8080),
            server: self.server()?,
            load: self.duration("load")?.unwrap_or_default(),
            load_says: one_of(
                "load-says",
                self.get("load-says"),
                &[("progress", LoadSays::Progress), ("nothing", LoadSays::Nothing), ("memory", LoadSays::Memory)],
            )?,
            load_ends: if first { self.load_ends()? } else { LoadEnds::Ready },
            term: one_of("term", self.get("term"), &[("ends", Term::Ends), ("ignored", Term::Ignored)])?,
            grandchild: self.duration("grandchild")?,
            balloon: balloon.map(|bytes| (bytes, over)),
            starts: self.get("starts").map(PathBuf::from),
        })
    }

    fn load_ends(&self) -> Result<LoadEnds, String> {
        match self.get("load-ends").unwrap_or("ready") {
            "ready" => Ok(LoadEnds::Ready),
            "stalls" => Ok(LoadEnds::Stalls),
            "out-of-memory" => Ok(LoadEnds::OutOfMemory),
            "out-of-memory-healthy" => Ok(LoadEnds::OutOfMemoryHealthy),
            "not-bound" => Ok(LoadEnds::NotBound),
            other => death(other).map(LoadEnds::Dies),
        }
    }

    fn server(&self) -> Result<Settings, String> {
        let usual = Settings::default();
        let slots: i64 = self.number("-np")?.unwrap_or(-1);
        let kind = match (self.get("--embedding"), self.get("--rerank")) {
            (_, Some(_)) => Kind::Rerank,
            (Some(_), None) => Kind::Embedding,
            (None, None) => Kind::Chat,
        };
        let model = self.get("-a").or_else(|| self.get("-m")).unwrap_or(&usual.model).to_owned();
        let counting = [("words", Counting::Words), ("four-bytes", Counting::FourBytes)];
        let wanted = one_of("key", self.get("key"), &[("wanted", true), ("ignored", false)])?;
        let mut faults = usual.faults;
        faults.answers = self.get("answers").map(answers).transpose()?;
        faults.spared = self.number("spared")?.unwrap_or(0);
        faults.times = self.number("times")?;
        faults.watching = one_of(
            "watching",
            self.get("watching"),
            &[("answered", Watching::Answered), ("blocked", Watching::Blocked)],
        )?;
        faults.frames = one_of("frames", self.get("frames"), &[("whole", Frames::Whole), ("split", Frames::Split)])?;
        Ok(Settings {
            model,
            kind,
            slots: u32::try_from(slots).ok().filter(|slots| *slots > 0).unwrap_or(usual.slots),
            context: self.number("-c")?.filter(|context| *context > 0).unwrap_or(usual.context),
            key: if wanted { self.get("--api-key").map(str::to_owned) } else { None },
            pace: self.get("service").map_or(Ok(Pace::Instant), service)?,
            counting: one_of("counting", self.get("counting"), &counting)?,
            answer_tokens: self.number("answer-tokens")?.unwrap_or(usual.answer_tokens),
            dimensions: self.number("dimensions")?.unwrap_or(usual.dimensions),
            requests_a_connection: self.number("requests-a-connection")?.unwrap_or(usual.requests_a_connection),
            idle: self.duration("idle")?.unwrap_or(usual.idle),
            faults,
        })
    }
}

fn lacks_value(name: &str) -> String {
    format!("expected value for argument: {name}")
}

/// The value of that name; the first where none is given.
fn one_of<T: Copy>(what: &str, given: Option<&str>, all: &[(&str, T)]) -> Result<T, String> {
    let found = match given {
        None => all.first(),
        Some(given) => all.iter().find(|(name, _)| *name == given),
    };
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("--fake-{what} {}: one of {} is wanted", given.unwrap_or_default(), names.join(", "))
    })
}

fn answers(text: &str) -> Result<AnswerFault, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let count = |text: &str| text.parse().map_err(|_| format!("--fake-answers: {text:?} is no number of tokens"));
    Ok(match parts[..] {
        ["mute"] => AnswerFault::Mute,
        ["busy", time] => AnswerFault::Busy { time: duration(time)? },
        ["closed"] => AnswerFault::Closed,
        ["garbage"] => AnswerFault::Garbage,
        ["out-of-memory"] => AnswerFault::OutOfMemory,
        ["broken", after] => AnswerFault::Broken { after: count(after)? },
        ["dies", after, how] => AnswerFault::Dies { after: count(after)?, death: death(how)? },
        _ => return Err(format!("--fake-answers {text}: no such fault")),
    })
}

fn death(text: &str) -> Result<Death, String> {
    let wrong = || format!("{text:?} is no death: code=N or signal=N is wanted");
    let (how, number) = text.split_once('=').ok_or_else(wrong)?;
    let number = number.parse().map_err(|_| wrong())?;
    match how {
        "code" => Ok(Death::Code(number)),
        "signal" => Ok(Death::Signal(number)),
        _ => Err(wrong()),
    }
}

fn service(text: &str) -> Result<Pace, String> {
    let wrong = || format!("--fake-service {text}: slots with five times or batch with two is wanted");
    let (kind, times) = text.split_once(':').ok_or_else(wrong)?;
    let times: Vec<Span> = times.split(',').map(span).collect::<Result<_, String>>()?;
    match (kind, &times[..]) {
        ("slots", &[prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice]) => {
            let times =
                ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice };
            Ok(Pace::Service(times))
        }
        ("batch", &[alpha, beta]) => Ok(Pace::Service(ServiceTimes::Batch { alpha, beta })),
        _ => Err(wrong()),
    }
}

fn span(text: &str) -> Result<Span, String> {
    let nanos = duration(text)?.as_nanos();
    Ok(Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// Whole `us`, `ms` or `s`.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no time: 20ms, say, is wanted"))?;
    match unit {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        _ => Err(format!("{text:?} is no time: 20ms, say, is wanted")),
    }
}

/// Whole MiB.
fn bytes(text: &str) -> Result<usize, String> {
    let number = text.strip_suffix("MiB").and_then(|number| number.parse::<usize>().ok());
    number.and_then(|mib| mib.checked_mul(1 << 20)).ok_or(format!("{text:?} is no size: 64MiB, say, is wanted"))
}
