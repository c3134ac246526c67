//! `cargo xtask setup`: installs the outside programs that tests and benches use.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::run::{exists, run};

/// What is to be prepared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Real routing in network namespaces.
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

const TOOLS: [Tool; 10] = [
    Tool { program: "ip", package: "iproute2", purpose: Purpose::Tests },
    Tool { program: "bird", package: "bird2", purpose: Purpose::Tests },
    Tool { program: "nginx", package: "nginx-light", purpose: Purpose::Tests },
    Tool { program: "nginx", package: "nginx-light", purpose: Purpose::Benches },
    Tool { program: "haproxy", package: "haproxy", purpose: Purpose::Benches },
    Tool { program: "caddy", package: "caddy", purpose: Purpose::Benches },
    Tool { program: "h2load", package: "nghttp2-client", purpose: Purpose::Benches },
    Tool { program: "nghttpd", package: "nghttp2-server", purpose: Purpose::Benches },
    Tool { program: "openssl", package: "openssl", purpose: Purpose::Benches },
    Tool { program: "taskset", package: "util-linux", purpose: Purpose::Benches },
];

/// Installs what is missing with apt when we may, else says what to install.
pub(crate) fn setup(purpose: Purpose) -> Result<ExitCode> {
    let missing = missing(purpose);
    if missing.is_empty() {
        println!("setup: everything is here");
        return Ok(ExitCode::SUCCESS);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if !exists("apt-get") || !is_root() {
        println!("setup: missing are {}; install them as root", packages.join(" "));
        return Ok(ExitCode::FAILURE);
    }
    let mut update = Command::new("apt-get");
    update.args(["-qq", "update"]);
    run(update)?;
    let mut install = Command::new("apt-get");
    install.args(["-qq", "-y", "--no-install-recommends", "install"]).args(&packages);
    // A fresh daemon must not start serving on this machine.
    install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    let installed = run(install)?;
    Ok(if installed.is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn missing(purpose: Purpose) -> Vec<&'static Tool> {
    let is_wanted = |tool: &&Tool| purpose == Purpose::All || tool.purpose == purpose;
    TOOLS.iter().filter(is_wanted).filter(|tool| !exists(tool.program)).collect()
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    // Real, effective, saved, file system.
    uids.split_whitespace().nth(1) == Some("0")
}
