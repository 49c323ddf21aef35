//! Where requests go.

use http::{Uri, uri::Scheme};

/// An endpoint's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host and port, as connections are opened to them.
    connect: String,
    /// What the `Host` header says.
    authority: String,
    /// What stands before `/v1/..`.
    base: String,
}

impl Address {
    /// The address in `url`, such as `http://127.0.0.1:8080`; a path that ends in `/v1`, as SDKs take it, means the same
    /// as one without.
    ///
    /// # Errors
    /// If it is no URL, or one that is not plain HTTP; in words that follow the URL.
    pub fn parse(url: &str) -> Result<Address, String> {
        let like = "it must be like http://127.0.0.1:8080";
        let uri: Uri = url.parse().map_err(|_| format!("is no URL; {like}"))?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) if *scheme == Scheme::HTTPS => {
                return Err(
                    "asks for https, which is not spoken here; put a proxy between, or ask the server itself".into()
                );
            }
            Some(other) => return Err(format!("has the scheme {other}; {like}")),
            None => return Err(format!("has no scheme; {like}")),
        }
        let Some(host) = uri.host().filter(|host| !host.is_empty()) else { return Err(format!("has no host; {like}")) };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("holds a user name; present keys with --key-env".into());
        }
        if uri.query().is_some() {
            return Err(format!("has a query; {like}"));
        }
        let path = uri.path().trim_end_matches('/');
        Ok(Address {
            connect: format!("{host}:{}", uri.port_u16().unwrap_or(80)),
            authority: uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
            base: path.strip_suffix("/v1").unwrap_or(path).to_owned(),
        })
    }

    pub(crate) fn connect(&self) -> &str {
        &self.connect
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// `path`, which begins with a slash, at this endpoint.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sdks_call_the_base_url_is_the_same_address() {
        let plain = Address::parse("http://127.0.0.1:8080").unwrap();
        assert_eq!((plain.connect(), plain.path("/v1/x")), ("127.0.0.1:8080", "/v1/x".to_owned()));
        assert_eq!(Address::parse("http://127.0.0.1:8080/v1/").unwrap(), plain);
        let behind = Address::parse("http://[::1]/gpu/v1").unwrap();
        assert_eq!((behind.connect(), behind.path("/v1/x")), ("[::1]:80", "/gpu/v1/x".to_owned()));
        assert_eq!(behind.to_string(), "http://[::1]/gpu");
    }

    #[test]
    fn what_cannot_be_asked_is_refused_in_words() {
        for (url, part) in [
            ("localhost:8080", "it must be like"),
            ("https://api.example.com", "https"),
            ("ftp://host", "scheme ftp"),
            ("http://me:secret@host", "user name"),
            ("http://host/?a=b", "query"),
            ("/v1", "no scheme"),
        ] {
            let wrong = Address::parse(url).unwrap_err();
            assert!(wrong.contains(part) && !wrong.contains("secret"), "{url}: {wrong}");
        }
    }
}
