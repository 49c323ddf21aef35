//! A client of a daemon: asks what it does now, gives orders, and asks its models single questions.
//!
//! Calls wait for their answers, so whoever wants several at once has a thread for each. A connection carries one request: the
//! rates here are those of people and of measurements that time the answer, not of load.

mod picture;

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{net::TcpStream, runtime::Runtime};

pub use picture::{DevicePicture, Events, Holding, QueuePicture, Resident, Status};

use crate::load::Address;
pub use crate::load::wording::Wording;

/// No answer that is asked for here is longer, in bytes.
const LONGEST: usize = 64 << 20;

/// A client of one daemon.
#[derive(Debug)]
pub struct Operator {
    address: Address,
    key: Option<String>,
    timeout: Duration,
    runtime: Runtime,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// Nobody is there.
    Silent {
        /// Who was asked.
        address: String,
        /// What went wrong.
        why: String,
    },
    /// Somebody may be there, but there was no whole answer in time.
    Late {
        /// Who was asked.
        address: String,
        /// What went wrong.
        why: String,
    },
    /// The answer is an error.
    Refused {
        /// Its status.
        status: u16,
        /// The word for the reason, where there is one.
        reason: Option<String>,
        /// What it says.
        message: String,
    },
    /// The answer is not one of such a daemon.
    Foreign {
        /// Who was asked.
        address: String,
        /// What does not fit.
        why: String,
    },
}

impl Operator {
    /// A client of the daemon at `address`, whom `key` makes known; an answer may take `timeout`.
    ///
    /// # Errors
    /// If the operating system gives no means to wait for answers.
    pub fn new(address: Address, key: Option<String>, timeout: Duration) -> io::Result<Operator> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Operator { address, key, timeout, runtime })
    }

    /// What the daemon does now.
    ///
    /// # Errors
    /// If it does not answer as a daemon does.
    pub fn status(&self) -> Result<Status, AskError> {
        self.get("/admin/status")
    }

    /// Lines of what it decided, after the one of that number; 0: all it still has.
    ///
    /// # Errors
    /// If it does not answer as a daemon does.
    pub fn events(&self, after: u64) -> Result<Events, AskError> {
        self.get(&format!("/admin/events?after={after}"))
    }

    /// Orders a load of a model, or that it is unloaded.
    ///
    /// # Errors
    /// If the daemon refuses or does not answer.
    pub fn order(&self, model: &str, order: ModelOrder) -> Result<(), AskError> {
        let path = format!("/admin/models/{}/{}", escaped(model), order.word());
        self.ask(Method::POST, &path, Bytes::new()).map(drop)
    }

    /// Asks a model something.
    ///
    /// # Errors
    /// If the daemon refuses or does not answer, or answers something other than JSON.
    pub fn question(&self, path: &str, body: &Value) -> Result<Value, AskError> {
        let answer = self.ask(Method::POST, path, body.to_string().into())?;
        serde_json::from_slice(&answer).map_err(|wrong| self.foreign(&wrong.to_string()))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        let answer = self.ask(Method::GET, path, Bytes::new())?;
        serde_json::from_slice(&answer).map_err(|wrong| self.foreign(&format!("{path} says something else: {wrong}")))
    }

    fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, AskError> {
        let answer = async { tokio::time::timeout(self.timeout, self.exchange(method, path, body)).await };
        let (status, reason, body) = match self.runtime.block_on(answer) {
            Ok(answer) => answer?,
            Err(_) => return Err(self.late(&format_args!("nothing within {:?}", self.timeout))),
        };
        if status.is_success() { Ok(body) } else { Err(refused(status, reason, &body)) }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Option<String>, Bytes), AskError> {
        let silent = |wrong: io::Error| AskError::Silent { address: self.address.to_string(), why: wrong.to_string() };
        let stream = TcpStream::connect(self.address.connect()).await.map_err(silent)?;
        stream.set_nodelay(true).map_err(|wrong| self.late(&wrong))?;
        let (mut link, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|wrong| self.late(&wrong))?;
        // Whoever waits for the answer learns of its end as well.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::builder()
            .method(method)
            .uri(self.address.path(path))
            .header(header::HOST, self.address.authority())
            .header(header::USER_AGENT, "windtunnel")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::new(body)).map_err(|wrong| self.late(&wrong))?;
        let response = link.send_request(request).await.map_err(|wrong| self.late(&wrong))?;
        let reason = response.headers().get("x-windtunnel-reason").and_then(|reason| reason.to_str().ok());
        let (status, reason) = (response.status(), reason.map(str::to_owned));
        let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(|wrong| self.late(&wrong))?;
        Ok((status, reason, body.to_bytes()))
    }

    fn late(&self, why: &dyn fmt::Display) -> AskError {
        AskError::Late { address: self.address.to_string(), why: why.to_string() }
    }

    fn foreign(&self, why: &str) -> AskError {
        AskError::Foreign { address: self.address.to_string(), why: why.to_owned() }
    }
}

/// What can be ordered of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOrder {
    /// It is loaded.
    Load,
    /// Its instances go once they are done.
    Unload,
}

impl ModelOrder {
    fn word(self) -> &'static str {
        match self {
            ModelOrder::Load => "load",
            ModelOrder::Unload => "unload",
        }
    }
}

fn refused(status: StatusCode, reason: Option<String>, body: &[u8]) -> AskError {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let message =
        answer["error"]["message"].as_str().unwrap_or_else(|| status.canonical_reason().unwrap_or("an error"));
    AskError::Refused { status: status.as_u16(), reason, message: message.to_owned() }
}

/// A name as a path has it.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Silent { address, why } => {
                write!(f, "no daemon answers at {address}: {why}; `windtunnel serve` starts one, --url names another")
            }
            AskError::Late { address, why } => write!(f, "the daemon at {address} gave no answer: {why}"),
            AskError::Refused { status, reason: Some(reason), message } => write!(f, "{status} {reason}: {message}"),
            AskError::Refused { status, reason: None, message } => write!(f, "{status}: {message}"),
            AskError::Foreign { address, why } => write!(f, "what answers at {address} is no such daemon: {why}"),
        }
    }
}

impl std::error::Error for AskError {}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn told(listener: &TcpListener) -> String {
        let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let operator = Operator::new(address, None, Duration::from_millis(50)).unwrap();
        let told = operator.status().unwrap_err().to_string();
        told.replace(&listener.local_addr().unwrap().port().to_string(), "PORT")
    }

    #[test]
    fn who_is_not_there_is_told_from_who_gives_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(told(&listener), "the daemon at http://127.0.0.1:PORT gave no answer: nothing within 50ms");
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::parse(&format!("http://{}", nobody.local_addr().unwrap())).unwrap();
        drop(nobody);
        let asked = Operator::new(address, None, Duration::from_secs(20)).unwrap().status();
        let Err(silent @ AskError::Silent { .. }) = asked else { panic!("nobody is there: {asked:?}") };
        assert!(silent.to_string().ends_with("; `windtunnel serve` starts one, --url names another"), "{silent}");
    }
}
