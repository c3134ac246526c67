//! HTTP/1.1 clients of the mixed load.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use model::random::Random;
use testkit::message::{Expect, Message, Reader};

use super::{SHARE, Tally, content};

struct Connection {
    stream: TcpStream,
    reader: Reader<TcpStream>,
}

/// Sends one request after the other until the time is over.
pub(super) fn client(proxy: SocketAddr, number: u64, until: Instant, tally: &Tally) {
    let mut random = Random::new(number);
    let mut connection = None;
    for turn in 0.. {
        if Instant::now() >= until {
            return;
        }
        let id = number * 1_000_000 + turn;
        let is_post = random.below(4) == 0;
        match exchange(proxy, &mut connection, id, is_post, &mut random) {
            Came::Right => Tally::count(&tally.right),
            Came::Wrong => Tally::count(&tally.wrong),
            Came::Left => Tally::count(&tally.left),
            Came::Failed => {
                Tally::count(&tally.failed);
                if !is_post {
                    Tally::count(&tally.failed_gets);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

enum Came {
    Right,
    Wrong,
    Left,
    Failed,
}

fn exchange(proxy: SocketAddr, place: &mut Option<Connection>, id: u64, is_post: bool, random: &mut Random) -> Came {
    let Some(mut connection) = place.take().or_else(|| connect(proxy)) else { return Came::Failed };
    let sent = if is_post { content(id ^ 0xff) } else { Vec::new() };
    let head = if is_post {
        format!("POST /id/{id} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n", sent.len())
    } else {
        format!("GET /id/{id} HTTP/1.1\r\nHost: a.test\r\n\r\n")
    };
    let leaves = random.below(100) < SHARE;
    let part = if leaves && is_post { sent.len() / 2 } else { sent.len() };
    if connection.stream.write_all(&[head.as_bytes(), &sent[..part]].concat()).is_err() {
        return Came::Failed;
    }
    if leaves {
        return Came::Left;
    }
    let Ok(Some(head)) = connection.reader.head() else { return Came::Failed };
    let mut message = Message { head, ..Message::default() };
    let is_whole = connection.reader.body(&mut message, Expect::Response).is_ok();
    let is_kept = message.value("connection").is_none_or(|value| value != "close");
    if message.status() != 200 || !is_whole {
        return Came::Failed;
    }
    let is_right = message.body == if is_post { sent } else { content(id) };
    if is_kept {
        *place = Some(connection);
    }
    if is_right { Came::Right } else { Came::Wrong }
}

fn connect(proxy: SocketAddr) -> Option<Connection> {
    let stream = TcpStream::connect_timeout(&proxy, Duration::from_secs(5)).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let reader = Reader::new(stream.try_clone().ok()?);
    Some(Connection { stream, reader })
}
