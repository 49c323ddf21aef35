//! Talking to children.
//!
//! One connection a request, over loopback: a llama-server closes idle connections after five seconds and after a number
//! of requests that differs from build to build, and a request that meets such an end cannot be told from one that was half done. A
//! connection costs a hundred microseconds of nobody's time but the kernel's. Nobody but the request's own task drives it, so who
//! drops the request drops the connection.

mod call;
mod headers;
mod meter;
mod slots;

pub(super) use call::{Broken, Flow, Purpose, Question, ask, call, gather};
pub(super) use headers::{Forwarded, copy_answer, forwarded};
pub(super) use meter::Meter;
pub(super) use slots::until_free;

/// Whether an answer says that memory ran out on the device.
pub(super) fn says_out_of_memory(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let marks: [&[u8]; 4] = [b"out of memory", b"outofmemory", b"outofdevicememory", b"cudamalloc failed"];
    marks.iter().any(|mark| memchr::memmem::find(&text, mark).is_some())
}
