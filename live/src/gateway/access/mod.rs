//! Who may ask, from where, and how much at once.

mod cors;
mod host;
mod keys;

pub(super) use cors::Cors;
pub(super) use host::Hosts;
pub(super) use keys::{Caller, KeyRing, NoEntry, Presented};

use std::net::{IpAddr, SocketAddr};

use super::settings::{Settings, WithoutKeys};

/// Whether a listener at `address` may be opened.
///
/// # Errors
/// Without keys and off loopback, unless that was allowed in so many words.
pub fn may_listen(settings: &Settings, address: SocketAddr) -> Result<(), String> {
    let open = settings.valid_keys().next().is_none() && settings.without_keys == WithoutKeys::LoopbackOnly;
    if open && !is_loopback(address.ip()) {
        return Err(format!(
            "listen on {address} without keys: everybody in reach could use the models; configure keys, listen on \
             127.0.0.1, or allow it in so many words"
        ));
    }
    Ok(())
}

/// Whether an address is of this machine only.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
