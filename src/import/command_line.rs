//! The command line of a `llama-server`: which of its flags are keys here, which are the daemon's own business, and which go
//! through as they are.

use super::losses::Losses;

/// What a command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub program: String,
    /// `NAME=value` before the program, as `env` takes them.
    pub environment: Vec<(String, String)>,
    pub gguf: Option<String>,
    pub mmproj: Option<String>,
    pub ctx: Option<u32>,
    pub slots: Option<u32>,
    pub aliases: Vec<String>,
    pub purpose: Option<Purpose>,
    /// Everything else, in its order.
    pub args: Vec<String>,
}

/// What a server does that does not generate text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Embedding,
    Rerank,
}

/// The words of a command as a shell would have them; lines that begin with `#` are left out, and a backslash at the end of a
/// line goes on in the next.
pub fn words(command: &str) -> Option<Vec<String>> {
    let lines = command.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined: String = lines
        .map(|line| {
            let line = line.trim_end();
            format!("{} ", line.strip_suffix('\\').unwrap_or(line))
        })
        .collect();
    shlex::split(&joined)
}

/// Reads a command line; what has no counterpart is a loss of `key` in `line`. An error says why it starts no
/// `llama-server`.
pub fn read(words: &[String], line: usize, key: &str, losses: &mut Losses) -> Result<CommandLine, String> {
    let mut words = words.iter().map(String::as_str).peekable();
    let mut read = CommandLine::default();
    if words.peek().is_some_and(|word| file_name(word) == "env") {
        words.next();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            read.environment.push((name.to_owned(), value.to_owned()));
            words.next();
        }
    }
    read.program = words.next().ok_or("is empty")?.to_owned();
    let rest: Vec<&str> = words.collect();
    if let Some(why) = another_server(&read.program, &rest) {
        return Err(why);
    }
    flags(&rest, &mut read, line, key, losses);
    Ok(read)
}

fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

/// Why a program is no `llama-server`. One under another name shows itself by its model file.
fn another_server(program: &str, arguments: &[&str]) -> Option<String> {
    if file_name(program).contains("llama-server") {
        return None;
    }
    let has_model =
        arguments.windows(2).any(|pair| matches!(pair, ["-m" | "--model", file] if file.ends_with(".gguf")));
    let wraps = [
        "docker", "podman", "sh", "bash", "zsh", "python", "python3", "uv", "uvx", "vllm", "nice", "numactl", "taskset",
    ];
    let wrapped = wraps.contains(&file_name(program));
    (wrapped || !has_model).then(|| {
        format!(
            "starts {}, and processes here are llama-server, started without a shell or container",
            file_name(program)
        )
    })
}

fn flags(words: &[&str], read: &mut CommandLine, line: usize, key: &str, losses: &mut Losses) {
    let mut rest = words;
    while let Some((flag, after)) = rest.split_first() {
        rest = after;
        let value = after.first().copied();
        let taken = match (*flag, value) {
            ("-m" | "--model", Some(file)) => set(&mut read.gguf, file.to_owned()),
            ("-mm" | "--mmproj", Some(file)) => set(&mut read.mmproj, file.to_owned()),
            ("-a" | "--alias", Some(names)) => {
                read.aliases
                    .extend(names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()));
                Taken::Pair
            }
            ("-c" | "--ctx-size", Some(count)) => counted(&mut read.ctx, count),
            ("-np" | "--parallel", Some(count)) => counted(&mut read.slots, count),
            ("--embedding" | "--embeddings", _) => set_flag(&mut read.purpose, Purpose::Embedding),
            ("--rerank" | "--reranking", _) => set_flag(&mut read.purpose, Purpose::Rerank),
            // The daemon gives each process an address and a key of its own.
            ("--host" | "--port", Some(_)) => Taken::Pair,
            ("--api-key" | "--api-key-file", Some(_)) => {
                losses.add(line, key, format!("{flag} is the daemon's own; what clients send stands in [[keys]]"));
                Taken::Pair
            }
            ("--no-webui" | "--no-ui", _) => Taken::Flag,
            _ => Taken::No,
        };
        match taken {
            Taken::Pair => rest = rest.get(1..).unwrap_or_default(),
            Taken::Flag => {}
            Taken::No => read.args.push((*flag).to_owned()),
        }
    }
}

/// How much of the command line was understood.
enum Taken {
    No,
    Flag,
    Pair,
}

fn set<T>(place: &mut Option<T>, value: T) -> Taken {
    *place = Some(value);
    Taken::Pair
}

fn set_flag<T>(place: &mut Option<T>, value: T) -> Taken {
    *place = Some(value);
    Taken::Flag
}

/// A number above zero. Zero and less are a llama-server's words for "as usual"; what is no number stays an argument.
fn counted(place: &mut Option<u32>, text: &str) -> Taken {
    let Ok(number) = text.parse::<i32>() else { return Taken::No };
    *place = u32::try_from(number).ok().filter(|number| *number > 0);
    Taken::Pair
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Result<CommandLine, String> {
        read(&words(command).unwrap(), 1, "cmd", &mut Losses::default())
    }

    #[test]
    fn known_flags_become_keys_and_the_rest_stays_as_it_is() {
        let read = of("# a comment\n  /opt/llama-server --host 0.0.0.0 --port ${PORT} \\\n -m '/my models/a.gguf'\n\
            --ctx-size 16384 -np 2 -a gpt-4o,other -ngl 99 --mmproj eyes.gguf --chat-template-kwargs '{\"a\": \"b c\"}' --jinja")
        .unwrap();
        assert_eq!(read.program, "/opt/llama-server");
        assert_eq!(read.gguf.as_deref(), Some("/my models/a.gguf"));
        assert_eq!((read.ctx, read.slots, read.mmproj.as_deref()), (Some(16384), Some(2), Some("eyes.gguf")));
        assert_eq!(read.aliases, ["gpt-4o", "other"]);
        assert_eq!(read.args, ["-ngl", "99", "--chat-template-kwargs", "{\"a\": \"b c\"}", "--jinja"]);
    }

    #[test]
    fn a_prefix_of_variables_is_taken_apart_and_odd_values_stay() {
        let read = of("env A=1 B='x y' llama-server -m a.gguf -c 0 -np -1 -c many --embedding").unwrap();
        assert_eq!(read.environment, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "x y".to_owned())]);
        assert_eq!((read.ctx, read.slots, read.purpose), (None, None, Some(Purpose::Embedding)));
        assert_eq!(read.args, ["-c", "many"]);
    }

    #[test]
    fn what_is_no_llama_server_says_so() {
        for command in ["docker run -m 4 x", "vllm serve a", "sh -c 'llama-server -m a.gguf'", "", "ollama-thing"] {
            assert!(of(command).is_err(), "{command}");
        }
        assert!(of("/opt/my-build/server -m a.gguf").is_ok());
        assert_eq!(words("a 'b"), None);
    }
}
