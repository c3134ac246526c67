//! What the clients visit: two destinations with pages, uploads and events, one of which breaks off here and there.
//!
//! ```text
//!  client -- TLS, h2 or h1 --\                 /-- good: answers
//!         -- h1, h2c ---------- lazaret -------
//!                                              \-- bad: answers, but resets /retry before, the others amid its answer
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use testkit::certificates::Authority;
use testkit::destination::{Act, Destination, Moment, Request, answer};

use crate::process::{Lazaret, free_address};

/// The size of `/large`.
pub const LARGE: usize = 5_000_000;

/// A running site.
pub struct Site {
    /// The program between.
    pub lazaret: Lazaret,
    /// Its listener with TLS, under the name `site.test`, too.
    pub tls: SocketAddr,
    /// The authority to trust.
    pub roots: PathBuf,
    /// The destination that always answers.
    pub good: Destination,
    /// The one that breaks off.
    pub bad: Destination,
    _certificates: tempfile::TempDir,
}

impl Site {
    /// Starts it; `more` has further routes and clusters, each beginning on a line of its own.
    pub fn start(routes: &str, clusters: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let authority = Authority::new();
        let (certificate, key) = authority.issue(&["site.test", "127.0.0.1"]).write(folder.path(), "site");
        let tls = free_address();
        let good = Destination::start(|moment| serve(&moment, Breaks::Nowhere));
        let bad = Destination::start(|moment| serve(&moment, Breaks::Here));
        let lazaret = Lazaret::start(&format!(
            "listeners:\n  plain: {{address: \"$PROXY\"}}\n  tls: {{address: \"{tls}\", tls: {{certificates: \
             [{{certificate: \"{}\", key: \"{}\"}}]}}}}\nroutes:\n{routes}  all: {{cluster: site}}\nclusters:\n{clusters}  \
             site:\n    load_balancing: RoundRobin\n    health_check: {{passive: {{enabled: false}}}}\n    destinations: \
             {{good: {{address: \"{}\"}}, bad: {{address: \"{}\"}}}}\n",
            certificate.display(),
            key.display(),
            good.url(),
            bad.url(),
        ));
        Self { lazaret, tls, roots: authority.write(folder.path()), good, bad, _certificates: folder }
    }

    /// A URL of the plain listener.
    pub fn plain_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.lazaret.proxy)
    }

    /// A URL of the listener with TLS.
    pub fn tls_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.tls)
    }

    /// What both destinations got for `target`.
    pub fn requests_to(&self, target: &str) -> Vec<Request> {
        [self.good.requests_to(target), self.bad.requests_to(target)].concat()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Nowhere,
    Here,
}

fn serve(moment: &Moment<'_>, breaks: Breaks) -> Vec<Act> {
    let Moment::Request(request) = moment else { return Vec::new() };
    let target = request.message.target();
    let text = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", body.len());
        vec![Act::ReadBody, Act::Send([head.as_bytes(), body].concat())]
    };
    match target.split('?').next().unwrap_or_default() {
        "/retry" if breaks == Breaks::Here => vec![Act::Reset],
        // Both break off here: an answer that has begun is not repeated.
        "/cut/head" => vec![Act::Send(head_of(1000)), Act::Pause(SHORT), Act::Reset],
        "/cut/body" => vec![Act::Send([head_of(100_000), vec![b'x'; 40_000]].concat()), Act::Pause(SHORT), Act::Reset],
        "/cut/chunk" => {
            let begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec();
            vec![Act::Send(begun), Act::Pause(SHORT), Act::Close]
        }
        "/large" => text("", &large()),
        "/continue" => {
            let ready = Act::Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
            [vec![ready], answer(200, "continued")].concat()
        }
        "/events" => {
            let head =
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            let mut acts = vec![Act::ReadBody, Act::Send(head)];
            for number in 1..=3 {
                let event = format!("data: event {number}\n\n");
                acts.push(Act::Send(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()));
                acts.push(Act::Pause(SHORT));
            }
            // The page closes it.
            [acts, vec![Act::Stall]].concat()
        }
        "/style.css" => text("Content-Type: text/css\r\n", b"body { color: rgb(1, 2, 3); }"),
        "/page.js" => text("Content-Type: text/javascript\r\n", PAGE_SCRIPT.as_bytes()),
        "/page" => text("Content-Type: text/html\r\n", page().as_bytes()),
        image if image.starts_with("/image/") => text("Content-Type: image/svg+xml\r\n", IMAGE),
        _ => answer(200, "hello"),
    }
}

/// The content of `/large`: no two places of it look alike, so that a part that is missing or twice shows.
pub fn large() -> Vec<u8> {
    (0u32..).flat_map(u32::to_be_bytes).take(LARGE).collect()
}

/// A page with a style sheet, a script and twenty images.
fn page() -> String {
    let images: String = (1..=20).map(|n| format!("<img class=asset src=\"/image/{n}.svg\">")).collect();
    format!(
        "<!doctype html><html><head><title>site</title><link rel=icon href=\"data:,\"><link rel=stylesheet \
         href=\"/style.css\"></head><body><p id=images></p><p id=style></p><p id=socket></p><p id=events></p>\
         <p id=protocols></p><p id=broken></p>{images}<img id=wait src=\"/wait\"><script src=\"/page.js\"></script></body></html>"
    )
}

/// Writes what it saw into the page, and asks for `/report` when it has seen all: then `/wait` answers and the page is
/// loaded.
const PAGE_SCRIPT: &str = r"
const put = (id, text) => { document.getElementById(id).textContent = text; };
const images = Promise.all([...document.querySelectorAll('img.asset')].map((image) => image.decode()))
  .then((all) => put('images', `${all.length} images`), (error) => put('images', `${error}`));
put('style', getComputedStyle(document.body).color);
const socket = new Promise((done) => {
  const socket = new WebSocket(`wss://${location.host}/socket`);
  const got = [];
  socket.onopen = () => { for (const word of ['a', 'b', 'c']) socket.send(word); };
  socket.onmessage = (message) => { got.push(message.data); if (got.length === 3) socket.close(1000, 'enough'); };
  socket.onclose = (end) => { put('socket', `${got.join('')} ${end.code} ${end.wasClean}`); done(); };
});
const events = new Promise((done) => {
  const source = new EventSource('/events');
  const got = [];
  source.onmessage = (event) => {
    got.push(event.data);
    if (got.length === 3) { source.close(); put('events', got.join(', ')); done(); }
  };
  source.onerror = () => { put('events', `broken after ${got.length}`); done(); };
});
const broken = Promise.all(['/cut/head', '/cut/body', '/cut/chunk'].map((path) =>
  fetch(path).then((answer) => answer.text()).then((text) => `whole ${text.length}`, (error) => error.name)))
  .then((all) => put('broken', all.join(' ')));
const protocols = () => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((entry) => /\/(page|style|image)/.test(entry.name));
  put('protocols', [...new Set(all.map((entry) => entry.nextHopProtocol))].join(' '));
};
images.then(protocols);
Promise.all([images, socket, events, broken]).finally(() => fetch('/report'));
";

const IMAGE: &[u8] =
    b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><rect width=\"4\" height=\"4\"/></svg>";

/// What a client needs to take a piece before the next one.
const SHORT: Duration = Duration::from_millis(50);

fn head_of(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}
