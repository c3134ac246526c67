//! The address of a destination, parsed once: scheme, authority, path prefix.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Plain or over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// http, port 80 unless told.
    Http,
    /// https, port 443 unless told.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that an address without one means.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// An `http` or `https` URL as a destination has it. `Display` writes it back as a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Url {
    /// Plain or TLS.
    pub scheme: Scheme,
    /// Host name or IP literal, without brackets, lower case.
    pub host: String,
    /// The port, the scheme's own when none was written.
    pub port: u16,
    /// The path, `/` at least; percent-encoding as written.
    pub path: String,
    /// What stood after `?`, without it. Sent by nobody; kept so that a check can warn.
    pub query: Option<String>,
    /// Where the host is. Never part of the text: Host headers and certificates go by the name.
    #[serde(default, skip_serializing_if = "Located::is_as_written")]
    pub located: Located,
}

/// Where the host of a URL is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Located {
    /// As the host says: an IP literal, or a name that whoever connects looks up.
    #[default]
    AsWritten,
    /// One of the addresses of the name.
    At(IpAddr),
    /// The name has no address.
    Nowhere,
}

impl Located {
    /// Whether nothing is known beyond the host's text.
    pub fn is_as_written(&self) -> bool {
        *self == Self::AsWritten
    }
}

/// Why a text is no destination URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// No `http://` or `https://` in front.
    Scheme,
    /// No host.
    Host,
    /// The port is no number from 1 to 65535.
    Port,
    /// `user:password@` is not accepted.
    UserInfo,
    /// A character that has no place in a URL.
    Character,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "an address starts with http:// or https://",
            Self::Host => "there is no host in it",
            Self::Port => "a port is a number from 1 to 65535",
            Self::UserInfo => "user names and passwords have no place in an address",
            Self::Character => "there is a blank, control or non-ASCII character in it",
        })
    }
}

impl std::error::Error for UrlError {}

impl Url {
    /// Parses an absolute `http` or `https` URL (RFC 3986; the fragment is dropped).
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = split_scheme(text).ok_or(UrlError::Scheme)?;
        if text.bytes().any(|b| b <= b' ' || b >= 0x7f || b == b'\\' || b == b'"' || b == b'<' || b == b'>') {
            return Err(UrlError::Character);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let tail = tail.split('#').next().unwrap_or("");
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (tail, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        let port = port.unwrap_or_else(|| scheme.default_port());
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            path: path.to_owned(),
            query,
            located: Located::AsWritten,
        })
    }

    /// `host` or `host:port`, brackets around IPv6, the port only when it is not the scheme's own: what a Host header
    /// carries.
    pub fn authority(&self) -> String {
        let host = self.bracketed_host();
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// The socket address when the host is an IP literal, or when the address of its name is known.
    pub fn literal(&self) -> Option<SocketAddr> {
        let ip = match self.located {
            Located::AsWritten => self.host.parse().ok(),
            Located::At(ip) => Some(ip),
            Located::Nowhere => None,
        };
        ip.map(|ip| SocketAddr::new(ip, self.port))
    }

    /// The host, when it is a name.
    pub fn name(&self) -> Option<&str> {
        if self.host.parse::<IpAddr>().is_ok() { None } else { Some(&self.host) }
    }

    fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.eq_ignore_ascii_case("http") {
        Some((Scheme::Http, rest))
    } else if scheme.eq_ignore_ascii_case("https") {
        Some((Scheme::Https, rest))
    } else {
        None
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), UrlError> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or(UrlError::Host)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| UrlError::Host)?;
        (host, if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(UrlError::Port)?) })
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    if host.is_empty() {
        return Err(UrlError::Host);
    }
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|&port| port != 0).ok_or(UrlError::Port)?)
        }
        Some(_) => return Err(UrlError::Port),
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_parse_and_print_back() {
        for (text, shown) in [
            ("http://a.test", "http://a.test/"),
            ("HTTPS://A.test:443/x", "https://a.test/x"),
            ("http://[fd00::1]:81/", "http://[fd00::1]:81/"),
            ("http://h:1/x?y=1#f", "http://h:1/x?y=1"),
        ] {
            assert_eq!(Url::parse(text).map(|u| u.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        for (text, why) in [
            ("localhost:5000", UrlError::Scheme),
            ("ftp://x/", UrlError::Scheme),
            ("http://", UrlError::Host),
            ("http://:80/", UrlError::Host),
            ("http://a:0/", UrlError::Port),
            ("http://a:70000/", UrlError::Port),
            ("http://a:x/", UrlError::Port),
            ("http://u:p@a/", UrlError::UserInfo),
            ("http://a b/", UrlError::Character),
            ("http://[::1/", UrlError::Host),
        ] {
            assert_eq!(Url::parse(text), Err(why), "{text}");
        }
    }
}
