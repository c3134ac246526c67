//! Answers of our own: synthetic ones with their reason, and those that a route gives.

use exchange::Answer;
use http1::connection::{Persistence, Version};
use http1::forward::{phrase, write_connection, write_field, write_length, write_status_line};
use http1::response::RequestKind;

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
        write_status_line(out, self.status, b"");
        write_field(out, b"Date", date.as_bytes());
        if let Some(error) = self.error {
            let text = format!("lazaret; error={error}; details=\"{}\"", self.details);
            write_field(out, b"Proxy-Status", text.as_bytes());
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
}

const TEXT: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply<'_>, kind: RequestKind) -> String {
        let mut out = Vec::new();
        reply.write(&mut out, Recipient { version: Version::Http11, persistence: Persistence::Close, kind }, "now");
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
    fn no_content_has_no_length() {
        let reply = Reply { status: 204, error: None, body: Some("x"), ..Reply::json("") };
        assert_eq!(
            written(&reply, RequestKind::Other),
            "HTTP/1.1 204 No Content\r\nDate: now\r\nConnection: close\r\n\r\n"
        );
    }
}
