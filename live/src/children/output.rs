//! What a child says: kept for a while, scanned for the end of memory, and passed on as far as it can hold no prompt.
//!
//! Before a server is ready it knows no request, so all it says is kept. Afterwards even its errors may quote one ("parse
//! error ... last read: ..."), so that only lines are kept which speak of the device or of its own end.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinHandle,
};

/// Lines that are kept, and of each so many bytes.
const LINES: usize = 60;
const BYTES: usize = 500;
/// After the end of a process its last words are waited for so long: somebody else may hold its pipes.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Lines that say so this shortly after one another speak of one event.
const ONE_EVENT: Duration = Duration::from_millis(250);

/// Where lines go that may be logged.
pub type Passed = Arc<dyn Fn(&str) + Send + Sync>;

/// The output of one process.
#[derive(Debug)]
pub struct Output {
    said: Arc<Mutex<Said>>,
    readers: Vec<JoinHandle<()>>,
    /// One for every time that memory ran out.
    memory: UnboundedReceiver<()>,
}

#[derive(Debug)]
struct Said {
    lines: VecDeque<String>,
    /// When it last said anything.
    last: Instant,
    out_of_memory: Option<Instant>,
    not_bound: bool,
    trust: Trust,
}

/// Whether what is said may quote a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    KnowsNoRequest,
    MayQuote,
}

impl Output {
    /// Reads both of a process's outputs until their ends.
    pub fn read(
        streams: (impl AsyncRead + Send + Unpin + 'static, impl AsyncRead + Send + Unpin + 'static),
        passed: Passed,
    ) -> Output {
        let said = Said {
            lines: VecDeque::new(),
            last: Instant::now(),
            out_of_memory: None,
            not_bound: false,
            trust: Trust::KnowsNoRequest,
        };
        let said = Arc::new(Mutex::new(said));
        let (tell, memory) = mpsc::unbounded_channel();
        let readers = vec![
            tokio::spawn(follow(streams.0, Arc::clone(&said), Arc::clone(&passed), tell.clone())),
            tokio::spawn(follow(streams.1, Arc::clone(&said), passed, tell)),
        ];
        Output { said, readers, memory }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it last said anything.
    pub fn last(&self) -> Instant {
        self.said().last
    }

    /// Whether memory ran out within the last so long.
    pub fn ran_out_of_memory(&self, within: Duration) -> bool {
        self.said().out_of_memory.is_some_and(|at| at.elapsed() <= within)
    }

    /// Whether it said that its port was taken.
    pub fn was_not_bound(&self) -> bool {
        self.said().not_bound
    }

    /// From now on it knows requests.
    pub fn knows_requests(&self) {
        self.said().trust = Trust::MayQuote;
    }

    /// Waits until it says that memory ran out.
    pub async fn out_of_memory(&mut self) {
        if self.memory.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// Waits a little for its last words.
    pub async fn finish(&mut self) {
        let all = async {
            for reader in &mut self.readers {
                drop(reader.await);
            }
        };
        drop(tokio::time::timeout(LAST_WORDS, all).await);
        self.readers.clear();
    }

    /// The line that says most of what went wrong: the last that speaks of an error, else the last.
    pub fn reason(&self) -> Option<String> {
        let said = self.said();
        let error = said.lines.iter().rev().find(|line| line.contains(" E ") || line.to_lowercase().contains("error"));
        error.or(said.lines.back()).cloned()
    }

    /// All that is kept.
    pub fn recent(&self) -> Vec<String> {
        self.said().lines.iter().cloned().collect()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

async fn follow(stream: impl AsyncRead + Unpin, said: Arc<Mutex<Said>>, passed: Passed, memory: UnboundedSender<()>) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without end is taken in pieces.
        match (&mut stream).take(64 * 1024).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => hear(&String::from_utf8_lossy(&line), &said, &passed, &memory),
        }
    }
}

fn hear(line: &str, said: &Mutex<Said>, passed: &Passed, memory: &UnboundedSender<()>) {
    let line = line.trim_end();
    let now = Instant::now();
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    said.last = now;
    if says_out_of_memory(line) {
        let one = said.out_of_memory.is_some_and(|before| now.duration_since(before) < ONE_EVENT);
        said.out_of_memory = Some(now);
        if !one {
            let _gone = memory.send(());
        }
    }
    said.not_bound |= says_not_bound(line);
    let kept = said.trust == Trust::KnowsNoRequest || speaks_of_itself(line);
    if !kept || line.is_empty() || answers_us(line) {
        return;
    }
    let short = shortened(line).to_owned();
    if said.lines.len() == LINES {
        said.lines.pop_front();
    }
    said.lines.push_back(short.clone());
    drop(said);
    passed(&short);
}

fn shortened(line: &str) -> &str {
    line.get(..line.floor_char_boundary(BYTES)).unwrap_or(line)
}

/// Whether a line, or the body of an answer, says that the memory of a device ran out: as CUDA, HIP, Vulkan and Metal say it,
/// and the server of its buffers.
pub fn says_out_of_memory(text: &str) -> bool {
    const SAID: [&str; 8] = [
        "out of memory",
        "erroroutofdevicememory",
        "erroroutofhostmemory",
        "kiogpucommandbuffercallbackerroroutofmemory",
        "insufficient memory",
        "std::bad_alloc",
        "failed to allocate compute",
        "failed to allocate buffer",
    ];
    let text = text.to_lowercase();
    SAID.iter().any(|said| text.contains(said)) || text.contains("unable to allocate") && text.contains("buffer")
}

fn says_not_bound(line: &str) -> bool {
    line.contains("couldn't bind") || line.contains("Address already in use")
}

/// Lines that a server writes because of us: `probe` has it refuse a request without its key, and it tells whoever holds
/// its stdin of its states.
fn answers_us(line: &str) -> bool {
    line.contains("unauthorized: Invalid API Key") || line.starts_with("cmd_child_to_router:")
}

/// Lines that a server writes of its device or of its own end.
fn speaks_of_itself(line: &str) -> bool {
    const BEGIN: [&str; 6] = ["ggml_", "GGML_ASSERT", "CUDA error", "terminate called", "alloc_tensor", "libc++abi"];
    BEGIN.iter().any(|begin| line.starts_with(begin)) || says_out_of_memory(line) && line.len() < BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &[&str], trust: Trust) -> (Vec<String>, Said) {
        let said = Said { lines: VecDeque::new(), last: Instant::now(), out_of_memory: None, not_bound: false, trust };
        let (said, log) = (Mutex::new(said), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&log);
        let passed: Passed = Arc::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()));
        let (tell, _memory) = mpsc::unbounded_channel();
        lines.iter().for_each(|line| hear(line, &said, &passed, &tell));
        let log = log.lock().unwrap().clone();
        (log, said.into_inner().unwrap())
    }

    #[test]
    fn the_end_of_memory_is_known_in_every_dialect() {
        for line in [
            "CUDA error: out of memory",
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8 MiB on device 0: cudaMalloc failed: out of memory",
            "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
            "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
            "llama_model_load: error loading model: unable to allocate Vulkan0 buffer",
            "llama_init_from_model: failed to allocate compute pp buffers",
        ] {
            assert!(says_out_of_memory(line), "{line}");
        }
        for line in ["srv  load_model: memory of the context", "failed to find free space in the KV cache, retrying"] {
            assert!(!says_out_of_memory(line), "{line}");
        }
    }

    #[test]
    fn nothing_that_may_quote_a_request_is_kept() {
        let quote = "srv    operator(): got exception: parse error: last read: '\"my secret'";
        let (log, _) = heard(&["I loading", quote, "ggml_cuda: gone"], Trust::MayQuote);
        assert_eq!(log, ["ggml_cuda: gone"]);
        let (log, said) = heard(&["I loading", "E wrong", "I cleaning up"], Trust::KnowsNoRequest);
        assert_eq!(log, ["I loading", "E wrong", "I cleaning up"]);
        assert_eq!(said.lines.len(), 3);
    }

    #[test]
    fn what_a_server_says_because_of_us_is_not_passed_on() {
        let warning = "0.01.234.567 W srv  middleware_va: unauthorized: Invalid API Key";
        let (log, said) = heard(&[warning, "cmd_child_to_router:state:ready", "I loading"], Trust::KnowsNoRequest);
        assert_eq!((log, said.lines.len()), (vec!["I loading".to_owned()], 1));
    }

    #[test]
    fn long_lines_and_long_stories_are_cut() {
        let long = "ä".repeat(BYTES);
        let (log, said) = heard(&vec![long.as_str(); LINES + 5], Trust::KnowsNoRequest);
        assert_eq!((log[0].len(), said.lines.len()), (BYTES, LINES));
    }
}
