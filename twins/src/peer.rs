//! The proxies under test: their configurations, written from the scenario, and their processes, ended by their ids.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::policy::Addresses;
use lab::scenario::Scenario;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::contestant::{Contestant, Program};
use crate::destinations::Doors;

/// A running proxy; ended when dropped.
pub struct Peer {
    /// Where it serves.
    pub addr: SocketAddr,
    child: Child,
}

impl Peer {
    /// Starts a contestant's program in front of these destinations; its files go into `folder`.
    pub fn start(contestant: &Contestant, scenario: &Scenario, destinations: &[Doors], folder: &Path) -> Result<Self> {
        let addr = free_address()?;
        let setting = Setting { scenario, destinations, addr };
        let rules = contestant.program.rules(scenario);
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
            Program::Nginx { .. } => {
                let home = folder.join(contestant.name);
                std::fs::create_dir_all(&home)?;
                let path = file("conf", setting.nginx(&rules))?;
                ["nginx", "-p", &home.display().to_string(), "-c", &path].map(str::to_owned).to_vec()
            }
            Program::Haproxy(_) => {
                let path = file("cfg", setting.haproxy(&rules))?;
                ["haproxy", "-db", "-q", "-f", &path].map(str::to_owned).to_vec()
            }
            Program::Envoy => {
                let path = file("yaml", setting.envoy(&rules))?;
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
    destinations: &'a [Doors],
    addr: SocketAddr,
}

impl Setting<'_> {
    fn lazaret(&self, contestant: &Contestant, control: SocketAddr) -> String {
        let addresses = |place: usize| {
            let doors = self.destinations.get(place);
            Addresses {
                traffic: doors.map_or_else(String::new, |doors| doors.traffic.to_string()),
                probes: doors.map(|doors| doors.probes.to_string()),
            }
        };
        let workers = self.scenario.proxies.workers;
        format!(
            "version: 1\nworkers: {workers}\ncontrol: {{address: \"{control}\", socket: null}}\n\
             listeners: {{web: {{address: \"{}\"}}}}\n\
             routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: {}}}}}\nclusters:\n{}",
            self.addr,
            lab::policy::CLUSTER,
            contestant.policy.cluster(self.scenario, &addresses)
        )
    }

    fn nginx(&self, rules: &[String]) -> String {
        let rules = rules.join(" ");
        let server = |doors: &Doors, weight: u32| {
            let to = doors.traffic;
            format!("        server {to} weight={weight} {rules};")
        };
        self.fill(include_str!("../peers/nginx.conf"), server, |span| format!("{}ms", span.as_millis()), "")
    }

    fn haproxy(&self, rules: &[String]) -> String {
        let mut place = 0;
        let server = |doors: &Doors, _: u32| {
            place += 1;
            let port =
                if self.scenario.checks.is_none() { String::new() } else { format!(" port {}", doors.probes.port()) };
            format!("    server s{place} {}{port}", doors.traffic)
        };
        let template = include_str!("../peers/haproxy.cfg");
        self.fill(template, server, |span| format!("{}ms", span.as_millis()), &rules.join(" "))
    }

    fn envoy(&self, rules: &[String]) -> String {
        let seconds = |span: Duration| format!("{:.3}s", span.as_secs_f64());
        let rules: Vec<String> = rules.iter().map(|rule| format!("    {rule}")).collect();
        let server = |doors: &Doors, _: u32| {
            let (address, port, probes) = (doors.traffic.ip(), doors.traffic.port(), doors.probes.port());
            format!(
                "        - endpoint: {{address: {{socket_address: {{address: {address}, port_value: {port}}}}}, \
                 health_check_config: {{port_value: {probes}}}}}"
            )
        };
        self.fill(include_str!("../peers/envoy.yaml"), server, seconds, &rules.join("\n"))
    }

    fn fill(
        &self,
        template: &str,
        mut server: impl FnMut(&Doors, u32) -> String,
        span: impl Fn(Duration) -> String,
        rules: &str,
    ) -> String {
        let mut servers = String::new();
        for (doors, config) in self.destinations.iter().zip(&self.scenario.destinations) {
            // Writing into a String does not fail.
            let _ = writeln!(servers, "{}", server(doors, config.weight));
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
            .replace("RULES", rules)
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
