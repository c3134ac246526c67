//! A cluster: interchangeable destinations and the policies over them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::active::ActiveCheck;
use crate::address::Scheme;
use crate::affinity::SessionAffinity;
use crate::available::AvailablePolicy;
use crate::balancing::LoadBalancing;
use crate::destination::Destination;
use crate::guards::Guards;
use crate::id::ClusterId;
use crate::passive::PassiveCheck;
use crate::retry::RetryRules;
use crate::timeouts::Timeouts;
use crate::tls::CertificateFiles;
use crate::upstream::{Family, Outbound, UpstreamHttp};

/// A cluster, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// Whose arithmetic its policies follow.
    pub compat: Compat,
    /// Who serves.
    pub load_balancing: LoadBalancing,
    /// Who stays with whom.
    pub session_affinity: Option<SessionAffinity>,
    /// Who may serve.
    pub health_check: HealthCheck,
    /// What is tried again.
    pub retry: RetryRules,
    /// How requests wait that no destination can take at once.
    #[serde(default)]
    pub queue: Queue,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// TLS towards https destinations.
    pub tls: UpstreamTls,
    /// What Host destinations see.
    pub host: UpstreamHost,
    /// Which HTTP they speak.
    pub http: UpstreamHttp,
    /// Where connections to them start.
    pub outbound: Outbound,
    /// Which addresses of their names count.
    pub family: Family,
    /// Free text of a YARP file, keys as written.
    pub metadata: BTreeMap<String, String>,
    /// The servers, in the order of the file.
    pub destinations: Vec<Destination>,
}

/// How requests wait that no destination can take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Most requests that wait, all workers together; 0: none waits.
    pub length: u32,
    /// How long one waits where all available destinations have as many requests as they may have.
    pub busy_timeout: Duration,
    /// How long one waits where no destination is available; zero: not at all.
    pub unavailable_timeout: Duration,
}

impl Queue {
    /// Of both formats.
    pub const DEFAULT: Self =
        Self { length: 100, busy_timeout: Duration::from_secs(1), unavailable_timeout: Duration::ZERO };

    /// Nobody waits.
    pub const OFF: Self = Self { length: 0, busy_timeout: Duration::ZERO, unavailable_timeout: Duration::ZERO };

    /// What holds where nothing is said: nginx answers at once.
    pub const fn of(compat: Compat) -> Self {
        match compat {
            Compat::None | Compat::Yarp => Self::DEFAULT,
            Compat::Nginx => Self::OFF,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Cluster {
    /// The HTTP that traffic speaks: what ALPN would decide is HTTP/1.1 where no destination speaks TLS.
    pub fn traffic_http(&self) -> UpstreamHttp {
        let has_tls = self.destinations.iter().any(|destination| destination.address.scheme == Scheme::Https);
        match self.http {
            UpstreamHttp::Http2OrHttp1 if !has_tls => UpstreamHttp::Http1,
            UpstreamHttp::Http1 | UpstreamHttp::Http2 | UpstreamHttp::Http2OrHttp1 => self.http,
        }
    }
}

/// The checks of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// Joins both values.
    pub available_destinations_policy: AvailablePolicy,
    /// Probes; `None`: off.
    pub active: Option<ActiveCheck>,
    /// Traffic; `None`: off.
    pub passive: Option<PassiveCheck>,
    /// What holds ejections back.
    pub guards: Guards,
}

/// Whose arithmetic, history and reactivation a cluster follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// Our own.
    #[default]
    None,
    /// YARP 2.3's, to the letter.
    Yarp,
    /// nginx 1.22's MaxFails, to the letter.
    Nginx,
}

/// TLS towards https destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UpstreamTls {
    /// Trusted authorities (PEM) in place of the platform's.
    pub ca: Option<PathBuf>,
    /// Name for SNI and verification in place of the address's host.
    pub server_name: Option<String>,
    /// Whether certificates are verified.
    pub verify: Verify,
    /// What we show when a destination asks for a certificate.
    pub client_certificate: Option<CertificateFiles>,
}

/// Whether certificates of destinations are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Yes.
    #[default]
    Full,
    /// No: anybody can answer in the destination's place. `check` warns.
    DangerousNone,
}

/// What Host header destinations see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamHost {
    /// The destination's `host`, else its address's authority (as YARP).
    #[default]
    Destination,
    /// The client's.
    Original,
}
