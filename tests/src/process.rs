//! Starts the real programs, waits until they serve, and ends them with the test.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running program; killed when dropped.
pub struct Process {
    child: Child,
    /// Where its standard output and error go.
    pub log: PathBuf,
}

impl Process {
    /// Starts `command` with its output in `log`.
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let file = fs::File::create(&log).expect("the log's folder exists");
        let errors = file.try_clone().expect("a file can be cloned");
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a pid fits"));
        nix::sys::signal::kill(pid, signal).expect("the process is ours");
    }

    /// Kills it without a warning (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end; panics after `limit`.
    pub fn wait(&mut self, limit: Duration) -> std::process::ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the process is ours") {
                return status;
            }
            assert!(start.elapsed() < limit, "did not end within {limit:?}:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running `lazaret` with its files in a folder of its own.
pub struct Lazaret {
    /// The program.
    pub process: Process,
    /// Its folder: `lazaret.yaml`, `access.log`, `output.log`.
    pub folder: tempfile::TempDir,
    /// Where it serves.
    pub proxy: SocketAddr,
    /// Its control API.
    pub control: SocketAddr,
}

impl Lazaret {
    /// Starts `lazaret run` with `body` (routes, clusters, …) behind a head that sets addresses, and waits until it is
    /// live.
    pub fn start(body: &str) -> Self {
        Self::launch(Command::new(crate::binaries::path("lazaret")), body)
    }

    /// The same with so many descriptors at most.
    pub fn start_with_descriptors(limit: usize, body: &str) -> Self {
        Self::start_limited(&format!("-n {limit}"), body)
    }

    /// The same with files of so many bytes at most; of whole 512.
    pub fn start_with_file_size(limit: usize, body: &str) -> Self {
        Self::start_limited(&format!("-f {}", limit / 512), body)
    }

    fn start_limited(limit: &str, body: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit {limit}; exec \"$0\" \"$@\"")).arg(crate::binaries::path("lazaret"));
        Self::launch(shell, body)
    }

    /// The same without waiting for anything.
    pub fn spawn(body: &str) -> Self {
        Self::begin(Command::new(crate::binaries::path("lazaret")), body)
    }

    fn launch(command: Command, body: &str) -> Self {
        let lazaret = Self::begin(command, body);
        lazaret.wait_until("/livez answers 200", || get(lazaret.control, "/livez").is_some_and(|a| a.status == 200));
        lazaret
    }

    fn begin(mut command: Command, body: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (proxy, control) = (free_address(), free_address());
        write_config(folder.path(), proxy, control, body);
        command.arg("run").arg("-c").arg(folder.path().join("lazaret.yaml")).current_dir(folder.path());
        let process = Process::start(command, folder.path().join("output.log"));
        Self { process, folder, proxy, control }
    }

    /// Puts another configuration in the file's place, without a reload.
    pub fn write(&self, body: &str) {
        write_config(self.folder.path(), self.proxy, self.control, body);
    }

    /// SIGHUP.
    pub fn hang_up(&self) {
        self.process.signal(nix::sys::signal::Signal::SIGHUP);
    }

    /// Waits until `/readyz` answers 200: every destination was probed once.
    pub fn wait_ready(&self) {
        self.wait_until("/readyz answers 200", || get(self.control, "/readyz").is_some_and(|a| a.status == 200));
    }

    /// Polls `condition` for 20 s at most.
    pub fn wait_until(&self, what: &str, condition: impl FnMut() -> bool) {
        if !poll(Duration::from_secs(20), condition) {
            panic!("not within 20 s: {what}\n--- output ---\n{}", self.process.output());
        }
    }

    /// A destination's document.
    pub fn destination(&self, cluster: &str, destination: &str) -> serde_json::Value {
        let page: serde_json::Value = get(self.control, &format!("/api/destinations/{cluster}/{destination}"))
            .and_then(|answer| serde_json::from_str(&answer.body).ok())
            .unwrap_or_default();
        page["cluster"]["destinations"][0].clone()
    }

    /// A destination's two values, `active/passive`.
    pub fn health(&self, cluster: &str, destination: &str) -> String {
        let document = self.destination(cluster, destination);
        let word = |key: &str| document[key].as_str().unwrap_or("?").to_owned();
        format!("{}/{}", word("active"), word("passive"))
    }

    /// The lines of the access log so far.
    pub fn access_log(&self) -> Vec<serde_json::Value> {
        fs::read_to_string(self.folder.path().join("access.log"))
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

fn write_config(folder: &Path, proxy: SocketAddr, control: SocketAddr, body: &str) {
    let head = format!(
        "version: 1\ncontrol: {{address: \"{control}\", socket: \"{folder}/control.sock\"}}\naccess_log: \
         {folder}/access.log\n",
        folder = folder.display()
    );
    let listeners = if body.contains("listeners:") {
        String::new()
    } else {
        format!("listeners: {{web: {{address: \"{proxy}\"}}}}\n")
    };
    let body = body.replace("$PROXY", &proxy.to_string());
    // Written beside and renamed, as careful editors do.
    let beside = folder.join("lazaret.yaml.new");
    fs::write(&beside, format!("{head}{listeners}{body}")).expect("the folder is ours");
    fs::rename(beside, folder.join("lazaret.yaml")).expect("the folder is ours");
}

/// Polls `condition` until it holds; false after `limit`.
pub fn poll(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    condition()
}

/// A loopback address that was free a moment ago.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback has a free port")
}

/// An answer, read to the end of its connection.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its head, as received.
    pub head: String,
    /// Its body, without chunk framing when it had any.
    pub body: String,
}

/// GETs `path` on a connection of its own; `None` when nothing sensible came within 10 s.
pub fn get(to: SocketAddr, path: &str) -> Option<Answer> {
    request(to, &format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"))
}

/// Sends `bytes` on a connection of its own and reads until it closes.
pub fn request(to: SocketAddr, bytes: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(bytes.as_bytes()).ok()?;
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw);
    let text = String::from_utf8_lossy(&raw);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.get(9..12)?.parse().ok()?;
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunk(body) } else { body.to_owned() };
    Some(Answer { status, head: head.to_owned(), body })
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || tail.len() < size {
            break;
        }
        body.push_str(&tail[..size]);
        rest = tail[size..].trim_start_matches("\r\n");
    }
    body
}
