//! `proxy_protocol: v2` towards destinations: each of their connections names the client it serves, and serves nobody
//! else; probes speak for themselves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use end_to_end::process::{Lazaret, free_address};
use http1::proxy_header::{OnBehalf, ProxyHeader, parse, write};

/// What one connection brought: whom its header names, and the request lines behind it.
#[derive(Clone, Debug)]
struct Seen {
    named: Option<(SocketAddr, SocketAddr)>,
    requests: Vec<String>,
}

/// A destination that wants a PROXY header, answers every request and never closes by itself.
struct Destination {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Destination {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || serve(stream, &all));
            }
        });
        Self { address, seen }
    }

    /// Connections that brought requests to `path`.
    fn to(&self, path: &str) -> Vec<Seen> {
        let line = format!("GET {path} HTTP/1.1");
        let all = self.seen.lock().unwrap();
        all.iter().filter(|one| one.requests.contains(&line)).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, all: &Mutex<Vec<Seen>>) -> Option<()> {
    let mut bytes = Vec::new();
    let more = |bytes: &mut Vec<u8>, stream: &mut TcpStream| {
        let mut chunk = [0; 4096];
        let n = stream.read(&mut chunk).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&chunk[..n]);
        Some(())
    };
    let named = loop {
        match parse(&bytes).expect("a PROXY header comes first") {
            ProxyHeader::Partial => more(&mut bytes, &mut stream)?,
            ProxyHeader::Complete { length, client, server } => {
                bytes.drain(..length);
                break client.zip(server);
            }
        }
    };
    let place = {
        let mut all = all.lock().unwrap();
        all.push(Seen { named, requests: Vec::new() });
        all.len() - 1
    };
    loop {
        let end = loop {
            match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => more(&mut bytes, &mut stream)?,
            }
        };
        let head = String::from_utf8(bytes.drain(..end).collect()).ok()?;
        all.lock().unwrap()[place].requests.push(head.lines().next()?.to_owned());
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok()?;
    }
}

fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok") {
        let mut chunk = [0; 1024];
        let n = stream.read(&mut chunk).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..n]);
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn start(destination: &Destination, behind: SocketAddr) -> Lazaret {
    Lazaret::start(&format!(
        "listeners: {{web: {{address: \"$PROXY\"}}, behind: {{address: \"{behind}\", proxy_protocol: required}}}}\n\
         routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    proxy_protocol: v2\n    \
         health_check: {{active: {{interval: 500ms, path: /probe}}}}\n    destinations: {{a: {{address: \"http://{}/\"}}}}\n",
        destination.address
    ))
}

#[test]
fn every_connection_names_its_client_and_serves_one_request() {
    let destination = Destination::start();
    let lazaret = start(&destination, free_address());
    let mut client = connect(lazaret.proxy);
    let itself = client.local_addr().unwrap();
    ask(&mut client, "/one");
    ask(&mut client, "/two");
    let mut other = connect(lazaret.proxy);
    let other_itself = other.local_addr().unwrap();
    ask(&mut other, "/three");
    for (path, client) in [("/one", itself), ("/two", itself), ("/three", other_itself)] {
        let seen = destination.to(path);
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].named, Some((client, lazaret.proxy)), "{path}");
        assert_eq!(seen[0].requests.len(), 1, "a connection serves one client: {seen:?}");
    }
}

#[test]
fn whom_a_relay_in_front_names_is_named_to_destinations() {
    let destination = Destination::start();
    let behind = free_address();
    let _lazaret = start(&destination, behind);
    let (client, server) = ("[2001:db8::7]:1025".parse().unwrap(), "[2001:db8::1]:443".parse().unwrap());
    let mut relay = connect(behind);
    relay.write_all(&write(OnBehalf::Client { client, server })).unwrap();
    ask(&mut relay, "/relayed");
    assert_eq!(destination.to("/relayed")[0].named, Some((client, server)));
}

#[test]
fn clients_of_http2_are_named_too() {
    let destination = Destination::start();
    let lazaret = start(&destination, free_address());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let itself = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(lazaret.proxy).await.unwrap();
        let itself = stream.local_addr().unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = http::Request::get("http://a.test/two").body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
        drop(sender);
        connection.abort();
        itself
    });
    assert_eq!(destination.to("/two")[0].named, Some((itself, lazaret.proxy)));
}

#[test]
fn probes_speak_for_themselves() {
    let destination = Destination::start();
    let lazaret = start(&destination, free_address());
    lazaret.wait_until("a is Healthy", || lazaret.health("app", "a").starts_with("healthy/"));
    let probes = destination.to("/probe");
    assert!(!probes.is_empty() && probes.iter().all(|one| one.named.is_none()), "LOCAL names nobody: {probes:?}");
}
