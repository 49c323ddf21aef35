//! What the gateway is told about itself, as plain values; nothing here is parsed.

use std::{collections::BTreeSet, fmt, time::Duration};

use windtunnel_core::Class;

/// How the gateway behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may ask; none that is not retired: everybody who reaches the listener, under the label "anonymous".
    pub keys: Vec<Key>,
    /// Places in `keys` of those that only earlier configurations named: a place is a label, so it stays, but nobody has the
    /// key.
    pub retired: BTreeSet<usize>,
    /// The keys of operators, for orders (`POST /admin/*`), with which `/metrics`, `/admin/status` and `/admin/events` can be
    /// read as with any other; empty: orders and readers without a key are answered on loopback only.
    pub admin_keys: Vec<Secret>,
    /// Whether a listener that is not on loopback may go without keys.
    pub without_keys: WithoutKeys,
    /// Names by which clients may call this host, beside addresses and `localhost`; `*` allows every name.
    pub hosts: Vec<String>,
    /// Origins of web pages that may read answers; `*` allows all. Empty: none.
    pub origins: Vec<String>,
    /// The class of a request that names none, nor its key: the policy's `default_class`.
    pub class: Class,
    /// The most connections of clients that are open together. If one more comes, the one that has rested longest is closed;
    /// where none rests it waits. A quarter of them, 16 at most, are kept from work for models.
    pub connections: usize,
    /// The most bytes of a request body, packed or not.
    pub body_limit: usize,
    /// No request body takes longer to arrive.
    pub body_time: Duration,
    /// How long a streaming request waits before its answer is opened with comments.
    pub hold_after: Duration,
    /// How often an open answer without an answer is given a comment.
    pub keepalive: Duration,
    /// Who takes nothing of his answer for so long is gone, where its connection is to end. The kernel has room for megabytes
    /// and asks for more when a third of that is free, so that slow clients seem to take nothing for seconds.
    pub taken_nothing: Duration,
    /// How long answers under way may go on after the end was asked for.
    pub drain: Duration,
    /// How a slot is watched after its client has gone.
    pub slot_watch: SlotWatch,
    /// How long the supervisor is given to notice a dead process before its broken connections are reported.
    pub death_notice: Duration,
}

/// Somebody who may ask.
#[derive(Clone, Debug)]
pub struct Key {
    /// Whom reports name; its place in the list is its label.
    pub name: String,
    /// What is presented.
    pub secret: Secret,
    /// The classes it may use; empty: all.
    pub classes: Vec<Class>,
    /// The class of its requests that name none.
    pub default_class: Option<Class>,
    /// The most requests it may have under way.
    pub most: Option<u32>,
}

/// A key's text, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Whether everybody may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutKeys {
    /// Without keys only programs of this machine are served.
    LoopbackOnly,
    /// It was said twice that everybody is to be served.
    Anywhere,
}

/// How a child's slot is watched until it is free.
#[derive(Clone, Copy, Debug)]
pub struct SlotWatch {
    /// The pause before the second look; doubles up to a quarter of a second.
    pub first: Duration,
    /// The longest one look may take; a child that computes a prompt does not answer.
    pub look: Duration,
    /// After so long the slot is believed to be free.
    pub limit: Duration,
}

impl Settings {
    /// The keys that somebody has, with their places.
    pub(super) fn valid_keys(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.keys.iter().enumerate().filter(|(place, _)| !self.retired.contains(place))
    }
}

impl Secret {
    /// Keeps `text` from logs.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            keys: Vec::new(),
            retired: BTreeSet::new(),
            admin_keys: Vec::new(),
            without_keys: WithoutKeys::LoopbackOnly,
            hosts: Vec::new(),
            origins: Vec::new(),
            class: Class::Interactive,
            connections: usize::MAX,
            body_limit: 100_000_000,
            body_time: Duration::from_secs(300),
            hold_after: Duration::from_secs(10),
            keepalive: Duration::from_secs(12),
            taken_nothing: Duration::from_secs(10),
            drain: Duration::from_secs(30),
            slot_watch: SlotWatch::default(),
            death_notice: Duration::from_millis(500),
        }
    }
}

impl Default for SlotWatch {
    fn default() -> SlotWatch {
        SlotWatch { first: Duration::from_millis(5), look: Duration::from_secs(2), limit: Duration::from_secs(30) }
    }
}
