//! The configuration in code: the same fields, defaults and validation as the file.
//!
//! Each type serialises to the file's own keys, and [`crate::Builder::build`] reads the result with the file's reader.
//! So code and file cannot drift: what the file refuses is refused here, with the same words, and what is left out
//! (`None`) gets the file's default.

mod checks;
mod cluster;
mod document;
mod listener;
mod policy;
mod route;
mod span;
mod split;

pub use checks::{
    ActiveHealthCheckConfig, AvailablePolicyConfig, ExpectConfig, GuardsConfig, HealthCheckConfig,
    PassiveHealthCheckConfig, PassivePolicyConfig, ReadmissionConfig,
};
pub use cluster::{
    AffinityCookieConfig, ClusterConfig, DestinationConfig, HashConfig, QueueConfig, RetryBudgetConfig, RetryConfig,
    SessionAffinityConfig, TimeoutsConfig, TlsConfig,
};
pub use document::{
    DnsConfig, DrainConfig, Http2Config, LimitsConfig, ListenerConfig, RecorderConfig, TransportFailureRateOptions,
};
pub use listener::{CertificateConfig, ClientAuthConfig, ListenerTlsConfig};
pub use policy::{ErrorPageConfig, LimitKeyConfig, MaintenanceConfig, RequestLimitConfig, TransformConfig};
pub use route::{BufferingConfig, RouteConfig, RouteMatch, RouteRetryConfig, ValueRuleConfig};
pub use split::{ForceConfig, StickyConfig, WeightedClusterConfig};

pub(crate) use document::Document;
