//! The proxies under test: started on their core, watched for their CPU time, ended by their id.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::options::{Options, PROXY_CORE};

/// How a proxy is started.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    addr: SocketAddr,
    words: Vec<String>,
    version: &'static str,
}

/// All that this bench knows, or those that were asked for.
pub(crate) fn peers(options: &Options) -> Vec<Peer> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let file = |name: &str| peers.join(name).display().to_string();
    // Pid file and the like; always the same place, so that nothing piles up.
    let folder = std::env::temp_dir().join("lazaret-bench");
    let lazaret = beside("lazaret").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let all = [
        Peer {
            name: "nginx",
            addr: local(19080),
            words: words(&["nginx", "-p", &folder.display().to_string(), "-c", &file("nginx.conf")]),
            version: "-v",
        },
        Peer {
            name: "haproxy",
            addr: local(19081),
            words: words(&["haproxy", "-db", "-q", "-f", &file("haproxy.cfg")]),
            version: "-v",
        },
        Peer {
            name: "lazaret",
            addr: local(19082),
            words: words(&[&lazaret, "run", "--log", "error", "-c", &file("lazaret.yaml")]),
            version: "--version",
        },
    ];
    // A folder that cannot be made shows when nginx starts.
    let _ = fs::create_dir_all(&folder);
    let is_wanted = |peer: &Peer| options.only.is_empty() || options.only.iter().any(|name| name == peer.name);
    all.into_iter().filter(is_wanted).collect()
}

/// A running proxy; ended when dropped.
pub(crate) struct Proxy {
    pub(crate) name: &'static str,
    pub(crate) addr: SocketAddr,
    pub(crate) version: String,
    child: Child,
}

impl Proxy {
    pub(crate) fn start(peer: &Peer) -> Result<Self> {
        let program = peer.words.first().context("a program")?;
        let version = Command::new(program).arg(peer.version).output().with_context(|| program.clone())?;
        let version = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).into_owned();
        let version = version.lines().next().unwrap_or_default().to_owned();
        let child = Command::new("taskset")
            .args(["-c", &PROXY_CORE.to_string()])
            .args(&peer.words)
            .env("PATH", path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| program.clone())?;
        let mut proxy = Self { name: peer.name, addr: peer.addr, version, child };
        let deadline = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(peer.addr).is_err() {
            if let Some(status) = proxy.child.try_wait()? {
                bail!("it ended at once: {status}");
            }
            if Instant::now() > deadline {
                bail!("it does not listen on {}", peer.addr);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxy)
    }

    /// On-CPU time of all its threads and of its children's, in nanoseconds.
    pub(crate) fn cpu(&self) -> Result<u64> {
        self.processes()?.iter().map(|pid| cpu_of(*pid)).sum()
    }

    /// Resident memory of all its processes, in KiB.
    pub(crate) fn resident(&self) -> Result<u64> {
        let of = |pid: &u32| -> Result<u64> {
            let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
            Ok(line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0))
        };
        self.processes()?.iter().map(of).sum()
    }

    /// Itself and its children: nginx has a worker.
    fn processes(&self) -> Result<Vec<u32>> {
        let mut processes = vec![self.child.id()];
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Ok(pid) = name.to_string_lossy().parse::<u32>() else { continue };
            // It may have ended in between.
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
            if parent == Some(self.child.id()) {
                processes.push(pid);
            }
        }
        Ok(processes)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Keeps the calling thread on one core.
pub(crate) fn pin_to(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set).context("pinning the load to its core")
}

/// Busy time of the proxy's core, whoever caused it, in nanoseconds.
pub(crate) fn core_busy() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{PROXY_CORE} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name)).context("no such core in /proc/stat")?;
    let times: Vec<u64> = line.split_whitespace().filter_map(|time| time.parse().ok()).collect();
    // user, nice, system, then idle and iowait, then irq, softirq and steal; in hundredths of a second.
    let busy = times.iter().take(3).chain(times.iter().skip(5).take(3)).sum::<u64>();
    Ok(busy * 10_000_000)
}

fn cpu_of(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end in between.
        let Ok(text) = fs::read_to_string(entry?.path().join("schedstat")) else { continue };
        sum += text.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// A program that was built together with this one.
fn beside(name: &str) -> PathBuf {
    std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name))).unwrap_or_else(|| name.into())
}

/// Administrators' programs are not on everybody's path.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
