//! One request in, one answer out.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use super::{
    access::{Hosts, NoEntry, Presented, is_loopback},
    admin,
    answer::Answer,
    connections::{Crowded, Lull, Visit},
    exchange::{self, Record},
    names,
    operations::Phase,
    refuse::{Reason, Refusal},
    routes::{self, Admin, Astray, Route},
    shared::{Rules, Shared},
};
use std::net::SocketAddr;

/// Answers a request of a client at `peer`, who visits; `lull` is told when it waits.
pub(super) async fn answer(
    shared: Arc<Shared>,
    peer: SocketAddr,
    visit: &mut Visit,
    lull: &Lull,
    request: Box<Request<Incoming>>,
) -> Response<Answer> {
    let rules = shared.rules();
    let request_id = request_id(&shared, request.headers());
    let dialect = routes::dialect(request.uri().path());
    let seen = Seen { shared: &shared, rules: &rules, peer, lull, request_id: &request_id };
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_head = request.method() == Method::HEAD;
    let mut answer = match seen.route(visit, request).await {
        Ok(answer) => answer,
        Err(refusal) => {
            Record::new(&shared).refused(&refusal);
            refusal.answer(dialect, &request_id)
        }
    };
    rules.cors.open(origin.as_ref(), answer.headers_mut());
    answer.headers_mut().entry("x-request-id").or_insert(request_id);
    if is_head { without_body(answer) } else { answer }
}

struct Seen<'a> {
    shared: &'a Arc<Shared>,
    rules: &'a Arc<Rules>,
    peer: SocketAddr,
    lull: &'a Lull,
    request_id: &'a HeaderValue,
}

impl Seen<'_> {
    async fn route(&self, visit: &mut Visit, request: Box<Request<Incoming>>) -> Result<Response<Answer>, Refusal> {
        if !self.rules.hosts.allow(request.uri(), request.headers()) {
            let message = "this host is not called that; configure the names it may be called by";
            return Err(Refusal::new(Reason::ForeignHost, message));
        }
        let path = request.uri().path();
        if request.method() == Method::OPTIONS {
            return self.options(&request);
        }
        let route = routes::route(request.method(), path).map_err(|wrong| astray(wrong, request.method(), path))?;
        match route {
            Route::Infer(errand) => {
                visit.works().map_err(crowded)?;
                Ok(exchange::infer(self.shared, self.rules, errand, request, self.request_id, self.lull).await)
            }
            // What is rare lies elsewhere: a request that waits keeps room for the largest of these.
            Route::Ask(errand) => {
                visit.works().map_err(crowded)?;
                Ok(Box::pin(exchange::question(self.shared, self.rules, errand, request, self.request_id)).await)
            }
            Route::Models => self.known(request.headers()).map(|()| names::all(self.rules)),
            Route::Model(name) => self.known(request.headers()).and_then(|()| names::one(self.rules, name)),
            Route::Health => Ok(Box::pin(self.health()).await),
            Route::Ready => Ok(self.ready()),
            Route::Metrics => {
                self.reader(&request)?;
                Box::pin(self.metrics()).await
            }
            Route::Admin(wanted) => {
                match wanted {
                    Admin::Status | Admin::Events => self.reader(&request)?,
                    Admin::Load(_) | Admin::Unload(_) | Admin::Reset(_) | Admin::Reload => {
                        self.operator(&request)?;
                        if self.rules.cors.may_not_order(request.headers()) {
                            let message = "web pages of other origins may not give orders";
                            return Err(Refusal::new(Reason::NotAdmin, message));
                        }
                    }
                }
                Box::pin(admin::answer(self.shared, self.rules, wanted, request.uri().query())).await
            }
        }
    }

    async fn metrics(&self) -> Result<Response<Answer>, Refusal> {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let view = admin::view(self.shared).await?;
        Ok(names::text_of(kind, self.shared.operations.metrics(&view)))
    }

    fn options(&self, request: &Request<Incoming>) -> Result<Response<Answer>, Refusal> {
        let path = request.uri().path();
        let allow = routes::allowed(path).ok_or(Astray::NoSuchPath);
        let allow = allow.map_err(|wrong| astray(wrong, request.method(), path))?;
        let mut answer = Response::new(Answer::empty());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        self.rules.cors.preflight(request.headers(), allow, answer.headers_mut());
        Ok(answer)
    }

    fn known(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.rules.keys.knows(headers).map_err(exchange::no_entry)
    }

    /// What goes on here is shown to operators, and to everybody with a key.
    fn reader(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        match self.rules.keys.shown(request.headers()) {
            Presented::Operators | Presented::Clients => Ok(()),
            Presented::Nothing | Presented::Unknown => self.operator(request),
        }
    }

    /// Operators have a key, or sit at this machine: then no proxy and no web page stands between.
    fn operator(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let refusal = |message| Err(Refusal::new(Reason::NotAdmin, message));
        let keys = &self.rules.keys;
        match keys.shown(request.headers()) {
            Presented::Operators => Ok(()),
            Presented::Clients if keys.has_admin() => refusal("this needs the operator's key"),
            Presented::Nothing if keys.has_admin() => Err(exchange::no_entry(NoEntry::NoKey)),
            Presented::Unknown if keys.has_admin() => Err(exchange::no_entry(NoEntry::WrongKey)),
            Presented::Nothing | Presented::Unknown | Presented::Clients => self.at_this_machine(request),
        }
    }

    fn at_this_machine(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let refusal = |message| Err(Refusal::new(Reason::NotAdmin, message));
        if !is_loopback(self.peer.ip()) || !Hosts::is_local(request.uri(), request.headers()) {
            return refusal("without an operator's key this answers programs of this machine only");
        }
        if self.rules.cors.is_foreign(request.headers()) {
            return refusal("web pages may not ask this");
        }
        Ok(())
    }

    /// Alive is who has a scheduler that answers.
    async fn health(&self) -> Response<Answer> {
        let view = tokio::time::timeout(Duration::from_secs(2), self.shared.desk.view()).await.ok().flatten();
        let phase = self.shared.phase().name();
        let Some(view) = view else {
            let mut answer = names::json(r#"{"status":"error","reason":"the scheduler does not answer"}"#);
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return answer;
        };
        let stale = admin::stale(&view, &self.rules.catalogue);
        names::json(serde_json::json!({"status": "ok", "phase": phase, "stale_monitors": stale}).to_string())
    }

    fn ready(&self) -> Response<Answer> {
        let phase = self.shared.phase();
        let mut answer = names::json(serde_json::json!({"status": phase.name()}).to_string());
        if phase != Phase::Serving {
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        answer
    }
}

fn crowded(_: Crowded) -> Refusal {
    let message = "as many connections have work under way as may; the places that are left are not for work";
    Refusal::new(Reason::TooManyConnections, message).after(Duration::from_secs(1))
}

fn astray(astray: Astray, method: &Method, path: &str) -> Refusal {
    match astray {
        Astray::NoSuchPath => Refusal::new(Reason::NoSuchPath, format!("there is no path {path:?}")),
        Astray::NotThisWay { allow } => {
            let message = format!("{path} does not know {method}; it knows {allow}");
            Refusal { allow: Some(allow), ..Refusal::new(Reason::WrongMethod, message) }
        }
    }
}

/// The client's own name for its request, if it is a sane one.
fn request_id(shared: &Shared, headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let fine = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        (1..=128).contains(&value.len()) && value.as_bytes().iter().all(fine)
    };
    let own = headers.get("x-request-id").filter(sane);
    // A copy, which keeps no buffer of the connection.
    own.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok()).unwrap_or_else(|| shared.new_request_id())
}

/// The head of an answer to `GET`.
fn without_body(answer: Response<Answer>) -> Response<Answer> {
    let (mut parts, body) = answer.into_parts();
    if let Some(length) = hyper::body::Body::size_hint(&body).exact() {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Answer::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, D, E, F>(_work: impl FnOnce(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }

    /// Five thousand may wait, each with this.
    #[test]
    fn the_work_of_a_request_is_small() {
        let bytes = size(|shared, peer, visit: &'static mut Visit, lull: &'static Lull, request| {
            answer(shared, peer, visit, lull, request)
        });
        assert!(bytes <= 720, "it has {bytes} bytes");
    }
}
