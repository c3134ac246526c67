//! The status document of `lazaret-rhi` (`GET /status`; one VIP of it: `GET /vips/{address}`).
//!
//! Times are RFC 3339 texts, words are the ones of the log.

use serde::{Deserialize, Serialize};

/// What `lazaret-rhi` says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RhiStatus {
    /// Random per process.
    pub instance: String,
    /// Version of the program.
    pub version: String,
    /// Interface that carries the VIPs.
    pub interface: String,
    /// Whether the interface is there.
    pub interface_present: bool,
    /// Base URL of the control API that is polled.
    pub control_url: String,
    /// When the last complete cycle began; `None` before the first.
    pub last_cycle: Option<String>,
    /// A planned stop or a drain by a person is under way.
    #[serde(default)]
    pub draining: bool,
    /// The running configuration is older than the file, which is refused.
    #[serde(default)]
    pub config_stale: bool,
    /// Changes of addresses that the kernel refused since the start; each is tried again.
    #[serde(default)]
    pub failed_changes: u64,
    /// Every VIP, in the order of the file.
    pub vips: Vec<VipStatus>,
}

/// One VIP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipStatus {
    /// The address, without prefix length.
    pub address: String,
    /// Words for people, from the configuration.
    #[serde(default)]
    pub description: String,
    /// The address is on the interface.
    pub announced: bool,
    /// The decision; `None` before the first complete cycle.
    pub wanted: Option<bool>,
    /// Why, in one snake-case word.
    pub reason: String,
    /// Since when the decision stands.
    pub since: Option<String>,
    /// `all` or `any`.
    pub condition: String,
    /// Why the interface does not show the decision, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it stands for.
    pub upstreams: Vec<UpstreamStatus>,
}

/// One upstream of a VIP, as last polled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamStatus {
    /// Kind and id: `upstreams/api`.
    pub name: String,
    /// What the last poll came to, in one snake-case word: `healthy`, or why there is no healthy node, or how the poll
    /// failed; `pending` before the first.
    pub result: String,
    /// Nodes that count as healthy in the last answer.
    pub healthy: u32,
    /// Nodes in the last answer.
    pub nodes: u32,
    /// Failed polls in a row.
    pub failed_polls: u32,
    /// When the last poll ended.
    pub polled: Option<String>,
    /// The last failure in words, while polls fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_document_reads_with_what_may_be_left_out() {
        let text = r#"{"instance":"1","version":"0.1.0","interface":"rhi0","interface_present":true,
            "control_url":"http://127.0.0.1:9090","last_cycle":null,"vips":[{"address":"192.0.2.1","announced":false,
            "wanted":null,"reason":"first_cycle","since":null,"condition":"all","upstreams":[{"name":"upstreams/api",
            "result":"pending","healthy":0,"nodes":0,"failed_polls":0,"polled":null}]}]}"#;
        let status: RhiStatus = serde_json::from_str(text).unwrap();
        assert_eq!(status.vips[0].wanted, None);
        let again = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();
        assert_eq!(status, again);
    }
}
