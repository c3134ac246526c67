//! The proxies under test: started on their core, watched for their CPU time, ended by their id.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::options::PROXY_CORE;
use crate::peers::{Cores, Peer};

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
        let version = version(peer, program)?;
        let cores = match peer.cores {
            Cores::One => PROXY_CORE.to_string(),
            Cores::All => format!("0-{}", crate::options::all_cores() - 1),
        };
        let child = Command::new("taskset")
            .args(["-c", &cores])
            .args(&peer.words)
            .env("PATH", path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
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

/// What it calls itself.
fn version(peer: &Peer, program: &str) -> Result<String> {
    if peer.version.is_empty() {
        return Ok(peer.name.to_owned());
    }
    let version = Command::new(program).arg(peer.version).env("PATH", path()).output();
    let version = version.with_context(|| program.to_owned())?;
    let version = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).into_owned();
    let line = version.lines().find(|line| line.contains(char::is_numeric)).unwrap_or_default();
    // Envoy: `…/envoy  version: <commit>/1.40.0/Clean/…`.
    if let Some((_, build)) = line.split_once("envoy  version: ") {
        return Ok(format!("envoy/{}", build.split('/').nth(1).unwrap_or_default()));
    }
    let line = line.trim().trim_start_matches("nginx version: ");
    Ok(line.split(" - ").next().unwrap_or(line).to_owned())
}

/// Administrators' programs are not on everybody's path.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}
