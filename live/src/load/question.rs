//! What a workload's requests look like on the wire.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use serde_json::{Value, json};
use windtunnel_config::{Scenario, Workload};
use windtunnel_core::{Class, JobKind, Quality, Span, Wanted};

use super::{Call, LoadError, Settings, wording::Wording};

/// What the prompts of a workload are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// Each begins with other words, so that no prompt cache helps.
    Distinct,
    /// All begin alike, as far as they are long, so that a prompt cache helps as much as it can.
    Alike,
}

/// Which fields requests have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// `ignore_eos` as well, which `llama-server` and vLLM know: answers are exactly as long as asked for.
    Extended,
    /// Only what OpenAI's interface has; answers may be shorter than asked for.
    Plain,
}

/// What the requests of one workload have in common.
#[derive(Clone, Debug)]
pub(super) struct Question {
    kind: JobKind,
    model: String,
    uri: Uri,
    headers: HeaderMap,
    prompts: Prompts,
    fields: Fields,
    seed: u64,
}

impl Question {
    /// That of each workload of `scenario`, in their order.
    pub fn all(scenario: &Scenario, settings: &Settings) -> Result<Vec<Question>, LoadError> {
        let question = |(place, workload): (usize, &Workload)| {
            Question::new(workload, place as u64, scenario, settings)
                .map_err(|cause| LoadError::Workload { workload: workload.name.clone(), cause })
        };
        scenario.workloads.iter().enumerate().map(question).collect()
    }

    fn new(workload: &Workload, place: u64, scenario: &Scenario, settings: &Settings) -> Result<Question, String> {
        let path = match workload.kind {
            JobKind::Chat => "/v1/chat/completions",
            JobKind::Completion => "/v1/completions",
            JobKind::Embedding => "/v1/embeddings",
            JobKind::Rerank => "/v1/rerank",
            JobKind::Audio => return Err("there is no sound to send; leave workloads of kind \"audio\" out".to_owned()),
        };
        let configuration = &scenario.configuration;
        let name = match workload.wanted {
            Wanted::Model(model) => configuration.model(model).map(|model| &model.name),
            Wanted::Family(family) => configuration.families.get(family.index()).map(|family| &family.name),
        };
        Ok(Question {
            kind: workload.kind,
            model: name.cloned().ok_or("it asks for a model that is not there")?,
            uri: settings.address.path(path).parse().map_err(|_| "the address is no path that could be asked")?,
            headers: headers(workload, settings)?,
            prompts: settings.prompts,
            fields: settings.fields,
            seed: settings.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ place.rotate_left(48),
        })
    }

    /// Whether its answers come token by token.
    pub fn streams(&self) -> bool {
        matches!(self.kind, JobKind::Chat | JobKind::Completion)
    }

    /// The name of the list in an answer that has an element per input, for kinds that have several.
    pub fn list(&self) -> Option<&'static str> {
        match self.kind {
            JobKind::Embedding => Some("data"),
            JobKind::Rerank => Some("results"),
            JobKind::Chat | JobKind::Completion | JobKind::Audio => None,
        }
    }

    /// The request with that body.
    pub fn request(&self, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// The body of the request of that number.
    pub fn body(&self, call: &Call, number: u64) -> Bytes {
        let mut wording = Wording::new(match self.prompts {
            Prompts::Distinct => self.seed.wrapping_add(number.wrapping_mul(0x9e6c_63d0_876a_46d9)),
            Prompts::Alike => self.seed,
        });
        let body = match self.kind {
            JobKind::Chat | JobKind::Audio => self.generation(
                call,
                "messages",
                json!([{"role": "user", "content": wording.text(call.prompt_tokens)}]),
            ),
            JobKind::Completion => self.generation(call, "prompt", wording.text(call.prompt_tokens).into()),
            JobKind::Embedding => json!({"model": self.model, "input": texts(&mut wording, call)}),
            JobKind::Rerank => {
                json!({"model": self.model, "query": wording.text(8), "documents": texts(&mut wording, call)})
            }
        };
        body.to_string().into()
    }

    fn generation(&self, call: &Call, key: &str, prompt: Value) -> Value {
        let mut body = json!({
            "model": self.model,
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": call.output_tokens.max(1),
        });
        body[key] = prompt;
        if self.fields == Fields::Extended {
            body["ignore_eos"] = Value::Bool(true);
        }
        body
    }
}

fn texts(wording: &mut Wording, call: &Call) -> Vec<String> {
    (0..call.inputs).map(|_| wording.text(call.prompt_tokens)).collect()
}

fn headers(workload: &Workload, settings: &Settings) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let address = HeaderValue::from_str(settings.address.authority()).map_err(|_| "the address has no name for it")?;
    headers.insert(header::HOST, address);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("windtunnel-load"));
    if let Some(key) = &settings.key {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| "the key has characters that no header may have".to_owned())?;
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
    }
    let wishes: [(&'static str, Option<String>); 5] = [
        ("x-windtunnel-class", workload.class.map(Class::name).map(str::to_owned)),
        ("x-windtunnel-deadline-ms", workload.deadline.map(millis)),
        ("x-windtunnel-max-wait-ms", workload.max_wait.map(millis)),
        ("x-windtunnel-quality", workload.quality.map(quality).map(str::to_owned)),
        ("x-windtunnel-drop-hopeless", workload.drop_hopeless.map(|dropped| dropped.to_string())),
    ];
    for (name, wish) in wishes {
        let value = wish.and_then(|wish| HeaderValue::from_str(&wish).ok());
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    Ok(headers)
}

/// Whole milliseconds, rounded up.
fn millis(span: Span) -> String {
    span.as_nanos().div_ceil(1_000_000).to_string()
}

const fn quality(quality: Quality) -> &'static str {
    match quality {
        Quality::Preferred => "preferred",
        Quality::Balanced => "balanced",
        Quality::Compact => "compact",
    }
}
