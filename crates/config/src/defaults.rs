//! What holds where a file says nothing: one column for the native format, one for a YARP file. The only place where
//! these numbers stand; the rest of the model's defaults are the types' own.

use std::time::Duration;

use model::active::ProbeStart;
use model::retry::RetryRules;
use model::timeouts::{ClientLimits, Timeouts};
use model::tls::Alpn;

use crate::origin::DefaultsOf;

/// What listeners speak by ALPN, in order of preference, where nothing else is said.
pub const LISTENER_PROTOCOLS: [Alpn; 2] = [Alpn::Http2, Alpn::Http11];

/// One column of the table of defaults.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Start of one probe to the start of the next.
    pub probe_interval: Duration,
    /// How long a probe may take.
    pub probe_timeout: Duration,
    /// Failed probes in a row until Unhealthy.
    pub probe_threshold: u32,
    /// The next probe while a verdict is pending.
    pub confirm_interval: Duration,
    /// Whether a new destination waits for its first probe.
    pub probe_start: ProbeStart,
    /// Time limits towards destinations.
    pub timeouts: Timeouts,
    /// Limits on clients.
    pub limits: ClientLimits,
    /// What is tried again.
    pub retry: RetryRules,
}

impl Defaults {
    /// The column.
    pub fn of(whose: DefaultsOf) -> Self {
        match whose {
            DefaultsOf::Native => Self {
                probe_interval: Duration::from_secs(5),
                probe_timeout: Duration::from_secs(2),
                probe_threshold: 2,
                confirm_interval: CONFIRM,
                probe_start: ProbeStart::ProbeFirst,
                timeouts: Timeouts::NATIVE,
                limits: ClientLimits::NATIVE,
                retry: RetryRules::native(),
            },
            DefaultsOf::Yarp => Self {
                probe_interval: Duration::from_secs(15),
                probe_timeout: Duration::from_secs(10),
                probe_threshold: 2,
                confirm_interval: CONFIRM,
                probe_start: ProbeStart::Eligible,
                timeouts: Timeouts::YARP,
                limits: ClientLimits::YARP,
                retry: RetryRules::off(),
            },
        }
    }
}

const CONFIRM: Duration = Duration::from_secs(1);
/// Address of the control API.
pub const CONTROL_ADDRESS: &str = "127.0.0.1:9090";
/// Path of the control socket.
pub const CONTROL_SOCKET: &str = "/run/lazaret/control.sock";
/// Where a YARP file listens when it names no endpoint: Kestrel's own default.
pub const YARP_LISTENER: &str = "127.0.0.1:5000";
/// Path of lazaret-rhi's status socket.
pub const RHI_STATUS_SOCKET: &str = "/run/lazaret-rhi/status.sock";
