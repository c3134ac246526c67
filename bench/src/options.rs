//! What can be asked of a run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::work::Work;

/// Asked for by `--help`.
pub(crate) const USAGE: &str = "\
bench [--work a,b] [--rounds N] [--seconds S] [--connections N] [--only a,b] [--json FILE] [--document FILE]
  --work         small,10k/s when not given; all, or some of: small, logged, post, 10kB, 1MiB, 100MiB, 10k/s, 20k/s,
                 40k/s, tls, tls-new, h2, grpc, routes, workers, idle
  --rounds       rounds for each proxy, 9
  --seconds      length of a round without its warm-up, 2
  --connections  client connections, 64; at rest (idle) 9000
  --only         some of nginx, haproxy, lazaret, pingora, envoy, caddy, tcp-copy, lazaret-routes, lazaret-two,
                 nginx-two
  --json         writes the figures to a file
  --document     replaces the measured part of docs/performance.md (or of another file with its marks), and draws
                 performance.svg beside it";

/// The proxy under test has it to itself.
pub(crate) const PROXY_CORE: usize = 0;
/// The load and the destinations spin on it.
pub(crate) const LOAD_CORE: usize = 1;

pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) length: Duration,
    pub(crate) connections: usize,
    pub(crate) works: Vec<Work>,
    /// Whether memory at rest is measured.
    pub(crate) idle: Idle,
    pub(crate) only: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) document: Option<PathBuf>,
}

impl Options {
    /// `None` when help is asked for.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            rounds: 9,
            length: Duration::from_secs(2),
            connections: 64,
            works: vec![Work::Small, Work::Paced(10_000)],
            idle: Idle::Skipped,
            only: Vec::new(),
            json: None,
            document: None,
        };
        while let Some(word) = words.next() {
            if word == "--help" {
                return Ok(None);
            }
            let value = words.next().with_context(|| format!("{word} needs a value\n{USAGE}"))?;
            match word.as_str() {
                "--rounds" => options.rounds = value.parse()?,
                "--seconds" => options.length = Duration::try_from_secs_f64(value.parse()?)?,
                "--connections" => options.connections = value.parse()?,
                "--work" => options.choose(&value)?,
                "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                "--json" => options.json = Some(value.into()),
                "--document" => options.document = Some(value.into()),
                _ => bail!("{word} is unknown\n{USAGE}"),
            }
        }
        ensure!(options.rounds > 0 && options.connections > 0, "a run needs rounds and connections");
        ensure!(options.length >= Duration::from_millis(400), "a round needs two windows of 200 ms");
        Ok(Some(options))
    }
}

impl Options {
    fn choose(&mut self, value: &str) -> Result<()> {
        self.works.clear();
        for name in value.split(',') {
            match name {
                "all" => {
                    self.works = Work::ALL.to_vec();
                    self.idle = Idle::Measured;
                }
                "idle" => self.idle = Idle::Measured,
                _ => self.works.push(Work::of(name).with_context(|| format!("{name} is no work\n{USAGE}"))?),
            }
        }
        Ok(())
    }
}

/// Whether memory at rest is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    Skipped,
    Measured,
}

/// Cores of the machine, also those that this thread is not pinned to.
pub(crate) fn all_cores() -> usize {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count()
}
