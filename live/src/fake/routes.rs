//! Which path does what, in the order of the real server: first whether the model is there, then the key, then the rest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    answer::{Answer, Fate},
    dialects::{Dialect, Names},
    generation::{Generation, text, word},
    question::{Delivery, Question, TooLong, prompt_tokens},
    server::Inner,
    settings::{AnswerFault, Kind, Settings, Watching},
    stream::Stream,
    vectors::{Inputs, scores},
};

/// What a server says when a buffer of the device cannot be had.
const OUT_OF_MEMORY: &str = "CUDA error: out of memory";

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Health,
    Models,
    Props,
    Slots,
    Metrics,
    Generate(Dialect),
    Infill,
    Embeddings,
    NativeEmbeddings,
    Rerank,
    Transcribe,
    Tokenize,
    Detokenize,
    Template,
    CountTokens,
    Preflight,
    Nothing,
}

/// Answers a request.
pub async fn answer(request: Request<Incoming>, inner: &Arc<Inner>) -> Fate {
    let route = route(request.method(), request.uri().path());
    if route == Route::Preflight {
        return Fate::Answer(Answer::preflight());
    }
    if !inner.is_ready() {
        let loading = json!({ "message": "Loading model", "type": "unavailable_error", "code": 503 });
        return Fate::Answer(Answer::refusal(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": loading })));
    }
    let open = matches!(route, Route::Health | Route::Models);
    if !open && !may_ask(request.headers(), inner.settings.key.as_deref()) {
        let unknown = json!({ "message": "Invalid API Key", "type": "authentication_error", "code": 401 });
        return Fate::Answer(Answer::refusal(StatusCode::UNAUTHORIZED, json!({ "error": unknown })));
    }
    match route {
        Route::Health => Fate::Answer(Answer::json(r#"{"status":"ok"}"#)),
        Route::Models => Fate::Answer(Answer::json(models(&inner.settings).to_string())),
        Route::Props => Fate::Answer(Answer::json(props(&inner.settings).to_string())),
        Route::Slots | Route::Metrics if inner.settings.faults.watching == Watching::Blocked => Fate::Never,
        Route::Slots => Fate::Answer(Answer::json(slots(inner).to_string())),
        Route::Metrics => Fate::Answer(unsupported("metrics endpoint", "--metrics")),
        Route::Nothing | Route::Preflight => Fate::Answer(Answer::refusal(
            StatusCode::NOT_FOUND,
            json!({ "error": { "message": "File Not Found", "type": "not_found_error", "code": 404 } }),
        )),
        Route::Generate(_) | Route::Infill | Route::Embeddings | Route::NativeEmbeddings | Route::Rerank => {
            work(route, request, inner).await
        }
        Route::Transcribe => transcribe(request, inner).await,
        Route::Tokenize | Route::Detokenize | Route::Template | Route::CountTokens => match body(request).await {
            Ok(body) => Fate::Answer(about_text(route, &body, &inner.settings)),
            Err(fate) => fate,
        },
    }
}

fn route(method: &Method, path: &str) -> Route {
    if *method == Method::OPTIONS {
        return Route::Preflight;
    }
    let get = *method == Method::GET || *method == Method::HEAD;
    match path {
        "/health" | "/v1/health" if get => Route::Health,
        "/models" | "/v1/models" if get => Route::Models,
        "/props" if get => Route::Props,
        "/slots" if get => Route::Slots,
        "/metrics" if get => Route::Metrics,
        _ if *method != Method::POST => Route::Nothing,
        "/chat/completions" | "/v1/chat/completions" => Route::Generate(Dialect::Chat),
        "/v1/completions" => Route::Generate(Dialect::Completion),
        "/completion" | "/completions" => Route::Generate(Dialect::Native),
        "/responses" | "/v1/responses" => Route::Generate(Dialect::Responses),
        "/v1/messages" => Route::Generate(Dialect::Messages),
        "/v1/messages/count_tokens" | "/v1/responses/input_tokens" | "/v1/chat/completions/input_tokens" => {
            Route::CountTokens
        }
        "/v1/audio/transcriptions" => Route::Transcribe,
        "/infill" => Route::Infill,
        "/v1/embeddings" => Route::Embeddings,
        "/embedding" | "/embeddings" => Route::NativeEmbeddings,
        "/rerank" | "/reranking" | "/v1/rerank" | "/v1/reranking" => Route::Rerank,
        "/tokenize" => Route::Tokenize,
        "/detokenize" => Route::Detokenize,
        "/apply-template" => Route::Template,
        _ => Route::Nothing,
    }
}

/// As `Authorization: Bearer`, or as Anthropic's clients send it.
fn may_ask(headers: &HeaderMap, key: Option<&str>) -> bool {
    let Some(key) = key else { return true };
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.or(own) == Some(key)
}

/// The body as JSON.
async fn body(request: Request<Incoming>) -> Result<Value, Fate> {
    let Ok(body) = request.into_body().collect().await else { return Err(Fate::Closed) };
    serde_json::from_slice(&body.to_bytes()).map_err(|wrong| {
        let message = format!("[json.exception.parse_error.101] parse error: {wrong}");
        Fate::Answer(Answer::error(StatusCode::INTERNAL_SERVER_ERROR, "server_error", &message))
    })
}

/// Requests that occupy a slot.
async fn work(route: Route, request: Request<Incoming>, inner: &Arc<Inner>) -> Fate {
    let body = match body(request).await {
        Ok(body) => body,
        Err(fate) => return fate,
    };
    let fault = inner.next_fault();
    match fault {
        Some(AnswerFault::Mute) => {
            // The slot is taken, for ever or until the client has had enough.
            let _held = inner.slot().await;
            return std::future::pending().await;
        }
        Some(AnswerFault::Busy { time }) => compute(time).await,
        Some(AnswerFault::Closed) => return Fate::Closed,
        Some(AnswerFault::Garbage) => return Fate::Garbage(Answer::json("{}")),
        Some(AnswerFault::OutOfMemory) => {
            inner.process.log(OUT_OF_MEMORY);
            return Fate::Answer(Answer::error(StatusCode::INTERNAL_SERVER_ERROR, "server_error", OUT_OF_MEMORY));
        }
        Some(AnswerFault::Broken { .. } | AnswerFault::Dies { .. }) | None => {}
    }
    match route {
        Route::Generate(dialect) => generate(dialect, &body, fault, inner).await,
        Route::Infill => generate(Dialect::Native, &body, fault, inner).await,
        _ => vectors(route, &body, inner).await,
    }
}

/// Keeps a processor busy.
async fn compute(time: Duration) {
    let until = Instant::now() + time;
    // Where a thread is to be had, so that the rest of the server goes on.
    let computing = tokio::task::spawn_blocking(move || {
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    });
    drop(computing.await);
}

/// A form with a file, of which every KiB begun makes a word.
async fn transcribe(request: Request<Incoming>, inner: &Arc<Inner>) -> Fate {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let form = kind.is_some_and(|kind| kind.starts_with("multipart/form-data"));
    let Ok(body) = request.into_body().collect().await else { return Fate::Closed };
    let body = body.to_bytes();
    if !form || memchr::memmem::find(&body, b"name=\"file\"").is_none() {
        let message = "No input file found";
        return Fate::Answer(Answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", message));
    }
    let words = u32::try_from(body.len().div_ceil(1024)).unwrap_or(u32::MAX).min(inner.settings.answer_tokens);
    let Some(_slot) = inner.slot().await else { return Fate::Closed };
    if let Some(seat) = &inner.seat {
        let mut work = seat.generate(0, words);
        while work.tokens().recv().await.is_some() {}
    }
    Fate::Answer(Answer::json(json!({ "text": text(words) }).to_string()))
}

async fn generate(dialect: Dialect, body: &Value, fault: Option<AnswerFault>, inner: &Arc<Inner>) -> Fate {
    if let Err(refusal) = fits(dialect, body, inner.settings.kind) {
        return Fate::Answer(refusal);
    }
    let question = match Question::read(body, &inner.settings) {
        Ok(question) => question,
        Err(too_long) => return Fate::Answer(context_exceeded(too_long)),
    };
    let Some(slot) = inner.slot().await else { return Fate::Closed };
    let delivery = question.delivery;
    let began = Instant::now();
    let work = inner.seat.as_ref().map(|seat| seat.generate(question.prompt, question.output));
    let generation = Generation::new(question, began, work, slot);
    let names = names(&inner.settings);
    match (delivery, fault) {
        (Delivery::Stream, fault) => {
            Fate::Answer(Answer::events(Stream::new(dialect, names, generation, fault, inner)))
        }
        (Delivery::Whole, None) => {
            let outcome = generation.finish().await;
            Fate::Answer(Answer::json(dialect.whole(&names, &outcome).to_string()))
        }
        (Delivery::Whole, Some(fault)) => {
            if let AnswerFault::Dies { death, .. } = fault {
                inner.process.die(death);
            }
            Fate::Closed
        }
    }
}

/// What the real server says before it looks for a slot.
fn fits(dialect: Dialect, body: &Value, kind: Kind) -> Result<(), Answer> {
    let invalid = |message: &str| Err(Answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", message));
    match (dialect, kind) {
        (_, Kind::Embedding | Kind::Rerank) => Err(Answer::error(
            StatusCode::NOT_IMPLEMENTED,
            "not_supported_error",
            "This server does not support completions. Start it without `--embeddings`",
        )),
        (Dialect::Chat | Dialect::Messages, Kind::Chat) => match body.get("messages") {
            None => invalid("'messages' is required"),
            Some(Value::Array(_)) => Ok(()),
            Some(_) => invalid("Expected 'messages' to be an array"),
        },
        (Dialect::Responses, Kind::Chat) if body.get("input").is_none() => invalid("'input' is required"),
        (Dialect::Completion | Dialect::Native | Dialect::Responses, Kind::Chat) => Ok(()),
    }
}

async fn vectors(route: Route, body: &Value, inner: &Arc<Inner>) -> Fate {
    let settings = &inner.settings;
    let (inputs, answer) = match (route, settings.kind) {
        (Route::Rerank, Kind::Rerank) => match scores(body, settings) {
            Ok(scored) => scored,
            Err(refusal) => return Fate::Answer(refusal),
        },
        (Route::Rerank, Kind::Chat | Kind::Embedding) => return Fate::Answer(unsupported("reranking", "--reranking")),
        (_, Kind::Chat) => return Fate::Answer(unsupported("embeddings", "--embeddings")),
        (route, Kind::Embedding | Kind::Rerank) => match Inputs::read(body) {
            Ok(inputs) if route == Route::NativeEmbeddings => (inputs.count(), inputs.native(settings)),
            Ok(inputs) => (inputs.count(), inputs.answer(settings)),
            Err(refusal) => return Fate::Answer(refusal),
        },
    };
    let Some(_slot) = inner.slot().await else { return Fate::Closed };
    if let Some(seat) = &inner.seat {
        let mut work = seat.work(inputs);
        while work.tokens().recv().await.is_some() {}
    }
    Fate::Answer(Answer::json(answer.to_string()))
}

fn about_text(route: Route, body: &Value, settings: &Settings) -> Answer {
    let tokens = prompt_tokens(body, settings.counting);
    let answer = match route {
        Route::Tokenize => json!({ "tokens": (0..tokens).collect::<Vec<u32>>() }),
        Route::Detokenize => {
            let tokens = body.get("tokens").and_then(Value::as_array).into_iter().flatten();
            let places = tokens.filter_map(|token| u32::try_from(token.as_u64()?).ok());
            json!({ "content": places.map(word).collect::<String>() })
        }
        Route::Template => json!({ "prompt": body.get("messages").map(Value::to_string).unwrap_or_default() }),
        _ => json!({ "input_tokens": tokens }),
    };
    Answer::json(answer.to_string())
}

fn models(settings: &Settings) -> Value {
    let name = &settings.model;
    json!({
        "models": [{ "name": name, "model": name, "type": "model", "capabilities": ["completion"] }],
        "object": "list",
        "data": [{ "id": name, "aliases": [name], "tags": [], "object": "model", "created": seconds(),
            "owned_by": "llamacpp", "meta": { "n_ctx": settings.context_a_slot() } }],
    })
}

fn props(settings: &Settings) -> Value {
    json!({
        "default_generation_settings": { "params": {}, "n_ctx": settings.context_a_slot() },
        "total_slots": settings.slots, "model_alias": settings.model, "model_path": settings.model,
        "modalities": { "vision": false, "video": false, "audio": false }, "endpoint_slots": true,
        "endpoint_props": false, "endpoint_metrics": false, "ui": false, "chat_template": "",
        "build_info": "b10068-fake", "is_sleeping": false,
    })
}

fn slots(inner: &Inner) -> Value {
    let context = inner.settings.context_a_slot();
    let slot = |(id, busy)| json!({ "id": id, "n_ctx": context, "speculative": false, "is_processing": busy });
    inner.slots.picture().into_iter().enumerate().map(slot).collect()
}

fn names(settings: &Settings) -> Names {
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    Names { model: settings.model.clone(), number: ANSWERS.fetch_add(1, Ordering::Relaxed), created: seconds() }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn unsupported(what: &str, flag: &str) -> Answer {
    let message = format!("This server does not support {what}. Start it with `{flag}`");
    Answer::error(StatusCode::NOT_IMPLEMENTED, "not_supported_error", &message)
}

fn context_exceeded(TooLong { prompt, context }: TooLong) -> Answer {
    let message =
        format!("request ({prompt} tokens) exceeds the available context size ({context} tokens), try increasing it");
    let error = json!({ "code": 400, "message": message, "type": "exceed_context_size_error",
        "n_prompt_tokens": prompt, "n_ctx": context });
    Answer::refusal(StatusCode::BAD_REQUEST, json!({ "error": error }))
}
