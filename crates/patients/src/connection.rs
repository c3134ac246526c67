//! One connection of a patient: reads requests with the product's own parser and misbehaves as told.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http1::body::Body;
use http1::connection::Persistence;
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::behaviour::Behaviour;
use crate::patient::{Counters, Inside, Switches};
use crate::work::{End, Left, Places, Task};

/// Serves until either end has had enough, or the patient dies.
pub(crate) async fn serve(stream: TcpStream, inside: Inside) {
    let _ = stream.set_nodelay(true);
    let Inside { name, switches, counters, places } = inside;
    let mut connection = Connection { stream, name, switches: switches.clone(), counters, places, bytes: Vec::new() };
    tokio::select! {
        // An error here is a peer that went away.
        _ = connection.converse() => {}
        () = death(switches) => {
            let _ = connection.stream.set_zero_linger();
        }
    }
}

/// Ends when the patient is dead or gone.
async fn death(mut switches: watch::Receiver<Switches>) {
    let _ = switches.wait_for(|switches| switches.traffic == Behaviour::Die).await;
}

struct Connection {
    stream: TcpStream,
    name: Arc<str>,
    switches: watch::Receiver<Switches>,
    counters: Arc<Counters>,
    places: Option<Arc<Places>>,
    /// Read and not yet used.
    bytes: Vec<u8>,
}

/// What a request asks for.
struct Asked {
    what: Target,
    persistence: Persistence,
    content: Content,
    /// Of one that works.
    task: Option<Task>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Health,
    Traffic,
}

/// Whether the answer carries its body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Sent,
    HeadOnly,
}

impl Connection {
    async fn converse(&mut self) -> io::Result<()> {
        while let Some(asked) = self.request().await? {
            let counter = match asked.what {
                Target::Health => &self.counters.probes,
                Target::Traffic => &self.counters.requests,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            let behaviour = self.settled(asked.what).await;
            self.respond(behaviour, &asked).await?;
            if asked.persistence == Persistence::Close || self.is_leaving() {
                break;
            }
        }
        self.stream.shutdown().await
    }

    /// Reads a request with its body; `None` at the end of the connection.
    async fn request(&mut self) -> io::Result<Option<Asked>> {
        let mut head = RequestHead::default();
        loop {
            match head.parse(&self.bytes, &HeadLimits::RESPONSE) {
                Ok(Parsed::Complete) => break,
                Ok(Parsed::Partial) => {}
                Err(error) => {
                    tracing::debug!(target: "patients", patient = %self.name, ?error, "not a request");
                    return Ok(None);
                }
            }
            let read = if self.bytes.is_empty() { self.fill_or_leave().await? } else { self.fill().await? };
            if read == 0 {
                return Ok(None);
            }
        }
        let request = head.view(&self.bytes);
        let what = if request.path() == "/health" { Target::Health } else { Target::Traffic };
        let content = if request.method_name() == "HEAD" { Content::HeadOnly } else { Content::Sent };
        let task = match (&self.places, what) {
            (Some(places), Target::Traffic) => Some((places.work.task)(request.path())),
            (Some(_), Target::Health) => Some(PROBE),
            (None, _) => None,
        };
        let asked = Asked { what, persistence: request.persistence(), content, task };
        let mut body = Body::of_request(request.framing());
        if request.expects_continue() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        self.bytes.drain(..head.len());
        while !body.is_done() {
            if self.bytes.is_empty() && self.fill().await? == 0 {
                return Ok(None);
            }
            let Ok(advance) = body.advance(&self.bytes) else { return Ok(None) };
            self.bytes.drain(..advance.taken);
        }
        Ok(Some(asked))
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.bytes).await
    }

    /// Between two requests a patient that leaves waits for no other one; one that has begun is read.
    async fn fill_or_leave(&mut self) -> io::Result<usize> {
        tokio::select! {
            biased;
            read = self.stream.read_buf(&mut self.bytes) => read,
            _ = self.switches.wait_for(|switches| switches.traffic == Behaviour::Refuse) => Ok(0),
        }
    }

    fn is_leaving(&self) -> bool {
        self.switches.borrow().traffic == Behaviour::Refuse
    }

    /// The behaviour for this request, once the patient does not pause any more.
    async fn settled(&mut self, what: Target) -> Behaviour {
        let behaviour_of = |switches: &Switches| match what {
            Target::Health => switches.health.unwrap_or(switches.traffic),
            Target::Traffic => switches.traffic,
        };
        match self.switches.wait_for(|switches| behaviour_of(switches) != Behaviour::Pause).await {
            Ok(switches) => behaviour_of(&switches),
            Err(_) => Behaviour::Die,
        }
    }

    async fn respond(&mut self, behaviour: Behaviour, asked: &Asked) -> io::Result<()> {
        match behaviour {
            Behaviour::Serve(_) | Behaviour::Refuse if asked.task.is_some() => self.work_off(asked).await,
            Behaviour::Refuse => self.answer(200, asked).await,
            Behaviour::Serve(latency) => {
                if latency > Duration::ZERO {
                    tokio::time::sleep(latency).await;
                }
                self.answer(200, asked).await
            }
            Behaviour::Fail(status) => self.answer(status, asked).await,
            // `death` ends the connection when all of it is dead; a health that is told to die hangs.
            Behaviour::Die | Behaviour::Hang | Behaviour::Pause => self.ignore().await,
            Behaviour::SlowBody(each) => {
                let length = SLOW_PIECE.len() * SLOW_PIECES;
                self.stream.write_all(self.head(200, length).as_bytes()).await?;
                for _ in 0..SLOW_PIECES {
                    tokio::time::sleep(each).await;
                    self.stream.write_all(SLOW_PIECE.as_bytes()).await?;
                }
                Ok(())
            }
            Behaviour::CutBody => self.cut().await,
            Behaviour::Garbage => {
                self.stream.write_all(b"\x00\x01 this is no HTTP \xff\r\n\r\n").await?;
                self.stream.shutdown().await?;
                Err(io::Error::from(io::ErrorKind::InvalidData))
            }
        }
    }

    /// Does the request's part of the work.
    async fn work_off(&mut self, asked: &Asked) -> io::Result<()> {
        let (Some(places), Some(task)) = (self.places.clone(), asked.task) else { return Ok(()) };
        let traffic = self.switches.borrow().traffic;
        if asked.what == Target::Health && matches!(traffic, Behaviour::Hang | Behaviour::Pause) {
            // Probes were told to pass while nothing else moves.
            return self.answer(200, asked).await;
        }
        match places.serve(task.takes, &mut self.switches).await {
            Left::Full => self.answer(places.work.on_full, asked).await,
            Left::Lost => self.ignore().await,
            Left::Done => match task.end {
                End::Answer(status) => self.answer(status, asked).await,
                End::Reset => self.reset(),
                End::Cut => self.cut().await,
            },
        }
    }

    async fn cut(&mut self) -> io::Result<()> {
        let body = self.body();
        let head = self.head(200, body.len() + 1000);
        self.stream.write_all(format!("{head}{body}").as_bytes()).await?;
        self.reset()
    }

    /// Ends the connection without a farewell.
    fn reset(&self) -> io::Result<()> {
        self.stream.set_zero_linger()?;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    }

    /// Reads until the peer gives up, so that a hang for hours keeps no dead sockets.
    async fn ignore(&mut self) -> io::Result<()> {
        loop {
            self.bytes.clear();
            if self.fill().await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
        }
    }

    async fn answer(&mut self, status: u16, asked: &Asked) -> io::Result<()> {
        let body = self.body();
        let mut text = self.head(status, body.len());
        if asked.content == Content::Sent {
            text.push_str(&body);
        }
        self.stream.write_all(text.as_bytes()).await
    }

    fn head(&self, status: u16, length: usize) -> String {
        let (name, close) = (&self.name, if self.is_leaving() { "Connection: close\r\n" } else { "" });
        format!(
            "HTTP/1.1 {status} \r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nX-Patient: {name}\r\n{close}\r\n"
        )
    }

    fn body(&self) -> String {
        format!("{}\n", self.name)
    }
}

/// A probe is work like any other, and little of it: it waits with the requests, and is one too many where they are.
const PROBE: Task = Task { takes: Duration::from_millis(1), end: End::Answer(200) };
const SLOW_PIECES: usize = 10;
const SLOW_PIECE: &str = "slowly...\n";
