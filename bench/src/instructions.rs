//! `bench instructions`: how many instructions of user space a request costs, stage by stage, counted by callgrind.
//!
//! Instructions are the same on a quiet machine and on a busy one, so a change of a percent shows. They are no time: what
//! the kernel does and what misses a cache is not in them. Two runs of different length are subtracted, which leaves out
//! the start; each is 64 kept connections that send one request each, again and again.

mod profile;
mod stage;

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use self::profile::Profile;
use crate::certificate;
use crate::engine::Engine;
use crate::peers::Peer;
use crate::work::Work;

/// Measures, prints, and replaces the section of a document when one is named.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let (work, document) = match words {
        [] => (Work::Small, None),
        [option, path] if option == "--document" => (Work::Small, Some(PathBuf::from(path))),
        [option, name] if option == "--work" => (work(name)?, None),
        _ => anyhow::bail!("usage: bench instructions [--document FILE | --work NAME]"),
    };
    let folder = std::env::temp_dir().join("lazaret-bench");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    certificate::make(&folder)?;
    let mut engine = Engine::new(work.messages(), work.transport(), certificate::client(&folder, "http/1.1")?)?;
    // Where two of ours are compared, the other one.
    let ours = work.peers().iter().rfind(|name| name.starts_with("lazaret")).context("Lazaret takes part in all")?;
    let peer = Peer::new(ours, work, &folder)?;
    let short = measure(&mut engine, &peer, &folder, SHORT)?;
    let long = measure(&mut engine, &peer, &folder, LONG)?;
    let text = table(&short, &long, (LONG - SHORT) * CONNECTIONS);
    print!("{text}");
    match document {
        Some(path) => write_into(&path, &text),
        None => Ok(()),
    }
}

/// A work whose load this program makes.
fn work(name: &str) -> Result<Work> {
    Work::of(name).filter(|work| !work.is_external()).with_context(|| format!("{name} cannot be counted"))
}

/// One run under callgrind: so many times each connection sends a request.
fn measure(engine: &mut Engine, peer: &Peer, folder: &Path, times: usize) -> Result<Profile> {
    let out = folder.join(format!("callgrind.{times}"));
    let mut child = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .args(&peer.words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("valgrind cannot be started: is it installed?")?;
    let driven = drive(engine, &mut child, peer.addr, times);
    let ended = end(engine, &mut child);
    driven?;
    ended?;
    Profile::read(&out)
}

fn drive(engine: &mut Engine, child: &mut Child, addr: SocketAddr, times: usize) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(addr).is_err() {
        ensure!(child.try_wait()?.is_none(), "the proxy ended at once under valgrind");
        ensure!(Instant::now() < deadline, "it does not listen on {addr}");
        engine.idle(Duration::from_millis(50))?;
    }
    // The first probes.
    engine.idle(Duration::from_secs(2))?;
    engine.aim(addr, CONNECTIONS)?;
    for _ in 0..times {
        engine.once_each()?;
    }
    let (answered, failed) = (engine.tally.answered, engine.tally.failed);
    ensure!(failed == 0 && answered == (times * CONNECTIONS) as u64, "{answered} answered, {failed} failed");
    Ok(())
}

/// Lets it drain, so that the profile is written.
fn end(engine: &mut Engine, child: &mut Child) -> Result<()> {
    engine.aim(SocketAddr::from(([127, 0, 0, 1], 1)), 0)?;
    kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("the proxy did not end under valgrind");
        }
        engine.idle(Duration::from_millis(50))?;
    }
    Ok(())
}

fn table(short: &Profile, long: &Profile, requests: usize) -> String {
    let each = |long: u64, short: u64| long.saturating_sub(short) as f64 / requests as f64;
    let mut text = "| stage | instructions per request |\n|---|---|\n".to_owned();
    let mut sum = 0.0;
    for (stage, cost) in &long.stages {
        let cost = each(*cost, short.stages.get(stage).copied().unwrap_or(0));
        sum += cost;
        // Writing into memory does not fail.
        let _ = writeln!(text, "| {} | {cost:.0} |", stage.title());
    }
    let _ = writeln!(text, "| all of user space | {sum:.0} |");
    let _ = writeln!(text, "| (allocations) | {:.2} |", each(long.allocations, short.allocations));
    text
}

fn write_into(path: &Path, table: &str) -> Result<()> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{name}: {BEGIN} is missing"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{name}: {END} is missing"))?;
    std::fs::write(path, format!("{before}{BEGIN}\n{table}{END}{after}")).with_context(|| name.to_string())
}

const BEGIN: &str = "<!-- instructions:begin -->";
const END: &str = "<!-- instructions:end -->";
const CONNECTIONS: usize = 64;
const SHORT: usize = 16;
const LONG: usize = 80;
/// Under valgrind all is some fifty times slower.
const PATIENCE: Duration = Duration::from_secs(60);
