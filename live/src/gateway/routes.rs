//! Which path asks for what.
//!
//! Requests come at ten thousand a second and there are two dozen paths, so a `match` on the path is the whole router; there is
//! nothing a framework would add but allocations, and paths whose rest may hold `/` and `:` are plain here.

use http::Method;
use windtunnel_core::JobKind;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// Work for a model, which may load one.
    Infer(Errand),
    /// A question to a model that is loaded already.
    Ask(Errand),
    /// All names.
    Models,
    /// One name.
    Model(&'a str),
    /// Whether the daemon lives.
    Health,
    /// Whether it takes work.
    Ready,
    /// What it measured.
    Metrics,
    /// For operators.
    Admin(Admin<'a>),
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admin<'a> {
    Status,
    Events,
    Load(&'a str),
    Unload(&'a str),
    Reset(&'a str),
    Reload,
}

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errand {
    /// What the scheduler is told.
    pub kind: JobKind,
    /// How errors are worded.
    pub dialect: Dialect,
    /// How the body is written.
    pub form: Form,
    /// The path at the child; `None`: as the client has it.
    pub path: Option<&'static str>,
}

/// Whose envelope errors come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Anthropic,
}

/// How a request body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Multipart,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    NoSuchPath,
    /// The path exists for other methods.
    NotThisWay {
        allow: &'static str,
    },
}

const GET: &str = "GET, HEAD, OPTIONS";
const POST: &str = "POST, OPTIONS";

/// What a request asks for.
pub(super) fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, Astray> {
    let route = find(path).ok_or(Astray::NoSuchPath)?;
    let (fits, allow) = if reads(route) {
        (method == Method::GET || method == Method::HEAD, GET)
    } else {
        (method == Method::POST, POST)
    };
    if fits { Ok(route) } else { Err(Astray::NotThisWay { allow }) }
}

/// The methods a path knows, for those who ask.
pub(super) fn allowed(path: &str) -> Option<&'static str> {
    find(path).map(|route| if reads(route) { GET } else { POST })
}

/// How errors on a path are worded.
pub(super) fn dialect(path: &str) -> Dialect {
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    match rest.strip_prefix("/messages") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Dialect::Anthropic,
        Some(_) | None => Dialect::OpenAi,
    }
}

fn reads(route: Route<'_>) -> bool {
    match route {
        Route::Models | Route::Model(_) | Route::Health | Route::Ready | Route::Metrics => true,
        Route::Admin(Admin::Status | Admin::Events) => true,
        Route::Admin(Admin::Load(_) | Admin::Unload(_) | Admin::Reset(_) | Admin::Reload) => false,
        Route::Infer(_) | Route::Ask(_) => false,
    }
}

fn find(path: &str) -> Option<Route<'_>> {
    let fixed = match path {
        "/health" | "/v1/health" => Some(Route::Health),
        "/readyz" => Some(Route::Ready),
        "/metrics" => Some(Route::Metrics),
        _ => None,
    };
    fixed.or_else(|| admin(path).map(Route::Admin)).or_else(|| model(path))
}

fn admin(path: &str) -> Option<Admin<'_>> {
    let rest = path.strip_prefix("/admin/")?;
    match rest {
        "status" => Some(Admin::Status),
        "events" => Some(Admin::Events),
        "reload" => Some(Admin::Reload),
        _ => {
            let (name, verb) = rest.strip_prefix("models/")?.rsplit_once('/')?;
            match verb {
                "load" => Some(Admin::Load(name)),
                "unload" => Some(Admin::Unload(name)),
                "reset" => Some(Admin::Reset(name)),
                _ => None,
            }
        }
    }
}

/// The paths that carry a model. Where a llama-server knows one spelling only, the child gets that one.
fn model(path: &str) -> Option<Route<'_>> {
    let rest = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let errand = |kind, path| Errand { kind, dialect: Dialect::OpenAi, form: Form::Json, path };
    let messages = |path| Errand { dialect: Dialect::Anthropic, ..errand(JobKind::Chat, Some(path)) };
    Some(match rest {
        "/chat/completions" => Route::Infer(errand(JobKind::Chat, None)),
        "/completions" => Route::Infer(errand(JobKind::Completion, None)),
        "/responses" => Route::Infer(errand(JobKind::Chat, Some("/v1/responses"))),
        "/messages" => Route::Infer(messages("/v1/messages")),
        "/messages/count_tokens" => Route::Ask(messages("/v1/messages/count_tokens")),
        "/embeddings" => Route::Infer(errand(JobKind::Embedding, None)),
        "/embedding" => Route::Infer(errand(JobKind::Embedding, Some("/embedding"))),
        "/rerank" | "/reranking" => Route::Infer(errand(JobKind::Rerank, None)),
        "/audio/transcriptions" => {
            Route::Infer(Errand { form: Form::Multipart, ..errand(JobKind::Audio, Some("/v1/audio/transcriptions")) })
        }
        "/infill" => Route::Infer(errand(JobKind::Completion, Some("/infill"))),
        "/completion" => Route::Infer(errand(JobKind::Completion, Some("/completion"))),
        "/tokenize" => Route::Ask(errand(JobKind::Completion, Some("/tokenize"))),
        "/detokenize" => Route::Ask(errand(JobKind::Completion, Some("/detokenize"))),
        "/apply-template" => Route::Ask(errand(JobKind::Chat, Some("/apply-template"))),
        "/models" => Route::Models,
        _ => Route::Model(rest.strip_prefix("/models/").filter(|name| !name.is_empty())?),
    })
}
