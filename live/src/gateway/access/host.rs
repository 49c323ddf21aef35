//! The `Host` of a request. A web page can make a browser send requests here by giving its own name our address (DNS
//! rebinding); it cannot make it say another name than its own.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

use super::is_loopback;

/// Names by which we may be called, beside addresses and `localhost`.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    pub(in crate::gateway) fn of(names: &[String]) -> Hosts {
        Hosts { names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether a request calls us by a name of ours. Programs too old to say a name are no browsers.
    pub(in crate::gateway) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        match called(uri, headers) {
            Called::Nothing => true,
            Called::Nonsense => false,
            Called::Name(name) => {
                address(name).is_some() || is_localhost(name) || self.names.iter().any(|known| fits(known, name))
            }
        }
    }

    /// Whether a request calls us by a name that only programs of this machine use.
    pub(in crate::gateway) fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
        match called(uri, headers) {
            Called::Nothing => true,
            Called::Nonsense => false,
            Called::Name(name) => is_localhost(name) || address(name).is_some_and(is_loopback),
        }
    }
}

enum Called<'a> {
    Nothing,
    Nonsense,
    Name(&'a str),
}

fn called<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Called<'a> {
    let mut values = headers.get_all(header::HOST).iter();
    let said = match (values.next(), values.next()) {
        (None, _) => None,
        (Some(value), None) => match value.to_str() {
            Ok(text) => Some(text),
            Err(_) => return Called::Nonsense,
        },
        (Some(_), Some(_)) => return Called::Nonsense,
    };
    match uri.authority().map(|authority| authority.as_str()).or(said) {
        None => Called::Nothing,
        Some(text) => name(text).map_or(Called::Nonsense, Called::Name),
    }
}

/// `name` of `name:port`, `[::1]:port` without brackets.
fn name(authority: &str) -> Option<&str> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            (name, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    let sound = !name.is_empty() && port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    sound.then_some(name)
}

fn address(name: &str) -> Option<IpAddr> {
    name.parse().ok()
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let (rest, last) = name.rsplit_once('.').map_or(("", name), |(rest, last)| (rest, last));
    last.eq_ignore_ascii_case("localhost") && !rest.starts_with('.')
}

fn fits(known: &str, name: &str) -> bool {
    known == "*" || name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(host: &str) -> (Uri, HeaderMap) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        (Uri::from_static("/v1/models"), headers)
    }

    #[test]
    fn addresses_and_our_own_names_are_fine_and_others_are_not() {
        let hosts = Hosts::of(&["GPU.lan".to_owned()]);
        let allow = |host: &str| {
            let (uri, headers) = asked(host);
            hosts.allow(&uri, &headers)
        };
        for fine in
            ["localhost", "LOCALHOST:8080", "chat.localhost", "127.0.0.1:8080", "[::1]:1", "10.0.0.7", "gpu.lan:80"]
        {
            assert!(allow(fine), "{fine}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":80",
            "[::1",
            "gpu.lan:8o",
        ] {
            assert!(!allow(foreign), "{foreign}");
        }
        let (uri, mut headers) = asked("localhost");
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!hosts.allow(&uri, &headers), "two names are none");
        assert!(!hosts.allow(&"http://evil.example/v1/models".parse().unwrap(), &asked("localhost").1));
        assert!(hosts.allow(&Uri::from_static("/"), &HeaderMap::new()));
        assert!(Hosts::of(&["*".to_owned()]).allow(&Uri::from_static("/"), &asked("evil.example").1));
    }

    #[test]
    fn only_some_names_are_local() {
        for (host, local) in [
            ("localhost:8080", true),
            ("127.0.0.2", true),
            ("[::1]:8080", true),
            ("10.0.0.7", false),
            ("gpu.lan", false),
        ] {
            let (uri, headers) = asked(host);
            assert_eq!(Hosts::is_local(&uri, &headers), local, "{host}");
        }
    }
}
