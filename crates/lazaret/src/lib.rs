//! Lazaret as a library: the proxy in code, with policies, probes and balancing of one's own.
//!
//! ```no_run
//! use lazaret::Lazaret;
//! use lazaret::config::{ClusterConfig, DestinationConfig, HealthCheckConfig};
//!
//! # fn main() -> Result<(), lazaret::Error> {
//! let running = Lazaret::builder()
//!     .listener("web", "127.0.0.1:8080")
//!     .route("all", "/{**rest}", "app")
//!     .cluster(ClusterConfig {
//!         cluster_id: "app".to_owned(),
//!         health_check: Some(HealthCheckConfig { active: Some(Default::default()), ..Default::default() }),
//!         destinations: vec![DestinationConfig::new("app1", "http://10.0.0.11:8000/")],
//!         ..Default::default()
//!     })
//!     .build()?
//!     .start()?;
//! running.wait();
//! # Ok(())
//! # }
//! ```
//!
//! [`Lazaret::builder`] collects a configuration in code, [`Lazaret::load`] reads a file; both end in a [`Lazaret`] that
//! nothing is wrong with. [`Lazaret::start`] binds, starts the threads and gives a [`Running`]. Read in this order:
//! [`config`], [`builder`], [`pipeline`], [`running`], then `assembly` (who is wired to whom).
//!
//! The start also opens the control API, on 127.0.0.1:9090 and on a unix socket. A second process on the machine, or a
//! test, keeps out of its way with a free port and no socket. What the API tells is at hand in the process, too:
//!
//! ```
//! use lazaret::config::{ClusterConfig, DestinationConfig};
//! use lazaret::{After, Health, HealthPair, HealthView, Journal, Lazaret, Revision};
//!
//! /// Both values of the first destination.
//! fn first(view: &HealthView) -> Option<HealthPair> {
//!     Some(view.clusters.first()?.destinations.first()?.health)
//! }
//!
//! /// How many events there were since the start, up to a hundred.
//! fn events(journal: &Journal) -> usize {
//!     match journal.after(Revision::default(), 100) {
//!         After::Events(events) => events.len(),
//!         After::Lost => 0,
//!     }
//! }
//!
//! # fn main() -> Result<(), lazaret::Error> {
//! let running = Lazaret::builder()
//!     .listener("web", "127.0.0.1:0")
//!     .control("127.0.0.1:0")
//!     .control_socket("off")
//!     .route("all", "/{**rest}", "app")
//!     .cluster(ClusterConfig {
//!         cluster_id: "app".to_owned(),
//!         destinations: vec![DestinationConfig::new("app1", "http://127.0.0.1:8000/")],
//!         ..Default::default()
//!     })
//!     .build()?
//!     .start()?;
//! let unjudged = HealthPair { active: Health::Unknown, passive: Health::Unknown };
//! assert_eq!(first(&running.view()), Some(unjudged));
//! // The configuration that was taken over.
//! assert!(events(running.journal()) >= 1);
//! running.stop();
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod config;

pub mod policies;

pub mod pipeline;

pub mod builder;

mod assembly;
mod listener_tls;
mod memory;
mod places;

pub mod inheritance;

pub mod running;

pub mod error;

pub use crate::builder::{Builder, Lazaret};
pub use crate::error::Error;
pub use crate::inheritance::Inheritance;
pub use crate::pipeline::Pipeline;
pub use crate::running::{HealthHandle, Running};

pub use ::config::{Loaded, Report};
pub use balance::{Candidates as BalancingCandidates, Loads, Policy as BalancingPolicy};
pub use health::active::{ActivePolicy, ActiveVerdict, ClusterProbes, DestinationProbes, ProbeResult};
pub use health::available::{AvailablePolicy, Candidate, Candidates, Selection};
pub use health::passive::{
    Alone, Around, Asking, Needs as PassiveNeeds, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion,
    Verdict as PassiveVerdict,
};
pub use health::{OutcomeEvent, ProbeOrder};
pub use model::cluster::Compat;
pub use model::config::Config;
pub use model::event::{Event, EventKind, Evidence};
pub use model::health::{Health, HealthPair};
pub use model::id::{ClusterId, DestinationId, DestinationIndex, DestinationKey, Revision, Slot};
pub use model::outcome::{FailureKind, Outcome, OutcomeClass};
pub use model::random::Random;
pub use model::time::Timestamp;
pub use model::view::HealthView;
pub use monitor::probe::BuiltInBuilder;
pub use monitor::{ProbeBuilder, ProbeEnd, ProbeMessage, ProbeSender};
pub use telemetry::journal::{After, Entry, Journal};
