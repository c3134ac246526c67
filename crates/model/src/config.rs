//! The whole resolved configuration: what every front end comes down to. Nothing in it can be invalid any more.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::listener::Listener;
use crate::page::ErrorPage;
use crate::route::Route;

/// The configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Traffic threads; `None`: one per CPU.
    pub workers: Option<NonZeroU16>,
    /// The control API.
    pub control: Control,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// In the order of the file.
    pub routes: Vec<Route>,
    /// In the order of the file.
    pub clusters: Vec<Cluster>,
    /// How a planned stop goes.
    pub drain: Drain,
    /// Where the access log goes.
    pub access_log: AccessLog,
    /// What answers and requests carry beside what was asked.
    pub answers: Answers,
    /// How names of destinations are looked up.
    pub dns: Dns,
    /// How much of what the health core is told is kept; `None`: nothing.
    pub recorder: Option<Recorder>,
}

/// The flight recorder: its limits, and where it writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorder {
    /// So long back, as far as `size` allows: a minute to a day.
    pub keep: Duration,
    /// Bytes of memory at most, and of `folder`: 1 MiB to 1 GiB.
    pub size: u64,
    /// Where it stands as well, so that it outlives the process; `None`: in memory alone.
    pub folder: Option<PathBuf>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { keep: Duration::from_secs(1800), size: 16 << 20, folder: None }
    }
}

/// How names of destinations are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers; empty: those of the system (`/etc/resolv.conf`).
    pub servers: Vec<SocketAddr>,
    /// An answer is good for so long at least, whatever its record says.
    pub min_ttl: Duration,
    /// And for so long at most.
    pub max_ttl: Duration,
}

impl Default for Dns {
    fn default() -> Self {
        Self { servers: Vec::new(), min_ttl: Duration::from_secs(5), max_ttl: Duration::from_secs(300) }
    }
}

/// What answers and requests carry beside what was asked. The default adds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// Whether each request has an id.
    pub request_id: RequestId,
    /// Bodies of our own answers.
    pub error_pages: Vec<ErrorPage>,
}

/// Whether each request has an id, for logs on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestId {
    /// It has not.
    #[default]
    Off,
    /// In the header of this name, lower case: kept where a trusted proxy sent one, else made anew.
    Header(String),
}

/// The control API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Address of the TCP listener; 127.0.0.1:9090 unless set.
    pub address: SocketAddr,
    /// Names under which it answers over TCP, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// Path of the unix socket for changing calls.
    pub socket: ControlSocket,
    /// Users that may change things over the socket, beside root and our own.
    pub users: Vec<String>,
    /// File with the token that admits changing calls over TCP.
    pub token_file: Option<PathBuf>,
}

/// The unix socket of the control API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlSocket {
    /// The default path; left out with one warning where its folder cannot be written.
    Default(PathBuf),
    /// Asked for: failing to bind it stops the start.
    Path(PathBuf),
    /// None.
    Off,
}

/// How a planned stop goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Goes on accepting for so long while every node is already reported unhealthy.
    pub lead: Duration,
    /// Then finishes what is in flight within this time.
    pub grace: Duration,
    /// After an upgrade the old process finishes what is in flight within this time.
    pub upgrade_grace: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self { lead: Duration::ZERO, grace: Duration::from_secs(30), upgrade_grace: Duration::from_secs(600) }
    }
}

/// Where the access log goes, one JSON object a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLog {
    /// Nowhere.
    #[default]
    Off,
    /// Standard output.
    Stdout,
    /// A file, opened for appending, reopened on SIGUSR1 and SIGHUP.
    File(PathBuf),
}
