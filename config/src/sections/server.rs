//! `[server]`: how a daemon listens and starts processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use windtunnel_core::{Bytes, Span};

use crate::daemon::Server;
use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape};

pub(crate) static SERVER: Form = Form::new(
    "server",
    "How the daemon listens and starts processes.",
    &[
        Key::scalar("listen", Scalar::Address, "where it listens; port 0: any that is free").or("\"127.0.0.1:8080\""),
        Key::scalar("public", Scalar::Flag, "whether it may listen beyond this machine although there are no keys")
            .or("false"),
        Key::new(
            "hosts",
            Shape::Any(&Shape::Scalar(Scalar::Name)),
            "names by which it is reached, beside its address and localhost",
        ),
        Key::new(
            "cors",
            Shape::Any(&Shape::Scalar(Scalar::Name)),
            "origins whose pages may ask, such as \"https://chat.example\"; default: none",
        ),
        Key::scalar("body_limit", Scalar::Size, "the largest request body").or("\"100MB\""),
        Key::scalar("body_time", Scalar::SpanAboveZero, "no request body takes longer to arrive").or("\"5m\""),
        Key::scalar(
            "keepalive_after",
            Scalar::SpanAboveZero,
            "a streaming request that waits gets its first comment after so long",
        )
        .or("\"10s\""),
        Key::scalar("keepalive_every", Scalar::SpanAboveZero, "and a further one after so long each").or("\"12s\""),
        Key::scalar("drain", Scalar::Span, "how long streams may go on when the daemon is asked to end").or("\"30s\""),
        Key::scalar("llama_server", Scalar::Name, "the runtime of models that name none: a path, or a name on PATH")
            .or("\"llama-server\""),
        Key::scalar("state_dir", Scalar::Name, "where profiles are kept; default: where the system keeps such things"),
        Key::scalar("journal", Scalar::Name, "the journal's file; default: none is written"),
        Key::scalar("journal_limit", Scalar::Size, "the size of a journal's file at which the next one begins")
            .or("\"256MiB\""),
        Key::new(
            "args",
            Shape::Any(&Shape::Scalar(Scalar::Text)),
            "arguments of every model's runtime, before its own",
        ),
        Key::scalar(
            "start_stall",
            Scalar::SpanAboveZero,
            "a start without output and growing memory for so long failed",
        )
        .or("\"60s\""),
        Key::scalar("start_limit", Scalar::SpanAboveZero, "no start takes longer").or("\"30m\""),
        Key::scalar(
            "wedged_after",
            Scalar::SpanAboveZero,
            "a process that neither sends nor computes for so long while somebody waits for its bytes is replaced",
        )
        .or("\"120s\""),
        Key::scalar("stop_grace", Scalar::Span, "from asking a process to end until it is killed").or("\"10s\""),
    ],
);

/// Smaller files of a journal would hold little beside the state they begin with.
const LEAST_JOURNAL: Bytes = Bytes::new(64 << 10);

/// Whether anybody needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// There are keys.
    ByKey,
    /// Anybody who reaches it may ask.
    Open,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            public: false,
            hosts: Vec::new(),
            cors: Vec::new(),
            body_limit: Bytes::new(100_000_000),
            body_time: Span::from_secs(5 * 60),
            keepalive_after: Span::from_secs(10),
            keepalive_every: Span::from_secs(12),
            drain: Span::from_secs(30),
            llama_server: PathBuf::from("llama-server"),
            state_dir: None,
            journal: None,
            journal_limit: Bytes::from_mib(256),
            start_stall: Span::from_secs(60),
            start_limit: Span::from_secs(30 * 60),
            wedged_after: Span::from_secs(120),
            stop_grace: Span::from_secs(10),
        }
    }
}

/// The server of a file; what it leaves out is as [`Server::default`] has it.
pub(crate) fn read(section: Option<&Section<'_>>, access: Access) -> Server {
    let standard = Server::default();
    let Some(section) = section else { return standard };
    let span = |key, standard| section.span(key).unwrap_or(standard);
    let listed = |key| {
        let texts = section.texts(key).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text.to_owned()).collect::<Vec<String>>()
    };
    let server = Server {
        listen: section.address("listen").unwrap_or(standard.listen),
        public: section.flag("public").unwrap_or(standard.public),
        hosts: listed("hosts"),
        cors: listed("cors"),
        body_limit: section.size("body_limit").unwrap_or(standard.body_limit),
        body_time: span("body_time", standard.body_time),
        keepalive_after: span("keepalive_after", standard.keepalive_after),
        keepalive_every: span("keepalive_every", standard.keepalive_every),
        drain: span("drain", standard.drain),
        llama_server: section.program("llama_server").unwrap_or(standard.llama_server),
        state_dir: section.path_beside("state_dir"),
        journal: section.path_beside("journal"),
        journal_limit: section.size("journal_limit").unwrap_or(standard.journal_limit),
        start_stall: span("start_stall", standard.start_stall),
        start_limit: span("start_limit", standard.start_limit),
        wedged_after: span("wedged_after", standard.wedged_after),
        stop_grace: span("stop_grace", standard.stop_grace),
    };
    check(section, &server, access);
    server
}

/// The arguments of every model's runtime.
pub(crate) fn standing_arguments(section: Option<&Section<'_>>) -> Vec<String> {
    let texts = section.and_then(|section| section.texts("args")).unwrap_or_default();
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}

fn check(section: &Section<'_>, server: &Server, access: Access) {
    if access == Access::Open && !server.public && !server.listen.ip().is_loopback() {
        section.wrong(
            "listen",
            &format!(
                "is {}, which others can reach, and nobody needs a key: list [[keys]], or say public = true as well",
                server.listen
            ),
        );
    }
    if server.journal_limit < LEAST_JOURNAL {
        section.wrong("journal_limit", &format!("is {}; a file holds {LEAST_JOURNAL} at least", server.journal_limit));
    }
    if server.body_limit == Bytes::ZERO {
        section.wrong("body_limit", "lets no request in; the usual is \"100MB\"");
    }
}
