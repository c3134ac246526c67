//! A scripted control API: answers `GET /v1/healthcheck/upstreams/{id}` as APISIX does, with the states that a test sets.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::netns::Namespace;

/// Where it listens in its namespace.
pub const ADDRESS: &str = "127.0.0.1:9090";

/// How it behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Answers.
    #[default]
    Answers,
    /// Answers after so long.
    Late(Duration),
    /// Closes every connection without an answer.
    HangsUp,
    /// Takes the request and never answers.
    Silent,
}

#[derive(Default)]
struct Script {
    manner: Manner,
    nodes: BTreeMap<String, Vec<String>>,
    polls: u64,
}

/// A running control API, ended when dropped.
pub struct ControlApi {
    script: Arc<Mutex<Script>>,
}

impl ControlApi {
    /// Starts one inside; every upstream is unknown until it is set.
    pub fn start(namespace: &Namespace) -> Self {
        let listener = namespace.enter(|| TcpListener::bind(ADDRESS).expect("the namespace is ours"));
        let script = Arc::new(Mutex::new(Script::default()));
        let weak = Arc::downgrade(&script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Some(script), Ok(stream)) = (weak.upgrade(), stream) else { return };
                std::thread::spawn(move || serve(stream, &script));
            }
        });
        Self { script }
    }

    /// Sets the states of an upstream's nodes; the instant is when the next poll can see it.
    pub fn set(&self, upstream: &str, states: &[&str]) -> Instant {
        let states = states.iter().map(|&state| state.to_owned()).collect();
        self.with(|script| script.nodes.insert(upstream.to_owned(), states));
        Instant::now()
    }

    /// Sets how it behaves.
    pub fn behave(&self, manner: Manner) -> Instant {
        self.with(|script| script.manner = manner);
        Instant::now()
    }

    /// How many polls it has had.
    pub fn polls(&self) -> u64 {
        self.with(|script| script.polls)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Script) -> T) -> T {
        look(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(mut stream: TcpStream, script: &Mutex<Script>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut chunk).ok().filter(|&length| length > 0)?;
        request.extend_from_slice(&chunk[..length]);
    }
    let request = String::from_utf8_lossy(&request);
    let id = request.split(' ').nth(1)?.strip_prefix("/v1/healthcheck/upstreams/")?;
    let (manner, states) = {
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        script.polls += 1;
        (script.manner, script.nodes.get(id).cloned())
    };
    match manner {
        Manner::Answers => {}
        Manner::Late(by) => std::thread::sleep(by),
        Manner::HangsUp => return None,
        Manner::Silent => {
            // Until the daemon gives up and closes.
            let _ = stream.read(&mut chunk);
            return None;
        }
    }
    let (status, body) = match states {
        Some(states) => ("200 OK", document(id, &states)),
        None => ("404 Not Found", format!(r#"{{"error_msg":"upstreams[{id}] not found"}}"#)),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).ok()
}

fn document(id: &str, states: &[String]) -> String {
    let node = |(number, status): (usize, &String)| {
        format!(
            r#"{{"ip":"10.1.0.{}","port":80,"hostname":"10.1.0.1","status":"{status}","counter":{{"success":0,"http_failure":0,"tcp_failure":0,"timeout_failure":0}}}}"#,
            number + 1
        )
    };
    let nodes: Vec<String> = states.iter().enumerate().map(node).collect();
    format!(r#"{{"name":"/apisix/upstreams/{id}","type":"http","nodes":[{}]}}"#, nodes.join(","))
}
