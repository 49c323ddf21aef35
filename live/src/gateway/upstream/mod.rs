//! Talking to children.
//!
//! A request goes over a connection that an earlier one has left, if there is one, and else over a new one. A child
//! closes connections when it likes, and a request that meets such an end cannot be told from one that was half done: so it
//! is sent again, over a new connection, only if no byte of its answer came and the connection had carried others before. How long a child may
//! take to answer is not limited. Nobody but the request's own task drives the connection, so who drops the request drops
//! the connection; only one whose answer has come whole is kept ([`crate::lines`]).

mod call;
mod flow;
mod headers;
mod meter;
mod slots;

pub(super) use call::{Broken, Purpose, Question, ask, call, gather};
pub(super) use flow::Flow;
pub(super) use headers::{Forwarded, copy_answer, forwarded};
pub(super) use meter::Meter;
pub(super) use slots::until_free;

/// Whether an answer says that memory ran out on the device.
pub(super) fn says_out_of_memory(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let marks: [&[u8]; 4] = [b"out of memory", b"outofmemory", b"outofdevicememory", b"cudamalloc failed"];
    marks.iter().any(|mark| memchr::memmem::find(&text, mark).is_some())
}
