//! `cargo xtask setup`: installs the outside programs that tests and benches use.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::python;
use crate::run::{exists, run};

/// What is to be prepared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Real routing in network namespaces, and clients that others wrote.
    Tests,
    /// Peers to compare with.
    Benches,
    /// Both.
    All,
}

/// A program, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: Purpose,
}

const TOOLS: &[Tool] = &[
    Tool { program: "ip", package: "iproute2", purpose: Purpose::Tests },
    Tool { program: "bird", package: "bird2", purpose: Purpose::Tests },
    Tool { program: "nginx", package: "nginx-light", purpose: Purpose::Tests },
    Tool { program: "curl", package: "curl", purpose: Purpose::Tests },
    Tool { program: "nghttp", package: "nghttp2-client", purpose: Purpose::Tests },
    Tool { program: "wrk", package: "wrk", purpose: Purpose::Tests },
    Tool { program: "chromium", package: "chromium", purpose: Purpose::Tests },
    Tool { program: "python3", package: "python3", purpose: Purpose::Tests },
    Tool { program: "nginx", package: "nginx-light", purpose: Purpose::Benches },
    Tool { program: "haproxy", package: "haproxy", purpose: Purpose::Benches },
    Tool { program: "caddy", package: "caddy", purpose: Purpose::Benches },
    Tool { program: "cmake", package: "cmake", purpose: Purpose::Benches },
    Tool { program: "h2load", package: "nghttp2-client", purpose: Purpose::Benches },
    Tool { program: "nghttpd", package: "nghttp2-server", purpose: Purpose::Benches },
    Tool { program: "openssl", package: "openssl", purpose: Purpose::Benches },
    Tool { program: "taskset", package: "util-linux", purpose: Purpose::Benches },
];

/// Installs what is missing with apt when we may, else says what to install.
pub(crate) fn setup(purpose: Purpose) -> Result<ExitCode> {
    let has_tools = install(&missing(purpose))?;
    let has_packages = purpose == Purpose::Benches || !exists("python3") || python::prepare()?;
    if has_tools && has_packages {
        println!("setup: everything is here");
    }
    Ok(if has_tools && has_packages { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether they are there now.
fn install(packages: &[&str]) -> Result<bool> {
    if packages.is_empty() {
        return Ok(true);
    }
    if !exists("apt-get") || !is_root() {
        println!("setup: missing are {}; install them as root", packages.join(" "));
        return Ok(false);
    }
    let mut update = Command::new("apt-get");
    update.args(["-qq", "update"]);
    run(update)?;
    let mut install = Command::new("apt-get");
    install.args(["-qq", "-y", "--no-install-recommends", "install"]).args(packages);
    // A fresh daemon must not start serving on this machine.
    install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    Ok(run(install)?.is_ok)
}

/// The Debian packages that bring what is missing.
fn missing(purpose: Purpose) -> Vec<&'static str> {
    let is_wanted = |tool: &&Tool| purpose == Purpose::All || tool.purpose == purpose;
    let missing = TOOLS.iter().filter(is_wanted).filter(|tool| !exists(tool.program));
    let mut packages: Vec<_> = missing.map(|tool| tool.package).collect();
    if purpose != Purpose::Benches && !python::can_prepare() {
        packages.push("python3-venv");
    }
    packages
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    // Real, effective, saved, file system.
    uids.split_whitespace().nth(1) == Some("0")
}
