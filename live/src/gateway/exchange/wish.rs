//! A request, understood: what it asks for, by whom, and what its child will get.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header, request::Parts, uri::PathAndQuery};
use windtunnel_core::{Bytes as Amount, Class, JobKind, LabelId, Submission};

use super::able::needs;
use crate::gateway::{
    access::{Caller, NoEntry},
    ask::Asked,
    body::{self, LookFor, Request, Stream},
    catalogue::Named,
    names::unknown,
    refuse::{Reason, Refusal, of_bad_ask, of_unformed, of_unusable},
    routes::{Errand, Form},
    shared::Rules,
    upstream::{Forwarded, forwarded},
};

/// A request that can be brought to the scheduler.
pub(in crate::gateway) struct Wish {
    pub errand: Errand,
    /// At the child.
    pub path: PathAndQuery,
    pub headers: Forwarded,
    pub body: Request,
    pub named: Named,
    pub class: Class,
    pub asked: Asked,
    pub request_id: HeaderValue,
    pub label: LabelId,
}

impl Wish {
    /// Understands a request whose body was taken in.
    pub(in crate::gateway) fn of(
        rules: &Rules,
        errand: Errand,
        parts: &Parts,
        caller: &Caller,
        bytes: Bytes,
        request_id: &HeaderValue,
    ) -> Result<Wish, Refusal> {
        let asked = Asked::in_headers(&parts.headers).map_err(|bad| of_bad_ask(&bad))?;
        let body = read(errand, &parts.headers, bytes)?;
        let named = named(rules, body.model.as_deref())?;
        let asked = asked.or(body.asked);
        let class = asked.class.or(named.class).or(caller.default_class).unwrap_or(rules.settings.class);
        if errand.kind == JobKind::Embedding && body.inputs.each.is_empty() {
            return Err(Refusal::new(Reason::NoInputs, "`input` has nothing to embed").about("input"));
        }
        Ok(Wish {
            errand,
            path: path(errand, &parts.uri),
            headers: forwarded(&parts.headers),
            body,
            named,
            class: caller.class(class),
            asked,
            request_id: request_id.clone(),
            label: caller.label,
        })
    }

    /// Whether the answer comes piece by piece.
    pub(in crate::gateway) fn streams(&self) -> bool {
        self.body.stream == Stream::Yes
    }

    /// What the scheduler is told.
    pub(in crate::gateway) fn submission(&self) -> Submission {
        let inputs = match self.errand.kind {
            JobKind::Embedding => u32::try_from(self.body.inputs.each.len()).unwrap_or(u32::MAX),
            JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => 1,
        };
        // Without a tokenizer: a token is about four bytes of text.
        let prompt = (self.body.seen.text / 4 / u64::from(inputs.max(1))).max(1);
        Submission {
            label: self.label,
            wanted: self.named.wanted,
            class: Some(self.class),
            kind: self.errand.kind,
            inputs,
            prompt_tokens: u32::try_from(prompt).unwrap_or(u32::MAX),
            max_tokens: self.body.max_tokens,
            deadline: self.asked.deadline,
            max_wait: self.asked.max_wait,
            drop_hopeless: self.asked.drop_hopeless,
            quality: self.asked.quality,
            needs: needs(self.errand.kind, self.body.needs),
            body: Amount::new(self.body.bytes.len() as u64),
            client: None,
            affinity: None,
        }
    }
}

/// Why somebody may not ask, as an answer.
pub(in crate::gateway) fn no_entry(no_entry: NoEntry) -> Refusal {
    match no_entry {
        NoEntry::NoKey => Refusal::new(Reason::NoKey, "present a key as `authorization: Bearer` or `x-api-key`"),
        NoEntry::WrongKey => Refusal::new(Reason::WrongKey, "nobody has the key that was presented"),
        NoEntry::Busy { most } => {
            let message = format!("the key has {most} requests under way already");
            Refusal::new(Reason::KeyLimit, message).after(std::time::Duration::from_secs(1))
        }
    }
}

fn read(errand: Errand, headers: &HeaderMap, bytes: Bytes) -> Result<Request, Refusal> {
    match errand.form {
        Form::Json => {
            let look_for = match errand.kind {
                JobKind::Embedding => LookFor::Inputs,
                JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => LookFor::Prompt,
            };
            Request::read(bytes.clone(), look_for).map_err(|wrong| of_unusable(&wrong, &bytes))
        }
        Form::Multipart => {
            let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            body::read_form(bytes, kind).map_err(of_unformed)
        }
    }
}

/// A request that names nothing means the only model there is.
fn named(rules: &Rules, name: Option<&str>) -> Result<Named, Refusal> {
    match name {
        Some(name) => rules.catalogue.find(name).ok_or_else(|| unknown(&rules.catalogue, name)),
        None => rules.catalogue.only().ok_or_else(|| {
            Refusal::new(Reason::BadValue, "`model` is missing, and there is more than one").about("model")
        }),
    }
}

/// The child's path, with the client's query.
fn path(errand: Errand, uri: &Uri) -> PathAndQuery {
    // Copies, which keep no buffer of the connection.
    let own = || {
        let path = uri.path_and_query().map(|path| PathAndQuery::try_from(path.as_str()));
        path.and_then(Result::ok).unwrap_or_else(|| PathAndQuery::from_static("/"))
    };
    match (errand.path, uri.query()) {
        (None, _) => own(),
        (Some(path), None) => PathAndQuery::from_static(path),
        (Some(path), Some(query)) => PathAndQuery::try_from(format!("{path}?{query}")).unwrap_or_else(|_| own()),
    }
}
