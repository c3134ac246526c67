//! Odd requests: up to three on one connection, and a last one that asks for its end.

use model::random::Random;

use super::{Oddities, draw};

/// What one client sends over one connection.
pub struct Conversation {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// What a reader that follows RFC 9112 may take for requests, in order: target and content.
    pub meant: Vec<(String, Vec<u8>)>,
    /// What is odd about them.
    pub oddities: Oddities,
}

/// The conversation of this number.
pub fn conversation(number: usize) -> Conversation {
    let mut random = Random::new(number as u64 ^ 0x5eed);
    let mut all = Conversation { bytes: Vec::new(), meant: Vec::new(), oddities: Oddities::new() };
    let count = 1 + random.below(3);
    for place in 0..count {
        request(&mut all, &mut random, &format!("/r{number}-{place}"), number);
    }
    let last = format!("/last{number}");
    all.bytes.extend_from_slice(format!("GET {last} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").as_bytes());
    all.meant.push((last, Vec::new()));
    all
}

fn request(all: &mut Conversation, random: &mut Random, target: &str, number: usize) {
    let mut odd = |name: &'static str| {
        if !name.is_empty() {
            all.oddities.insert(name);
        }
    };
    let (before, name) = draw(random, 0.9, &[("", ""), ("\r\n", "empty line before"), ("\n", "lone line feed before")]);
    odd(name);
    let method = *draw(random, 0.3, &["POST", "GET", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"]);
    let (shape, name) = draw(
        random,
        0.85,
        &[
            ("{t}", ""),
            ("http://a.test{t}", "absolute form"),
            ("{t}?q=%2F&x=a b", "blank in target"),
            ("{t}#part", "fragment"),
            ("{t}?q=\u{e9}", "raw octets in target"),
        ],
    );
    odd(name);
    let (version, name) = draw(
        random,
        0.9,
        &[
            ("HTTP/1.1", ""),
            ("HTTP/1.0", "HTTP/1.0"),
            ("HTTP/1.2", "HTTP/1.2"),
            ("http/1.1", "version in lower case"),
            ("HTTP/01.1", "version with a zero"),
        ],
    );
    odd(name);
    let (blank, name) =
        draw(random, 0.95, &[(" ", ""), ("  ", "two blanks in request line"), ("\t", "tab in request line")]);
    odd(name);
    let (end, name) = draw(random, 0.95, &[("\r\n", ""), ("\n", "lone line feed"), ("\r\r\n", "bare carriage return")]);
    odd(name);
    let mut head = format!("{before}{method}{blank}{}{blank}{version}{end}", shape.replace("{t}", target));
    let (host, name) = draw(
        random,
        0.93,
        &[
            ("Host: a.test\r\n", ""),
            ("", "no Host"),
            ("Host: a.test\r\nHost: b.test\r\n", "two Hosts"),
            ("Host:\r\n", "empty Host"),
            ("Host: a.test, b.test\r\n", "list in Host"),
        ],
    );
    odd(name);
    head += host;
    for _ in 0..random.below(3) {
        let (field, name) = draw(random, 0.8, FIELDS);
        odd(name);
        head += field;
    }
    let content = content(random, number);
    let (framing, body, name) = frame(random, &content);
    odd(name);
    head += framing.as_str();
    all.bytes.extend_from_slice(head.as_bytes());
    all.bytes.extend_from_slice(b"\r\n");
    all.bytes.extend_from_slice(&body);
    let meant = if framing.is_empty() { Vec::new() } else { content };
    all.meant.push((target.to_owned(), meant));
}

/// A body that would be a request if somebody took its beginning for one.
fn content(random: &mut Random, number: usize) -> Vec<u8> {
    match random.below(3) {
        0 => b"hello".to_vec(),
        1 => format!("GET /smuggled{number} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes(),
        _ => format!("0\r\n\r\nGET /smuggled{number} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes(),
    }
}

/// Framing fields and the body as it goes over the wire. Without any framing there is no body.
fn frame(random: &mut Random, content: &[u8]) -> (String, Vec<u8>, &'static str) {
    let n = content.len();
    let chunked = |size: &str, extension: &str, trailers: &str| {
        [format!("{size}{extension}\r\n").as_bytes(), content, b"\r\n0\r\n", trailers.as_bytes(), b"\r\n"].concat()
    };
    let te = "Transfer-Encoding: chunked\r\n".to_owned();
    let plain = chunked(&format!("{n:x}"), "", "");
    match random.below(28) {
        0..=4 => (String::new(), Vec::new(), ""),
        5..=8 => (format!("Content-Length: {n}\r\n"), content.to_vec(), ""),
        9 => (format!("Content-Length: 0{n}\r\n"), content.to_vec(), "zero before length"),
        10 => (format!("Content-Length: +{n}\r\n"), content.to_vec(), "sign before length"),
        11 => (format!("Content-Length: {n}\r\nContent-Length: {n}\r\n"), content.to_vec(), "length twice"),
        12 => (format!("Content-Length: {n}\r\nContent-Length: 1\r\n"), content.to_vec(), "two lengths"),
        13 => (format!("Content-Length: {n}, {n}\r\n"), content.to_vec(), "list in length"),
        14 => (format!("content-length:\t{n} \r\n"), content.to_vec(), "blanks around length"),
        15..=17 => (te, plain, ""),
        18 => (te, chunked(&format!("{n:X}"), ";a=b", ""), "chunk extension"),
        19 => (te, chunked(&format!("000{n:x}"), "", ""), "zeros before chunk size"),
        20 => (te, chunked(&format!("{n:x}"), " ;a=\"x;y\"", ""), "quoted chunk extension"),
        21 => (te, chunked(&format!("{n:x}"), "", "X-Trailer: v\r\n"), "trailer"),
        22 => (te, chunked(&format!("{n:x}"), "", "Content-Length: 3\r\n"), "forbidden trailer"),
        23 => (te, chunked(&format!("0x{n:x}"), "", ""), "0x before chunk size"),
        24 => (format!("{te}Content-Length: {n}\r\n"), plain, "chunked and length"),
        25 => ("Transfer-Encoding: gzip, chunked\r\n".to_owned(), plain, "another coding"),
        26 => ("Transfer-Encoding: xchunked\r\n".to_owned(), plain, "unknown coding"),
        _ => {
            let mut body = plain;
            // The line end after the data is one byte short.
            body.remove(body.len() - 7);
            (te, body, "chunk without its line end")
        }
    }
}

const FIELDS: &[(&str, &str)] = &[
    ("Accept: */*\r\n", ""),
    ("X-EMPTY:\r\n", ""),
    ("x-case: A\r\nX-Case: b\r\n", ""),
    ("X-Tab:\tvalue\t\r\n", ""),
    ("X-Underscore_name: 1\r\n", "underscore in name"),
    ("X-Octets: caf\u{e9}\r\n", "raw octets in value"),
    ("X-Space : 1\r\n", "blank before colon"),
    ("X-Fold: a\r\n b\r\n", "folded line"),
    ("X-Nul: a\0b\r\n", "control character in value"),
    ("X-Cr: a\rb\r\n", "control character in value"),
    ("No colon at all\r\n", "line without colon"),
    (": empty name\r\n", "empty name"),
    ("X-Lf: a\n", "lone line feed"),
    ("Connection: close\r\n", "asks for the end"),
    ("Connection: Content-Length\r\n", "names its framing in Connection"),
    ("Expect: 100-continue\r\n", "expectation"),
    ("Upgrade: foo\r\nConnection: upgrade\r\n", "upgrade"),
];
