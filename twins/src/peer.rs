//! The proxies under test: their configurations, written from the scenario, and their processes, ended by their ids.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::scenario::Scenario;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::contestant::{Contestant, Program};

/// A running proxy; ended when dropped.
pub struct Peer {
    /// Where it serves.
    pub addr: SocketAddr,
    child: Child,
}

impl Peer {
    /// Starts a contestant's program in front of these destinations; its files go into `folder`.
    pub fn start(
        contestant: &Contestant,
        scenario: &Scenario,
        destinations: &[SocketAddr],
        folder: &Path,
    ) -> Result<Self> {
        let addr = free_address()?;
        let setting = Setting { scenario, destinations, addr };
        let file = |ending: &str, text: String| -> Result<String> {
            let path = folder.join(format!("{}.{ending}", contestant.name));
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            Ok(path.display().to_string())
        };
        let words: Vec<String> = match contestant.program {
            Program::Lazaret => {
                let control = free_address()?;
                let path = file("yaml", setting.lazaret(contestant, control))?;
                let program = program("lazaret").display().to_string();
                [program.as_str(), "run", "--log", "error", "-c", &path].map(str::to_owned).to_vec()
            }
            Program::Nginx { max_fails, fail_timeout } => {
                let home = folder.join(contestant.name);
                std::fs::create_dir_all(&home)?;
                let path = file("conf", setting.nginx(max_fails, fail_timeout))?;
                ["nginx", "-p", &home.display().to_string(), "-c", &path].map(str::to_owned).to_vec()
            }
            Program::Haproxy(on_error) => {
                let path = file("cfg", setting.haproxy(on_error))?;
                ["haproxy", "-db", "-q", "-f", &path].map(str::to_owned).to_vec()
            }
            Program::Envoy => {
                let path = file("yaml", setting.envoy())?;
                let envoy = std::env::var("ENVOY").unwrap_or_else(|_| "envoy".to_owned());
                [&envoy, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart", "-c", &path]
                    .map(str::to_owned)
                    .to_vec()
            }
        };
        let log = folder.join(format!("{}.log", contestant.name));
        Self::spawn(&words, addr, &log).with_context(|| contestant.name)
    }

    fn spawn(words: &[String], addr: SocketAddr, log: &Path) -> Result<Self> {
        let (program, arguments) = words.split_first().context("a program")?;
        let output = std::fs::File::create(log)?;
        let child = Command::new(program)
            .args(arguments)
            .env("PATH", path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| program.clone())?;
        let mut peer = Self { addr, child };
        for _ in 0..LISTENS_WITHIN.as_millis() / POLL.as_millis() {
            if TcpStream::connect(addr).is_ok() {
                return Ok(peer);
            }
            if let Some(status) = peer.child.try_wait()? {
                bail!("it ended at once: {status}: {}", std::fs::read_to_string(log).unwrap_or_default());
            }
            std::thread::sleep(POLL);
        }
        bail!("it does not listen on {addr}: {}", std::fs::read_to_string(log).unwrap_or_default())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // Nothing of a proxy is worth a long farewell here.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// What a configuration is written from.
struct Setting<'a> {
    scenario: &'a Scenario,
    destinations: &'a [SocketAddr],
    addr: SocketAddr,
}

impl Setting<'_> {
    fn lazaret(&self, contestant: &Contestant, control: SocketAddr) -> String {
        let address = |place: usize| self.destinations.get(place).map_or_else(String::new, SocketAddr::to_string);
        let workers = self.scenario.proxies.workers;
        format!(
            "version: 1\nworkers: {workers}\ncontrol: {{address: \"{control}\", socket: null}}\n\
             listeners: {{web: {{address: \"{}\"}}}}\n\
             routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: {}}}}}\nclusters:\n{}",
            self.addr,
            lab::policy::CLUSTER,
            contestant.policy.cluster(self.scenario, &address)
        )
    }

    fn nginx(&self, max_fails: u32, fail_timeout: u32) -> String {
        let server = |to: &SocketAddr, weight: u32| {
            format!("        server {to} weight={weight} max_fails={max_fails} fail_timeout={fail_timeout}s;")
        };
        self.fill(include_str!("../peers/nginx.conf"), server, |span| format!("{}ms", span.as_millis()), "")
    }

    fn haproxy(&self, on_error: &str) -> String {
        let checks = self.scenario.checks.map_or_else(String::new, |checks| {
            let inter = checks.interval.as_millis();
            format!("check inter {inter}ms fall 3 rise 2 observe layer7 error-limit 10 on-error {on_error}")
        });
        let mut place = 0;
        let server = |to: &SocketAddr, _: u32| {
            place += 1;
            format!("    server s{place} {to}")
        };
        let template = include_str!("../peers/haproxy.cfg");
        self.fill(template, server, |span| format!("{}ms", span.as_millis()), &checks)
    }

    fn envoy(&self) -> String {
        let seconds = |span: Duration| format!("{:.3}s", span.as_secs_f64());
        let checks = self.scenario.checks.map_or_else(String::new, |checks| {
            let (interval, timeout) = (seconds(checks.interval), seconds(checks.timeout));
            format!(
                "    health_checks:\n    - {{timeout: {timeout}, interval: {interval}, no_traffic_interval: {interval}, \
                 unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {{path: /health}}}}"
            )
        });
        let server = |to: &SocketAddr, _: u32| {
            let (address, port) = (to.ip(), to.port());
            format!("        - endpoint: {{address: {{socket_address: {{address: {address}, port_value: {port}}}}}}}")
        };
        self.fill(include_str!("../peers/envoy.yaml"), server, seconds, &checks)
    }

    fn fill(
        &self,
        template: &str,
        mut server: impl FnMut(&SocketAddr, u32) -> String,
        span: impl Fn(Duration) -> String,
        checks: &str,
    ) -> String {
        let mut servers = String::new();
        for (to, config) in self.destinations.iter().zip(&self.scenario.destinations) {
            // Writing into a String does not fail.
            let _ = writeln!(servers, "{}", server(to, config.weight));
        }
        let checked = self.scenario.checks.map_or(self.scenario.connect, |checks| checks.timeout);
        let (head, rest) = template.split_once("replaced.\n").unwrap_or(("", template));
        let rest = rest
            .replace("SERVERS", servers.trim_end())
            .replace("ADDRESS", &self.addr.to_string())
            .replace("PORT", &self.addr.port().to_string())
            .replace("CONNECT", &span(self.scenario.connect))
            .replace("RESPONSE", &span(self.scenario.response))
            .replace("CHECKED", &span(checked))
            .replace("CHECKS", checks)
            .replace("RETRIES", &self.scenario.attempts.saturating_sub(1).to_string())
            .replace("ATTEMPTS", &self.scenario.attempts.to_string());
        format!("{head}replaced.\n{rest}")
    }
}

/// An address of this machine where nobody listens now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A program of this workspace, built beside this one; tests lie one folder deeper.
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    beside.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into())
}

/// Administrators' programs are not on everybody's path.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

const LISTENS_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
