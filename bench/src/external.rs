//! HTTP/2 loads: h2load sends them, this process answers as the HTTP/1.1 destinations, nghttpd as the HTTP/2 one.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::engine::Engine;
use crate::options::LOAD_CORE;
use crate::proxy::Proxy;
use crate::work::Work;

/// What a run of h2load came to.
pub(crate) struct Sent {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
}

/// The HTTP/2 destination; ended when dropped.
pub(crate) struct Calls(Child);

impl Calls {
    /// Starts nghttpd with one small file, the answer of every call.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let root = folder.join("calls");
        fs::create_dir_all(root.join("bench.Echo"))?;
        // A message of 32 bytes behind the flag and the length of gRPC.
        let message = [&[0, 0, 0, 0, 32][..], &[7; 32]].concat();
        fs::write(root.join("bench.Echo/Call"), &message)?;
        fs::write(folder.join("call"), &message)?;
        let child = Command::new("taskset")
            .args(["-c", &LOAD_CORE.to_string(), "nghttpd", "--no-tls", "--trailer=grpc-status: 0", "-d"])
            .arg(&root)
            .arg(PORT.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("nghttpd (package nghttp2-server)")?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(("127.0.0.1", PORT)).is_err() {
            ensure!(Instant::now() < deadline, "nghttpd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self(child))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets h2load send to a proxy for so long.
pub(crate) fn send(engine: &mut Engine, proxy: &Proxy, work: Work, folder: &Path, length: Duration) -> Result<Sent> {
    let mut words: Vec<String> =
        ["-c", "16", "-m", "10", "-D", &length.as_secs_f64().ceil().to_string()].map(str::to_owned).to_vec();
    if work == Work::Grpc {
        words.extend(["-H", "content-type: application/grpc", "-H", "te: trailers", "-d"].map(str::to_owned));
        words.push(folder.join("call").display().to_string());
        words.push(format!("http://{}/bench.Echo/Call", proxy.addr));
    } else {
        words.push(format!("https://{}/assets/articles/2024/overview?page=3", proxy.addr));
    }
    let mut child = Command::new("taskset")
        .args(["-c", &LOAD_CORE.to_string(), "h2load"])
        .args(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("h2load (package nghttp2-client)")?;
    let deadline = Instant::now() + length + Duration::from_secs(20);
    engine.answer_until(|| {
        if Instant::now() > deadline {
            child.kill()?;
        }
        Ok(child.try_wait()?.is_some())
    })?;
    let mut text = String::new();
    child.stdout.take().context("h2load's output")?.read_to_string(&mut text)?;
    parse(&text).with_context(|| format!("h2load said: {text}"))
}

/// `requests: 10 total, 10 started, 10 done, 9 succeeded, 1 failed, 0 errored, 0 timeout`; failed answers have a status
/// line of their own.
fn parse(text: &str) -> Option<Sent> {
    let line = text.lines().find(|line| line.starts_with("requests: "))?;
    let count = |word: &str| {
        let (before, _) = line.split_once(word)?;
        before.rsplit([' ', ',']).find(|part| !part.is_empty())?.parse::<u64>().ok()
    };
    Some(Sent { succeeded: count(" succeeded")?, failed: count(" failed")? })
}

const PORT: u16 = 19011;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counts_are_found_in_the_words_of_h2load() {
        let text =
            "finished in 1s\nrequests: 12 total, 12 started, 12 done, 9 succeeded, 3 failed, 0 errored, 0 timeout\n";
        let sent = parse(text).unwrap();
        assert_eq!((sent.succeeded, sent.failed), (9, 3));
    }
}
