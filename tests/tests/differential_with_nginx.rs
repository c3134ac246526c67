//! Odd but possible messages through Lazaret and through nginx, to one recording destination: nothing that is one request
//! is ever seen as two, and where the two proxies differ in what they pass, a list says why.
//!
//! 1 500 conversations and 300 answers; `LAZARET_LONG=1`: 5 000 of each.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use end_to_end::control::is_long;
use end_to_end::nginx::{self, Nginx};
use end_to_end::odd::{Oddities, request, response};
use end_to_end::process::Lazaret;
use testkit::destination::{Act, Destination, Moment};
use testkit::skip::skip;

#[test]
fn no_request_is_ever_seen_as_two_and_every_difference_to_nginx_is_explained() {
    if let Some(what) = nginx::lacking() {
        return skip("differential_with_nginx", what);
    }
    let mut destination = Destination::answering(200, "ok");
    let (mut lazaret, mut nginx) = (lazaret(&destination), Nginx::start(destination.addr()));
    let (mut passed, mut different, mut unexplained) = (0, BTreeSet::new(), Vec::new());
    for number in 0..if is_long() { 5_000 } else { 1_500 } {
        if number % 1000 == 999 {
            // A destination keeps all that it saw.
            destination = Destination::answering(200, "ok");
            (lazaret, nginx) = (self::lazaret(&destination), Nginx::start(destination.addr()));
        }
        let case = request::conversation(number);
        let told = || format!("conversation {number}, {:?}: {:?}", case.oddities, String::from_utf8_lossy(&case.bytes));
        let ours = seen(&destination, || drop(converse(lazaret.proxy, &case.bytes)));
        for request in &ours {
            assert!(!request.target.contains("smuggled"), "{}: {request:?}", told());
            assert!(request.framing <= 1, "{}: framed twice: {request:?}", told());
        }
        // What reaches the destination is what was meant, in that order, with that content; some may be refused.
        let mut meant = case.meant.iter();
        for request in &ours {
            let is_meant = meant.any(|(target, content)| request.is_for(target) && request.content == *content);
            assert!(is_meant, "{}: not meant: {request:?}", told());
        }
        passed += ours.len();
        let theirs = seen(&destination, || drop(converse(nginx.addr, &case.bytes)));
        if ours != theirs {
            let reasons = explained(&case.oddities, DIFFERENT_REQUESTS);
            if reasons.is_empty() {
                unexplained.push(format!("{}:\nours {ours:?}\nnginx's {theirs:?}", told()));
            }
            different.extend(reasons);
        }
    }
    assert!(unexplained.is_empty(), "{} of them:\n{}", unexplained.len(), unexplained.join("\n"));
    assert!(passed > 1_000, "only {passed} requests came through");
    // An explanation that explains nothing is to be taken off the list.
    let idle: Vec<_> = DIFFERENT_REQUESTS.iter().filter(|(name, _)| !different.contains(name)).collect();
    assert!(idle.is_empty(), "explain nothing: {idle:?}");
}

#[test]
fn no_answer_is_ever_seen_as_two_and_every_difference_to_nginx_is_explained() {
    if let Some(what) = nginx::lacking() {
        return skip("differential_with_nginx", what);
    }
    let next: Arc<Mutex<Vec<u8>>> = Arc::default();
    let destination = Destination::start({
        let next = Arc::clone(&next);
        move |moment| match moment {
            Moment::Accepted => Vec::new(),
            Moment::Request(_) => {
                vec![Act::ReadBody, Act::Send(next.lock().unwrap().clone()), Act::HalfClose]
            }
        }
    });
    let (lazaret, nginx) = (lazaret(&destination), Nginx::start(destination.addr()));
    let (mut different, mut unexplained) = (BTreeSet::new(), Vec::new());
    for number in 0..if is_long() { 5_000 } else { 300 } {
        let case = response::answer(number);
        *next.lock().unwrap() = case.bytes.clone();
        let request = format!(
            "{} /a{number} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            case.method
        );
        let ours = Answered::read(&converse(lazaret.proxy, request.as_bytes()), case.method);
        let theirs = Answered::read(&converse(nginx.addr, request.as_bytes()), case.method);
        let told = || format!("answer {number}, {:?}: {:?}", case.oddities, String::from_utf8_lossy(&case.bytes));
        assert!(ours.status != 0, "{}: nothing came", told());
        assert!(ours.surplus.is_empty(), "{}: {ours:?}", told());
        if ours != theirs {
            let reasons = explained(&case.oddities, DIFFERENT_ANSWERS);
            if reasons.is_empty() {
                unexplained.push(format!("{}:\nours {ours:?}\nnginx's {theirs:?}", told()));
            }
            different.extend(reasons);
        }
    }
    assert!(unexplained.is_empty(), "{} of them:\n{}", unexplained.len(), unexplained.join("\n"));
    let idle: Vec<_> = DIFFERENT_ANSWERS.iter().filter(|(name, _)| !different.contains(name)).collect();
    assert!(idle.is_empty(), "explain nothing: {idle:?}");
}

#[test]
fn a_conversation_comes_to_the_same_wherever_its_bytes_are_split() {
    let destination = Destination::answering(200, "ok");
    let lazaret = lazaret(&destination);
    for number in 0..if is_long() { 60 } else { 6 } {
        let case = request::conversation(number);
        let split_at = |at, patience| seen(&destination, || converse_in_two(lazaret.proxy, &case.bytes, at, patience));
        let whole = split_at(0, LONG_MOMENT);
        for at in 1..case.bytes.len() {
            let mut split = split_at(at, MOMENT);
            if split != whole {
                // Whoever leaves early is served in part: a slow machine is no difference.
                split = split_at(at, LONG_MOMENT);
            }
            let told = || format!("conversation {number} split at {at}: {:?}", String::from_utf8_lossy(&case.bytes));
            assert_eq!(split, whole, "{}", told());
        }
    }
}

/// What Lazaret and nginx 1.22 do not pass alike, and why.
const DIFFERENT_REQUESTS: &[(&str, &str)] = &[
    ("HTTP/1.2", "nginx takes every minor version; ours is 505"),
    ("blanks around length", "nginx refuses the tab that RFC 9112 5 allows before a value"),
    ("chunk without its line end", "nginx takes a line feed alone behind a chunk's data; ours is 400"),
    ("forbidden trailer", "nginx drops all trailers; ours refuses one that frames (RFC 9110 6.5.1)"),
    ("fragment", "nginx passes it on; it is no part of a target (RFC 9112 3.2), ours is 400"),
    ("length twice", "nginx refuses it; ours takes equal values for one (RFC 9110 8.6)"),
    ("list in length", "nginx refuses it; ours takes equal values for one (RFC 9110 8.6)"),
    ("lone line feed", "nginx takes it for a line end (RFC 9112 2.2 allows that); ours is 400"),
    ("lone line feed before", "nginx skips it; ours is 400"),
    ("quoted chunk extension", "nginx refuses the blank or the quotes that RFC 9112 7.1.1 has to be taken"),
    ("two blanks in request line", "nginx takes several for one; ours is 400 (RFC 9112 3 has one)"),
    ("raw octets in target", "nginx passes them; a target is ASCII (RFC 3986 2), ours is 400"),
];

/// The same of answers.
const DIFFERENT_ANSWERS: &[(&str, &str)] = &[
    ("103 first", "nginx 1.22 takes it for the answer; ours passes it on and waits for the answer"),
    ("HTTP/1.0", "nginx takes chunked from HTTP/1.0; ours is 502 (RFC 9112 6.1)"),
    ("chunked and length", "nginx takes chunked; ours is 502 (RFC 9112 6.3 lets a proxy refuse)"),
    ("lone line feed", "nginx takes it for a line end; ours is 502"),
    ("two lengths", "nginx takes the last one; ours is 502 (RFC 9112 6.3)"),
];

fn explained(oddities: &Oddities, list: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).filter(|name| oddities.contains(name)).collect()
}

/// A request as the destination saw it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    target: String,
    content: Vec<u8>,
    /// Framing fields.
    framing: usize,
}

impl Seen {
    fn is_for(&self, target: &str) -> bool {
        self.target == target || self.target.strip_prefix(target).is_some_and(|rest| rest.starts_with(['?', '#']))
    }
}

/// What comes whole to the destination while `act` runs. Of a request whose body breaks its framing the destination may
/// have seen the beginning; its connection then ends before its body does.
fn seen(destination: &Destination, act: impl FnOnce()) -> Vec<Seen> {
    let before = destination.requests().len();
    act();
    let all = destination.requests().split_off(before);
    all.into_iter()
        .filter(|request| is_whole(&request.message))
        .map(|request| {
            let message = request.message;
            let framing = message.values("content-length").len() + message.values("transfer-encoding").len();
            Seen { target: message.target(), content: message.body, framing }
        })
        .collect()
}

fn is_whole(message: &testkit::message::Message) -> bool {
    match message.value("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => message.body.len() == length,
        None => message.values("transfer-encoding").is_empty() || has_last_chunk(&message.raw_body),
    }
}

/// Whether chunks and trailers come to their end with the last byte.
fn has_last_chunk(mut rest: &[u8]) -> bool {
    loop {
        let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else { return false };
        let size = String::from_utf8_lossy(&rest[..line]).split(';').next().unwrap_or_default().trim().to_owned();
        let Ok(size) = usize::from_str_radix(&size, 16) else { return false };
        rest = &rest[line + 2..];
        if size == 0 {
            return rest == b"\r\n" || rest.ends_with(b"\r\n\r\n");
        }
        let Some(behind) = rest.get(size..).filter(|behind| behind.starts_with(b"\r\n")) else { return false };
        rest = &behind[2..];
    }
}

/// Sends all, reads to the end; a proxy that waits for more is left after a moment.
fn converse(proxy: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(proxy);
    let _ = stream.write_all(bytes);
    to_end(stream)
}

/// Sends the bytes in two parts and reads to the end, for `patience` at most where the proxy waits for more.
fn converse_in_two(proxy: SocketAddr, bytes: &[u8], at: usize, patience: Duration) {
    let mut stream = connect(proxy);
    stream.set_read_timeout(Some(patience)).expect("a bound above zero");
    let (first, second) = bytes.split_at(at);
    // A proxy that refused the first part takes no second one.
    let _ = stream.write_all(first).and_then(|()| stream.write_all(second));
    to_end(stream);
}

fn connect(proxy: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(proxy).expect("the proxy listens");
    stream.set_nodelay(true).expect("a connected socket");
    stream.set_read_timeout(Some(MOMENT)).expect("a bound above zero");
    stream
}

fn to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

/// A client's view of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answered {
    status: u16,
    content: Vec<u8>,
    is_whole: bool,
    /// What stands behind it.
    surplus: Vec<u8>,
}

impl Answered {
    fn read(bytes: &[u8], method: &str) -> Self {
        use testkit::message::{Expect, Message, Reader};
        let mut reader = Reader::new(bytes);
        loop {
            let head = reader.head().ok().flatten().unwrap_or_default();
            let mut message = Message { head, ..Message::default() };
            if (100..200).contains(&message.status()) {
                continue;
            }
            let expect = if method == "HEAD" { Expect::ResponseToHead } else { Expect::Response };
            let is_whole = reader.body(&mut message, expect).is_ok();
            if message.status() == 502 {
                // Refused: each proxy in its own words.
                message.body.clear();
            }
            let mut surplus = Vec::new();
            let _ = reader.to_end(&mut surplus);
            return Self { status: message.status(), content: message.body, is_whole, surplus };
        }
    }
}

fn lazaret(destination: &Destination) -> Lazaret {
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{host: original, retry: \
         {{attempts: 1}}, destinations: {{one: {{address: \"{}\"}}}}}}}}\n",
        destination.url()
    ))
}

const MOMENT: Duration = Duration::from_millis(300);
const LONG_MOMENT: Duration = Duration::from_secs(5);
