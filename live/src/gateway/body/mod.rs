//! Request bodies: taken in whole, unpacked, looked through once, and handed on with as little changed as can be.

mod edit;
mod inflate;
mod intake;
mod multipart;
mod request;
mod scan;
#[cfg(test)]
mod tests;

pub(super) use edit::{Edit, With, edited};
pub(super) use intake::{Refused, take};
pub(super) use multipart::{Unformed, read as read_form};
pub(super) use request::{LookFor, Request, Stream, Unusable};
pub(super) use scan::{Scanner, Seen, Sort, Wrong};
