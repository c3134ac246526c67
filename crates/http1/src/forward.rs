//! The heads that go on to the next hop, written anew into one reused buffer.
//!
//! | field | towards the destination | towards the client |
//! |---|---|---|
//! | `Connection` and every field it names, `Keep-Alive`, `Proxy-*`, `HTTP2-Settings`, `Upgrade`, `TE` | end here (RFC 9110 7.6.1); `TE: trailers` and a good `Upgrade` are said anew | end here; the `Upgrade` of a 101 or 426 is said anew |
//! | `Host` | replaced | as it is |
//! | `Content-Length`, `Transfer-Encoding` | one of them, written anew | one of them, written anew |
//! | `Expect` | as told | |
//! | `Forwarded` | ends here: one way to say it is enough; the client that a trusted proxy names in it is said in `X-Forwarded-For` | as it is |
//! | `X-Forwarded-For`, `-Proto`, `-Host`, `-Prefix` | set (`-Prefix`: ends here); from a trusted proxy extended or kept | as they are |
//! | `Lazaret-Attempt` | of a repeated request said anew, else as it is | as it is |
//! | `grpc-timeout` | of a repeated call what is left of it, else as it is | as it is |
//! | `Alt-Svc` | | ends here: it names the destination's own endpoints |

mod lines;
mod passage;
mod run;
mod x_forwarded;

use std::net::IpAddr;
use std::time::Duration;

use crate::changed::{self, RequestChanges, ResponseChanges};
use crate::connection::{Persistence, Version};
use crate::fields::{Fate, Field, Known};
use crate::framing::{RequestFraming, ResponseFraming};
use crate::request::Request;
use crate::response::Response;
use crate::syntax::write_number;
use crate::upgrade;

use self::lines::write_line;
pub use self::lines::{phrase, write_connection, write_field, write_length, write_status_line};
use self::passage::{ENDING_BEFORE_CLIENT, ending_before_destination, goes_to_client, goes_to_destination};
use self::run::{Run, has_usual_length, is_host};
pub(crate) use self::x_forwarded::write_forwarded;

/// What a request's head becomes for one destination.
#[derive(Clone, Copy, Debug)]
pub struct RequestRewrite<'a> {
    /// Path of the destination's address, put in front of the request's; `/` puts nothing there.
    pub prefix: &'a str,
    /// Value of Host.
    pub host: &'a str,
    /// Address of the peer.
    pub peer: IpAddr,
    /// Address of the client as trusted proxies name it; the peer's where there are none.
    pub client: IpAddr,
    /// `http` or `https`, as the client came.
    pub proto: &'a str,
    /// Whether the peer's own `X-Forwarded-*` are believed.
    pub trust: Trust,
    /// Whether `Expect: 100-continue` goes on.
    pub expectation: Expectation,
    /// Which attempt at this request it is, those of proxies before this one included, when it is not our first;
    /// `None`: a mark that came goes on.
    pub attempt: Option<u8>,
    /// What is left of the time that a call's `grpc-timeout` gave, when it is not our first attempt; `None`: what came
    /// goes on.
    pub time_left: Option<Duration>,
    /// What the route changes beside; `None` on nearly all routes.
    pub changes: Option<&'a RequestChanges<'a>>,
}

/// Whether the peer's `X-Forwarded-*` are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// `X-Forwarded-For` is extended, the others are kept where they are.
    Trusted,
    /// All are overwritten.
    Untrusted,
}

/// Whether an expectation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The destination is asked as well.
    Forward,
    /// The client has had its 100, or expects none.
    Drop,
}

/// What a response's head becomes for the client.
#[derive(Clone, Copy, Debug)]
pub struct ResponseRewrite<'a> {
    /// The client's version.
    pub version: Version,
    /// Whether the client's connection stays open.
    pub persistence: Persistence,
    /// Values of `Set-Cookie` fields of ours.
    pub cookies: &'a [String],
    /// Value of `Date` for a response that came without (RFC 9110 6.6.1).
    pub date: &'a str,
    /// What the route changes beside; `None` on nearly all routes.
    pub changes: Option<&'a ResponseChanges<'a>>,
}

/// Appends the request's head, the empty line included.
pub fn request<'a>(out: &mut Vec<u8>, request: &Request<'a>, rewrite: &RequestRewrite<'a>) {
    match rewrite.changes {
        None => {
            let (bytes, section) = request.section();
            let fields = section.as_slice();
            let mut run = Run::new(bytes);
            match request.line().filter(|_| matches!(rewrite.prefix, "" | "/")) {
                Some(line) => run.begin(line),
                None => write_line(out, request.method_name(), rewrite.prefix, request.path(), request.query()),
            }
            match fields.split_first() {
                Some((host, rest)) if is_host(host, bytes, rewrite) => {
                    run.copy(out, host);
                    // A head has one Host at most: it is not among the rest.
                    match section.whole(1, ending_before_destination(rewrite)) {
                        Some(lines) => run.copy_all(out, lines),
                        None => run.copy_each(out, rest, |field| goes_to_destination(field, rewrite)),
                    }
                }
                Some(_) | None => {
                    run.end(out);
                    write_field(out, b"Host", rewrite.host.as_bytes());
                    run.copy_each(out, fields, |field| goes_to_destination(field, rewrite));
                }
            }
            run.end(out);
            write_framing(out, request);
            write_attempt(out, rewrite.attempt);
            write_time_left(out, rewrite.time_left);
            write_forwarded(out, request, rewrite);
        }
        Some(changes) => {
            let (method, path, query) = match changes.target {
                Some(target) => (target.method, target.path, target.query),
                None => (request.method_name(), request.path(), request.query()),
            };
            write_line(out, method, rewrite.prefix, path, query);
            let host = changed::host(changes);
            write_field(out, b"Host", host.as_deref().unwrap_or(rewrite.host).as_bytes());
            write_framing(out, request);
            write_attempt(out, rewrite.attempt);
            write_time_left(out, rewrite.time_left);
            let passing = request.fields().filter(|(field, ..)| goes_to_destination(field, rewrite));
            let passing = passing.map(|(field, name, value)| (field.known, name, value));
            changed::request_fields(out, request, rewrite, changes, passing);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The mark of a request that is not sent for the first time, so that the next proxy does not multiply what this one
/// repeats.
fn write_attempt(out: &mut Vec<u8>, attempt: Option<u8>) {
    if let Some(attempt) = attempt {
        out.extend_from_slice(b"Lazaret-Attempt: ");
        write_number(out, u64::from(attempt));
        out.extend_from_slice(b"\r\n");
    }
}

/// The time that is left for a call, never more than there is, in the smallest unit that fits into the eight digits of a
/// `grpc-timeout` from milliseconds on (gRPC over HTTP/2, Requests). A call whose time is over in less than one
/// millisecond has one: none at all is what some servers take for no limit.
fn write_time_left(out: &mut Vec<u8>, left: Option<Duration>) {
    const MOST: u64 = 99_999_999;
    if let Some(left) = left {
        out.extend_from_slice(b"grpc-timeout: ");
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let (number, unit) = if millis <= MOST { (millis.max(1), b'm') } else { (left.as_secs().min(MOST), b'S') };
        write_number(out, number);
        out.push(unit);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_framing(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.framing() {
        RequestFraming::None => {}
        RequestFraming::Length(length) => write_length(out, length),
        RequestFraming::Chunked => out.extend_from_slice(CHUNKED),
    }
    if request.wants_trailers() {
        out.extend_from_slice(b"TE: trailers\r\nConnection: TE\r\n");
    }
    if request.offers_upgrade() {
        upgrade::write_offer(out, request);
    }
}

/// Appends the response's head, the empty line included.
///
/// A chunked body is declared chunked to an HTTP/1.1 client only; for an HTTP/1.0 client the caller decodes it and
/// closes the connection at its end.
pub fn response<'a>(out: &mut Vec<u8>, response: &Response<'a>, rewrite: &ResponseRewrite<'a>) {
    let (bytes, section) = response.section();
    let keeps_length = matches!(response.framing(), ResponseFraming::Length(_)) && has_usual_length(bytes, section);
    let is_dated = match rewrite.changes {
        None => {
            let mut run = Run::new(bytes);
            match response.line() {
                Some(line) => run.begin(line),
                None => write_status_line(out, response.status(), response.reason()),
            }
            let goes_on =
                |field: &Field| goes_to_client(field) || (keeps_length && field.known == Known::ContentLength);
            let is_length_kept = keeps_length || !section.has(Known::ContentLength);
            match section.whole(0, ENDING_BEFORE_CLIENT).filter(|_| is_length_kept) {
                Some(lines) => run.copy_all(out, lines),
                None => run.copy_each(out, section.as_slice(), goes_on),
            }
            run.end(out);
            let is_passed = |field: &Field| field.fate == Fate::ByName;
            section.only(Known::Date).is_some_and(is_passed) || section.all(Known::Date).any(is_passed)
        }
        Some(changes) => {
            write_status_line(out, response.status(), response.reason());
            let passing = response.fields().filter(|(field, ..)| goes_to_client(field));
            let passing = passing.map(|(_, name, value)| (name, value));
            changed::response_fields(out, response.status(), changes, passing) == changed::Dated::Yes
        }
    };
    if !is_dated && response.status() >= 200 {
        write_field(out, b"Date", rewrite.date.as_bytes());
    }
    for cookie in rewrite.cookies {
        write_field(out, b"Set-Cookie", cookie.as_bytes());
    }
    match response.framing() {
        ResponseFraming::Length(_) if keeps_length && rewrite.changes.is_none() => {}
        ResponseFraming::Length(length) => write_length(out, length),
        ResponseFraming::Chunked if rewrite.version == Version::Http11 => out.extend_from_slice(CHUNKED),
        ResponseFraming::None => {
            if let Some(length) = response.declared_length() {
                write_length(out, length);
            }
        }
        ResponseFraming::Chunked | ResponseFraming::Close => {}
    }
    if matches!(response.status(), 101 | 426) && rewrite.version == Version::Http11 {
        upgrade::write_demand(out, response);
    }
    if response.status() >= 200 {
        write_connection(out, rewrite.version, rewrite.persistence);
    }
    out.extend_from_slice(b"\r\n");
}

/// The fields that [`response`] passes on where the route changes nothing, in order: what each is, its name, its value.
pub fn passing<'a>(response: &Response<'a>) -> impl Iterator<Item = (Known, &'a [u8], &'a [u8])> + use<'a> {
    let passing = response.fields().filter(|(field, ..)| goes_to_client(field));
    passing.map(|(field, name, value)| (field.known, name, value))
}

/// Appends an interim response's head (1xx) for an HTTP/1.1 client.
pub fn interim(out: &mut Vec<u8>, response: &Response<'_>) {
    let rewrite = ResponseRewrite {
        version: Version::Http11,
        persistence: Persistence::KeepAlive,
        cookies: &[],
        date: "",
        changes: None,
    };
    self::response(out, response, &rewrite);
}

const CHUNKED: &[u8] = b"Transfer-Encoding: chunked\r\n";
