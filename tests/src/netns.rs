//! Network namespaces for the tests of route injection: two sites, a router and a client, joined by veth pairs.
//!
//! ```text
//!   client ── router ──┬── site 1 (AS 65001, rhi0 = bridge)
//!   (AS 65000, eBGP,   └── site 2 (AS 65002, rhi0 = bridge)
//!    exports to the kernel)
//! ```
//!
//! Needs root, iproute2, bird and setpriv. Names carry the test's process id; nothing has an uplink; a namespace is
//! deleted when its value is dropped, after the processes in it, each killed by its own id.
//!
//! Walk: this file (one namespace), [`bird`], [`routes`] (what the router's kernel does, and when), [`control_api`] (a
//! scripted control API), [`daemon`] (`lazaret-rhi` without root), [`site`] (that and `lazaret` before its destinations), [`lab`] (BIRD in three places).

pub mod bird;
pub mod control_api;
pub mod daemon;
pub mod lab;
pub mod routes;
pub mod site;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};

/// What these tests need and this machine lacks; `None`: nothing.
pub fn lacking() -> Option<&'static str> {
    static LACKING: LazyLock<Option<String>> = LazyLock::new(look_around);
    LACKING.as_deref()
}

fn look_around() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("root".to_owned());
    }
    let has = |tool: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(tool).exists())
    };
    if let Some(tool) = ["ip", "bird", "birdc", "setpriv"].into_iter().find(|tool| !has(tool)) {
        return Some(format!("the program {tool}"));
    }
    let probe = format!("lzp{}", std::process::id());
    let can =
        |arguments: &[&str]| Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success());
    let works = can(&["netns", "add", &probe]) && can(&["-n", &probe, "link", "add", "rhi0", "type", "bridge"]);
    can(&["netns", "del", &probe]);
    (!works).then(|| "network namespaces with bridges".to_owned())
}

/// Says aloud what is lacking. Where the environment promises that nothing is (CI=true, LAZARET_REQUIRE=1), that is a
/// failure.
pub fn must_skip(test: &str) -> bool {
    let Some(what) = lacking() else { return false };
    let required = std::env::var_os("LAZARET_REQUIRE").is_some_and(|value| value == "1");
    assert!(!required, "{test} lacks {what}");
    testkit::skip(test, what);
    true
}

/// A network namespace with a loopback that is up.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one; `role` is a letter or two for people who look at `ip netns`.
    pub fn new(role: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lz{}-{number}{role}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip -n NAME …`; fails the test when that fails. Gives what it printed.
    pub fn ip(&self, arguments: &str) -> String {
        run(Command::new("ip").args(["-n", &self.name]).args(arguments.split(' ')))
    }

    /// Sets a kernel parameter.
    pub fn sysctl(&self, assignment: &str) {
        let (key, value) = assignment.split_once('=').expect("key=value");
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        let value = value.to_owned();
        self.enter(move || std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}")));
    }

    /// A command that runs inside. `ip netns exec` becomes the program, so the child's id is the program's.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program.as_ref());
        command
    }

    /// Runs `inside` on a thread in the namespace. Sockets that it opens stay there wherever they are used.
    pub fn enter<T: Send + 'static>(&self, inside: impl FnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.name);
        let thread = std::thread::spawn(move || {
            let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            setns(&file, CloneFlags::CLONE_NEWNET).expect("root may enter a namespace");
            inside()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The addresses of an interface as `address/prefix`, link-local ones left out.
    pub fn addresses(&self, interface: &str) -> Vec<String> {
        let shown = Command::new("ip").args(["-n", &self.name, "-o", "addr", "show", "dev", interface]).output();
        let shown = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let mut addresses: Vec<String> = shown
            .lines()
            .filter(|line| !line.contains("scope link"))
            .filter_map(|line| line.split_whitespace().nth(3).map(str::to_owned))
            .collect();
        addresses.sort();
        addresses
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The test may be failing already; a namespace that cannot be deleted is seen in `ip netns`.
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// Joins two namespaces by a veth pair. Each end: namespace, interface, IPv4 and IPv6 address with prefix.
pub fn join(a: (&Namespace, &str, &str, &str), b: (&Namespace, &str, &str, &str)) {
    a.0.ip(&format!("link add {} type veth peer name {} netns {}", a.1, b.1, b.0.name()));
    for (namespace, interface, v4, v6) in [a, b] {
        namespace.ip(&format!("addr add {v4} dev {interface}"));
        namespace.ip(&format!("addr add {v6} dev {interface} nodad"));
        namespace.ip(&format!("link set {interface} up"));
    }
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}
