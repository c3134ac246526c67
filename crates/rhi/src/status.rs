//! The status document: what the core knows of itself, for people and for the dashboard.

use apisix::rhi::{RhiStatus, UpstreamStatus, VipStatus};
use model::time::Timestamp;
use model::vip::{Condition, UpstreamRef, Vip};

use crate::core::{Core, Phase};
use crate::upstream::{Cause, HeldFor, Opinion, Standing, Upstream};
use crate::vip::Wanted;

/// What the core cannot know: who it is and what the wall clock shows.
pub struct Identity<'a> {
    /// Random per process.
    pub instance: &'a str,
    /// Version of the program.
    pub version: &'a str,
    /// A point in time as RFC 3339 text.
    pub wall_clock: &'a dyn Fn(Timestamp) -> String,
    /// Whether the file on disk was refused and an older configuration runs.
    pub config_stale: bool,
}

impl Core {
    /// The whole document.
    pub fn status(&self, now: Timestamp, identity: &Identity<'_>) -> RhiStatus {
        RhiStatus {
            instance: identity.instance.to_owned(),
            version: identity.version.to_owned(),
            interface: self.config.interface.clone(),
            interface_present: self.picture.link(&self.config.interface).is_some(),
            control_url: self.config.control_url.clone(),
            last_cycle: self.cycle.last_complete_start().map(identity.wall_clock),
            draining: matches!(self.phase, Phase::Stopping | Phase::Stopped),
            config_stale: identity.config_stale,
            failed_changes: self.commands.failures(),
            vips: self.config.vips.iter().map(|vip| self.vip_status(now, vip, identity)).collect(),
        }
    }

    fn vip_status(&self, now: Timestamp, vip: &Vip, identity: &Identity<'_>) -> VipStatus {
        let decision = self.decisions.get(&vip.address);
        let announced = self.picture.has_host(&self.config.interface, vip.address);
        VipStatus {
            address: vip.address.to_string(),
            description: vip.description.clone(),
            announced,
            wanted: decision.map(|decision| decision.wanted.is_announced()),
            reason: decision.map_or("first_cycle", |decision| decision.because.word()).to_owned(),
            since: decision.map(|decision| (identity.wall_clock)(decision.since)),
            condition: match vip.condition {
                Condition::All => "all",
                Condition::Any => "any",
            }
            .to_owned(),
            error: decision.and_then(|decision| self.difference(vip, decision.wanted, Wanted::as_found(announced))),
            upstreams: vip.upstreams.iter().map(|name| self.upstream_status(now, name, identity)).collect(),
        }
    }

    /// Why the interface does not show the decision.
    fn difference(&self, vip: &Vip, wanted: Wanted, found: Wanted) -> Option<String> {
        if wanted == found {
            return None;
        }
        if self.picture.link(&self.config.interface).is_none() {
            return Some(format!("there is no interface {}", self.config.interface));
        }
        let failure = self.commands.last_error(vip.address);
        Some(failure.unwrap_or("the change is under way").to_owned())
    }

    fn upstream_status(&self, now: Timestamp, name: &UpstreamRef, identity: &Identity<'_>) -> UpstreamStatus {
        let unseen = Upstream::default();
        let upstream = self.upstreams.get(name).unwrap_or(&unseen);
        let failed = upstream.failed_polls();
        let counting = match upstream.standing() {
            Some(Standing::Healthy { counting, .. }) => counting,
            Some(Standing::Warming { .. } | Standing::Sick(_)) | None => 0,
        };
        let result = match upstream.opinion(now, self.config.failure_policy) {
            Opinion::Up => "healthy",
            Opinion::Down(cause) => cause.word(),
            Opinion::Hold(HeldFor::NoAnswer) if failed.in_a_row == 0 => "pending",
            Opinion::Hold(why) => why.word(),
            Opinion::Freeze { failed_polls } => Cause::ApiUnreachable { failed_polls }.word(),
        };
        UpstreamStatus {
            name: name.to_string(),
            result: result.to_owned(),
            healthy: u32::try_from(counting).unwrap_or(u32::MAX),
            nodes: u32::try_from(upstream.nodes().len()).unwrap_or(u32::MAX),
            failed_polls: failed.in_a_row,
            polled: upstream.polled_at().map(identity.wall_clock),
            error: failed.last.map(|failure| failure.to_string()),
        }
    }
}
