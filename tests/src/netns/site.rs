//! What stands at a site: `lazaret` before two destinations, and `lazaret-rhi` beside it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::netns::Namespace;
use crate::netns::daemon::Daemon;
use crate::process::{Process, get, poll};

/// The VIP that `lazaret` listens on, whether it is there or not.
pub const VIP: &str = "10.0.0.100";
/// Where the listener is.
pub const SERVICE: &str = "10.0.0.100:8080";

/// A site. Fields are dropped in order.
pub struct Site<'a> {
    /// `lazaret-rhi`.
    pub daemon: Daemon,
    /// `lazaret`.
    pub lazaret: Process,
    destinations: Vec<Process>,
    namespace: &'a Namespace,
    folder: PathBuf,
    name: String,
}

impl<'a> Site<'a> {
    /// Starts everything, with both destinations up, and waits until they are judged.
    pub fn start(namespace: &'a Namespace, folder: &Path, name: &str, rhi: &str) -> Self {
        let lazaret = start_lazaret(namespace, folder, name);
        let mut site = Self {
            daemon: Daemon::start(namespace, folder, &format!("{name}-rhi"), rhi),
            lazaret,
            destinations: Vec::new(),
            namespace,
            folder: folder.to_owned(),
            name: name.to_owned(),
        };
        site.recover();
        site
    }

    /// Kills both destinations without a warning.
    pub fn kill_destinations(&mut self) {
        self.destinations.clear();
    }

    /// Starts both destinations again.
    pub fn recover(&mut self) {
        self.kill_destinations();
        for (port, letter) in [(9001, "a"), (9002, "b")] {
            let mut command = self.namespace.command(crate::binaries::path("patient"));
            command.arg(format!("127.0.0.1:{port}")).arg(format!("{}-{letter}", self.name));
            let log = self.folder.join(format!("{}-{letter}.log", self.name));
            let process = Process::start(command, log);
            assert!(
                poll(Duration::from_secs(5), || process.output().contains("listening")),
                "{letter} does not listen: {}",
                process.output()
            );
            self.destinations.push(process);
        }
    }

    /// Starts `lazaret` again after it was killed.
    pub fn restart_lazaret(&mut self) {
        self.lazaret = start_lazaret(self.namespace, &self.folder, &self.name);
    }

    /// What the programs of this site wrote.
    pub fn logs(&self) -> String {
        format!(
            "--- {} rhi\n{}--- {} lazaret\n{}",
            self.name,
            self.daemon.process.output(),
            self.name,
            self.lazaret.output()
        )
    }
}

fn start_lazaret(namespace: &Namespace, folder: &Path, name: &str) -> Process {
    let home = folder.join(format!("{name}-lazaret"));
    fs::create_dir_all(&home).expect("the folder is ours");
    let config = format!(
        "version: 1\ncontrol: {{address: \"127.0.0.1:9090\", socket: \"{}/control.sock\"}}\nlisteners: {{web: {{address: \
         \"{SERVICE}\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: api}}}}\nclusters:\n  api:\n    \
         health_check: {{active: {{interval: 500ms, timeout: 500ms, threshold: 2}}}}\n    destinations: {{a: {{address: \
         \"http://127.0.0.1:9001/\"}}, b: {{address: \"http://127.0.0.1:9002/\"}}}}\n",
        home.display()
    );
    fs::write(home.join("lazaret.yaml"), config).expect("the folder is ours");
    let mut command = namespace.command(crate::binaries::path("lazaret"));
    command.arg("run").arg("-c").arg(home.join("lazaret.yaml"));
    let process = Process::start(command, home.join("output.log"));
    let is_live = || {
        namespace
            .enter(|| get("127.0.0.1:9090".parse().expect("an address"), "/livez").is_some_and(|a| a.status == 200))
    };
    assert!(poll(Duration::from_secs(10), is_live), "lazaret does not serve:\n{}", process.output());
    process
}

/// The events of a site's `lazaret`, each with the moment it arrived; read until dropped.
pub struct EventWatch {
    stream: TcpStream,
    lines: Arc<Mutex<Vec<(Instant, serde_json::Value)>>>,
}

impl EventWatch {
    /// Starts reading.
    pub fn start(namespace: &Namespace) -> Self {
        let mut stream = namespace.enter(|| TcpStream::connect("127.0.0.1:9090").expect("lazaret serves"));
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("lazaret reads");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (reader, shared) =
            (BufReader::new(stream.try_clone().expect("a socket can be cloned")), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                let at = Instant::now();
                if let Some(event) = line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok()) {
                    shared.lock().unwrap_or_else(PoisonError::into_inner).push((at, event));
                }
            }
        });
        Self { stream, lines }
    }

    /// When the last of the two destinations was judged unhealthy, once both are since `since`.
    pub fn both_unhealthy(&self, since: Instant) -> Option<Instant> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let judged = |destination: &str| {
            let is_it = |event: &serde_json::Value| {
                event["event"] == "transition" && event["destination"] == destination && event["active"] == "unhealthy"
            };
            lines.iter().find(|(at, event)| *at >= since && is_it(event)).map(|(at, _)| *at)
        };
        Some(judged("a")?.max(judged("b")?))
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        // Ends the reader's thread; the other side may have gone already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
