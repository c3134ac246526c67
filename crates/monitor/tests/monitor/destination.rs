//! A simulated destination: answers as it is told, and notes who asked when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use io::sim::Sim;
use io::{Io, Listener, Share};
use model::time::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a destination does once it has a whole request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Sends this and closes.
    Close(String),
    /// Sends this and waits for the other side to close.
    Keep(String),
    /// Waits, sends this and closes.
    After(Duration, String),
    /// Sends the first, then the second again and again.
    Endless(String, String, Duration),
    /// Breaks the connection.
    Reset,
}

/// A status with a short body.
pub fn status(status: u16) -> Answer {
    Answer::Close(format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\nok"))
}

/// Takes connections and never says a word.
pub fn silence() -> Answer {
    Answer::Keep(String::new())
}

#[derive(Clone)]
pub struct Destination(Arc<Mutex<Log>>);

struct Log {
    answer: Answer,
    asked_at: Vec<Timestamp>,
    heads: Vec<String>,
    open: usize,
    most_open: usize,
}

impl Destination {
    /// Listens until the test is over.
    pub fn start(io: &Sim, address: &str, answer: Answer) -> Self {
        let log = Log { answer, asked_at: Vec::new(), heads: Vec::new(), open: 0, most_open: 0 };
        let destination = Self(Arc::new(Mutex::new(log)));
        let listener = io.listen(io.bind(address.parse().unwrap(), Share::First).unwrap()).unwrap();
        let (io, this) = (io.clone(), destination.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(this.clone().serve(stream, io.now()));
            }
        });
        destination
    }

    pub fn set(&self, answer: Answer) {
        self.0.lock().unwrap().answer = answer;
    }

    /// When each connection came.
    pub fn asked_at(&self) -> Vec<Timestamp> {
        self.0.lock().unwrap().asked_at.clone()
    }

    /// Connections that came from `from` on, before `to`.
    pub fn asked_between(&self, from: Timestamp, to: Timestamp) -> usize {
        self.asked_at().iter().filter(|at| (from..to).contains(at)).count()
    }

    /// The time between one connection and the next.
    pub fn gaps(&self) -> Vec<Duration> {
        self.asked_at().windows(2).map(|pair| pair[1].since(pair[0])).collect()
    }

    /// Heads of the requests.
    pub fn heads(&self) -> Vec<String> {
        self.0.lock().unwrap().heads.clone()
    }

    /// Open connections: now, and the most at any time.
    pub fn open(&self) -> (usize, usize) {
        let log = self.0.lock().unwrap();
        (log.open, log.most_open)
    }

    async fn serve(self, mut stream: io::sim::SimStream, now: Timestamp) {
        {
            let mut log = self.0.lock().unwrap();
            log.asked_at.push(now);
            log.open += 1;
            log.most_open = log.most_open.max(log.open);
        }
        let _ = self.answer(&mut stream).await;
        self.0.lock().unwrap().open -= 1;
    }

    async fn answer(&self, stream: &mut io::sim::SimStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let answer = {
            let mut log = self.0.lock().unwrap();
            log.heads.push(String::from_utf8(head).unwrap());
            log.answer.clone()
        };
        match answer {
            Answer::Close(text) => stream.write_all(text.as_bytes()).await,
            Answer::Keep(text) => {
                stream.write_all(text.as_bytes()).await?;
                stream.read(&mut [0; 1]).await.map(|_| ())
            }
            Answer::After(wait, text) => {
                tokio::time::sleep(wait).await;
                stream.write_all(text.as_bytes()).await
            }
            Answer::Endless(first, then, pause) => {
                stream.write_all(first.as_bytes()).await?;
                loop {
                    tokio::time::sleep(pause).await;
                    stream.write_all(then.as_bytes()).await?;
                }
            }
            Answer::Reset => {
                io::Stream::reset_on_drop(stream);
                Ok(())
            }
        }
    }
}
