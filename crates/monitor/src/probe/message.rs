//! What an HTTP probe sends: built from the check's options, or by a builder registered in code.

use health::ProbeOrder;
use http1::syntax::{is_target, is_token, is_value};
use model::probe_uri;

/// A probe's request: no body, on a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeMessage {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Value of Host.
    pub host: String,
    /// Further fields. `User-Agent` is added unless it is among them; `Host`, `Connection`, `Content-Length` and
    /// `Transfer-Encoding` are the client's own and left out.
    pub headers: Vec<(String, String)>,
}

/// Makes the requests of HTTP probes.
pub trait ProbeBuilder: Send + Sync {
    /// The request that answers the order. Must not block. One that is no valid HTTP is not sent: the probe fails.
    fn build(&self, order: &ProbeOrder) -> ProbeMessage;
}

/// Follows the check's options: path, query, host and headers (see [`probe_uri`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltInBuilder;

impl ProbeBuilder for BuiltInBuilder {
    fn build(&self, order: &ProbeOrder) -> ProbeMessage {
        ProbeMessage {
            method: order.request.method.clone(),
            target: probe_uri::target(&order.base, &order.request),
            host: probe_uri::host(&order.base, order.host.as_deref(), &order.request),
            headers: order.request.headers.clone(),
        }
    }
}

/// A message that is no valid HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

impl ProbeMessage {
    /// The request's head for HTTP/1.1.
    pub(super) fn head(&self) -> Result<Vec<u8>, Invalid> {
        let fields = self.fields()?;
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.target, self.host);
        for (name, value) in fields.into_iter().chain([("Connection", "close")]) {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        }
        head.push_str("\r\n");
        Ok(head.into_bytes())
    }

    /// All fields but Host and those of the connection.
    pub(super) fn fields(&self) -> Result<Vec<(&str, &str)>, Invalid> {
        let is_valid = is_name(&self.method)
            && self.target.starts_with('/')
            && self.target.bytes().all(is_target)
            && self.host.bytes().all(is_value)
            && self.headers.iter().all(|(name, value)| is_name(name) && value.bytes().all(is_value));
        if !is_valid {
            return Err(Invalid);
        }
        let mut fields = Vec::new();
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            fields.push(("User-Agent", USER_AGENT));
        }
        fields.extend(self.headers.iter().filter(|(name, _)| !is_own(name)).map(|(name, value)| (&**name, &**value)));
        // RFC 9110 8.6: a method that usually has content says that there is none.
        if matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            fields.push(("Content-Length", "0"));
        }
        Ok(fields)
    }
}

/// Whether a field belongs to the client.
pub(super) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token)
}

/// Fields that belong to the client.
const OWN: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];
/// Tells destinations who asks.
pub(super) const USER_AGENT: &str = concat!("lazaret/", env!("CARGO_PKG_VERSION"), " (health probe)");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn message() -> ProbeMessage {
        ProbeMessage {
            method: "GET".to_owned(),
            target: "/health?x".to_owned(),
            host: "a.test:81".to_owned(),
            headers: vec![("X-Probe".to_owned(), "1".to_owned()), ("host".to_owned(), "no".to_owned())],
        }
    }

    #[test]
    fn the_head_names_host_and_sender() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "GET /health?x HTTP/1.1\r\nHost: a.test:81\r\nUser-Agent: lazaret/{version} (health probe)\r\nX-Probe: 1\r\n\
             Connection: close\r\n\r\n"
        );
        assert_eq!(String::from_utf8(message().head().unwrap()).unwrap(), expected);
        let own = ProbeMessage {
            method: "POST".to_owned(),
            headers: vec![("user-agent".to_owned(), "me".to_owned())],
            ..message()
        };
        let expected = "POST /health?x HTTP/1.1\r\nHost: a.test:81\r\nuser-agent: me\r\nContent-Length: 0\r\n\
                        Connection: close\r\n\r\n";
        assert_eq!(String::from_utf8(own.head().unwrap()).unwrap(), expected);
    }

    #[test]
    fn nothing_can_be_smuggled_into_the_head() {
        let bad = "a\r\nb: c".to_owned();
        for message in [
            ProbeMessage { method: bad.clone(), ..message() },
            ProbeMessage { method: String::new(), ..message() },
            ProbeMessage { target: bad.clone(), ..message() },
            ProbeMessage { target: "/a b".to_owned(), ..message() },
            ProbeMessage { host: bad.clone(), ..message() },
            ProbeMessage { headers: vec![(bad.clone(), String::new())], ..message() },
            ProbeMessage { headers: vec![("a".to_owned(), bad.clone())], ..message() },
        ] {
            assert_eq!(message.head(), Err(Invalid), "{message:?}");
        }
    }
}
