//! Answers of our own: synthetic ones with their reason, and those that a route gives. Failures are told to clients of
//! gRPC in their own words.

use exchange::{Answer, grpc};
use http1::connection::{Persistence, Version};
use http1::forward::{phrase, write_connection, write_field, write_length, write_status_line};
use http1::request::Request;
use http1::response::RequestKind;
use model::request::Method;

/// An answer of our own, with nothing left to decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    /// Error type of RFC 9209; `None`: no `Proxy-Status`.
    pub(crate) error: Option<&'static str>,
    /// Our own word, also for the log.
    pub(crate) details: &'static str,
    /// In place of the one line that says status and reason.
    pub(crate) body: Option<&'a str>,
    pub(crate) content_type: &'a str,
    pub(crate) location: Option<&'a str>,
    pub(crate) allow: Option<&'a str>,
    /// Seconds.
    pub(crate) retry_after: Option<u32>,
    /// Name and value of the field that holds the request's id.
    pub(crate) id: Option<(&'a str, &'a str)>,
}

/// To whom it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipient {
    pub(crate) version: Version,
    pub(crate) persistence: Persistence,
    pub(crate) kind: RequestKind,
    pub(crate) speaks: Speaks,
}

/// In which words a failure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// By the status, and a body for people.
    Http,
    /// By a gRPC status under a 200, and nothing else.
    Grpc,
}

impl Speaks {
    /// What the client of this request speaks. Calls are POSTs: to a CONNECT a 200 would say that there is a tunnel.
    pub(crate) fn of(request: &Request<'_>) -> Self {
        if request.method() == Method::Post && grpc::is_call(request) { Self::Grpc } else { Self::Http }
    }
}

impl<'a> Reply<'a> {
    /// What the exchange decided on.
    pub(crate) fn of_answer(answer: &'a Answer) -> Self {
        Self {
            status: answer.status,
            error: answer.reason.proxy_error(),
            details: answer.reason.details(),
            body: answer.body.as_deref(),
            content_type: TEXT,
            location: answer.location.as_deref(),
            allow: answer.allow.as_deref(),
            retry_after: answer.retry_after,
            id: None,
        }
    }

    /// To a client that did something wrong.
    pub(crate) fn of_client_fault(status: u16, details: &'static str) -> Self {
        let error = Some("http_request_error");
        Self {
            status,
            error,
            details,
            body: None,
            content_type: TEXT,
            location: None,
            allow: None,
            retry_after: None,
            id: None,
        }
    }

    /// A JSON document.
    pub(crate) fn json(body: &'a str) -> Self {
        Self {
            status: 200,
            error: None,
            details: "self-check",
            body: Some(body),
            content_type: "application/json",
            location: None,
            allow: None,
            retry_after: None,
            id: None,
        }
    }

    /// Appends the whole answer; `date` is the value of its `Date`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, to: Recipient, date: &str) {
        if let (Some(error), Speaks::Grpc) = (self.error, to.speaks) {
            return self.write_for_grpc(out, error, to, date);
        }
        write_status_line(out, self.status, b"");
        write_field(out, b"Date", date.as_bytes());
        if let Some(error) = self.error {
            self.write_proxy_status(out, error);
        }
        if let Some(location) = self.location {
            write_field(out, b"Location", location.as_bytes());
        }
        if let Some(allow) = self.allow {
            write_field(out, b"Allow", allow.as_bytes());
        }
        if let Some(seconds) = self.retry_after {
            write_field(out, b"Retry-After", seconds.to_string().as_bytes());
        }
        if let Some((name, value)) = self.id {
            write_field(out, name.as_bytes(), value.as_bytes());
        }
        let line;
        let body = match self.body {
            Some(body) => body,
            None if self.error.is_none() => "",
            None => {
                line = format!("{} {}: {}\n", self.status, phrase(self.status), self.details);
                &line
            }
        };
        // RFC 9110 8.6: these have no body and must not say how long it is.
        let is_bodyless = matches!(self.status, 204 | 304);
        if !is_bodyless {
            if !body.is_empty() {
                write_field(out, b"Content-Type", self.content_type.as_bytes());
            }
            write_length(out, body.len() as u64);
        }
        write_connection(out, to.version, to.persistence);
        out.extend_from_slice(b"\r\n");
        if to.kind != RequestKind::Head && !is_bodyless {
            out.extend_from_slice(body.as_bytes());
        }
    }

    /// A head alone: gRPC's Trailers-Only.
    fn write_for_grpc(&self, out: &mut Vec<u8>, error: &str, to: Recipient, date: &str) {
        write_status_line(out, 200, b"");
        write_field(out, b"Date", date.as_bytes());
        self.write_proxy_status(out, error);
        if let Some((name, value)) = self.id {
            write_field(out, name.as_bytes(), value.as_bytes());
        }
        write_field(out, b"Content-Type", b"application/grpc");
        let code = grpc::Code::of(self.status, self.details);
        write_field(out, b"Grpc-Status", code.number().to_string().as_bytes());
        write_field(out, b"Grpc-Message", percent_encoded(self.details).as_bytes());
        write_length(out, 0);
        write_connection(out, to.version, to.persistence);
        out.extend_from_slice(b"\r\n");
    }

    fn write_proxy_status(&self, out: &mut Vec<u8>, error: &str) {
        let text = format!("lazaret; error={error}; details=\"{}\"", self.details);
        write_field(out, b"Proxy-Status", text.as_bytes());
    }
}

/// As `grpc-message` has it: `%` and what is not visible ASCII or a blank.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

const TEXT: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply<'_>, kind: RequestKind) -> String {
        let mut out = Vec::new();
        let (version, persistence, speaks) = (Version::Http11, Persistence::Close, Speaks::Http);
        reply.write(&mut out, Recipient { version, persistence, kind, speaks }, "now");
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_synthetic_answer_names_its_reason_twice() {
        let reply = Reply::of_client_fault(400, "host-count");
        let expected = "HTTP/1.1 400 Bad Request\r\nDate: now\r\n\
            Proxy-Status: lazaret; error=http_request_error; details=\"host-count\"\r\n\
            Content-Type: text/plain; charset=utf-8\r\nContent-Length: 28\r\nConnection: close\r\n\r\n";
        assert_eq!(written(&reply, RequestKind::Head), expected);
        assert_eq!(written(&reply, RequestKind::Other), format!("{expected}400 Bad Request: host-count\n"));
    }

    #[test]
    fn a_grpc_client_gets_a_head_alone_with_the_code_of_the_reason() {
        let (version, persistence, kind) = (Version::Http11, Persistence::KeepAlive, RequestKind::Other);
        let to = Recipient { version, persistence, kind, speaks: Speaks::Grpc };
        let mut out = Vec::new();
        let page = Some("<h1>sorry</h1>");
        Reply { body: page, ..Reply::of_answer(&Answer::of(exchange::Reason::NoneAvailable)) }
            .write(&mut out, to, "now");
        let expected = "HTTP/1.1 200 OK\r\nDate: now\r\n\
            Proxy-Status: lazaret; error=destination_unavailable; details=\"none-available\"\r\n\
            Content-Type: application/grpc\r\nGrpc-Status: 14\r\nGrpc-Message: none-available\r\n\
            Content-Length: 0\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(percent_encoded("a %\u{e9}\n"), "a %25%C3%A9%0A");
    }

    #[test]
    fn no_content_has_no_length() {
        let reply = Reply { status: 204, error: None, body: Some("x"), ..Reply::json("") };
        assert_eq!(
            written(&reply, RequestKind::Other),
            "HTTP/1.1 204 No Content\r\nDate: now\r\nConnection: close\r\n\r\n"
        );
    }
}
